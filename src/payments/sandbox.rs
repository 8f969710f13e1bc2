//! The sandbox provider: a durable ledger in its own database file, idempotency of its own, and faults on demand, by
//! payment method. It runs in this process and shares nothing else with it.

use super::{Answering, Booking, Found, Outcome, PaymentProvider};
use crate::clock::Clock;
use crate::domain::money::Currency;
use crate::domain::payment::{Charge, Decision, PaymentMethod, PaymentStatus, ProviderKey};
use crate::domain::time::Timestamp;
use crate::domain::words::words;
use crate::{failpoints, sqlite};
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sandbox");
/// Why the declining method declines.
const DECLINE_REASON: &str = "insufficient_funds";
/// As long as Stripe keeps an idempotency key.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

words! {
    /// The payment methods, each named for what it does. Faults happen on a key's first attempt only.
    pub enum Method {
        Ok = "pm_sandbox_ok",
        Declined = "pm_sandbox_declined",
        /// Answers after a delay.
        Slow = "pm_sandbox_slow",
        /// Never answers, and has done nothing.
        TimeoutBefore = "pm_sandbox_timeout_before_charge",
        /// Never answers, and has charged.
        TimeoutAfter = "pm_sandbox_timeout_after_charge",
        /// Answers 500, and has done nothing.
        ErrorBefore = "pm_sandbox_error_before_charge",
        /// Answers 500, and has charged.
        ErrorAfter = "pm_sandbox_error_after_charge",
        /// Never answers; the first look-up doesn't see it; then it lands.
        ArrivesLate = "pm_sandbox_charge_arrives_late",
    }
}

words! {
    /// What the ledger says of a charge.
    pub enum Booked {
        Succeeded = "succeeded",
        Declined = "declined",
    }
}

impl Booked {
    fn status(self) -> PaymentStatus {
        match self {
            Booked::Succeeded => PaymentStatus::Succeeded,
            Booked::Declined => PaymentStatus::Declined,
        }
    }
}

diesel::table! {
    ledger (provider_key) {
        provider_key -> Text,
        request -> Text,
        amount_minor -> BigInt,
        currency -> Text,
        outcome -> Text,
        decline_reason -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    attempts (provider_key) { provider_key -> Text, count -> BigInt, }
}

diesel::table! {
    under_way (provider_key) { provider_key -> Text, request -> Text, }
}

/// What is sent for a charge.
#[derive(Serialize, Deserialize)]
struct ChargeRequest {
    amount_minor: i64,
    currency: Currency,
    payment_method: Method,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = ledger, treat_none_as_default_value = false)]
struct Entry {
    provider_key: ProviderKey,
    request: String,
    amount_minor: i64,
    currency: Currency,
    outcome: Booked,
    decline_reason: Option<String>,
    created_at: Timestamp,
}

impl Entry {
    fn decision(self) -> Decision {
        match self.outcome {
            Booked::Succeeded => Decision::Succeeded,
            Booked::Declined => Decision::Declined(DECLINE_REASON.to_owned()),
        }
    }
}

pub struct Sandbox {
    conn: Arc<Mutex<SqliteConnection>>,
    delay: Duration,
    clock: Clock,
}

impl Sandbox {
    /// `delay` is what the slow method waits before it answers.
    pub fn open(path: &Path, delay: Duration, clock: Clock) -> Result<Self, String> {
        sqlite::create(path, MIGRATIONS)?;
        let conn = Arc::new(Mutex::new(sqlite::open(path)?));
        Ok(Self { conn, delay, clock })
    }

    async fn receive(&self, key: &ProviderKey, request: &str) -> Result<Decision, String> {
        let charge: ChargeRequest = serde_json::from_str(request).map_err(|e| format!("400: {e}"))?;
        let method = charge.payment_method;
        let (key, request) = (key.clone(), request.to_owned());
        let received = self.ledger(move |conn, now| receive(conn, &key, &request, method, now)).await?;
        match received {
            Received::OtherRequest => Err("400: the key belongs to another request".into()),
            Received::Known(decision) => Ok(decision),
            Received::Lost if method == Method::ErrorBefore => Err("500: failed before it acted".into()),
            Received::Lost => never().await,
            Received::Booked { decision, attempt } => {
                failpoints::hit(failpoints::PROVIDER_ACTED).map_err(|_| "500: failed after it acted".to_owned())?;
                match method {
                    Method::TimeoutAfter if attempt == 1 => never().await,
                    Method::ErrorAfter if attempt == 1 => return Err("500: failed after it acted".into()),
                    Method::Slow => tokio::time::sleep(self.delay).await,
                    Method::Ok
                    | Method::Declined
                    | Method::TimeoutBefore
                    | Method::TimeoutAfter
                    | Method::ErrorBefore
                    | Method::ErrorAfter
                    | Method::ArrivesLate => {}
                }
                Ok(decision)
            }
        }
    }

    /// The answer of a look-up. A request under way isn't seen by it, and lands right after.
    async fn look_up(&self, key: &ProviderKey) -> Result<Found, String> {
        let key = key.clone();
        self.ledger(move |conn, now| {
            if let Some(entry) = entry(conn, &key)? {
                return Ok(Found::Decided(entry.decision()));
            }
            let landed: Option<String> = diesel::delete(under_way::table.find(&key))
                .returning(under_way::request)
                .get_result(conn)
                .optional()?;
            if let Some(request) = landed {
                book(conn, &key, &request, now)?;
            }
            Ok(Found::NotSeen)
        })
        .await
    }

    async fn ledger<T, F>(&self, job: F) -> Result<T, String>
    where
        T: Send + 'static,
        F: FnOnce(&mut SqliteConnection, Timestamp) -> QueryResult<T> + Send + 'static,
    {
        let (conn, now) = (self.conn.clone(), self.clock.now());
        let work = tokio::task::spawn_blocking(move || {
            // A panic in here leaves no transaction open: diesel rolls it back.
            let mut conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
            conn.immediate_transaction(|conn| job(conn, now))
        });
        work.await.map_err(|e| e.to_string())?.map_err(|e| format!("500: {e}"))
    }
}

/// The ledger in a file, for checking it. Changes nothing.
pub fn books(path: &Path) -> Result<Vec<Booking>, String> {
    let entries: Vec<Entry> = ledger::table
        .select(Entry::as_select())
        .load(&mut sqlite::open_existing(path)?)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let booking = |entry: Entry| Booking {
        status: entry.outcome.status(),
        provider_key: entry.provider_key,
        amount_minor: entry.amount_minor,
        currency: entry.currency,
    };
    Ok(entries.into_iter().map(booking).collect())
}

impl PaymentProvider for Sandbox {
    fn accepts(&self, method: &PaymentMethod) -> bool {
        Method::parse(method.as_str()).is_some()
    }

    fn key_lifetime(&self) -> Duration {
        KEY_LIFETIME
    }

    fn charge_request(&self, charge: &Charge) -> String {
        serde_json::json!({
            "amount_minor": charge.amount.minor(),
            "currency": charge.amount.currency(),
            "payment_method": charge.method,
        })
        .to_string()
    }

    fn charge<'a>(&'a self, key: &'a ProviderKey, request: &'a str) -> Answering<'a, Outcome> {
        Box::pin(async move { self.receive(key, request).await.map_or_else(Outcome::Unknown, Outcome::Decided) })
    }

    fn find<'a>(&'a self, key: &'a ProviderKey) -> Answering<'a, Found> {
        Box::pin(async move { self.look_up(key).await.unwrap_or_else(Found::Unknown) })
    }
}

async fn never<T>() -> T {
    std::future::pending().await
}

/// What became of a request that has arrived.
enum Received {
    /// Its key was decided before.
    Known(Decision),
    OtherRequest,
    /// Not in the ledger: its method fails before the charge.
    Lost,
    Booked {
        decision: Decision,
        attempt: i64,
    },
}

fn receive(
    conn: &mut SqliteConnection,
    key: &ProviderKey,
    request: &str,
    method: Method,
    now: Timestamp,
) -> QueryResult<Received> {
    let attempt = count(conn, key)?;
    match entry(conn, key)? {
        Some(entry) if entry.request != request => return Ok(Received::OtherRequest),
        Some(entry) => return Ok(Received::Known(entry.decision())),
        None => {}
    }
    let fails_before = matches!(method, Method::TimeoutBefore | Method::ErrorBefore | Method::ArrivesLate);
    if attempt > 1 || !fails_before {
        return Ok(Received::Booked { decision: book(conn, key, request, now)?, attempt });
    }
    if method == Method::ArrivesLate {
        let row = (under_way::provider_key.eq(key), under_way::request.eq(request));
        diesel::insert_into(under_way::table).values(row).execute(conn)?;
    }
    Ok(Received::Lost)
}

/// Counts an attempt and returns its number, from 1.
fn count(conn: &mut SqliteConnection, key: &ProviderKey) -> QueryResult<i64> {
    diesel::insert_into(attempts::table)
        .values((attempts::provider_key.eq(key), attempts::count.eq(1)))
        .on_conflict(attempts::provider_key)
        .do_update()
        .set(attempts::count.eq(attempts::count + 1))
        .returning(attempts::count)
        .get_result(conn)
}

fn entry(conn: &mut SqliteConnection, key: &ProviderKey) -> QueryResult<Option<Entry>> {
    ledger::table.find(key).select(Entry::as_select()).first(conn).optional()
}

/// Charges. The caller has seen in the same transaction that the key isn't booked; the ledger refuses it twice.
fn book(conn: &mut SqliteConnection, key: &ProviderKey, request: &str, now: Timestamp) -> QueryResult<Decision> {
    let charge: ChargeRequest =
        serde_json::from_str(request).map_err(|e| diesel::result::Error::DeserializationError(e.into()))?;
    let declined = charge.payment_method == Method::Declined;
    let entry = Entry {
        provider_key: key.clone(),
        request: request.to_owned(),
        amount_minor: charge.amount_minor,
        currency: charge.currency,
        outcome: if declined { Booked::Declined } else { Booked::Succeeded },
        decline_reason: declined.then(|| DECLINE_REASON.to_owned()),
        created_at: now,
    };
    diesel::insert_into(ledger::table).values(&entry).execute(conn)?;
    Ok(entry.decision())
}

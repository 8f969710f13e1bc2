//! The sandbox provider: a durable ledger in its own database, idempotency of its own, and faults on demand, by
//! payment method. It runs in this process and shares nothing else with it.

use super::{Answering, Booking, Found, Outcome, PaymentProvider};
use crate::clock::Clock;
use crate::database::postgres::{End, Postgres, PostgresSettings};
use crate::database::{DatabaseUrl, Db, on, sqlite, unreadable};
use crate::domain::error::Problem;
use crate::domain::money::Currency;
use crate::domain::payment::{Charge, Decision, GiveBack, PaymentMethod, PaymentStatus, ProviderKey};
use crate::domain::time::Timestamp;
use crate::domain::words::words;
use crate::failpoints;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SQLITE_MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sandbox_sqlite");
const POSTGRES_MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sandbox_postgres");
/// Why the declining methods decline.
const DECLINE_REASON: &str = "insufficient_funds";
/// Why a refund is declined that its charge doesn't cover.
const NOT_REFUNDABLE: &str = "charge_not_refundable";
/// One takes requests, one looks up.
const CONNECTIONS: u32 = 2;
/// As long as Stripe keeps an idempotency key.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

words! {
    /// The payment methods, each named for what it does. Faults happen on a key's first attempt only.
    pub enum Method {
        Ok = "pm_sandbox_ok",
        Declined = "pm_sandbox_declined",
        Slow = "pm_sandbox_slow",
        TimeoutBefore = "pm_sandbox_timeout_before_charge",
        TimeoutAfter = "pm_sandbox_timeout_after_charge",
        ErrorBefore = "pm_sandbox_error_before_charge",
        ErrorAfter = "pm_sandbox_error_after_charge",
        ArrivesLate = "pm_sandbox_charge_arrives_late",
        RefundDeclined = "pm_sandbox_refund_declined",
        RefundSlow = "pm_sandbox_refund_slow",
        RefundTimeoutBefore = "pm_sandbox_refund_timeout_before",
        RefundTimeoutAfter = "pm_sandbox_refund_timeout_after",
        RefundErrorBefore = "pm_sandbox_refund_error_before",
        RefundErrorAfter = "pm_sandbox_refund_error_after",
        RefundArrivesLate = "pm_sandbox_refund_arrives_late",
    }
}

/// What happens to a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Declined,
    /// Answers after a delay.
    Slow,
    /// Never answers, and has done nothing.
    TimeoutBefore,
    /// Never answers, and has acted.
    TimeoutAfter,
    /// Answers 500, and has done nothing.
    ErrorBefore,
    /// Answers 500, and has acted.
    ErrorAfter,
    /// Never answers; the first look-up doesn't see it; then it lands.
    ArrivesLate,
}

impl Method {
    /// What it does to charges, and to refunds of them.
    fn faults(self) -> (Fault, Fault) {
        match self {
            Method::Ok => (Fault::None, Fault::None),
            Method::Declined => (Fault::Declined, Fault::None),
            Method::Slow => (Fault::Slow, Fault::None),
            Method::TimeoutBefore => (Fault::TimeoutBefore, Fault::None),
            Method::TimeoutAfter => (Fault::TimeoutAfter, Fault::None),
            Method::ErrorBefore => (Fault::ErrorBefore, Fault::None),
            Method::ErrorAfter => (Fault::ErrorAfter, Fault::None),
            Method::ArrivesLate => (Fault::ArrivesLate, Fault::None),
            Method::RefundDeclined => (Fault::None, Fault::Declined),
            Method::RefundSlow => (Fault::None, Fault::Slow),
            Method::RefundTimeoutBefore => (Fault::None, Fault::TimeoutBefore),
            Method::RefundTimeoutAfter => (Fault::None, Fault::TimeoutAfter),
            Method::RefundErrorBefore => (Fault::None, Fault::ErrorBefore),
            Method::RefundErrorAfter => (Fault::None, Fault::ErrorAfter),
            Method::RefundArrivesLate => (Fault::None, Fault::ArrivesLate),
        }
    }
}

words! {
    /// What the ledger says of a charge or a refund.
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
        refund_of -> Nullable<Text>,
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

/// What is sent. Its bytes are the request.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Request {
    Charge { amount_minor: i64, currency: Currency, payment_method: Method },
    Refund { amount_minor: i64, currency: Currency, charge: ProviderKey },
}

#[derive(Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = ledger, treat_none_as_default_value = false)]
struct Entry {
    provider_key: ProviderKey,
    request: String,
    refund_of: Option<ProviderKey>,
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
            Booked::Declined => Decision::Declined(self.decline_reason.unwrap_or_default()),
        }
    }
}

pub struct Sandbox {
    books: Books,
    delay: Duration,
    clock: Clock,
}

/// The sandbox takes one request at a time.
#[derive(Clone)]
enum Books {
    Sqlite(Arc<Mutex<SqliteConnection>>),
    Postgres(Postgres),
}

impl Sandbox {
    /// `delay` is what the slow method waits before it answers.
    pub fn open(url: &DatabaseUrl, settings: PostgresSettings, delay: Duration, clock: Clock) -> Result<Self, String> {
        let books = match url {
            DatabaseUrl::Sqlite(path) => {
                sqlite::create(path, SQLITE_MIGRATIONS)?;
                Books::Sqlite(Arc::new(Mutex::new(sqlite::open(path)?)))
            }
            DatabaseUrl::Postgres(url) => {
                Postgres::migrate(url, POSTGRES_MIGRATIONS).map_err(|e| format!("the sandbox's database: {e}"))?;
                Books::Postgres(Postgres::open(url, PostgresSettings { connections: CONNECTIONS, ..settings }))
            }
        };
        Ok(Self { books, delay, clock })
    }

    async fn receive(&self, key: &ProviderKey, request: &str) -> Result<Decision, String> {
        let (key, request) = (key.clone(), request.to_owned());
        match self.ledger(move |db, now| receive(db, &key, &request, now)).await? {
            Received::Malformed(why) => Err(format!("400: {why}")),
            Received::OtherRequest => Err("400: the key belongs to another request".into()),
            Received::Known(decision) => Ok(decision),
            Received::Lost(Fault::ErrorBefore) => Err("500: failed before it acted".into()),
            Received::Lost(_) => never().await,
            Received::Booked { decision, fault } => {
                failpoints::hit(failpoints::PROVIDER_ACTED).map_err(|_| "500: failed after it acted".to_owned())?;
                match fault {
                    Fault::TimeoutAfter => never().await,
                    Fault::ErrorAfter => Err("500: failed after it acted".into()),
                    Fault::Slow => {
                        tokio::time::sleep(self.delay).await;
                        Ok(decision)
                    }
                    Fault::None | Fault::Declined | Fault::TimeoutBefore | Fault::ErrorBefore | Fault::ArrivesLate => {
                        Ok(decision)
                    }
                }
            }
        }
    }

    /// The answer of a look-up. A request under way isn't seen by it, and lands right after.
    async fn look_up(&self, key: &ProviderKey) -> Result<Found, String> {
        let key = key.clone();
        self.ledger(move |db, now| {
            if let Some(entry) = entry(db, &key)? {
                return Ok(Found::Decided(entry.decision()));
            }
            let landed: Option<String> = on!(db, |conn| {
                diesel::delete(under_way::table.find(&key)).returning(under_way::request).get_result(conn).optional()
            })?;
            if let Some(request) = landed.as_deref()
                && let Ok(read) = serde_json::from_str(request)
            {
                book(db, &key, request, &read, now)?;
            }
            Ok(Found::NotSeen)
        })
        .await
    }

    async fn ledger<T, F>(&self, job: F) -> Result<T, String>
    where
        T: Send + 'static,
        F: FnOnce(&mut Db, Timestamp) -> QueryResult<T> + Send + 'static,
    {
        let (books, now) = (self.books.clone(), self.clock.now());
        let work = tokio::task::spawn_blocking(move || match books {
            Books::Sqlite(conn) => {
                // A panic in here leaves no transaction open: diesel rolls it back.
                let mut conn = conn.lock().unwrap_or_else(PoisonError::into_inner);
                conn.immediate_transaction(|conn| job(&mut Db::Sqlite(conn), now)).map_err(|e| format!("500: {e}"))
            }
            Books::Postgres(postgres) => {
                let alone = |db: &mut Db| {
                    db.execute("LOCK TABLE attempts IN EXCLUSIVE MODE")?;
                    Ok::<T, Problem>(job(db, now)?)
                };
                match postgres.write(alone) {
                    End::Done(done) => Ok(done),
                    End::NotBegun(problem) | End::RolledBack(problem) | End::Unknown(problem) => {
                        Err(format!("500: {}", problem.cause.unwrap_or(problem.detail)))
                    }
                }
            }
        });
        work.await.map_err(|e| e.to_string())?
    }
}

/// The ledger, for checking it. Changes nothing.
pub fn books(url: &DatabaseUrl, settings: PostgresSettings) -> Result<Vec<Booking>, String> {
    let all = |db: &mut Db| on!(db, |conn| ledger::table.select(Entry::as_select()).load(conn));
    let read: Result<Vec<Entry>, Problem> = match url {
        DatabaseUrl::Sqlite(path) => all(&mut Db::Sqlite(&mut sqlite::open_existing(path)?)).map_err(Problem::from),
        DatabaseUrl::Postgres(address) => Postgres::open(address, settings).read(|db| Ok(all(db)?)),
    };
    let entries = read.map_err(|problem| unreadable(url, problem))?;
    let booking = |entry: Entry| Booking {
        status: entry.outcome.status(),
        refund_of: entry.refund_of,
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

    fn refund_request(&self, refund: &GiveBack) -> String {
        serde_json::json!({
            "amount_minor": refund.amount.minor(),
            "currency": refund.amount.currency(),
            "charge": refund.charge,
        })
        .to_string()
    }

    fn refund<'a>(&'a self, key: &'a ProviderKey, request: &'a str) -> Answering<'a, Outcome> {
        self.charge(key, request) // the request says which it is
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
    Malformed(String),
    /// Its key was decided before.
    Known(Decision),
    OtherRequest,
    /// Not in the ledger: its method fails before it acts.
    Lost(Fault),
    /// In the ledger, and what happens to the answer.
    Booked {
        decision: Decision,
        fault: Fault,
    },
}

fn receive(db: &mut Db, key: &ProviderKey, request: &str, now: Timestamp) -> QueryResult<Received> {
    let read: Request = match serde_json::from_str(request) {
        Ok(read) => read,
        Err(error) => return Ok(Received::Malformed(error.to_string())),
    };
    let attempt = count(db, key)?;
    match entry(db, key)? {
        Some(entry) if entry.request != request => return Ok(Received::OtherRequest),
        Some(entry) => return Ok(Received::Known(entry.decision())),
        None => {}
    }
    let fault = if attempt == 1 { fault_of(db, &read)? } else { Fault::None };
    match fault {
        Fault::TimeoutBefore | Fault::ErrorBefore => Ok(Received::Lost(fault)),
        Fault::ArrivesLate => {
            let row = (under_way::provider_key.eq(key), under_way::request.eq(request));
            on!(db, |conn| diesel::insert_into(under_way::table).values(row).execute(conn))?;
            Ok(Received::Lost(fault))
        }
        Fault::None | Fault::Declined | Fault::Slow | Fault::TimeoutAfter | Fault::ErrorAfter => {
            Ok(Received::Booked { decision: book(db, key, request, &read, now)?, fault })
        }
    }
}

/// The payment method decides: for a refund, that of its charge.
fn fault_of(db: &mut Db, request: &Request) -> QueryResult<Fault> {
    Ok(match request {
        Request::Charge { payment_method, .. } => payment_method.faults().0,
        Request::Refund { charge, .. } => {
            match entry(db, charge)?.and_then(|charge| serde_json::from_str(&charge.request).ok()) {
                Some(Request::Charge { payment_method, .. }) => payment_method.faults().1,
                Some(Request::Refund { .. }) | None => Fault::None,
            }
        }
    })
}

/// Counts an attempt and returns its number, from 1.
fn count(db: &mut Db, key: &ProviderKey) -> QueryResult<i64> {
    on!(db, |conn| {
        diesel::insert_into(attempts::table)
            .values((attempts::provider_key.eq(key), attempts::count.eq(1)))
            .on_conflict(attempts::provider_key)
            .do_update()
            .set(attempts::count.eq(attempts::count + 1))
            .returning(attempts::count)
            .get_result(conn)
    })
}

fn entry(db: &mut Db, key: &ProviderKey) -> QueryResult<Option<Entry>> {
    on!(db, |conn| ledger::table.find(key).select(Entry::as_select()).first(conn).optional())
}

/// Charges or refunds. The caller has seen in the same transaction that the key isn't booked; the ledger refuses it twice.
fn book(db: &mut Db, key: &ProviderKey, text: &str, request: &Request, now: Timestamp) -> QueryResult<Decision> {
    let declined = fault_of(db, request)? == Fault::Declined;
    let decline_reason = match (declined, is_covered(db, request)?) {
        (true, _) => Some(DECLINE_REASON),
        (false, false) => Some(NOT_REFUNDABLE),
        (false, true) => None,
    };
    let (amount_minor, currency, refund_of) = match request {
        Request::Charge { amount_minor, currency, .. } => (*amount_minor, *currency, None),
        Request::Refund { amount_minor, currency, charge } => (*amount_minor, *currency, Some(charge.clone())),
    };
    let entry = Entry {
        provider_key: key.clone(),
        request: text.to_owned(),
        refund_of,
        amount_minor,
        currency,
        outcome: if decline_reason.is_some() { Booked::Declined } else { Booked::Succeeded },
        decline_reason: decline_reason.map(str::to_owned),
        created_at: now,
    };
    on!(db, |conn| diesel::insert_into(ledger::table).values(&entry).execute(conn))?;
    Ok(entry.decision())
}

/// A provider gives back no more than it took, in the currency in which it took it.
fn is_covered(db: &mut Db, request: &Request) -> QueryResult<bool> {
    let Request::Refund { amount_minor, currency, charge } = request else { return Ok(true) };
    let Some(taken) = entry(db, charge)? else { return Ok(false) };
    let given_back: Vec<i64> = on!(db, |conn| {
        ledger::table
            .filter(ledger::refund_of.eq(charge))
            .filter(ledger::outcome.eq(Booked::Succeeded))
            .select(ledger::amount_minor)
            .load(conn)
    })?;
    let left = taken.amount_minor - given_back.iter().sum::<i64>();
    Ok(taken.outcome == Booked::Succeeded && taken.currency == *currency && *amount_minor <= left)
}

//! The key store: durable, and atomic across threads and processes. Who asks first makes the key, everybody after gets the
//! same one, and it is on the disk before it is given out.

use super::client::Answer;
use super::identity::{Run, Step};
use super::schema::{keys, steps};
use crate::database::sqlite;
use crate::domain::error::Recovery;
use crate::domain::key::IdempotencyKey;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/agent");

/// Why there is no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// This step of this run was authorised for another call. Nobody but an explicit authorisation may change that.
    Changed {
        step: String,
        was: String,
        now: String,
    },
    /// The step's call isn't decided: until it is, another one could be a second effect.
    Undecided {
        step: String,
    },
    /// No stored, final answer says that a new attempt is right.
    NotToldTo {
        step: String,
    },
    Storage(String),
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyError::Changed { step, was, now } => write!(
                f,
                "step {step} of this run was authorised as {was} and is now {now}: a changed call needs a new authorisation"
            ),
            KeyError::Undecided { step } => {
                write!(f, "what became of step {step} isn't known: settle it before anything else is authorised")
            }
            KeyError::NotToldTo { step } => {
                write!(f, "no final answer says that step {step} may be tried under a new key")
            }
            KeyError::Storage(why) => write!(f, "the key store: {why}"),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<diesel::result::Error> for KeyError {
    fn from(error: diesel::result::Error) -> Self {
        KeyError::Storage(error.to_string())
    }
}

/// A key, the attempt that it is for, and what became of it, once that is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed {
    pub key: IdempotencyKey,
    pub attempt: i64,
    /// When it was first about to be sent, by this life of the run or an earlier one.
    pub sent_at: Option<Timestamp>,
    pub answer: Option<Answer>,
}

pub struct KeyStore {
    conn: Mutex<SqliteConnection>,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = steps)]
struct StepRow {
    tenant: String,
    run: String,
    step: String,
    tool: String,
    parameters: String,
    attempt: i64,
}

#[derive(Queryable)]
struct KeyRow {
    idempotency_key: IdempotencyKey,
    attempt: i64,
    sent_at: Option<Timestamp>,
    answer_status: Option<i64>,
    answer_body: Option<String>,
}

impl KeyStore {
    /// Makes the file where it is missing.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        sqlite::create(path, MIGRATIONS).map_err(KeyError::Storage)?;
        Ok(Self { conn: Mutex::new(sqlite::open(path).map_err(KeyError::Storage)?) })
    }

    /// The key of this step: made now, or the one that was made before. A changed call is refused.
    pub fn create_or_get(&self, run: &Run, step: &Step, now: Timestamp) -> Result<Keyed, KeyError> {
        self.write(|conn| {
            let first = StepRow {
                tenant: run.tenant.clone(),
                run: run.id.clone(),
                step: step.id.clone(),
                tool: step.tool.clone(),
                parameters: step.parameters.as_str().to_owned(),
                attempt: 1,
            };
            diesel::insert_into(steps::table).values(&first).on_conflict_do_nothing().execute(conn)?;
            let current = current(conn, run, &step.id)?;
            same_call(step, &current.tool, &current.parameters)?;
            key_of(conn, &current, now)
        })
    }

    /// Says that a key is about to be sent. From here on, nobody can say that nothing was done. The first time stays.
    pub fn mark_sent(&self, key: &IdempotencyKey, now: Timestamp) -> Result<(), KeyError> {
        self.write(|conn| {
            let unsent = keys::table.filter(keys::idempotency_key.eq(key)).filter(keys::sent_at.is_null());
            diesel::update(unsent).set(keys::sent_at.eq(now)).execute(conn)?;
            Ok(())
        })
    }

    /// A person looked, and what was sent did not happen: the step isn't in doubt any more.
    pub fn did_not_happen(&self, key: &IdempotencyKey) -> Result<(), KeyError> {
        self.write(|conn| {
            let open = keys::table.filter(keys::idempotency_key.eq(key)).filter(keys::answer_status.is_null());
            diesel::update(open).set(keys::sent_at.eq(None::<Timestamp>)).execute(conn)?;
            Ok(())
        })
    }

    /// Writes down a final answer. The first one stays.
    pub fn conclude(&self, key: &IdempotencyKey, answer: &Answer) -> Result<(), KeyError> {
        self.write(|conn| {
            let open = keys::table.filter(keys::idempotency_key.eq(key)).filter(keys::answer_status.is_null());
            diesel::update(open)
                .set((keys::answer_status.eq(i64::from(answer.status)), keys::answer_body.eq(&answer.body)))
                .execute(conn)?;
            Ok(())
        })
    }

    /// The number of the step's current attempt: 1 before there is any.
    pub fn attempt(&self, run: &Run, step: &str) -> Result<i64, KeyError> {
        self.write(|conn| {
            let row = steps::table.find((&run.tenant, &run.id, step)).select(steps::attempt);
            Ok(row.first(conn).optional()?.unwrap_or(1))
        })
    }

    /// The step's next attempt, with what it is authorised to ask for, because the stored, final answer of `because` (a call
    /// of the same run) says `new_key` or `propose_again`. Told twice of the same attempt, it raises once.
    /// Refused while the step's own call isn't decided.
    pub fn raise(
        &self,
        run: &Run,
        step: &Step,
        attempt: i64,
        because: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<(), KeyError> {
        self.write(|conn| {
            let told = keys::table
                .filter(keys::idempotency_key.eq(because).and(keys::tenant.eq(&run.tenant)).and(keys::run.eq(&run.id)))
                .select((keys::answer_status, keys::answer_body))
                .first::<(Option<i64>, Option<String>)>(conn)
                .optional()?;
            let answer = told.and_then(|(status, body)| answer(status, body));
            let recovery = answer.as_ref().and_then(Answer::recovery);
            if !matches!(recovery, Some(Recovery::NewKey | Recovery::ProposeAgain)) {
                return Err(KeyError::NotToldTo { step: step.id.clone() });
            }
            let raised = current(conn, run, &step.id)?;
            if raised.attempt == attempt && key_of(conn, &raised, now)?.answer.is_none() {
                return Err(KeyError::Undecided { step: step.id.clone() });
            }
            let same = steps::table.find((&run.tenant, &run.id, &step.id)).filter(steps::attempt.eq(attempt));
            let authorised = (steps::tool.eq(&step.tool), steps::parameters.eq(step.parameters.as_str()));
            diesel::update(same).set((authorised, steps::attempt.eq(attempt + 1))).execute(conn)?;
            Ok(())
        })
    }

    /// Somebody authorises another call in this step's place: a new identity. Refused while the current one isn't decided.
    pub fn authorise(&self, run: &Run, step: &Step, now: Timestamp) -> Result<Keyed, KeyError> {
        self.write(|conn| {
            let replaced = current(conn, run, &step.id)?;
            if key_of(conn, &replaced, now)?.answer.is_none() {
                return Err(KeyError::Undecided { step: step.id.clone() });
            }
            let row = steps::table.find((&run.tenant, &run.id, &step.id));
            let authorised = (steps::tool.eq(&step.tool), steps::parameters.eq(step.parameters.as_str()));
            diesel::update(row).set((authorised, steps::attempt.eq(replaced.attempt + 1))).execute(conn)?;
            let authorised = current(conn, run, &step.id)?;
            key_of(conn, &authorised, now)
        })
    }

    /// Keeps a run's keys and drops its answers, so that every call of it is sent again: how a plan is replayed.
    pub fn forget_answers(&self, run: &Run) -> Result<(), KeyError> {
        self.write(|conn| {
            let own = keys::table.filter(keys::tenant.eq(&run.tenant).and(keys::run.eq(&run.id)));
            let nothing = (keys::answer_status.eq(None::<i64>), keys::answer_body.eq(None::<String>));
            diesel::update(own).set(nothing).execute(conn)?;
            Ok(())
        })
    }

    fn write<T>(&self, job: impl FnOnce(&mut SqliteConnection) -> Result<T, KeyError>) -> Result<T, KeyError> {
        // A panic in here leaves no transaction open: diesel rolls it back.
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        conn.immediate_transaction(job)
    }
}

/// A step that was authorised for one call is refused for another.
pub(super) fn same_call(step: &Step, tool: &str, parameters: &str) -> Result<(), KeyError> {
    if (tool, parameters) == (step.tool.as_str(), step.parameters.as_str()) {
        return Ok(());
    }
    let now = format!("{} with other parameters", step.tool);
    Err(KeyError::Changed { step: step.id.clone(), was: tool.to_owned(), now })
}

fn current(conn: &mut SqliteConnection, run: &Run, step: &str) -> QueryResult<StepRow> {
    steps::table.find((&run.tenant, &run.id, step)).select(StepRow::as_select()).first(conn)
}

/// The key of a step's current attempt. Random: a key that could be guessed from the step could be used by mistake.
fn key_of(conn: &mut SqliteConnection, step: &StepRow, now: Timestamp) -> Result<Keyed, KeyError> {
    let made = IdempotencyKey::parse(&format!("{}-{}", step.tool, uuid::Uuid::new_v4()))
        .ok_or_else(|| KeyError::Storage(format!("{} can't be part of a key", step.tool)))?;
    diesel::insert_into(keys::table)
        .values((
            keys::idempotency_key.eq(made),
            (keys::tenant.eq(&step.tenant), keys::run.eq(&step.run), keys::step.eq(&step.step)),
            (keys::tool.eq(&step.tool), keys::parameters.eq(&step.parameters), keys::attempt.eq(step.attempt)),
            keys::created_at.eq(now),
        ))
        .on_conflict_do_nothing()
        .execute(conn)?;
    let row: KeyRow = keys::table
        .filter(keys::tenant.eq(&step.tenant).and(keys::run.eq(&step.run)).and(keys::step.eq(&step.step)))
        .filter(keys::tool.eq(&step.tool).and(keys::parameters.eq(&step.parameters)))
        .filter(keys::attempt.eq(step.attempt))
        .select((keys::idempotency_key, keys::attempt, keys::sent_at, keys::answer_status, keys::answer_body))
        .first(conn)?;
    let answer = answer(row.answer_status, row.answer_body);
    Ok(Keyed { key: row.idempotency_key, attempt: row.attempt, sent_at: row.sent_at, answer })
}

fn answer(status: Option<i64>, body: Option<String>) -> Option<Answer> {
    let status = status.and_then(|status| u16::try_from(status).ok())?;
    Some(Answer { status, body: body.unwrap_or_default(), ..Answer::default() })
}

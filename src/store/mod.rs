//! The only place that knows which database there is. `write` is the only way to a transaction, `read` the only way to
//! a snapshot; both run a plain synchronous function of `&mut Db` and the time.

pub mod actors;
pub mod books;
pub mod catalogue;
pub mod claims;
pub mod confirmations;
pub mod holds;
mod json;
pub mod orders;
pub mod payments;
pub mod products;
pub mod refunds;
mod schema;
pub mod tasks;
mod writer;

use crate::clock::Clock;
use crate::domain::error::Problem;
use crate::domain::time::Timestamp;
use crate::sqlite;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Pool};
use diesel::result::{DatabaseErrorKind, Error as DbError};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use std::path::{Path, PathBuf};
use std::time::Duration;
use writer::Writer;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sqlite");
/// Reads are short and mostly served from the page cache: a few connections keep two cores busy.
const READERS: u32 = 4;
/// A read that can't get a connection for so long is better refused than kept waiting.
const READER_WAIT: Duration = Duration::from_secs(5);

/// A connection inside a transaction.
pub enum Db<'c> {
    Sqlite(&'c mut SqliteConnection),
}

/// Runs one diesel query on whichever database there is; the query is written once and type-checked for each.
macro_rules! on {
    ($db:expr, |$conn:ident| $query:expr) => {
        match $db {
            $crate::store::Db::Sqlite(conn) => {
                let $conn: &mut diesel::SqliteConnection = conn;
                $query
            }
        }
    };
}
pub(crate) use on;

impl Db<'_> {
    /// Runs a step that can be undone by itself: an error leaves no trace of it, and the transaction goes on.
    pub fn savepoint<T, E: From<DbError>>(&mut self, step: impl FnOnce(&mut Db) -> Result<T, E>) -> Result<T, E> {
        self.execute("SAVEPOINT step")?;
        let result = step(self);
        if result.is_err() {
            self.execute("ROLLBACK TO step")?;
        }
        self.execute("RELEASE step")?;
        result
    }

    fn execute(&mut self, sql: &str) -> QueryResult<()> {
        on!(self, |conn| conn.batch_execute(sql))
    }
}

/// What the database itself refuses is unknown to the caller; what it rejects as wrong is a fault of ours.
impl From<DbError> for Problem {
    #[expect(clippy::wildcard_enum_match_arm, reason = "diesel's errors are not a closed set")]
    fn from(error: DbError) -> Self {
        use DatabaseErrorKind::{CheckViolation, ForeignKeyViolation, NotNullViolation, UniqueViolation};
        match &error {
            DbError::DatabaseError(UniqueViolation | ForeignKeyViolation | NotNullViolation | CheckViolation, _) => {
                Problem::internal(&error)
            }
            DbError::DatabaseError(..) | DbError::BrokenTransactionManager => Problem::storage_unavailable(&error),
            _ => Problem::internal(&error),
        }
    }
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub path: PathBuf,
    /// Jobs in one commit, at most. 1 turns group commit off.
    pub write_batch: usize,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Store {
    writer: std::sync::Arc<Writer>,
    readers: Pool<ConnectionManager<SqliteConnection>>,
    clock: Clock,
}

impl Store {
    /// Opens the database, and makes it where there is none.
    pub fn open(config: &StoreConfig, clock: Clock) -> Result<Self, String> {
        sqlite::create(&config.path, MIGRATIONS)?;
        let writer = Writer::start(&config.path, config.write_batch, clock.clone())?;
        Ok(Self { writer: writer.into(), readers: reader_pool(&config.path)?, clock })
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Runs a job in a transaction, together with other jobs, and answers when it is committed. The job may run more
    /// than once; it has no effect but its rows. A full queue refuses it before anything ran.
    pub async fn write<T, F>(&self, job: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        self.writer.try_run(job).await
    }

    /// The same for work that has to be finished, whatever the load: waits for room in the queue.
    pub async fn write_when_room<T, F>(&self, job: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        self.writer.run(job).await
    }

    /// Runs a function on one snapshot, in a short transaction of its own. It can't write.
    pub async fn read<T, F>(&self, query: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        let (readers, clock) = (self.readers.clone(), self.clock.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut conn = readers.get().map_err(Problem::overloaded)?;
            conn.transaction(|conn| query(&mut Db::Sqlite(conn), clock.now()))
        });
        read.await.map_err(Problem::internal)?
    }

    /// Finishes what is queued and closes the write connection. Later writes are refused.
    pub async fn close(&self) {
        self.writer.close().await;
    }
}

/// Runs a function on one snapshot of a database that is there already, and changes nothing: neither its rows nor, as
/// opening a [`Store`] may, its tables.
pub fn inspect<T>(path: &Path, query: impl FnOnce(&mut Db) -> Result<T, Problem>) -> Result<T, String> {
    let mut conn = sqlite::open_existing(path)?;
    conn.transaction(|conn| query(&mut Db::Sqlite(conn)))
        .map_err(|problem| format!("{}: {}", path.display(), problem.cause.unwrap_or(problem.detail)))
}

#[derive(Debug)]
struct ReadOnly;

impl CustomizeConnection<SqliteConnection, diesel::r2d2::Error> for ReadOnly {
    fn on_acquire(&self, conn: &mut SqliteConnection) -> Result<(), diesel::r2d2::Error> {
        sqlite::configure(conn).and_then(|()| sqlite::forbid_writing(conn)).map_err(diesel::r2d2::Error::QueryError)
    }
}

fn reader_pool(path: &Path) -> Result<Pool<ConnectionManager<SqliteConnection>>, String> {
    Pool::builder()
        .max_size(READERS)
        .connection_timeout(READER_WAIT)
        .test_on_check_out(false)
        .connection_customizer(Box::new(ReadOnly))
        .build(ConnectionManager::new(path.to_string_lossy()))
        .map_err(|e| e.to_string())
}

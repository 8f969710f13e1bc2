//! PostgreSQL: a pool of connections, and transactions on it. READ COMMITTED for writes, where guarded statements and
//! unique constraints decide; one snapshot for reads.

use super::Db;
use crate::domain::error::Problem;
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Pool, PooledConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Waits and sizes, each with its reason in the flags.
#[derive(Clone, Copy, Debug)]
pub struct PostgresSettings {
    pub connections: u32,
    /// Waiting for another transaction's row.
    pub lock_timeout: Duration,
    /// One statement.
    pub statement_timeout: Duration,
}

/// A caller that can't get a connection for so long is better refused than kept waiting.
const CONNECTION_WAIT: Duration = Duration::from_secs(5);
/// So that instances that start together migrate one after the other: any number that nobody else takes.
const MIGRATION_LOCK: i64 = 0x636f_756e_7465_7273;

/// Cheap to clone.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool<ConnectionManager<PgConnection>>,
    closed: Arc<AtomicBool>,
}

/// How a transaction ended.
pub enum End<T> {
    Done(T),
    /// No connection could be had.
    NotBegun(Problem),
    /// Nothing of it is there.
    RolledBack(Problem),
    /// Whether its commit arrived is not known.
    Unknown(Problem),
}

impl Postgres {
    /// Opens connections when they are needed: a database that is away now may be back then.
    pub fn open(url: &str, settings: PostgresSettings) -> Self {
        let pool = Pool::builder()
            .max_size(settings.connections)
            .min_idle(Some(1))
            .connection_timeout(CONNECTION_WAIT)
            .test_on_check_out(true) // a connection that died while idle is replaced
            .connection_customizer(Box::new(Limits(settings)))
            .build_unchecked(ConnectionManager::new(url));
        Self { pool, closed: Arc::default() }
    }

    /// Brings the tables up to date, once, however many instances start together: on a connection of its own, which may
    /// wait for another instance's migration and takes as long as it needs.
    pub fn migrate(url: &str, migrations: EmbeddedMigrations) -> Result<(), String> {
        let one_line = |e: ConnectionError| e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let mut conn = PgConnection::establish(url).map_err(one_line)?;
        conn.batch_execute(&format!("SELECT pg_advisory_lock({MIGRATION_LOCK})")).map_err(|e| e.to_string())?;
        conn.run_pending_migrations(migrations).map(|_| ()).map_err(|e| format!("migrations: {e}"))
    }

    /// One transaction, READ COMMITTED.
    pub fn write<T>(&self, job: impl FnOnce(&mut Db) -> Result<T, Problem>) -> End<T> {
        self.transact("BEGIN ISOLATION LEVEL READ COMMITTED; SAVEPOINT job", job)
    }

    /// One snapshot. It can't write.
    pub fn read<T>(&self, query: impl FnOnce(&mut Db) -> Result<T, Problem>) -> Result<T, Problem> {
        match self.transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SAVEPOINT job", query) {
            End::Done(read) => Ok(read),
            End::NotBegun(problem) | End::RolledBack(problem) | End::Unknown(problem) => Err(problem),
        }
    }

    /// Later transactions are refused.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn transact<T>(&self, begin: &str, job: impl FnOnce(&mut Db) -> Result<T, Problem>) -> End<T> {
        if self.is_closed() {
            return End::NotBegun(Problem::overloaded("the store is closed"));
        }
        let mut conn = match self.pool.get() {
            Ok(conn) => conn,
            Err(away) => return End::NotBegun(Problem::overloaded(away)),
        };
        if let Err(failed) = Manager::begin_transaction_sql(&mut *conn, begin) {
            return End::RolledBack(Problem::storage_unavailable(failed).passing());
        }
        // After a statement failed, COMMIT rolls back without saying so; releasing a savepoint fails.
        let ran = job(&mut Db::Postgres(&mut conn)).and_then(|done| {
            conn.batch_execute("RELEASE SAVEPOINT job")?;
            Ok(done)
        });
        match ran {
            Ok(done) => match Manager::commit_transaction(&mut *conn) {
                Ok(()) => End::Done(done),
                Err(failed) => End::Unknown(Problem::storage_unavailable(failed)),
            },
            Err(problem) => {
                roll_back(&mut conn);
                End::RolledBack(problem)
            }
        }
    }
}

type Manager = AnsiTransactionManager;

/// A connection that can't even do this is broken, and the pool replaces it.
fn roll_back(conn: &mut PooledConnection<ConnectionManager<PgConnection>>) {
    let _ = Manager::rollback_transaction(&mut **conn);
}

#[derive(Debug)]
struct Limits(PostgresSettings);

impl CustomizeConnection<PgConnection, diesel::r2d2::Error> for Limits {
    fn on_acquire(&self, conn: &mut PgConnection) -> Result<(), diesel::r2d2::Error> {
        let PostgresSettings { lock_timeout, statement_timeout, .. } = self.0;
        conn.batch_execute(&format!(
            "SET lock_timeout = {}; SET statement_timeout = {}; SET TIME ZONE 'UTC'; SET application_name = 'countersign'",
            lock_timeout.as_millis(),
            statement_timeout.as_millis()
        ))
        .map_err(diesel::r2d2::Error::QueryError)
    }
}

//! Our data. `write` is the only way to a transaction, `read` the only way to a snapshot; both run a plain synchronous
//! function of `&mut Db` and the time.

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
pub use crate::database::is_lock_timeout;
pub(crate) use crate::database::on;
use crate::database::postgres::{End, Postgres, PostgresSettings};
use crate::database::sqlite;
use crate::database::unreadable;
pub use crate::database::{DatabaseUrl, Db};
use crate::domain::error::{Code, Problem};
use crate::domain::time::Timestamp;
use diesel::SqliteConnection;
use diesel::connection::Connection;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Pool};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use writer::Writer;

const SQLITE_MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sqlite");
const POSTGRES_MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/postgres");
/// Reads are short and mostly served from the page cache: a few connections keep two cores busy.
const READERS: u32 = 4;
/// A read that can't get a connection for so long is better refused than kept waiting.
const READER_WAIT: Duration = Duration::from_secs(5);
/// How often a transaction is run again that another one made fail: enough for a storm on one row.
const RETRIES: u32 = 8;
/// And for how long: each deadlock costs its victims the server's deadlock_timeout, a second.
const RETRY_FOR: Duration = Duration::from_secs(5);
/// The pause before it is run again for the first time, at most; it doubles.
const FIRST_PAUSE_MS: u64 = 4;
/// How often work that has to be finished waits for a connection: a minute in all.
const PATIENCE: u32 = 12;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub url: DatabaseUrl,
    /// Jobs in one commit, at most. 1 turns group commit off. For SQLite.
    pub write_batch: usize,
    pub postgres: PostgresSettings,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    clock: Clock,
}

#[derive(Clone)]
enum Engine {
    Sqlite { writer: std::sync::Arc<Writer>, readers: Pool<ConnectionManager<SqliteConnection>> },
    Postgres(Postgres),
}

impl Store {
    /// Opens the database, and makes what it lacks.
    pub fn open(config: &StoreConfig, clock: Clock) -> Result<Self, String> {
        let engine = match &config.url {
            DatabaseUrl::Sqlite(path) => {
                sqlite::create(path, SQLITE_MIGRATIONS)?;
                let writer = Writer::start(path, config.write_batch, clock.clone())?;
                Engine::Sqlite { writer: writer.into(), readers: reader_pool(path)? }
            }
            DatabaseUrl::Postgres(url) => {
                Postgres::migrate(url, POSTGRES_MIGRATIONS).map_err(|e| format!("{}: {e}", config.url))?;
                Engine::Postgres(Postgres::open(url, config.postgres))
            }
        };
        Ok(Self { engine, clock })
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Runs a job in a transaction, and answers when it is committed. The job may run more than once; it has no effect but
    /// its rows. A full queue refuses it before anything ran.
    pub async fn write<T, F>(&self, job: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite { writer, .. } => writer.try_run(job).await,
            Engine::Postgres(postgres) => write_postgres(postgres.clone(), self.clock.clone(), 0, job).await,
        }
    }

    /// The same for work that has to be finished, whatever the load: waits for room in the queue, or for a connection.
    pub async fn write_when_room<T, F>(&self, job: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        match &self.engine {
            Engine::Sqlite { writer, .. } => writer.run(job).await,
            Engine::Postgres(postgres) => write_postgres(postgres.clone(), self.clock.clone(), PATIENCE, job).await,
        }
    }

    /// Runs a function on one snapshot, in a short transaction of its own. It can't write.
    pub async fn read<T, F>(&self, query: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        let (engine, clock) = (self.engine.clone(), self.clock.clone());
        let read = tokio::task::spawn_blocking(move || match engine {
            Engine::Sqlite { readers, .. } => {
                let mut conn = readers.get().map_err(Problem::overloaded)?;
                conn.transaction(|conn| query(&mut Db::Sqlite(conn), clock.now()))
            }
            Engine::Postgres(postgres) => postgres.read(|db| query(db, clock.now())),
        });
        read.await.map_err(Problem::internal)?
    }

    /// SQLite: finishes what is queued and closes the write connection; later writes are refused. PostgreSQL: refuses
    /// later transactions; those that run go on.
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite { writer, .. } => writer.close().await,
            Engine::Postgres(postgres) => postgres.close(),
        }
    }
}

/// Runs the job again when another transaction made it fail: nothing of it is there then. What its commit came to is never
/// guessed.
async fn write_postgres<T, F>(postgres: Postgres, clock: Clock, mut patience: u32, job: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
{
    let run = move || {
        let (mut tries, begun) = (0, Instant::now());
        loop {
            let panicked = |_| Err(Problem::internal("a job panicked"));
            let once = |db: &mut Db| catch_unwind(AssertUnwindSafe(|| job(db, clock.now()))).unwrap_or_else(panicked);
            match postgres.write(once) {
                End::Done(done) => return Ok(done),
                End::RolledBack(problem) if problem.passing && tries < RETRIES && begun.elapsed() < RETRY_FOR => {
                    std::thread::sleep(full_jitter(tries));
                    tries += 1;
                }
                End::NotBegun(_) if patience > 0 && !postgres.is_closed() => patience -= 1,
                End::RolledBack(problem) if problem.code == Code::StorageUnavailable => {
                    return Err(Problem::overloaded(problem.cause.unwrap_or_default()));
                }
                End::NotBegun(problem) | End::RolledBack(problem) | End::Unknown(problem) => return Err(problem),
            }
        }
    };
    tokio::task::spawn_blocking(run).await.map_err(Problem::internal)?
}

/// Anywhere between nothing and a limit that doubles with every try, so that those who collided don't meet again.
fn full_jitter(tries: u32) -> Duration {
    let limit = FIRST_PAUSE_MS << tries.min(6);
    let random = uuid::Uuid::new_v4().as_u128() % u128::from(limit + 1);
    Duration::from_millis(u64::try_from(random).unwrap_or(limit))
}

/// Runs a function on one snapshot of a database that is there already, and changes nothing: neither its rows nor, as
/// opening a [`Store`] may, its tables.
pub fn inspect<T>(config: &StoreConfig, query: impl FnOnce(&mut Db) -> Result<T, Problem>) -> Result<T, String> {
    let end = match &config.url {
        DatabaseUrl::Sqlite(path) => {
            let mut conn = sqlite::open_existing(path)?;
            conn.transaction(|conn| query(&mut Db::Sqlite(conn)))
        }
        DatabaseUrl::Postgres(url) => Postgres::open(url, config.postgres).read(query),
    };
    end.map_err(|problem| unreadable(&config.url, problem))
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

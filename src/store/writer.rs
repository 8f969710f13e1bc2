//! The single writer: one thread that owns the write connection and group-commits. It takes every queued job, runs each
//! in a savepoint of one transaction, commits once, and only then answers all of them. A job that fails or panics
//! undoes itself alone. When SQLite ends the whole transaction by itself, nothing of the batch is answered as done.

use super::Db;
use crate::clock::Clock;
use crate::database::sqlite;
use crate::domain::error::Problem;
use crate::domain::time::Timestamp;
use diesel::SqliteConnection;
use diesel::connection::SimpleConnection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Waiting jobs. Sixteen full batches are a fraction of a second's work: whoever comes later is better refused.
const QUEUE: usize = 1_024;

pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Run(Box<dyn Job>),
    Close,
}

impl Writer {
    pub fn start(path: &Path, batch: usize, clock: Clock) -> Result<Self, String> {
        let (queue, messages) = mpsc::channel(QUEUE);
        let connection = Connection { path: path.to_owned(), open: Some(sqlite::open(path)?) };
        let thread = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || serve(messages, connection, batch.max(1), &clock))
            .map_err(|e| e.to_string())?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    pub async fn try_run<T, F>(&self, job: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        let (job, answer) = Pending::new(job);
        match self.queue.try_send(Message::Run(job)) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(dropped())),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Problem::overloaded("the write queue is full")),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(closed()),
        }
    }

    pub async fn run<T, F>(&self, job: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send + 'static,
    {
        let (job, answer) = Pending::new(job);
        self.queue.send(Message::Run(job)).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(dropped()))
    }

    pub async fn close(&self) {
        // A closed channel means that the thread has ended already.
        let _ = self.queue.send(Message::Close).await;
        let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn dropped() -> Problem {
    Problem::storage_unavailable("the batch was dropped before it was answered")
}

fn closed() -> Problem {
    Problem::overloaded("the store is closed")
}

/// How a batch ended.
enum End {
    Committed,
    /// Nothing ran.
    NotBegun(String),
    /// Whether anything of it is on disk is not known.
    Unknown(String),
}

trait Job: Send {
    /// False when the job's own savepoint must be undone.
    fn run(&mut self, db: &mut Db, now: Timestamp) -> bool;
    fn answer(self: Box<Self>, end: &End);
}

struct Pending<T, F> {
    job: F,
    result: Result<T, Problem>,
    caller: oneshot::Sender<Result<T, Problem>>,
}

impl<T, F> Pending<T, F> {
    fn new(job: F) -> (Box<Self>, oneshot::Receiver<Result<T, Problem>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { job, result: Err(Problem::internal("the job did not run")), caller }), answer)
    }
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: Fn(&mut Db, Timestamp) -> Result<T, Problem> + Send,
{
    fn run(&mut self, db: &mut Db, now: Timestamp) -> bool {
        self.result = catch_unwind(AssertUnwindSafe(|| (self.job)(db, now)))
            .unwrap_or_else(|_| Err(Problem::internal("a job panicked")));
        self.result.is_ok()
    }

    fn answer(self: Box<Self>, end: &End) {
        let answer = match end {
            End::Committed => self.result,
            End::NotBegun(cause) => Err(Problem::overloaded(cause)),
            End::Unknown(cause) => Err(Problem::storage_unavailable(cause)),
        };
        // A caller that stopped waiting has no use for it.
        let _ = self.caller.send(answer);
    }
}

/// The write connection, opened again after every failure.
struct Connection {
    path: PathBuf,
    open: Option<SqliteConnection>,
}

impl Connection {
    fn get(&mut self) -> Result<&mut SqliteConnection, String> {
        let conn = match self.open.take() {
            Some(conn) => conn,
            None => sqlite::open(&self.path)?,
        };
        Ok(self.open.insert(conn))
    }
}

fn serve(mut messages: mpsc::Receiver<Message>, mut connection: Connection, batch: usize, clock: &Clock) {
    while let Some(Message::Run(first)) = messages.blocking_recv() {
        let mut jobs = vec![first];
        let mut closing = false;
        while jobs.len() < batch && !closing {
            match messages.try_recv() {
                Ok(Message::Run(job)) => jobs.push(job),
                Ok(Message::Close) => closing = true,
                Err(_) => break,
            }
        }
        // A panic outside a job drops the batch, whose callers then hear that its end is unknown. The thread lives on.
        let survived = catch_unwind(AssertUnwindSafe(|| run_batch(&mut connection, jobs, clock)));
        if survived.is_err() {
            connection.open = None;
        }
        if closing {
            break;
        }
    }
    // Everything is in the database file itself then, whichever connection closes last. Without it nothing is lost.
    if let Ok(conn) = connection.get() {
        let _ = conn.batch_execute("PRAGMA wal_checkpoint(TRUNCATE)");
    }
}

fn run_batch(connection: &mut Connection, mut jobs: Vec<Box<dyn Job>>, clock: &Clock) {
    let end = match connection.get() {
        Err(cause) => End::NotBegun(cause),
        Ok(conn) => match conn.batch_execute("BEGIN IMMEDIATE") {
            Err(cause) => End::NotBegun(cause.to_string()),
            Ok(()) => match commit_jobs(conn, &mut jobs, clock) {
                Ok(()) => End::Committed,
                Err(cause) => End::Unknown(cause.to_string()),
            },
        },
    };
    if !matches!(end, End::Committed) {
        connection.open = None; // rolls back whatever is still open
    }
    for job in jobs {
        job.answer(&end);
    }
}

/// Any failure in here is of a transaction statement, never of a job, and ends the batch. When SQLite has rolled the
/// whole transaction back, the job's savepoint is gone with it, and `ROLLBACK TO` or `RELEASE` says so: without that
/// check the next SAVEPOINT would open a transaction of its own, and its RELEASE would commit it.
fn commit_jobs(conn: &mut SqliteConnection, jobs: &mut [Box<dyn Job>], clock: &Clock) -> diesel::QueryResult<()> {
    for job in jobs {
        conn.batch_execute("SAVEPOINT job")?;
        if !job.run(&mut Db::Sqlite(conn), clock.now()) {
            conn.batch_execute("ROLLBACK TO job")?;
        }
        conn.batch_execute("RELEASE job")?;
    }
    conn.batch_execute("COMMIT")
}

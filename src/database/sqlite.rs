//! How every SQLite file of this process is opened: the store's and the sandbox provider's.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};
use std::path::Path;
use std::time::Duration;

/// Waiting for another process's write. Longer than any batch takes, shorter than a client's patience.
const BUSY_TIMEOUT_MS: u32 = 5_000;

/// `busy_timeout` comes first, so that the other settings wait for a lock instead of failing on it.
pub fn open(path: &Path) -> Result<SqliteConnection, String> {
    let mut conn = SqliteConnection::establish(&path.to_string_lossy()).map_err(|e| e.to_string())?;
    configure(&mut conn).map_err(|e| e.to_string())?;
    Ok(conn)
}

pub fn configure(conn: &mut SqliteConnection) -> QueryResult<()> {
    conn.batch_execute(&format!(
        "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
    ))
}

/// For reading only. A file that isn't there is an error, and isn't made.
pub fn open_existing(path: &Path) -> Result<SqliteConnection, String> {
    if !path.is_file() {
        return Err(format!("{}: there is no such database", path.display()));
    }
    let mut conn = open(path)?;
    forbid_writing(&mut conn).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(conn)
}

pub fn forbid_writing(conn: &mut SqliteConnection) -> QueryResult<()> {
    conn.batch_execute("PRAGMA query_only = ON")
}

/// Makes the file, its folder and its tables where they are missing. Two processes may do so at once.
pub fn create(path: &Path, migrations: EmbeddedMigrations) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut conn = open(path)?;
    switch_to_wal(&mut conn).map_err(|e| e.to_string())?;
    // A migration may build a table anew, which no foreign key may notice (sqlite.org/lang_altertable.html, 7). The
    // connection ends here.
    conn.batch_execute("PRAGMA foreign_keys = OFF").map_err(|e| e.to_string())?;
    conn.immediate_transaction(|conn| {
        conn.run_pending_migrations(migrations).map_err(diesel::result::Error::QueryBuilderError)?;
        match count(conn, "SELECT count(*) AS n FROM pragma_foreign_key_check")? {
            0 => Ok(()),
            broken => Err(diesel::result::Error::QueryBuilderError(format!("{broken} rows refer to nothing").into())),
        }
    })
    .map_err(|e| format!("migrations: {e}"))
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

fn count(conn: &mut SqliteConnection, sql: &str) -> QueryResult<i64> {
    diesel::sql_query(sql).get_result::<Count>(conn).map(|count| count.n)
}

/// The mode is kept in the file. The switch needs the file for itself and doesn't wait for `busy_timeout`, so it is
/// tried again a few times while another process starts up.
fn switch_to_wal(conn: &mut SqliteConnection) -> QueryResult<()> {
    let mut tries = 50;
    loop {
        match conn.batch_execute("PRAGMA journal_mode = WAL") {
            Err(_) if tries > 0 => {
                tries -= 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            end => return end,
        }
    }
}

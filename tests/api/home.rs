//! Where a test's databases are: files in a folder of its own, or, when `COUNTERSIGN_TEST_POSTGRES` names a server, a
//! database of its own there, with the provider's ledger in a schema beside ours.

use countersign::database::{DatabaseUrl, Db};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use std::path::Path;
use tempfile::TempDir;

pub struct Home {
    dir: TempDir,
    pub database: DatabaseUrl,
    pub ledger: DatabaseUrl,
}

impl Home {
    pub fn new() -> Self {
        match std::env::var("COUNTERSIGN_TEST_POSTGRES") {
            Ok(server) => Self::on_postgres(&server),
            Err(_) => Self::on_sqlite(),
        }
    }

    pub fn on_sqlite() -> Self {
        let dir = TempDir::new().unwrap();
        let file = |name: &str| DatabaseUrl::Sqlite(dir.path().join("data").join(name));
        Self { database: file("countersign.db"), ledger: file("sandbox.db"), dir }
    }

    fn on_postgres(server: &str) -> Self {
        let name = format!("t{}", uuid::Uuid::now_v7().simple());
        let (base, _) = server.rsplit_once('/').expect("postgres://…/database");
        batch(&DatabaseUrl::Postgres(server.to_owned()), &format!("CREATE DATABASE {name}"));
        let database = DatabaseUrl::Postgres(format!("{base}/{name}"));
        batch(&database, "CREATE SCHEMA sandbox");
        let ledger = DatabaseUrl::Postgres(format!("{base}/{name}?options=-csearch_path%3Dsandbox"));
        Self { dir: TempDir::new().unwrap(), database, ledger }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.database, DatabaseUrl::Postgres(_))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let DatabaseUrl::Postgres(url) = &self.database else { return };
        let (base, name) = url.rsplit_once('/').unwrap();
        if let Ok(mut conn) = PgConnection::establish(&format!("{base}/postgres")) {
            let _ = conn.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

/// Runs something on a connection of its own.
pub fn with_connection<T>(url: &DatabaseUrl, run: impl FnOnce(&mut Db) -> T) -> T {
    match url {
        DatabaseUrl::Sqlite(path) => {
            let mut conn = SqliteConnection::establish(&path.to_string_lossy()).unwrap();
            conn.batch_execute("PRAGMA busy_timeout = 10000").unwrap();
            run(&mut Db::Sqlite(&mut conn))
        }
        DatabaseUrl::Postgres(url) => run(&mut Db::Postgres(&mut PgConnection::establish(url).unwrap())),
    }
}

pub fn batch(url: &DatabaseUrl, sql: &str) {
    try_batch(url, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub fn try_batch(url: &DatabaseUrl, sql: &str) -> QueryResult<()> {
    with_connection(url, |db| match db {
        Db::Sqlite(conn) => conn.batch_execute(sql),
        Db::Postgres(conn) => conn.batch_execute(sql),
    })
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

#[derive(QueryableByName)]
struct OneText {
    #[diesel(sql_type = diesel::sql_types::Text)]
    t: String,
}

/// The number that a query names `n`, of whatever width; nothing counts as zero.
pub fn number(url: &DatabaseUrl, sql: &str) -> i64 {
    let sql = format!("SELECT CAST(coalesce(n, 0) AS BIGINT) AS n FROM ({sql}) AS q");
    with_connection(url, |db| match db {
        Db::Sqlite(conn) => diesel::sql_query(&sql).get_result::<Number>(*conn),
        Db::Postgres(conn) => diesel::sql_query(&sql).get_result::<Number>(*conn),
    })
    .unwrap_or_else(|error| panic!("{sql}: {error}"))
    .n
}

fn text(db: &mut Db, sql: &str) -> String {
    match db {
        Db::Sqlite(conn) => diesel::sql_query(sql).get_result::<OneText>(*conn),
        Db::Postgres(conn) => diesel::sql_query(sql).get_result::<OneText>(*conn),
    }
    .unwrap_or_else(|error| panic!("{sql}: {error}"))
    .t
}

/// Every row of every table, as text.
pub fn dump(url: &DatabaseUrl) -> String {
    with_connection(url, |db| {
        let tables = match db {
            Db::Sqlite(_) => {
                "SELECT group_concat(name) AS t FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'"
            }
            Db::Postgres(_) => {
                "SELECT string_agg(tablename, ',' ORDER BY 1) AS t FROM pg_tables WHERE schemaname = 'public'"
            }
        };
        let mut dump = String::new();
        for table in text(db, tables).split(',') {
            let rows = match db {
                Db::Sqlite(_) => {
                    let columns = format!(
                        "SELECT group_concat('quote(' || name || ')', ' || '' '' || ') AS t FROM pragma_table_info('{table}')"
                    );
                    let columns = text(db, &columns);
                    format!(
                        "SELECT coalesce(group_concat(r, char(10)), '') AS t FROM (SELECT {columns} AS r FROM {table} ORDER BY 1)"
                    )
                }
                Db::Postgres(_) => {
                    format!("SELECT coalesce(string_agg(r::text, E'\\n' ORDER BY r::text), '') AS t FROM {table} AS r")
                }
            };
            dump += &format!("{table}\n{}\n", text(db, &rows));
        }
        dump
    })
}

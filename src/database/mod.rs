//! The two databases that there can be, and how a query is written once for both. Only this folder and the store's writer
//! know their connections.

pub mod postgres;
pub mod sqlite;

use crate::domain::error::Problem;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DbError};
use std::path::PathBuf;

/// A connection inside a transaction.
pub enum Db<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// Runs one diesel query on whichever database there is; the query is written once and type-checked for each.
macro_rules! on {
    ($db:expr, |$conn:ident| $query:expr) => {
        match $db {
            $crate::database::Db::Sqlite(conn) => {
                let $conn: &mut diesel::SqliteConnection = conn;
                $query
            }
            $crate::database::Db::Postgres(conn) => {
                let $conn: &mut diesel::PgConnection = conn;
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
            self.execute("ROLLBACK TO SAVEPOINT step")?;
        }
        self.execute("RELEASE SAVEPOINT step")?;
        result
    }

    pub(crate) fn execute(&mut self, sql: &str) -> QueryResult<()> {
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
            _ if is_passing(&error) => Problem::storage_unavailable(&error).passing(),
            DbError::DatabaseError(..) | DbError::BrokenTransactionManager => Problem::storage_unavailable(&error),
            _ => Problem::internal(&error),
        }
    }
}

/// 40001, 40P01, or a lost connection: nothing is there, and the next try meets another moment. diesel doesn't tell a
/// deadlock's SQLSTATE; where the server speaks another language, it is 503 at once instead of run again.
fn is_passing(error: &DbError) -> bool {
    use DatabaseErrorKind::{ClosedConnection, SerializationFailure, UnableToSendCommand};
    let DbError::DatabaseError(kind, why) = error else { return false };
    matches!(kind, SerializationFailure | ClosedConnection | UnableToSendCommand)
        || why.message().contains("deadlock detected")
}

/// Why a database can't be read as it is, in one line.
pub fn unreadable(url: &DatabaseUrl, problem: Problem) -> String {
    let cause = problem.cause.unwrap_or(problem.detail);
    let older = ["no such table", "no such column", "does not exist"].iter().any(|sign| cause.contains(sign));
    let hint = if older { " (start the server once: it brings the tables up to date)" } else { "" };
    format!("{url}: {}{hint}", cause.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether another transaction had a row for longer than `lock_timeout`. The same holds for the server's language.
pub fn is_lock_timeout(error: &DbError) -> bool {
    matches!(error, DbError::DatabaseError(_, why) if why.message().contains("lock timeout"))
}

/// Where a database is. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    Sqlite(PathBuf),
    Postgres(String),
}

impl DatabaseUrl {
    /// `sqlite://` and a path, or `postgres://…` as libpq reads it.
    pub fn parse(url: &str) -> Option<Self> {
        match url.split_once("://")? {
            ("sqlite", path) if !path.is_empty() => Some(Self::Sqlite(PathBuf::from(path))),
            ("postgres" | "postgresql", rest) if !rest.is_empty() => Some(Self::Postgres(url.to_owned())),
            _ => None,
        }
    }
}

impl DatabaseUrl {
    /// As it was given, password and all.
    pub fn address(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres(url) => url.clone(),
        }
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", ""));
                let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
                write!(f, "{scheme}://{}", place.split('?').next().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        let shown = |url: &str| DatabaseUrl::parse(url).map(|url| url.to_string());
        assert_eq!(shown("sqlite://data/a.db").as_deref(), Some("sqlite://data/a.db"));
        assert_eq!(shown("postgres://me:secret@db:5432/shop?password=x").as_deref(), Some("postgres://db:5432/shop"));
        assert_eq!(shown("postgresql:///shop").as_deref(), Some("postgresql:///shop"));
        for bad in ["", "data/a.db", "sqlite://", "mysql://x", "postgres://"] {
            assert_eq!(shown(bad), None, "{bad}");
        }
    }
}

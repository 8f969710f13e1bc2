//! For services that know no keys: a mark before the call, another after it. That narrows the risk and can't close it: found
//! started and not done after a crash, the call may or may not have happened, so it is never repeated, but shown to a person.

use super::identity::{Run, Step};
use super::keys::{KeyError, same_call};
use super::schema::marks;
use crate::database::sqlite;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What a mark allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nobody called before: call now, and say so with [`DedupeRecord::done`].
    Yours,
    /// It was called, and this came of it.
    Done(String),
    /// Somebody began and didn't come back. Don't call: look whether it happened.
    Unclear { since: Timestamp },
}

pub struct DedupeRecord {
    conn: Mutex<SqliteConnection>,
}

impl DedupeRecord {
    /// In the file of a key store that was opened before.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        Ok(Self { conn: Mutex::new(sqlite::open(path).map_err(KeyError::Storage)?) })
    }

    /// Marks a call as started, durably, before it is made. One of many that ask at once gets it.
    pub fn begin(&self, run: &Run, step: &Step, now: Timestamp) -> Result<Mark, KeyError> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        conn.immediate_transaction(|conn| {
            let row = (
                (marks::tenant.eq(&run.tenant), marks::run.eq(&run.id), marks::step.eq(&step.id)),
                (marks::tool.eq(&step.tool), marks::parameters.eq(step.parameters.as_str())),
                marks::started_at.eq(now),
            );
            let begun = diesel::insert_into(marks::table).values(row).on_conflict_do_nothing().execute(conn)?;
            if begun == 1 {
                return Ok(Mark::Yours);
            }
            let (tool, parameters, since, result): (String, String, Timestamp, Option<String>) = marks::table
                .find((&run.tenant, &run.id, &step.id))
                .select((marks::tool, marks::parameters, marks::started_at, marks::result))
                .first(conn)?;
            same_call(step, &tool, &parameters)?;
            Ok(result.map_or(Mark::Unclear { since }, Mark::Done))
        })
    }

    /// A person looked, and the call did not happen: it may be made.
    pub fn did_not_happen(&self, run: &Run, step: &Step) -> Result<(), KeyError> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        let open = marks::table.find((&run.tenant, &run.id, &step.id)).filter(marks::result.is_null());
        diesel::delete(open).execute(&mut *conn)?;
        Ok(())
    }

    /// Marks it as done, with what came of it. The first word stays.
    pub fn done(&self, run: &Run, step: &Step, result: &str) -> Result<(), KeyError> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        let open = marks::table.find((&run.tenant, &run.id, &step.id)).filter(marks::result.is_null());
        diesel::update(open).set(marks::result.eq(result)).execute(&mut *conn)?;
        Ok(())
    }
}

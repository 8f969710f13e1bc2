//! Accounts and actors.

use super::schema::{accounts, actors};
use super::{Db, on};
use crate::domain::actor::Scopes;
use crate::domain::ids::{AccountId, ActorId};
use crate::domain::time::Timestamp;
use diesel::prelude::*;

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = actors, treat_none_as_default_value = false)]
pub struct Actor {
    pub actor_id: ActorId,
    pub account_id: AccountId,
    pub name: String,
    pub key_sha256: String,
    pub scopes: Scopes,
    pub demo: bool,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

pub fn find_by_key(db: &mut Db, key_sha256: &str) -> QueryResult<Option<Actor>> {
    on!(db, |conn| {
        actors::table.filter(actors::key_sha256.eq(key_sha256)).select(Actor::as_select()).first(conn).optional()
    })
}

/// Keeps others from counting what this actor has until the transaction ends; references to it go on. SQLite's writer is
/// alone anyway.
pub fn lock(db: &mut Db, actor: &ActorId) -> QueryResult<()> {
    match db {
        Db::Sqlite(_) => Ok(()),
        Db::Postgres(conn) => actors::table
            .find(actor)
            .select(actors::actor_id)
            .for_no_key_update()
            .first::<ActorId>(*conn)
            .optional()
            .map(|_| ()),
    }
}

/// True for the one caller that made it; false when its key is there already.
pub fn insert(db: &mut Db, actor: &Actor) -> QueryResult<bool> {
    on!(db, |conn| {
        diesel::insert_into(actors::table).values(actor).on_conflict(actors::key_sha256).do_nothing().execute(conn)
    })
    .map(|rows| rows == 1)
}

/// The account of this name, made if there is none.
pub fn account_named(db: &mut Db, name: &str, now: Timestamp) -> QueryResult<AccountId> {
    on!(db, |conn| {
        diesel::insert_into(accounts::table)
            .values((
                accounts::account_id.eq(AccountId::generate()),
                accounts::name.eq(name),
                accounts::created_at.eq(now),
            ))
            .on_conflict(accounts::name)
            .do_nothing()
            .execute(conn)
    })?;
    on!(db, |conn| accounts::table.filter(accounts::name.eq(name)).select(accounts::account_id).first(conn))
}

/// Every actor with its account's name, oldest first.
pub fn list(db: &mut Db) -> QueryResult<Vec<(Actor, String)>> {
    on!(db, |conn| {
        actors::table
            .inner_join(accounts::table)
            .order(actors::actor_id)
            .select((Actor::as_select(), accounts::name))
            .load(conn)
    })
}

/// False when there is no such actor. Disabling twice keeps the first time.
pub fn disable(db: &mut Db, actor: &ActorId, now: Timestamp) -> QueryResult<bool> {
    on!(db, |conn| {
        diesel::update(actors::table.find(actor).filter(actors::disabled_at.is_null()))
            .set(actors::disabled_at.eq(now))
            .execute(conn)
    })?;
    on!(db, |conn| diesel::select(diesel::dsl::exists(actors::table.find(actor))).get_result(conn))
}

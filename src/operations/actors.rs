//! Making, listing and disabling actors, for the command line. A key is shown once, when it is made.

use crate::domain::actor::Scopes;
use crate::domain::digest::sha256_hex;
use crate::domain::error::Problem;
use crate::domain::ids::ActorId;
use crate::store::Store;
use crate::store::actors::{self, Actor};

/// A new actor and its key: 244 random bits, so that nobody can guess one and a plain hash is enough to store.
pub async fn create(
    store: &Store,
    account: String,
    name: String,
    scopes: Scopes,
) -> Result<(ActorId, String), Problem> {
    let key = format!("csk_{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let hash = sha256_hex(key.as_bytes());
    let id = store
        .write(move |db, now| {
            let actor = Actor {
                actor_id: ActorId::generate(),
                account_id: actors::account_named(db, &account, now)?,
                name: name.clone(),
                key_sha256: hash.clone(),
                scopes: scopes.clone(),
                demo: false,
                created_at: now,
                disabled_at: None,
            };
            actors::insert(db, &actor)?;
            Ok(actor.actor_id)
        })
        .await?;
    Ok((id, key))
}

/// Every actor with its account's name.
pub async fn list(store: &Store) -> Result<Vec<(Actor, String)>, Problem> {
    store.read(|db, _| Ok(actors::list(db)?)).await
}

/// From now on the actor's key opens nothing, replays included.
pub async fn disable(store: &Store, id: ActorId) -> Result<(), Problem> {
    let disabled = store.write(move |db, now| Ok(actors::disable(db, &id, now)?)).await?;
    disabled.then_some(()).ok_or_else(|| Problem::not_found("actor"))
}

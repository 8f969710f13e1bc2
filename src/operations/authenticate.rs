//! Authentication: a bearer key names an actor. Disabled actors, and demo actors outside the demo, have no key.
//! Authorisation: the actor has one of the scopes that the operation's profile names.

use super::Context;
use crate::domain::actor::{Caller, Scope};
use crate::domain::digest::sha256_hex;
use crate::domain::error::Problem;
use crate::effects::EffectProfile;
use crate::store::actors;

/// Whether the well-known demo keys open anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoActors {
    Admitted,
    Refused,
}

pub async fn authenticate(context: &Context, token: &str, demo: DemoActors) -> Result<Caller, Problem> {
    let hash = sha256_hex(token.as_bytes());
    let actor = context.store.read(move |db, _| Ok(actors::find_by_key(db, &hash)?)).await?;
    actor
        .filter(|actor| actor.disabled_at.is_none())
        .filter(|actor| !actor.demo || demo == DemoActors::Admitted)
        .map(|actor| Caller { actor: actor.actor_id, account: actor.account_id, scopes: actor.scopes })
        .ok_or_else(Problem::unauthenticated)
}

pub fn authorize(caller: &Caller, profile: &EffectProfile) -> Result<(), Problem> {
    if profile.scopes.is_empty() || profile.scopes.iter().any(|scope| caller.scopes.allow(*scope)) {
        return Ok(());
    }
    let needed: Vec<&str> = profile.scopes.iter().map(Scope::as_str).collect();
    Err(Problem::insufficient_scope(&needed))
}

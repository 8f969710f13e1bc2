//! Outcome look-up: what became of a key, without running anything.

use super::authenticate::authorize;
use super::confirm::subject;
use super::once::{Standing, standing};
use super::{Call, Context, Reply};
use crate::domain::answer::{Answer, Delivery};
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, RefundId, TaskId};
use crate::domain::key::IdempotencyKey;
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use crate::domain::words::words;
use crate::store::claims::{self, Claim};
use crate::store::payments::Subject;
use crate::store::{Db, confirmations, payments};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::openapi::schema::Type;

words! {
    /// What is known of a keyed call.
    pub enum OperationState {
        /// It is running right now.
        InFlight = "in_flight",
        /// It was begun and the provider's word isn't known: send the same call again, with the same key.
        Unknown = "unknown",
        /// It is decided: this is its stored answer.
        Completed = "completed",
    }
}

/// What is known of a key's call.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct OperationStatus {
    /// What the key was used for.
    pub operation_id: Operation,
    /// Whether the call is decided.
    pub status: OperationState,
    /// When the key was claimed.
    pub first_seen_at: Timestamp,
    /// The `Agent-Task-Id` of the first call; null where it had none.
    #[schema(required)]
    pub task_id: Option<TaskId>,
    /// Of the stored answer; absent until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 201)]
    pub http_status: Option<u16>,
    /// The stored answer's body, as a replay would send it; null where it has none, absent until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = any_answer)]
    pub response: Option<Box<RawValue>>,
    /// The path of what the call made or decided, if that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/confirmations/cnf_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e")]
    pub resource: Option<String>,
}

/// Its shape is the operation's.
fn any_answer() -> utoipa::openapi::schema::Object {
    utoipa::openapi::schema::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(
            "The stored answer's body, as a replay would send it; null where it has none, absent until there is one.",
        ))
        .examples([serde_json::json!({"confirmation_id": "cnf_019adef6a0c07a3b9d1c6f2b5e8a4d10", "status": "pending"})])
        .build()
}

pub async fn get_operation_status(context: &Context, call: Call, key: IdempotencyKey) -> Result<Reply, Problem> {
    let show = move |db: &mut Db, now| {
        let claim = claims::find(db, &call.caller.actor, &key)?.ok_or_else(Problem::key_unknown)?;
        let standing = standing(&claim, now);
        if matches!(standing, Standing::Forgotten) {
            return Err(Problem::key_unknown());
        }
        authorize(&call.caller, claim.operation.profile())?;
        let key_expires_at = Some(claim.expires_at).filter(|at| now < *at);
        let answer = Answer::json(200, &status(db, claim, standing, now)?)?;
        Ok(Reply { answer, delivery: Delivery::Executed, key_expires_at })
    };
    context.store.read(show).await
}

fn status(db: &mut Db, claim: Claim, standing: Standing, now: Timestamp) -> Result<OperationStatus, Problem> {
    let resource = claim.resource.clone();
    let (status, answer, resource) = match (claim.operation, standing) {
        // A confirm's answer stands on its confirmation, for as long as the order exists.
        (Operation::ConfirmCheckout | Operation::ConfirmRefund, _) => confirm_status(db, &claim, now)?,
        (_, Standing::Answered(answer)) => (OperationState::Completed, Some(answer), resource),
        (_, Standing::Expired | Standing::Forgotten) => return Err(Problem::key_expired(resource)),
        (_, Standing::Open) => {
            let subject = resource.as_deref().and_then(RefundId::at).map(Subject::Refund);
            (undecided(db, subject, now)?, None, resource)
        }
    };
    let body = answer.as_ref().map(|answer| if answer.body.is_empty() { "null" } else { answer.body.as_str() });
    Ok(OperationStatus {
        operation_id: claim.operation,
        status,
        first_seen_at: claim.created_at,
        task_id: claim.task_id,
        http_status: answer.as_ref().map(|answer| answer.status),
        response: body.map(|body| RawValue::from_string(body.to_owned())).transpose().map_err(Problem::internal)?,
        resource,
    })
}

type State = (OperationState, Option<Answer>, Option<String>);

fn confirm_status(db: &mut Db, claim: &Claim, now: Timestamp) -> Result<State, Problem> {
    let id = claim.resource.as_deref().and_then(ConfirmationId::at);
    let confirmation = match id {
        Some(id) => confirmations::find(db, &id)?,
        None => None,
    };
    let confirmation = confirmation.ok_or_else(|| Problem::internal("a confirm's claim without its confirmation"))?;
    let state = match &confirmation.decision {
        Some(_) => OperationState::Completed,
        None => undecided(db, Some(subject(&confirmation)?), now)?,
    };
    let resource = confirmation.became().unwrap_or_else(|| confirmation.confirmation_id.path());
    Ok((state, confirmation.decision, Some(resource)))
}

/// Running as long as somebody has the lease on its payment.
fn undecided(db: &mut Db, subject: Option<Subject>, now: Timestamp) -> Result<OperationState, Problem> {
    let payment = match subject {
        Some(subject) => payments::find_by_subject(db, &subject)?,
        None => None,
    };
    let leased = payment.and_then(|payment| payment.lease_until).is_some_and(|until| now < until);
    Ok(if leased { OperationState::InFlight } else { OperationState::Unknown })
}

//! Dry run: shows the full effect of a checkout. It writes nothing, reserves nothing and makes no ids, and fails where
//! propose would.

use super::propose_checkout::{current_plan, warnings};
use super::{Call, Context};
use crate::domain::checkout::CheckoutRequest;
use crate::domain::digest::Digest;
use crate::domain::error::Problem;
use crate::domain::plan::{Plan, Warning};
use crate::store::Db;
use serde::Serialize;

/// A checkout as it would be proposed now. Nothing was changed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct DryRun {
    /// Always true: nothing was changed.
    #[schema(example = true)]
    pub dry_run: bool,
    /// What would be held, and charged when it is confirmed.
    pub plan: Plan,
    /// Send it as `expected_plan_digest` to propose exactly this plan.
    pub plan_digest: Digest,
    /// What to think about before proposing it; empty when nothing stands out.
    pub warnings: Vec<Warning>,
}

pub async fn dry_run_checkout(context: &Context, call: Call, request: CheckoutRequest) -> Result<DryRun, Problem> {
    let show = move |db: &mut Db, now| {
        let (plan, plan_digest) = current_plan(db, &request, now)?;
        let warnings = warnings(db, &call.caller.actor, &request.attempt_digest(), now)?;
        Ok(DryRun { dry_run: true, plan, plan_digest, warnings })
    };
    context.store.read(show).await
}

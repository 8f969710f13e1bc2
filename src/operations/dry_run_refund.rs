//! Dry run of a refund: shows its effect, and whether a confirmation would be needed. It writes nothing and reserves
//! nothing, and fails where the refund would.

use super::issue_refund::offer;
use super::{Call, Context};
use crate::domain::digest::Digest;
use crate::domain::error::Problem;
use crate::domain::refund::{RefundOffer, RefundRequest};
use crate::store::Db;
use serde::Serialize;

/// A refund as it would be made now. Nothing was changed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct DryRunRefund {
    /// Always true: nothing was changed.
    #[schema(example = true)]
    pub dry_run: bool,
    #[serde(flatten)]
    pub offer: RefundOffer,
    /// What a confirmation of it would be bound to.
    pub plan_digest: Digest,
    /// Whether it would take a second step; `because` says why.
    #[schema(example = false)]
    pub confirmation_required: bool,
}

pub async fn dry_run_refund(context: &Context, call: Call, request: RefundRequest) -> Result<DryRunRefund, Problem> {
    let policy = context.settings.refunds;
    let show = move |db: &mut Db, now| {
        let offer = offer(db, &call.caller, &request, policy, now)?;
        let confirmation_required = offer.takes_confirmation();
        Ok(DryRunRefund { dry_run: true, offer, plan_digest: request.digest(), confirmation_required })
    };
    context.store.read(show).await
}

//! A confirmation: a firm, single-use offer to run one operation with one plan, for one actor, until it expires.

use super::answer::Answer;
use super::digest::Digest;
use super::ids::{AccountId, ActorId, ConfirmationId, OrderId, TaskId};
use super::money::Money;
use super::plan::{Plan, Warning};
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;

words! {
    /// Where a confirmation stands. Confirmed, declined, cancelled and expired are final.
    pub enum Status {
        /// Can be confirmed or cancelled.
        Pending = "pending",
        /// Confirmed by its actor; the provider's word is awaited.
        Committing = "committing",
        Confirmed = "confirmed",
        Declined = "declined",
        Cancelled = "cancelled",
        Expired = "expired",
    }
}

words! {
    /// What a confirmation is an offer to do.
    pub enum Purpose {
        Checkout = "checkout",
        Refund = "refund",
    }
}

/// The legal ways out of `pending`. Each transition happens at most once, by compare-and-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromPending {
    Commit,
    Cancel,
    Expire,
}

impl FromPending {
    pub const fn to(self) -> Status {
        match self {
            FromPending::Commit => Status::Committing,
            FromPending::Cancel => Status::Cancelled,
            FromPending::Expire => Status::Expired,
        }
    }
}

/// The legal ways out of `committing`. There are no other transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromCommitting {
    Confirm,
    Decline,
}

impl FromCommitting {
    pub const fn to(self) -> Status {
        match self {
            FromCommitting::Confirm => Status::Confirmed,
            FromCommitting::Decline => Status::Declined,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Confirmation {
    pub confirmation_id: ConfirmationId,
    pub actor: ActorId,
    pub account: AccountId,
    pub purpose: Purpose,
    pub status: Status,
    pub plan: Plan,
    pub plan_digest: Digest,
    pub attempt_digest: Digest,
    pub warnings: Vec<Warning>,
    pub task: Option<TaskId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub order_id: Option<OrderId>,
    /// What confirming it answered, once that is decided.
    pub decision: Option<Answer>,
}

impl Confirmation {
    /// The status at a point in time: the clock decides what is expired, not the worker that writes it down.
    pub fn status_at(&self, now: Timestamp) -> Status {
        let overdue = self.status == Status::Pending && now >= self.expires_at;
        if overdue { Status::Expired } else { self.status }
    }

    pub fn view(&self, now: Timestamp) -> ConfirmationView<'_> {
        let status = self.status_at(now);
        ConfirmationView {
            confirmation_id: &self.confirmation_id,
            operation: self.purpose,
            status,
            plan: &self.plan,
            plan_digest: &self.plan_digest,
            total: self.plan.total,
            warnings: &self.warnings,
            expires_at: self.expires_at,
            created_at: self.created_at,
            order_id: self.order_id.as_ref(),
            next: self.next(status),
        }
    }

    pub fn confirm_path(&self) -> String {
        let id = &self.confirmation_id;
        match self.purpose {
            Purpose::Checkout => format!("/confirm-checkout/{id}"),
            Purpose::Refund => format!("/confirm-refund/{id}"),
        }
    }

    fn next(&self, status: Status) -> Next {
        let id = &self.confirmation_id;
        let confirm = self.confirm_path();
        let propose = match self.purpose {
            Purpose::Checkout => "/checkout",
            Purpose::Refund => "/refunds",
        };
        match status {
            Status::Pending => Next { confirm: Some(confirm), cancel: Some(id.path()), ..Next::default() },
            Status::Committing => Next { confirm: Some(confirm), ..Next::default() },
            Status::Confirmed => Next { order: self.order_id.as_ref().map(OrderId::path), ..Next::default() },
            Status::Declined | Status::Cancelled | Status::Expired => {
                Next { propose: Some(propose.to_owned()), ..Next::default() }
            }
        }
    }
}

#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Confirmation)]
pub struct ConfirmationView<'a> {
    pub confirmation_id: &'a ConfirmationId,
    pub operation: Purpose,
    pub status: Status,
    pub plan: &'a Plan,
    pub plan_digest: &'a Digest,
    pub total: Money,
    pub warnings: &'a [Warning],
    /// It can be confirmed strictly before this time. A replay never moves it.
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
    pub order_id: Option<&'a OrderId>,
    pub next: Next,
}

/// What can be done next, as paths. `confirm` takes POST, `cancel` DELETE, `order` GET, `propose` POST.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct Next {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propose: Option<String>,
}

//! A confirmation: a firm, single-use offer to run one operation with one plan, for one actor, until it expires.

use super::actor::{Caller, Scope};
use super::answer::Answer;
use super::digest::Digest;
use super::ids::{AccountId, ActorId, ConfirmationId, OrderId, RefundId, TaskId};
use super::money::Money;
use super::plan::{Plan, Warning};
use super::refund::{Approver, RefundOffer};
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;
use std::time::Duration;

words! {
    /// Where a confirmation stands. Confirmed, declined, cancelled and expired are final.
    pub enum Status {
        /// Can be confirmed or cancelled.
        Pending = "pending",
        /// Confirmed by its actor; the provider's word is awaited.
        Committing = "committing",
        /// It became an order or a refund.
        Confirmed = "confirmed",
        /// The provider said no. What it held is free.
        Declined = "declined",
        /// It was cancelled in time. What it held is free.
        Cancelled = "cancelled",
        /// Its time is over. What it held is free.
        Expired = "expired",
    }
}

words! {
    /// What a confirmation is an offer to do.
    pub enum Purpose {
        /// Charging a plan and making its order.
        Checkout = "checkout",
        /// Giving money of an order back.
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

/// What a confirmation is for, as it was shown. The digest binds the plan, or the refund that was asked for.
#[derive(Clone, Debug)]
pub enum Offer {
    Checkout(Box<Plan>),
    Refund(Box<RefundOffer>),
}

impl Offer {
    /// As it is kept, in JSON.
    pub fn read(purpose: Purpose, text: &str) -> serde_json::Result<Self> {
        match purpose {
            Purpose::Checkout => serde_json::from_str(text).map(Offer::Checkout),
            Purpose::Refund => serde_json::from_str(text).map(Offer::Refund),
        }
    }

    pub fn purpose(&self) -> Purpose {
        match self {
            Offer::Checkout(_) => Purpose::Checkout,
            Offer::Refund(_) => Purpose::Refund,
        }
    }

    /// The money that moves when it is confirmed.
    pub fn amount(&self) -> Money {
        match self {
            Offer::Checkout(plan) => plan.total,
            Offer::Refund(offer) => offer.refund.amount,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Confirmation {
    pub confirmation_id: ConfirmationId,
    pub actor: ActorId,
    pub account: AccountId,
    pub status: Status,
    pub offer: Offer,
    pub plan_digest: Digest,
    /// Equal for attempts at the same thing, whatever their keys.
    pub attempt_digest: Digest,
    pub warnings: Vec<Warning>,
    pub task: Option<TaskId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub order_id: Option<OrderId>,
    pub refund_id: Option<RefundId>,
    /// What confirming it answered, once that is decided.
    pub decision: Option<Answer>,
}

impl Confirmation {
    /// A pending one, made now.
    pub fn propose(by: &Caller, offer: Offer, plan_digest: Digest, attempt_digest: Digest, made: Made) -> Self {
        Self {
            confirmation_id: ConfirmationId::generate(),
            actor: by.actor.clone(),
            account: by.account.clone(),
            status: Status::Pending,
            offer,
            plan_digest,
            attempt_digest,
            warnings: made.warnings,
            task: made.task,
            created_at: made.now,
            expires_at: made.now.after(made.ttl),
            order_id: None,
            refund_id: None,
            decision: None,
        }
    }

    /// Who this caller is to it.
    pub fn standing_of(&self, caller: &Caller, approver: Approver) -> Standing {
        let to_approve = self.offer.purpose() == Purpose::Refund && approver == Approver::Other;
        if self.actor == caller.actor {
            Standing::Proposer
        } else if to_approve && self.account == caller.account && caller.scopes.allow(Scope::RefundsConfirm) {
            Standing::Approver
        } else {
            Standing::Stranger
        }
    }

    /// The status at a point in time: the clock decides what is expired, not the worker that writes it down.
    pub fn status_at(&self, now: Timestamp) -> Status {
        let overdue = self.status == Status::Pending && now >= self.expires_at;
        if overdue { Status::Expired } else { self.status }
    }

    pub fn view(&self, now: Timestamp) -> ConfirmationView<'_> {
        let status = self.status_at(now);
        ConfirmationView {
            confirmation_id: &self.confirmation_id,
            operation: self.offer.purpose(),
            status,
            offer: match &self.offer {
                Offer::Checkout(plan) => {
                    OfferView::Checkout { plan, total: plan.total, order_id: self.order_id.as_ref() }
                }
                Offer::Refund(offer) => {
                    OfferView::Refund { offer, amount: offer.refund.amount, refund_id: self.refund_id.as_ref() }
                }
            },
            plan_digest: &self.plan_digest,
            warnings: &self.warnings,
            expires_at: self.expires_at,
            created_at: self.created_at,
            next: self.next(status),
        }
    }

    pub fn confirm_path(&self) -> String {
        let id = &self.confirmation_id;
        match self.offer.purpose() {
            Purpose::Checkout => format!("/confirm-checkout/{id}"),
            Purpose::Refund => format!("/confirm-refund/{id}"),
        }
    }

    /// The path of what it became, if anything.
    pub fn became(&self) -> Option<String> {
        self.order_id.as_ref().map(OrderId::path).or_else(|| self.refund_id.as_ref().map(RefundId::path))
    }

    fn next(&self, status: Status) -> Next {
        let id = &self.confirmation_id;
        let confirm = self.confirm_path();
        let propose = match self.offer.purpose() {
            Purpose::Checkout => "/checkout",
            Purpose::Refund => "/refunds",
        };
        let became = Next {
            order: self.order_id.as_ref().map(OrderId::path),
            refund: self.refund_id.as_ref().map(RefundId::path),
            ..Next::default()
        };
        match status {
            Status::Pending => Next { confirm: Some(confirm), cancel: Some(id.path()), ..Next::default() },
            Status::Committing => Next { confirm: Some(confirm), ..became },
            Status::Confirmed => became,
            // A declined refund is for a person.
            Status::Declined if self.offer.purpose() == Purpose::Refund => became,
            Status::Declined | Status::Cancelled | Status::Expired => {
                Next { propose: Some(propose.to_owned()), ..became }
            }
        }
    }
}

/// Who a caller is to a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Proposer,
    /// May read and confirm another's refund.
    Approver,
    /// To whom it looks like none.
    Stranger,
}

/// How a proposal came about.
pub struct Made {
    pub warnings: Vec<Warning>,
    pub task: Option<TaskId>,
    pub now: Timestamp,
    pub ttl: Duration,
}

/// A firm, single-use offer to run one operation with one plan, for one actor, until it expires.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Confirmation)]
pub struct ConfirmationView<'a> {
    /// Names it in every call about it; the only key that its confirm needs.
    pub confirmation_id: &'a ConfirmationId,
    /// What confirming it does.
    pub operation: Purpose,
    /// Where it stands; the clock decides what is expired.
    pub status: Status,
    #[serde(flatten)]
    pub offer: OfferView<'a>,
    /// Of the plan, or of the refund: send it as `expected_plan_digest` to confirm exactly this.
    pub plan_digest: &'a Digest,
    /// What to think about before confirming it; empty when nothing stands out.
    pub warnings: &'a [Warning],
    /// It can be confirmed strictly before this time. A replay never moves it.
    pub expires_at: Timestamp,
    /// When it was proposed.
    pub created_at: Timestamp,
    /// What can be done with it in this status.
    pub next: Next,
}

/// What is offered, and what became of it: a checkout's plan and its order, or a refund.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum OfferView<'a> {
    /// A checkout.
    #[schema(title = "Checkout")]
    Checkout {
        /// What is held, and charged when it is confirmed.
        plan: &'a Plan,
        /// The plan's total: what confirming it charges.
        total: Money,
        /// The order that it became; null unless it was confirmed.
        #[schema(required)]
        order_id: Option<&'a OrderId>,
    },
    /// A refund.
    #[schema(title = "Refund")]
    Refund {
        #[serde(flatten)]
        offer: &'a RefundOffer,
        /// What confirming it gives back.
        amount: Money,
        /// The refund that it became; null until it was sent to the provider.
        #[schema(required)]
        refund_id: Option<&'a RefundId>,
    },
}

/// What can be done next, as paths. `confirm` takes POST, `cancel` DELETE, `order` and `refund` GET, `propose` POST.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct Next {
    /// Run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/confirm-checkout/cnf_019adef6a0c07a3b9d1c6f2b5e8a4d10")]
    pub confirm: Option<String>,
    /// Free what it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/confirmations/cnf_019adef6a0c07a3b9d1c6f2b5e8a4d10")]
    pub cancel: Option<String>,
    /// Read the order that it became.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/orders/ord_019adef6a5d27c41a3f08b7e6d9c2f35")]
    pub order: Option<String>,
    /// Read the refund that it became.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/refunds/rfd_019adef6ab3e7f60b8d24c1a9e7f5062")]
    pub refund: Option<String>,
    /// Begin anew, under a new key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/checkout")]
    pub propose: Option<String>,
}

//! Refunds: what is asked for, when a second look at it is wanted, and what became of it.

use super::digest::Digest;
use super::ids::{ConfirmationId, OrderId, RefundId};
use super::money::{Currency, Money};
use super::time::Timestamp;
use super::words::words;
use serde::{Deserialize, Serialize};
use std::time::Duration;

words! {
    /// Why money is given back.
    pub enum RefundReason {
        /// It arrived broken.
        Damaged = "damaged",
        /// It isn't what was offered.
        NotAsDescribed = "not_as_described",
        /// It came too late, or never.
        Late = "late",
        /// Anything else: say it in `note`.
        Other = "other",
    }
}

words! {
    /// What became of a refund.
    pub enum RefundStatus {
        /// Sent to the provider, whose word is awaited.
        Pending = "pending",
        /// The money was given back.
        Succeeded = "succeeded",
        /// The provider said no; no money moved.
        Declined = "declined",
    }
}

/// A refund as it was asked for.
//
// Serialized, it is what the fingerprint is taken of, and the digest that a confirmation is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RefundRequest {
    /// The order that is refunded.
    pub order_id: OrderId,
    /// In the order's currency.
    pub amount: Money,
    /// Why money is given back.
    pub reason: RefundReason,
    /// In the caller's words; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "The handle was broken")]
    pub note: Option<String>,
}

impl RefundRequest {
    pub fn digest(&self) -> Digest {
        Digest::of(self)
    }
}

words! {
    /// Why a refund takes a second step.
    pub enum Because {
        /// The order's refunds would add up to more than the threshold.
        Threshold = "threshold",
        /// An equal refund is under way, or succeeded a short while ago: is this a repeat under a new key?
        LooksLike = "looks_like",
    }
}

/// A refund as it would be made now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RefundOffer {
    /// As it was asked for.
    pub refund: RefundRequest,
    /// After this refund, as it was when it was offered.
    pub remaining_refundable: Money,
    /// Why it takes a confirmation; empty: it takes none.
    pub because: Vec<Because>,
    /// Equal refunds of this order that are under way or succeeded a short while ago.
    pub similar: Vec<RefundId>,
}

impl RefundOffer {
    pub fn takes_confirmation(&self) -> bool {
        !self.because.is_empty()
    }
}

/// What an order's money is used for. Every amount is in the order's currency.
#[derive(Clone, Copy, Debug)]
pub struct Refundable {
    pub total: Money,
    /// Succeeded refunds.
    pub refunded: Money,
    /// For refunds that are pending or offered.
    pub reserved: Money,
}

impl Refundable {
    /// The rest of the total. The database keeps it from going below zero.
    pub fn remaining(&self) -> Money {
        let used = self.refunded.plus(self.reserved);
        used.and_then(|used| self.total.minus(used)).unwrap_or(Money::zero(self.total.currency()))
    }
}

words! {
    /// Who may confirm a refund that takes two steps.
    pub enum Approver {
        /// Its proposer, and nobody else.
        Same = "same",
        /// Another actor of the same account.
        Other = "other",
    }
}

/// When a refund takes a second step, and whose.
#[derive(Clone, Copy, Debug)]
pub struct RefundPolicy {
    pub thresholds: Thresholds,
    /// How long a succeeded refund makes an equal one look like a repeat. Zero turns the look-alike rule off.
    pub lookalike_window: Duration,
    pub approver: Approver,
}

impl RefundPolicy {
    pub fn looks_for_repeats(&self) -> bool {
        !self.lookalike_window.is_zero()
    }
}

/// Refunds of one order that add up to more take a second step. One amount a currency.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds([Money; Currency::ALL.len()]);

impl Thresholds {
    /// What a customer-service desk may usually give back by itself.
    pub const DEFAULT: &str = "USD:100.00,EUR:100.00,JPY:15000,KWD:30.000";

    /// `USD:100.00,JPY:15000`: each currency once; those left out keep their default.
    pub fn parse(text: &str) -> Option<Self> {
        let mut thresholds = Self(std::array::from_fn(|i| Money::zero(Currency::ALL[i])));
        thresholds.set(Self::DEFAULT)?;
        thresholds.set(text)?;
        Some(thresholds)
    }

    pub fn of(&self, currency: Currency) -> Money {
        self.0.iter().copied().find(|money| money.currency() == currency).unwrap_or(Money::zero(currency))
    }

    fn set(&mut self, text: &str) -> Option<()> {
        let mut named = Vec::new();
        for part in text.split(',') {
            let (currency, amount) = part.split_once(':')?;
            let currency = Currency::parse(currency).filter(|currency| !named.contains(currency))?;
            let threshold = self.0.iter_mut().find(|money| money.currency() == currency)?;
            *threshold = Money::parse(amount, currency).ok()?;
            named.push(currency);
        }
        Some(())
    }
}

/// A refund as callers see it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Refund {
    /// Names it in every call about it.
    pub refund_id: RefundId,
    /// The order that is refunded.
    pub order_id: OrderId,
    /// The confirmation of its second step; null where one step was enough.
    #[schema(required)]
    pub confirmation_id: Option<ConfirmationId>,
    /// What is given back.
    pub amount: Money,
    /// Why money is given back.
    pub reason: RefundReason,
    /// In the caller's words; null where there are none.
    #[schema(required, example = "The handle was broken")]
    pub note: Option<String>,
    /// Whether the money moved.
    pub status: RefundStatus,
    /// What can still be refunded of the order, after this call.
    pub remaining_refundable: Money,
    /// When it was sent to the provider.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_one_amount_a_currency() {
        let of = |text: &str, currency| Thresholds::parse(text).unwrap().of(currency).to_string();
        assert_eq!(of(Thresholds::DEFAULT, Currency::Kwd), "30.000");
        assert_eq!(of("JPY:0", Currency::Jpy), "0");
        assert_eq!(of("JPY:0", Currency::Usd), "100.00");
        for bad in ["", "USD", "USD:", "USD:-1", "USD:1.001", "GBP:1", "USD:1,USD:2", "USD:1,", "usd:1"] {
            assert!(Thresholds::parse(bad).is_none(), "{bad}");
        }
    }
}

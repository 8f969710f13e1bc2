//! Discount codes: when one can be used, and what it takes off which line.

use super::error::{Problem, UnavailableReason};
use super::money::Money;
use super::plan::too_large;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Discount {
    pub kind: DiscountKind,
    pub minimum_subtotal: Option<Money>,
    pub expires_at: Option<Timestamp>,
    /// None: without limit.
    pub uses_left: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub enum DiscountKind {
    Percentage { parts_per_million: i64 },
    FixedAmount(Money),
}

/// What one discount code takes off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppliedDiscount {
    /// As it was sent.
    #[schema(example = "WELCOME10")]
    pub code: String,
    /// Taken off the subtotal by this code.
    pub amount: Money,
}

/// Applies the codes in the order given, each to what the ones before it left. Returns each code's amount and each
/// line's part.
pub(super) fn discounted(
    codes: &[String],
    discounts: &BTreeMap<String, Discount>,
    subtotals: &[Money],
    now: Timestamp,
) -> Result<(Vec<AppliedDiscount>, Vec<Money>), Problem> {
    let mut left = subtotals.to_vec();
    let mut applied = Vec::new();
    for code in codes {
        let amount = discount_amount(code, discounts, subtotals, &left, now)?;
        for (part, line) in amount.split(&left).into_iter().zip(&mut left) {
            *line = line.minus(part).map_err(too_large)?;
        }
        applied.push(AppliedDiscount { code: code.clone(), amount });
    }
    let parts = subtotals.iter().zip(&left).map(|(subtotal, left)| subtotal.minus(*left));
    Ok((applied, parts.collect::<Result<_, _>>().map_err(too_large)?))
}

/// Never more than what is left, so that no total falls below zero.
fn discount_amount(
    code: &str,
    discounts: &BTreeMap<String, Discount>,
    subtotals: &[Money],
    left: &[Money],
    now: Timestamp,
) -> Result<Money, Problem> {
    let refuse = |reason| Problem::discount_unavailable(code, reason);
    let discount = discounts.get(code).ok_or_else(|| refuse(UnavailableReason::UnknownCode))?;
    if discount.expires_at.is_some_and(|expires_at| now >= expires_at) {
        return Err(refuse(UnavailableReason::Expired));
    }
    if discount.uses_left.is_some_and(|uses| uses < 1) {
        return Err(refuse(UnavailableReason::UsedUp));
    }
    let currency = subtotals[0].currency();
    let sum = |parts: &[Money]| Money::sum(currency, parts.iter().copied()).map_err(too_large);
    if let Some(minimum) = discount.minimum_subtotal {
        if minimum.currency() != currency {
            return Err(refuse(UnavailableReason::OtherCurrency));
        }
        if sum(subtotals)?.minor() < minimum.minor() {
            return Err(refuse(UnavailableReason::BelowMinimum));
        }
    }
    let left = sum(left)?;
    match discount.kind {
        DiscountKind::Percentage { parts_per_million } => left.fraction(parts_per_million).map_err(too_large),
        DiscountKind::FixedAmount(amount) if amount.currency() != currency => {
            Err(refuse(UnavailableReason::OtherCurrency))
        }
        DiscountKind::FixedAmount(amount) => Ok(if amount.minor() < left.minor() { amount } else { left }),
    }
}

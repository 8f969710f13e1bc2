//! A payment, in either direction: what we ask of the provider, and what is known of it.

use super::ids::PaymentId;
use super::money::Money;
use super::words::{text_column, words};
use serde::{Deserialize, Serialize};

words! {
    /// `requested` until the provider's word is known; a time-out doesn't change it.
    pub enum PaymentStatus {
        Requested = "requested",
        Succeeded = "succeeded",
        Declined = "declined",
    }
}

/// The provider's word on a payment. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Succeeded,
    /// With the provider's reason.
    Declined(String),
}

impl Decision {
    pub fn status(&self) -> PaymentStatus {
        match self {
            Decision::Succeeded => PaymentStatus::Succeeded,
            Decision::Declined(_) => PaymentStatus::Declined,
        }
    }

    pub fn decline_reason(&self) -> Option<&str> {
        match self {
            Decision::Succeeded => None,
            Decision::Declined(reason) => Some(reason),
        }
    }
}

words! {
    /// Whether an order's payment was taken.
    pub enum CaptureStatus {
        /// The money was taken.
        Captured = "captured",
    }
}

/// The name of a payment method at the provider: `pm_…`. Which ones exist is the provider's business.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(value_type = String, pattern = "^pm_[A-Za-z0-9_]{1,252}$", example = "pm_sandbox_ok")]
pub struct PaymentMethod(String);

impl PaymentMethod {
    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let name = text.strip_prefix("pm_")?;
        let well_formed = (1..=252).contains(&name.len()) && name.bytes().all(allowed);
        well_formed.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Our own idempotency key at the provider: one per payment, the same on every attempt, whoever retries.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, diesel::AsExpression, diesel::FromSqlRow)]
#[diesel(sql_type = diesel::sql_types::Text)]
pub struct ProviderKey(String);

impl ProviderKey {
    pub fn of(payment: &PaymentId) -> Self {
        Self(format!("countersign-{payment}"))
    }

    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("countersign-").and_then(PaymentId::parse).map(|payment| Self::of(&payment))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_column!(ProviderKey);

/// What is to be charged.
#[derive(Clone, Debug)]
pub struct Charge {
    pub amount: Money,
    pub method: PaymentMethod,
}

/// What is to be given back, of which charge.
#[derive(Clone, Debug)]
pub struct GiveBack {
    pub amount: Money,
    pub charge: ProviderKey,
}

/// The payment of an order, as callers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Payment {
    /// Names it in the books.
    pub payment_id: PaymentId,
    /// Whether the money was taken.
    pub status: CaptureStatus,
    /// What was taken.
    pub amount: Money,
}

impl Payment {
    pub fn captured(payment_id: PaymentId, amount: Money) -> Self {
        Self { payment_id, status: CaptureStatus::Captured, amount }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_method_has_a_name() {
        for good in ["pm_1", "pm_sandbox_ok", &format!("pm_{}", "x".repeat(252))] {
            assert_eq!(PaymentMethod::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "pm_", "PM_1", "pm_a b", "pm_é", &format!("pm_{}", "x".repeat(253))] {
            assert_eq!(PaymentMethod::parse(bad), None, "{bad}");
        }
    }
}

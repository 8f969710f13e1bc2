//! Every way a call can end without its effect: one closed set of codes, one table from code to status, recovery and
//! whether the refusal is stored. The wire form is RFC 9457 problem details.

mod problems;
mod table;

pub use table::{Code, Recovery, Row, Stored};

use crate::domain::answer::Answer;
use crate::domain::digest::Digest;
use crate::domain::ids::{ConfirmationId, OrderId, ProductId, RefundId};
use crate::domain::money::{Currency, Money};
use crate::domain::plan::Plan;
use crate::domain::product_update::UpdateResult;
use crate::domain::refund::RefundRequest;
use crate::domain::time::Timestamp;
use crate::domain::words::words;
use serde::Serialize;
use std::time::Duration;

words! {
    /// What is wrong with a value.
    pub enum FaultCode {
        OutOfRange = "out_of_range",
        WrongLength = "wrong_length",
        WrongFormat = "wrong_format",
        UnknownCurrency = "unknown_currency",
        UnknownPaymentMethod = "unknown_payment_method",
        Duplicate = "duplicate",
    }
}

/// One value that is well formed but not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Fault {
    /// RFC 6901, into the request body; for a query parameter, its name after a slash.
    #[schema(example = "/items/0/quantity")]
    pub pointer: String,
    pub code: FaultCode,
    pub detail: String,
}

impl Fault {
    pub fn new(pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.into() }
    }
}

words! {
    /// Why a discount code or a shipping option can't be had.
    pub enum UnavailableReason {
        UnknownCode = "unknown_code",
        Expired = "expired",
        UsedUp = "used_up",
        BelowMinimum = "below_minimum",
        OtherCurrency = "other_currency",
        UnknownOption = "unknown_option",
        CurrencyNotOffered = "currency_not_offered",
        CountryNotServed = "country_not_served",
        /// No tax rate is known for the address.
        CountryNotTaxed = "country_not_taxed",
    }
}

/// One line that can't be filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Shortage {
    pub product_id: ProductId,
    pub requested: i64,
    pub available: i64,
}

/// What the caller needs to go on. Absent members don't apply.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_methods: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<UnavailableReason>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available: Vec<Shortage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub product_ids: Vec<ProductId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub currencies: Vec<Currency>,
    /// Which items stopped the batch, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<UpdateResult>,
    /// The product's version now; 0 if there is no such product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Units that confirmations hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<i64>,
    /// The current plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation_id: Option<ConfirmationId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirmation_ids: Vec<ConfirmationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund_id: Option<RefundId>,
    /// What can still be refunded of the order, after this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_refundable: Option<Money>,
    /// Equal refunds of the order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<RefundId>,
    /// The refund that the confirmation holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundRequest>,
    /// The path of what the key's first call made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decline_reason: Option<String>,
}

/// A code, a sentence for the model that will read it, and the facts needed to go on. The cause is for the log only.
#[derive(Clone, Debug)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    pub facts: Box<Facts>,
    pub cause: Option<String>,
    /// When the claim behind the call will be forgotten, where there is one.
    pub key_expires_at: Option<Timestamp>,
    /// Another transaction was in the way: the same work, run again right away, may well succeed.
    pub passing: bool,
}

/// The wire form of a problem: RFC 9457 `application/problem+json`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// A page that explains the code.
    #[serde(rename = "type")]
    #[schema(example = "/problems/insufficient_stock")]
    pub type_uri: String,
    pub title: &'static str,
    #[schema(example = 409)]
    pub status: u16,
    pub detail: &'a str,
    /// The id of the request that was refused first.
    pub instance: &'a str,
    pub code: Code,
    pub recovery: Recovery,
    #[serde(flatten)]
    pub facts: &'a Facts,
}

impl Problem {
    pub fn body<'a>(&'a self, request_id: &'a str) -> ProblemBody<'a> {
        let row = self.code.row();
        ProblemBody {
            type_uri: format!("/problems/{}", self.code.as_str()),
            title: row.title,
            status: row.status,
            detail: &self.detail,
            instance: request_id,
            code: self.code,
            recovery: row.recovery,
            facts: &self.facts,
        }
    }

    /// As it is stored and replayed.
    pub fn answer(&self, request_id: &str) -> Result<Answer, Problem> {
        Answer::json(self.code.row().status, &self.body(request_id))
    }

    /// Says when the claim behind the call will be forgotten.
    pub fn with_key_expiry(mut self, key_expires_at: Option<Timestamp>) -> Self {
        self.key_expires_at = key_expires_at;
        self
    }

    /// Says that another transaction was in the way.
    pub fn passing(mut self) -> Self {
        self.passing = true;
        self
    }

    fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), facts: Box::default(), cause: None, key_expires_at: None, passing: false }
    }

    fn with(mut self, state: impl FnOnce(&mut Facts)) -> Self {
        state(&mut self.facts);
        self
    }

    /// Whole seconds, rounded up: a client that waits so long doesn't come early.
    fn after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.with(|facts| facts.retry_after_seconds = Some(seconds.max(1)))
    }

    fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }
}

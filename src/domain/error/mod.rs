//! Every way a call can end without its effect: one closed set of codes, one table from code to status, recovery and
//! whether the refusal is stored. The wire form is RFC 9457 problem details.

mod explained;
mod problems;
mod table;

pub use explained::Explained;
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
        /// Too small or too large.
        OutOfRange = "out_of_range",
        /// Too few or too many characters or items.
        WrongLength = "wrong_length",
        /// Not of the documented notation.
        WrongFormat = "wrong_format",
        /// Not a currency that the shop sells in.
        UnknownCurrency = "unknown_currency",
        /// Not a payment method that the provider knows.
        UnknownPaymentMethod = "unknown_payment_method",
        /// Given twice.
        Duplicate = "duplicate",
    }
}

/// One value that is well formed but not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Fault {
    /// RFC 6901, into the request body; for a query parameter, its name after a slash.
    #[schema(example = "/items/0/quantity")]
    pub pointer: String,
    /// The machine's word for what is wrong.
    pub code: FaultCode,
    /// What was expected.
    #[schema(example = "Expected 1 to 1000 units of one product.")]
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
        /// There is no such discount code.
        UnknownCode = "unknown_code",
        /// The code's time is over.
        Expired = "expired",
        /// It was used, or is held, as often as it may be.
        UsedUp = "used_up",
        /// The cart is worth less than the code asks for.
        BelowMinimum = "below_minimum",
        /// The code is for another currency.
        OtherCurrency = "other_currency",
        /// There is no such shipping option.
        UnknownOption = "unknown_option",
        /// The shipping option has no price in the cart's currency.
        CurrencyNotOffered = "currency_not_offered",
        /// The shipping option doesn't go there.
        CountryNotServed = "country_not_served",
        /// No tax rate is known for the address.
        CountryNotTaxed = "country_not_taxed",
    }
}

/// One line that can't be filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Shortage {
    /// The product.
    pub product_id: ProductId,
    /// Units that were asked for.
    #[schema(example = 5)]
    pub requested: i64,
    /// Units that can be had now.
    #[schema(minimum = 0, example = 3)]
    pub available: i64,
}

/// What the caller needs to go on. Absent members don't apply.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Whole seconds, as in `Retry-After`: don't come earlier.
    #[schema(minimum = 1, example = 1)]
    pub retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// Every value that is not acceptable, all at once.
    pub errors: Vec<Fault>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// What the path takes, as in `Allow`.
    #[schema(example = json!(["GET"]))]
    pub allowed_methods: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Why a discount code or a shipping option can't be had.
    pub reason: Option<UnavailableReason>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// The lines that can't be filled.
    pub available: Vec<Shortage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// The products that aren't sold here.
    pub product_ids: Vec<ProductId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// The currencies of the cart, or the one that the order was paid in.
    pub currencies: Vec<Currency>,
    /// Which items stopped the batch, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<UpdateResult>,
    /// The product's version now; 0 if there is no such product.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, example = 3)]
    pub version: Option<i64>,
    /// Units that confirmations hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, example = 2)]
    pub held: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The digest of the current plan, or of what the confirmation holds.
    pub plan_digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The confirmation that it is about.
    pub confirmation_id: Option<ConfirmationId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// The confirmations that are pending.
    pub confirmation_ids: Vec<ConfirmationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The order that it is about.
    pub order_id: Option<OrderId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The refund that it is about.
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
    #[schema(example = "/confirmations/cnf_019adef6a0c07a3b9d1c6f2b5e8a4d10")]
    pub resource: Option<String>,
    /// The provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "insufficient_funds")]
    pub decline_reason: Option<String>,
    /// The current plan, or the one that the confirmation holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
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
    /// The code as a phrase.
    #[schema(example = "There is not enough stock")]
    pub title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599, example = 409)]
    pub status: u16,
    /// What happened and what to do next, for the model that will read it.
    #[schema(example = "Nothing was reserved. Ask for no more than is available, under a new key.")]
    pub detail: &'a str,
    /// The id of the request that was refused first (`X-Request-Id`).
    #[schema(example = "req_019adef6a0c07a3b9d1c6f2b5e8a4d10")]
    pub instance: &'a str,
    /// The machine's word for it.
    pub code: Code,
    /// What to do next, as one verb.
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

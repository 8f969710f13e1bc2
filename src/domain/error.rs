//! Every way a call can end without its effect: one closed set of codes, one table from code to status, recovery and
//! whether the refusal is stored. The wire form is RFC 9457 problem details.

use super::answer::Answer;
use super::digest::Digest;
use super::ids::{ConfirmationId, OrderId, ProductId};
use super::money::Currency;
use super::plan::Plan;
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;
use std::time::Duration;

words! {
    /// The machine's word for a problem; `/problems/{code}` explains it.
    pub enum Code {
        MalformedRequest = "malformed_request",
        IdempotencyKeyRequired = "idempotency_key_required",
        IdempotencyKeyInvalid = "idempotency_key_invalid",
        Unauthenticated = "unauthenticated",
        PaymentDeclined = "payment_declined",
        InsufficientScope = "insufficient_scope",
        NotFound = "not_found",
        MethodNotAllowed = "method_not_allowed",
        PlanChanged = "plan_changed",
        InsufficientStock = "insufficient_stock",
        ProductUnavailable = "product_unavailable",
        DiscountUnavailable = "discount_unavailable",
        CurrencyMismatch = "currency_mismatch",
        ShippingUnavailable = "shipping_unavailable",
        TooManyPending = "too_many_pending",
        AttemptPending = "attempt_pending",
        WrongOperation = "wrong_operation",
        ConfirmationMismatch = "confirmation_mismatch",
        ConfirmationDecided = "confirmation_decided",
        OperationInFlight = "operation_in_flight",
        IdempotencyInFlight = "idempotency_in_flight",
        PaymentNeedsReview = "payment_needs_review",
        ConfirmationCancelled = "confirmation_cancelled",
        ConfirmationExpired = "confirmation_expired",
        IdempotencyKeyExpired = "idempotency_key_expired",
        PayloadTooLarge = "payload_too_large",
        UnsupportedMediaType = "unsupported_media_type",
        ValidationFailed = "validation_failed",
        IdempotencyKeyReused = "idempotency_key_reused",
        InternalError = "internal_error",
        StorageUnavailable = "storage_unavailable",
        Overloaded = "overloaded",
        OutcomeUnknown = "outcome_unknown",
    }
}

words! {
    /// What the caller should do next. Every retry keeps its key.
    pub enum Recovery {
        /// Send the same request with the same key, after `Retry-After`.
        RetrySameKey = "retry_same_key",
        /// Correct the request; nothing was stored under its key.
        FixRequest = "fix_request",
        /// This key is spent: change the request and send it with a new one.
        NewKey = "new_key",
        /// Make a new proposal, with a new key.
        ProposeAgain = "propose_again",
        /// A person has to look at it.
        AskHuman = "ask_human",
        /// Nothing is left to do.
        Stop = "stop",
    }
}

/// Whether a refusal becomes the key's answer. A stored one is replayed even when the world has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    Yes,
    No,
}

/// One row of the error table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub status: u16,
    pub title: &'static str,
    pub recovery: Recovery,
    pub stored: Stored,
}

impl Code {
    pub const fn row(self) -> Row {
        use Recovery::{AskHuman, FixRequest, NewKey, ProposeAgain, RetrySameKey, Stop};
        use Stored::{No, Yes};
        let (status, title, recovery, stored) = match self {
            Code::MalformedRequest => (400, "The request is malformed", FixRequest, No),
            Code::IdempotencyKeyRequired => (400, "An Idempotency-Key header is required", FixRequest, No),
            Code::IdempotencyKeyInvalid => (400, "The Idempotency-Key header is invalid", FixRequest, No),
            Code::Unauthenticated => (401, "The credential is missing or unknown", AskHuman, No),
            Code::PaymentDeclined => (402, "The payment was declined", ProposeAgain, Yes),
            Code::InsufficientScope => (403, "The credential lacks the scope", AskHuman, No),
            Code::NotFound => (404, "There is no such resource", FixRequest, No),
            Code::MethodNotAllowed => (405, "The resource doesn't take this method", FixRequest, No),
            Code::PlanChanged => (409, "The plan is not the expected one", ProposeAgain, Yes),
            Code::InsufficientStock => (409, "There is not enough stock", NewKey, Yes),
            Code::ProductUnavailable => (409, "A product is not sold here", NewKey, Yes),
            Code::DiscountUnavailable => (409, "A discount code can't be used", NewKey, Yes),
            Code::CurrencyMismatch => (409, "A cart has one currency", NewKey, Yes),
            Code::ShippingUnavailable => (409, "The shipping option can't be had", NewKey, Yes),
            Code::TooManyPending => (409, "Too many confirmations are pending", RetrySameKey, No),
            Code::AttemptPending => (409, "An equal attempt is not decided yet", RetrySameKey, No),
            Code::WrongOperation => (409, "The confirmation is for another operation", FixRequest, No),
            Code::ConfirmationMismatch => (409, "The confirmation is for another plan", FixRequest, No),
            Code::ConfirmationDecided => (409, "The confirmation is decided already", Stop, No),
            Code::OperationInFlight => (409, "The confirmation is being confirmed", RetrySameKey, No),
            Code::IdempotencyInFlight => (409, "The first call with this key is still running", RetrySameKey, No),
            Code::PaymentNeedsReview => (409, "The payment's outcome needs a person", AskHuman, No),
            Code::ConfirmationCancelled => (410, "The confirmation was cancelled", ProposeAgain, No),
            Code::ConfirmationExpired => (410, "The confirmation has expired", ProposeAgain, No),
            Code::IdempotencyKeyExpired => (410, "The key's answer is no longer kept", Stop, No),
            Code::PayloadTooLarge => (413, "The body is too large", FixRequest, No),
            Code::UnsupportedMediaType => (415, "The body must be application/json", FixRequest, No),
            Code::ValidationFailed => (422, "A value is out of range", FixRequest, No),
            Code::IdempotencyKeyReused => (422, "The key belongs to another request", NewKey, No),
            Code::InternalError => (500, "Something went wrong on our side", RetrySameKey, No),
            Code::StorageUnavailable => (503, "The database didn't answer", RetrySameKey, No),
            Code::Overloaded => (503, "The server is busy", RetrySameKey, No),
            Code::OutcomeUnknown => (503, "The payment's outcome is not known yet", RetrySameKey, No),
        };
        Row { status, title, recovery, stored }
    }
}

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
    /// RFC 6901, into the request body.
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

    pub fn kept_until(mut self, key_expires_at: Option<Timestamp>) -> Self {
        self.key_expires_at = key_expires_at;
        self
    }

    fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), facts: Box::default(), cause: None, key_expires_at: None }
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

/// What the request itself has wrong.
impl Problem {
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Code::MalformedRequest, detail)
    }

    pub fn validation_failed(errors: Vec<Fault>) -> Self {
        let pointers: Vec<&str> = errors.iter().map(|fault| fault.pointer.as_str()).collect();
        let detail = format!("Correct these values and send the request again: {}.", pointers.join(", "));
        Self::new(Code::ValidationFailed, detail).with(|facts| facts.errors = errors)
    }

    pub fn payload_too_large(limit: usize) -> Self {
        Self::new(Code::PayloadTooLarge, format!("A body may have up to {limit} bytes."))
    }

    pub fn unsupported_media_type() -> Self {
        Self::new(Code::UnsupportedMediaType, "Send the body with Content-Type: application/json.")
    }

    pub fn unauthenticated() -> Self {
        Self::new(Code::Unauthenticated, "Send Authorization: Bearer with a key of an enabled actor.")
    }

    pub fn insufficient_scope(needed: &[&str]) -> Self {
        let detail = format!("This operation needs the scope {}; your credential has none of it.", needed.join(" or "));
        Self::new(Code::InsufficientScope, detail)
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("No such {what} for this credential. Check the id; nothing was changed."))
    }

    pub fn method_not_allowed(allowed: Vec<&'static str>) -> Self {
        Self::new(Code::MethodNotAllowed, format!("This path takes {}.", allowed.join(", ")))
            .with(|facts| facts.allowed_methods = allowed)
    }

    pub fn key_required() -> Self {
        Self::new(
            Code::IdempotencyKeyRequired,
            "Send one Idempotency-Key header: make it once for this step, store it, and keep it on every retry.",
        )
    }

    pub fn key_invalid() -> Self {
        Self::new(Code::IdempotencyKeyInvalid, "Send exactly one Idempotency-Key of 1 to 255 visible ASCII characters.")
    }

    pub fn key_reused() -> Self {
        Self::new(
            Code::IdempotencyKeyReused,
            "This key already names another request of yours. Nothing was done. A new request needs a new key.",
        )
    }

    pub fn key_expired(resource: Option<String>) -> Self {
        Self::new(
            Code::IdempotencyKeyExpired,
            "This key was used long ago and its answer is no longer kept. Nothing was done now. Look at the resource \
             before you start anything new.",
        )
        .with(|facts| facts.resource = resource)
    }

    pub fn key_in_flight(wait: Duration) -> Self {
        Self::new(
            Code::IdempotencyInFlight,
            "The first call with this key is still running. Ask again with the same key.",
        )
        .after(wait)
    }
}

/// What the catalogue can't do.
impl Problem {
    pub fn product_unavailable(product_ids: Vec<ProductId>) -> Self {
        Self::new(Code::ProductUnavailable, "These products are not sold here. Leave them out, under a new key.")
            .with(|facts| facts.product_ids = product_ids)
    }

    pub fn insufficient_stock(available: Vec<Shortage>) -> Self {
        Self::new(Code::InsufficientStock, "Nothing was reserved. Ask for no more than is available, under a new key.")
            .with(|facts| facts.available = available)
    }

    pub fn discount_unavailable(code: &str, reason: UnavailableReason) -> Self {
        let detail =
            format!("The discount code {code:?} can't be used ({}). Leave it out, under a new key.", reason.as_str());
        Self::new(Code::DiscountUnavailable, detail).with(|facts| facts.reason = Some(reason))
    }

    pub fn currency_mismatch(currencies: Vec<Currency>) -> Self {
        Self::new(Code::CurrencyMismatch, "Make one cart for each currency, each under its own key.")
            .with(|facts| facts.currencies = currencies)
    }

    pub fn shipping_unavailable(option: &str, reason: UnavailableReason) -> Self {
        let detail = format!("The shipping option {option:?} can't be had ({}).", reason.as_str());
        Self::new(Code::ShippingUnavailable, detail).with(|facts| facts.reason = Some(reason))
    }

    pub fn plan_changed(plan: Plan, digest: Digest) -> Self {
        Self::new(
            Code::PlanChanged,
            "The plan is not the one you expected; nothing was reserved. Look at the current plan and, if it is still \
             wanted, propose it under a new key.",
        )
        .with(|facts| (facts.plan, facts.plan_digest) = (Some(plan), Some(digest)))
    }
}

/// Where a confirmation stands.
impl Problem {
    pub fn too_many_pending(pending: Vec<ConfirmationId>, wait: Duration) -> Self {
        Self::new(
            Code::TooManyPending,
            "Confirm or cancel one of these pending confirmations, or wait for one to expire.",
        )
        .with(|facts| facts.confirmation_ids = pending)
        .after(wait)
    }

    pub fn attempt_pending(other: ConfirmationId, wait: Duration) -> Self {
        let detail = format!(
            "The outcome of an equal attempt is not known yet. Settle it first: POST /confirm-checkout/{other} again."
        );
        Self::new(Code::AttemptPending, detail).with(|facts| facts.confirmation_id = Some(other)).after(wait)
    }

    pub fn confirmation_mismatch(plan: Plan, digest: Digest) -> Self {
        Self::new(
            Code::ConfirmationMismatch,
            "You expected another total or plan than this confirmation holds. Nothing was charged; it is still pending.",
        )
        .with(|facts| (facts.plan, facts.plan_digest) = (Some(plan), Some(digest)))
    }

    pub fn wrong_operation(operation: &str) -> Self {
        Self::new(Code::WrongOperation, format!("This confirmation is for {operation}. It is unchanged."))
    }

    pub fn confirmation_cancelled() -> Self {
        Self::new(
            Code::ConfirmationCancelled,
            "It was cancelled and nothing was charged. Propose again if still wanted.",
        )
    }

    pub fn confirmation_expired() -> Self {
        Self::new(Code::ConfirmationExpired, "It has expired and nothing was charged. Propose again if still wanted.")
    }

    pub fn confirmation_decided(order: Option<OrderId>) -> Self {
        Self::new(Code::ConfirmationDecided, "It was decided already and can't be cancelled any more.")
            .with(|facts| facts.order_id = order)
    }

    pub fn operation_in_flight(wait: Duration) -> Self {
        Self::new(Code::OperationInFlight, "It is being confirmed right now. Confirm it again to learn the outcome.")
            .after(wait)
    }
}

/// What the payment provider said, or didn't.
impl Problem {
    pub fn payment_declined(confirmation: ConfirmationId, reason: String) -> Self {
        Self::new(
            Code::PaymentDeclined,
            "The provider declined the payment; nothing was charged and nothing is held. Propose again, with another \
             payment method or after asking the customer.",
        )
        .with(|facts| (facts.confirmation_id, facts.decline_reason) = (Some(confirmation), Some(reason)))
    }

    pub fn outcome_unknown(wait: Duration) -> Self {
        Self::new(
            Code::OutcomeUnknown,
            "The payment was sent and its outcome is not known yet: it may have succeeded. Send the same request again; \
             it will be settled, never charged twice.",
        )
        .after(wait)
    }

    pub fn payment_needs_review() -> Self {
        Self::new(
            Code::PaymentNeedsReview,
            "The provider doesn't know this payment and it is too old to be sent again safely. A person has to settle it.",
        )
    }
}

/// What went wrong on our side: the body says no more than that.
impl Problem {
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self::new(
            Code::InternalError,
            "Something failed on our side. Send the same call again with the same key: it happens once.",
        )
        .because(cause)
        .after(Duration::from_secs(1))
    }

    pub fn storage_unavailable(cause: impl std::fmt::Display) -> Self {
        let detail = "Whether the call took effect is not known. Send it again with the same key.";
        Self::new(Code::StorageUnavailable, detail).because(cause).after(Duration::from_secs(1))
    }

    pub fn overloaded(cause: impl std::fmt::Display) -> Self {
        Self::new(Code::Overloaded, "Nothing was done. Send it again with the same key.")
            .because(cause)
            .after(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decided_refusals_are_stored() {
        for code in Code::ALL {
            let row = code.row();
            if row.stored == Stored::Yes {
                assert!(matches!(row.status, 402 | 409), "{code:?}");
                assert_ne!(row.recovery, Recovery::RetrySameKey, "{code:?}: a wait can't be a key's answer");
                assert_ne!(row.recovery, Recovery::FixRequest, "{code:?}: its key is spent");
            }
            if row.status >= 500 {
                assert_eq!(row.recovery, Recovery::RetrySameKey, "{code:?}");
            }
        }
    }

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        let seconds = |millis| Problem::outcome_unknown(Duration::from_millis(millis)).facts.retry_after_seconds;
        assert_eq!([seconds(0), seconds(1), seconds(1000), seconds(1001)], [Some(1), Some(1), Some(1), Some(2)]);
    }
}

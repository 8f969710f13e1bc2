//! The error table: from each code to its status, title, recovery, and whether the refusal is stored.

use crate::domain::words::words;

words! {
    /// The machine's word for a problem; `/problems/{code}` explains it.
    pub enum Code {
        MalformedRequest = "malformed_request",
        IdempotencyKeyRequired = "idempotency_key_required",
        IdempotencyKeyInvalid = "idempotency_key_invalid",
        Unauthenticated = "unauthenticated",
        PaymentDeclined = "payment_declined",
        RefundDeclined = "refund_declined",
        InsufficientScope = "insufficient_scope",
        ApproverMustDiffer = "approver_must_differ",
        NotFound = "not_found",
        NothingToCancel = "nothing_to_cancel",
        MethodNotAllowed = "method_not_allowed",
        RequestTimeout = "request_timeout",
        PlanChanged = "plan_changed",
        InsufficientStock = "insufficient_stock",
        ProductUnavailable = "product_unavailable",
        DiscountUnavailable = "discount_unavailable",
        CurrencyMismatch = "currency_mismatch",
        ShippingUnavailable = "shipping_unavailable",
        BatchStopped = "batch_stopped",
        ProductIncomplete = "product_incomplete",
        VersionMismatch = "version_mismatch",
        StockBelowHeld = "stock_below_held",
        AddressChangesPrice = "address_changes_price",
        DeliveryStarted = "delivery_started",
        RefundExceedsRemaining = "refund_exceeds_remaining",
        EqualRefundMade = "equal_refund_made",
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
        /// Correct the request; its key stays.
        FixRequest = "fix_request",
        /// This key is spent: change the request and send it with a new one.
        NewKey = "new_key",
        /// Make a new proposal, with a new key.
        ProposeAgain = "propose_again",
        /// A person has to look at it.
        AskHuman = "ask_human",
        /// It is over: nothing is left to send.
        Stop = "stop",
    }
}

impl Recovery {
    /// Whether to send it again, and with which key.
    pub const fn advice(self) -> &'static str {
        match self {
            Recovery::RetrySameKey => "Yes: the same request with the same key, after Retry-After.",
            Recovery::FixRequest => "Not as it is. Corrected, it keeps its key.",
            Recovery::NewKey => "Not as it is: this answer is the key's now. Changed, it takes a new key.",
            Recovery::ProposeAgain => "No: make a new proposal, with a new key, if it is still wanted.",
            Recovery::AskHuman => "No: a person has to look at it first.",
            Recovery::Stop => "No: it is over. `detail` says what to look at.",
        }
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
            Code::RefundDeclined => (402, "The refund was declined", AskHuman, Yes),
            Code::ApproverMustDiffer => (403, "Another actor has to confirm it", AskHuman, No),
            Code::InsufficientScope => (403, "The credential lacks the scope", AskHuman, No),
            Code::NotFound => (404, "There is no such resource", FixRequest, No),
            Code::NothingToCancel => (404, "It is cancelled or expired already", Stop, No),
            Code::RequestTimeout => (408, "The body did not arrive", RetrySameKey, No),
            Code::MethodNotAllowed => (405, "The resource doesn't take this method", FixRequest, No),
            Code::PlanChanged => (409, "The plan is not the expected one", ProposeAgain, Yes),
            Code::InsufficientStock => (409, "There is not enough stock", NewKey, Yes),
            Code::ProductUnavailable => (409, "A product is not sold here", NewKey, Yes),
            Code::DiscountUnavailable => (409, "A discount code can't be used", NewKey, Yes),
            Code::CurrencyMismatch => (409, "The currencies differ", NewKey, Yes),
            Code::ShippingUnavailable => (409, "The shipping option can't be had", NewKey, Yes),
            Code::BatchStopped => (409, "An item stopped the batch", NewKey, Yes),
            Code::ProductIncomplete => (409, "There is no such product, and too little to make it", NewKey, Yes),
            Code::VersionMismatch => (409, "The product has another version", NewKey, Yes),
            Code::StockBelowHeld => (409, "More units are held than would be in stock", NewKey, Yes),
            Code::AddressChangesPrice => (409, "The plan was priced for another place", AskHuman, No),
            Code::DeliveryStarted => (409, "The delivery window has started", AskHuman, No),
            Code::RefundExceedsRemaining => (409, "More than is left of the order", AskHuman, Yes),
            Code::EqualRefundMade => (409, "An equal refund was made since this was offered", AskHuman, No),
            Code::TooManyPending => (409, "Too many confirmations are pending", RetrySameKey, No),
            Code::AttemptPending => (409, "An equal attempt is not decided yet", AskHuman, No),
            Code::WrongOperation => (409, "The confirmation is for another operation", FixRequest, No),
            Code::ConfirmationMismatch => (409, "The confirmation is for another plan", AskHuman, No),
            Code::ConfirmationDecided => (409, "The confirmation is decided already", Stop, No),
            Code::OperationInFlight => (409, "The confirmation is being confirmed", RetrySameKey, No),
            Code::IdempotencyInFlight => (409, "The first call with this key is still running", RetrySameKey, No),
            Code::PaymentNeedsReview => (409, "The payment's outcome needs a person", AskHuman, No),
            Code::ConfirmationCancelled => (410, "The confirmation was cancelled", ProposeAgain, No),
            Code::ConfirmationExpired => (410, "The confirmation has expired", ProposeAgain, No),
            Code::IdempotencyKeyExpired => (410, "The key's answer is no longer kept", Stop, No),
            Code::PayloadTooLarge => (413, "The body is too large", FixRequest, No),
            Code::UnsupportedMediaType => (415, "The body must be application/json", FixRequest, No),
            Code::ValidationFailed => (422, "A value is not acceptable", FixRequest, No),
            Code::IdempotencyKeyReused => (422, "The key belongs to another request", FixRequest, No),
            Code::InternalError => (500, "Something went wrong on our side", RetrySameKey, No),
            Code::StorageUnavailable => (503, "The database didn't answer", RetrySameKey, No),
            Code::Overloaded => (503, "The server is busy", RetrySameKey, No),
            Code::OutcomeUnknown => (503, "The payment's outcome is not known yet", RetrySameKey, No),
        };
        Row { status, title, recovery, stored }
    }
}

impl Code {
    /// Whether the call took effect, or its effect is done, isn't known yet.
    pub fn is_undecided(self) -> bool {
        use Code::{IdempotencyInFlight, OperationInFlight, OutcomeUnknown, StorageUnavailable};
        matches!(self, IdempotencyInFlight | OperationInFlight | OutcomeUnknown | StorageUnavailable)
    }

    /// Whether it decides the call for good: a refusal that is the key's answer, or a state that nothing leads out of.
    pub fn is_final(self) -> bool {
        use Code::{
            ConfirmationCancelled, ConfirmationDecided, ConfirmationExpired, IdempotencyKeyExpired, NothingToCancel,
        };
        let over =
            [ConfirmationCancelled, ConfirmationDecided, ConfirmationExpired, IdempotencyKeyExpired, NothingToCancel];
        self.row().stored == Stored::Yes || over.contains(&self)
    }

    /// Whether the same call, sent again by itself later, could be a second effect that nobody wants.
    pub fn awaits_a_person(self) -> bool {
        matches!(self, Code::AttemptPending | Code::EqualRefundMade)
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
}

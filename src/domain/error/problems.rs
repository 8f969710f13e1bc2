//! The constructors of problems: each says, to the model that will read it, what happened and what to do next.

use super::{Code, Fault, Problem, Shortage, UnavailableReason};
use crate::domain::confirmation::Offer;
use crate::domain::digest::Digest;
use crate::domain::ids::{ConfirmationId, OrderId, ProductId, RefundId};
use crate::domain::money::{Currency, Money};
use crate::domain::plan::Plan;
use crate::domain::product_update::UpdateResult;
use std::time::Duration;

/// What the request itself has wrong.
impl Problem {
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Code::MalformedRequest, detail)
    }

    pub fn request_timeout(cause: impl std::fmt::Display) -> Self {
        Self::new(
            Code::RequestTimeout,
            "The body did not arrive in full; nothing was done. Send the same request again.",
        )
        .because(cause)
        .after(Duration::from_secs(1))
    }

    pub fn validation_failed(errors: Vec<Fault>) -> Self {
        let first = errors.iter().take(3).map(|fault| format!("{}: {}", fault.pointer, fault.detail));
        let more = if errors.len() > 3 { " `errors` has all of them." } else { "" };
        let values = first.collect::<Vec<_>>().join(" ");
        let detail = format!("Correct these values and send the request again. {values}{more}");
        Self::new(Code::ValidationFailed, detail).with(|facts| facts.errors = errors)
    }

    pub fn payload_too_large(limit: usize) -> Self {
        Self::new(Code::PayloadTooLarge, format!("A body may have up to {limit} bytes."))
    }

    pub fn unsupported_media_type() -> Self {
        Self::new(Code::UnsupportedMediaType, "Send the body with Content-Type: application/json.")
    }

    pub fn unauthenticated() -> Self {
        Self::new(
            Code::Unauthenticated,
            "Send the header Authorization: Bearer, with the token of an enabled actor (csk_…).",
        )
    }

    pub fn insufficient_scope(needed: &[&str]) -> Self {
        let detail = format!("This operation needs the scope {}; your credential has none of it.", needed.join(" or "));
        Self::new(Code::InsufficientScope, detail)
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("No such {what} for this credential. Check the id; nothing was changed."))
    }

    pub fn no_such_route() -> Self {
        Self::new(Code::NotFound, "There is nothing at this path. GET /openapi.json lists the operations.")
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
            "This key already names another request of yours; nothing was done. To repeat that one, send it exactly as it \
             was. Only a new intent gets a new key: under it, the call is made a second time.",
        )
    }

    pub fn key_unknown() -> Self {
        Self::new(
            Code::NotFound,
            "Nothing is kept under this key: this credential never used it, its call has not got as far as the database, \
             was refused without being stored, or its answer's time is over. A call of a moment ago: send it again with \
             this same key. An older one: look at the resource first.",
        )
    }

    pub fn key_expired(resource: Option<String>) -> Self {
        let look = resource.as_ref().map_or(String::new(), |path| format!(" It made {path}."));
        let detail = format!(
            "This key was used long ago and its answer is no longer kept.{look} Nothing was done now. Look at what is there \
             before you start anything new."
        );
        Self::new(Code::IdempotencyKeyExpired, detail).with(|facts| facts.resource = resource)
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
        let detail = format!(
            "The shipping option {option:?} can't be had ({}). Choose another option or address, under a new key.",
            reason.as_str()
        );
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

/// What a merchant can't write.
impl Problem {
    pub fn batch_stopped(results: Vec<UpdateResult>) -> Self {
        Self::new(
            Code::BatchStopped,
            "None was written: `results` says which items were refused, and why. Mend all of them or leave them out, under \
             a new key.",
        )
        .with(|facts| facts.results = results)
    }

    pub fn version_mismatch(id: &ProductId, version: i64) -> Self {
        let detail = match version {
            0 => {
                format!("There is no product {id}. Check the id; if it is to be made, leave out if_version or send 0.")
            }
            _ => format!("{id} has version {version}. Read it again, decide anew, and send that under a new key."),
        };
        Self::new(Code::VersionMismatch, detail).with(|facts| facts.version = Some(version))
    }

    pub fn stock_below_held(id: &ProductId, held: i64) -> Self {
        let detail = format!(
            "Confirmations hold {held} units of {id}. Set at least that, or wait until they end, under a new key."
        );
        Self::new(Code::StockBelowHeld, detail).with(|facts| facts.held = Some(held))
    }

    pub fn product_incomplete(id: &ProductId) -> Self {
        let detail = format!(
            "There is no product {id}: check the id. Only if a new product is meant, set title, price and stock, under a \
             new key."
        );
        Self::new(Code::ProductIncomplete, detail)
    }
}

/// What can't be changed on an order.
impl Problem {
    pub fn address_changes_price(country: &str, region: Option<&str>) -> Self {
        let region = region.map_or("no region".to_owned(), |region| format!("region {region:?}"));
        let detail = format!(
            "Nothing was changed. Tax and shipping are paid for country {country:?} with {region}: only an address with \
             exactly these can replace this one."
        );
        Self::new(Code::AddressChangesPrice, detail)
    }

    pub fn delivery_started() -> Self {
        Self::new(Code::DeliveryStarted, "The parcel may be on its way: the address can't be changed any more.")
    }
}

/// What can't be given back.
impl Problem {
    /// `similar` are equal refunds of the order: the caller may have what it asks for.
    pub fn refund_exceeds_remaining(remaining: Money, similar: Vec<RefundId>) -> Self {
        let left = format!("{remaining} {} is left of this order", remaining.currency().as_str());
        let detail = match similar.is_empty() {
            true => format!("This call refunded nothing: {left}. A person has to say whether less is wanted."),
            false => format!(
                "This call refunded nothing: {left}. An equal refund was made or is under way (`similar`): if this is a \
                 repeat, you are done. A person has to say whether another one is wanted."
            ),
        };
        Self::new(Code::RefundExceedsRemaining, detail)
            .with(|facts| (facts.remaining_refundable, facts.similar) = (Some(remaining), similar))
    }

    pub fn equal_refund_made(similar: Vec<RefundId>) -> Self {
        Self::new(
            Code::EqualRefundMade,
            "An equal refund of this order was made after this one was offered (`similar`). No money moved now; this is \
             still pending. If it was a repeat, cancel it. If a second refund is wanted, cancel it and ask anew.",
        )
        .with(|facts| facts.similar = similar)
    }

    pub fn refund_in_other_currency(currency: Currency) -> Self {
        let detail = format!("The order was paid in {}: refund it in that, under a new key.", currency.as_str());
        Self::new(Code::CurrencyMismatch, detail).with(|facts| facts.currencies = vec![currency])
    }
}

/// Where a confirmation stands.
impl Problem {
    pub fn too_many_pending(pending: Vec<ConfirmationId>, wait: Duration) -> Self {
        Self::new(
            Code::TooManyPending,
            "Cancel those of these pending confirmations that aren't wanted, or wait for one to be confirmed or to expire.",
        )
        .with(|facts| facts.confirmation_ids = pending)
        .after(wait)
    }

    pub fn attempt_pending(other: ConfirmationId, confirm_path: &str, wait: Duration) -> Self {
        let detail = format!(
            "The outcome of an equal attempt is not known yet. Settle that one: POST {confirm_path} again. Then a person \
             has to say whether this one is wanted besides: sent again by itself, it would be a second purchase."
        );
        Self::new(Code::AttemptPending, detail).with(|facts| facts.confirmation_id = Some(other)).after(wait)
    }

    pub fn confirmation_mismatch(offer: Offer, digest: Digest) -> Self {
        Self::new(
            Code::ConfirmationMismatch,
            "You expected another amount or plan than this confirmation holds. No money moved; it is still pending. \
             Confirm it only if it is wanted as it is; else cancel it.",
        )
        .with(|facts| {
            facts.plan_digest = Some(digest);
            match offer {
                Offer::Checkout(plan) => facts.plan = Some(*plan),
                Offer::Refund(offer) => facts.refund = Some(offer.refund),
            }
        })
    }

    pub fn wrong_operation(confirm_path: &str) -> Self {
        Self::new(
            Code::WrongOperation,
            format!("It is unchanged. It is for POST {confirm_path}: make sure which confirmation is meant."),
        )
    }

    pub fn confirmation_cancelled() -> Self {
        Self::new(
            Code::ConfirmationCancelled,
            "It was cancelled and no money moved. If it is still wanted, propose again under a new key.",
        )
    }

    pub fn confirmation_expired() -> Self {
        Self::new(
            Code::ConfirmationExpired,
            "It has expired and no money moved. If it is still wanted, propose again under a new key.",
        )
    }

    pub fn nothing_to_cancel() -> Self {
        Self::new(Code::NothingToCancel, "It is cancelled or expired already: the state is what you asked for.")
    }

    pub fn confirmation_decided(order: Option<OrderId>, refund: Option<RefundId>) -> Self {
        Self::new(Code::ConfirmationDecided, "It was decided already and can't be cancelled any more.")
            .with(|facts| (facts.order_id, facts.refund_id) = (order, refund))
    }

    pub fn approver_must_differ() -> Self {
        Self::new(
            Code::ApproverMustDiffer,
            "You proposed this refund: only another actor of your account can confirm it. GET /confirmations/{id} shows \
             where it stands.",
        )
    }

    pub fn refund_attempt_pending(other: RefundId, wait: Duration) -> Self {
        let detail = format!(
            "The outcome of an equal refund is not known yet; it will be settled: GET /refunds/{other} shows its end. Then a \
             person has to say whether a second refund is wanted."
        );
        Self::new(Code::AttemptPending, detail).with(|facts| facts.refund_id = Some(other)).after(wait)
    }

    pub fn too_late_to_cancel(id: &ConfirmationId, wait: Duration) -> Self {
        let detail =
            format!("It is being confirmed and can't be cancelled now. GET /confirmations/{id} shows the end.");
        Self::new(Code::OperationInFlight, detail).after(wait)
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
            "The provider declined the payment; nothing was charged and nothing is held. Ask the customer, then \
             propose again under a new key, with another payment method.",
        )
        .with(|facts| (facts.confirmation_id, facts.decline_reason) = (Some(confirmation), Some(reason)))
    }

    pub fn refund_declined(refund: RefundId, order: OrderId, remaining: Money, reason: String) -> Self {
        Self::new(
            Code::RefundDeclined,
            "The provider declined the refund; no money moved and its amount is free again. A person has to find another \
             way to pay it back.",
        )
        .with(|facts| {
            (facts.refund_id, facts.order_id) = (Some(refund), Some(order));
            (facts.remaining_refundable, facts.decline_reason) = (Some(remaining), Some(reason));
        })
    }

    pub fn outcome_unknown(wait: Duration) -> Self {
        Self::new(
            Code::OutcomeUnknown,
            "The payment provider was asked and its answer is not known yet: the money may have moved. Send the same \
             request again, with the same key (a confirm: to the same path); it will be settled, and never moves twice.",
        )
        .after(wait)
    }

    pub fn payment_needs_review() -> Self {
        Self::new(
            Code::PaymentNeedsReview,
            "The payment's outcome isn't known, and it is too old to be sent again safely. A person has to settle it.",
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

    /// A guard failed that had held a moment ago: another transaction was faster.
    pub fn moved(cause: impl std::fmt::Display) -> Self {
        Self::overloaded(cause).passing()
    }

    pub fn overloaded(cause: impl std::fmt::Display) -> Self {
        Self::new(Code::Overloaded, "This call did nothing. Send it again with the same key.")
            .because(cause)
            .after(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds() {
        let seconds = |millis| Problem::outcome_unknown(Duration::from_millis(millis)).facts.retry_after_seconds;
        assert_eq!([seconds(0), seconds(1), seconds(1000), seconds(1001)], [Some(1), Some(1), Some(1), Some(2)]);
    }
}

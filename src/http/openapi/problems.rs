//! Problems in the document: for each status, the codes that it can carry, and for each code, an example.

use super::exchanges::Exchange;
use super::headers;
use crate::domain::actor::Scope;
use crate::domain::confirmation::Offer;
use crate::domain::digest::Digest;
use crate::domain::error::{Code, Fault, FaultCode, Problem, Shortage, UnavailableReason};
use crate::domain::ids::{ConfirmationId, OrderId, ProductId, RefundId};
use crate::domain::money::{Currency, Money};
use crate::domain::operation::Operation;
use crate::domain::plan::Plan;
use crate::domain::product_update::{UpdateOutcome, UpdateResult};
use crate::domain::refund::RefundOffer;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const REQUEST_ID: &str = "req_019adef6a0c07a3b9d1c6f2b5e8a4d10";

/// Problem answers by status. Those of one or two codes, which operations have in common, go into `shared`.
pub fn responses(operation: Operation, samples: &Samples, shared: &mut Value) -> Vec<(String, Value)> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in operation.problems() {
        by_status.entry(code.row().status).or_default().push(code);
    }
    let answers = by_status.into_iter().map(|(status, codes)| {
        let response = response(operation, status, &codes, samples);
        let examples = response["content"]["application/problem+json"]["examples"].as_object();
        let common = examples.is_some_and(|examples| examples.values().all(|example| example.get("$ref").is_some()));
        let response = if codes.len() <= 2 && common { share(response, &codes, shared) } else { response };
        (status.to_string(), response)
    });
    answers.collect()
}

fn response(operation: Operation, status: u16, codes: &[Code], samples: &Samples) -> Value {
    let lines = codes.iter().map(|code| {
        let row = code.row();
        format!("- `{}` (`{}`): {}.", code.as_str(), row.recovery.as_str(), row.title)
    });
    let examples = codes.iter().map(|code| {
        let shared = || json!({"$ref": format!("#/components/examples/{}", code.as_str())});
        let own = samples.of_operation(operation, *code);
        let own = own.map(|problem| json!({"summary": code.row().title, "value": problem.body(REQUEST_ID)}));
        (code.as_str().to_owned(), own.unwrap_or_else(shared))
    });
    json!({
        "description": lines.collect::<Vec<_>>().join("\n"),
        "headers": headers::of_problem(operation, codes),
        "content": {"application/problem+json": {
            "schema": {"allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"type": "object", "properties": {
                    "status": {"type": "integer", "const": status},
                    "code": {"type": "string", "enum": codes},
                }},
            ]},
            "examples": examples.collect::<Map<_, _>>(),
        }},
    })
}

/// A reference to the same answer, which it puts among the shared ones. Its name says its codes, and whether it echoes a
/// key.
fn share(response: Value, codes: &[Code], shared: &mut Value) -> Value {
    let mut name = codes.iter().map(|code| format!("{code:?}")).collect::<Vec<_>>().join("Or");
    for (header, mark) in [("Idempotency-Key", "Keyed"), ("Idempotency-Key-Expires", "Claimed")] {
        if !response["headers"][header].is_null() {
            name.push_str(mark);
        }
    }
    let reference = json!({"$ref": format!("#/components/responses/{name}")});
    shared[name] = response;
    reference
}

/// One example for each code that a whole call can end in, under the code.
pub fn examples(samples: &Samples) -> Value {
    let answered: BTreeSet<Code> = Operation::ALL.iter().flat_map(|operation| operation.problems()).collect();
    let examples = answered
        .into_iter()
        .map(|code| (code.as_str().to_owned(), json!({"summary": code.row().title, "value": samples.answer(code)})));
    Value::Object(examples.collect::<Map<_, _>>())
}

/// Examples of problems. They are about what the recorded answers are about.
#[derive(Deserialize)]
pub struct Samples {
    plan: Plan,
    plan_digest: Digest,
    confirmation: ConfirmationId,
    order: OrderId,
    refund: RefundId,
    product: ProductId,
    remaining: Money,
    offer: RefundOffer,
}

impl Samples {
    pub fn of(exchanges: &[Exchange]) -> serde_json::Result<Self> {
        let answer = |operation: Operation, pointer: &str| {
            let own = exchanges.iter().filter(|exchange| exchange.operation == operation);
            own.filter_map(|exchange| exchange.answer.as_ref()?.pointer(pointer)).next().cloned()
        };
        serde_json::from_value(json!({
            "plan": answer(Operation::DryRunCheckout, "/plan"),
            "plan_digest": answer(Operation::DryRunCheckout, "/plan_digest"),
            "confirmation": answer(Operation::ProposeCheckout, "/confirmation_id"),
            "order": answer(Operation::ConfirmCheckout, "/order_id"),
            "refund": answer(Operation::IssueRefund, "/refund_id"),
            "product": answer(Operation::GetProduct, "/product_id"),
            "remaining": answer(Operation::IssueRefund, "/remaining_refundable"),
            "offer": answer(Operation::DryRunRefund, ""),
        }))
    }

    /// A problem as it could be answered.
    pub fn answer(&self, code: Code) -> Value {
        json!(self.problem(code).body(REQUEST_ID))
    }

    /// Where the problem of one operation says something else than that of the others.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are the same everywhere")]
    fn of_operation(&self, operation: Operation, code: Code) -> Option<Problem> {
        let second = Duration::from_secs(1);
        let profile = operation.profile();
        let refund = matches!(operation, Operation::ConfirmRefund | Operation::IssueRefund | Operation::DryRunRefund);
        match code {
            Code::InsufficientScope
                if !profile.scopes.contains(&Scope::CheckoutPropose) && !profile.scopes.is_empty() =>
            {
                let scopes: Vec<&str> = profile.scopes.iter().map(Scope::as_str).collect();
                Some(Problem::insufficient_scope(&scopes))
            }
            Code::NotFound => {
                let what = ["product", "confirmation", "refund", "task"];
                let what = what.iter().find(|what| profile.path.contains(&format!("{{{what}_id}}")));
                match operation == Operation::GetOperationStatus {
                    true => Some(Problem::key_unknown()),
                    false => what.map(|what| Problem::not_found(what)),
                }
            }
            Code::MalformedRequest if profile.method == "GET" => {
                Some(Problem::malformed("The query is not the documented one: unknown field `limits`."))
            }
            Code::CurrencyMismatch if refund => Some(Problem::refund_in_other_currency(self.remaining.currency())),
            Code::AttemptPending if refund => Some(Problem::refund_attempt_pending(self.refund.clone(), second)),
            Code::WrongOperation if refund => {
                Some(Problem::wrong_operation(&format!("/confirm-checkout/{}", self.confirmation)))
            }
            Code::ConfirmationMismatch if refund => Some(Problem::confirmation_mismatch(
                Offer::Refund(Box::new(self.offer.clone())),
                self.offer.refund.digest(),
            )),
            _ => None,
        }
    }

    fn problem(&self, code: Code) -> Problem {
        let second = Duration::from_secs(1);
        match code {
            Code::MalformedRequest => {
                Problem::malformed("The body is not the documented JSON: missing field `items` at line 1 column 30.")
            }
            Code::IdempotencyKeyRequired => Problem::key_required(),
            Code::IdempotencyKeyInvalid => Problem::key_invalid(),
            Code::Unauthenticated => Problem::unauthenticated(),
            Code::PaymentDeclined => {
                Problem::payment_declined(self.confirmation.clone(), "insufficient_funds".to_owned())
            }
            Code::RefundDeclined => {
                let (refund, order) = (self.refund.clone(), self.order.clone());
                Problem::refund_declined(refund, order, self.remaining, "insufficient_funds".to_owned())
            }
            Code::InsufficientScope => Problem::insufficient_scope(&["checkout:propose"]),
            Code::ApproverMustDiffer => Problem::approver_must_differ(),
            Code::NotFound => Problem::not_found("order"),
            Code::NothingToCancel => Problem::nothing_to_cancel(),
            Code::MethodNotAllowed => Problem::method_not_allowed(vec!["GET", "DELETE"]),
            Code::RequestTimeout => Problem::request_timeout(""),
            Code::PlanChanged => Problem::plan_changed(self.plan.clone(), self.plan_digest.clone()),
            Code::InsufficientStock => Problem::insufficient_stock(vec![Shortage {
                product_id: self.product.clone(),
                requested: 5,
                available: 3,
            }]),
            Code::ProductUnavailable => Problem::product_unavailable(vec![self.product.clone()]),
            Code::DiscountUnavailable => Problem::discount_unavailable("WELCOME10", UnavailableReason::UsedUp),
            Code::CurrencyMismatch => Problem::currency_mismatch(vec![Currency::Usd, Currency::Jpy]),
            Code::ShippingUnavailable => Problem::shipping_unavailable("express", UnavailableReason::CountryNotServed),
            Code::BatchStopped => Problem::batch_stopped(vec![UpdateResult {
                product_id: self.product.clone(),
                outcome: UpdateOutcome::Refused { problem: self.answer(Code::VersionMismatch) },
            }]),
            Code::ProductIncomplete => Problem::product_incomplete(&self.product),
            Code::VersionMismatch => Problem::version_mismatch(&self.product, 4),
            Code::StockBelowHeld => Problem::stock_below_held(&self.product, 2),
            Code::AddressChangesPrice => Problem::address_changes_price("US", Some("CA")),
            Code::DeliveryStarted => Problem::delivery_started(),
            Code::RefundExceedsRemaining => Problem::refund_exceeds_remaining(self.remaining, vec![]),
            Code::EqualRefundMade => Problem::equal_refund_made(vec![self.refund.clone()]),
            Code::TooManyPending => {
                Problem::too_many_pending(vec![self.confirmation.clone()], Duration::from_secs(840))
            }
            Code::AttemptPending => Problem::attempt_pending(
                self.confirmation.clone(),
                &format!("/confirm-checkout/{}", self.confirmation),
                second,
            ),
            Code::WrongOperation => Problem::wrong_operation(&format!("/confirm-refund/{}", self.confirmation)),
            Code::ConfirmationMismatch => {
                Problem::confirmation_mismatch(Offer::Checkout(Box::new(self.plan.clone())), self.plan_digest.clone())
            }
            Code::ConfirmationDecided => Problem::confirmation_decided(Some(self.order.clone()), None),
            Code::OperationInFlight => Problem::operation_in_flight(second),
            Code::IdempotencyInFlight => Problem::key_in_flight(second),
            Code::PaymentNeedsReview => Problem::payment_needs_review(),
            Code::ConfirmationCancelled => Problem::confirmation_cancelled(),
            Code::ConfirmationExpired => Problem::confirmation_expired(),
            Code::IdempotencyKeyExpired => Problem::key_expired(Some(self.confirmation.path())),
            Code::PayloadTooLarge => Problem::payload_too_large(crate::http::checked::MAX_BODY),
            Code::UnsupportedMediaType => Problem::unsupported_media_type(),
            Code::ValidationFailed => Problem::validation_failed(vec![Fault::new(
                "/items/0/quantity",
                FaultCode::OutOfRange,
                "Expected 1 to 1000 units of one product.",
            )]),
            Code::IdempotencyKeyReused => Problem::key_reused(),
            Code::InternalError => Problem::internal(""),
            Code::StorageUnavailable => Problem::storage_unavailable(""),
            Code::Overloaded => Problem::overloaded(""),
            Code::OutcomeUnknown => Problem::outcome_unknown(second),
        }
    }
}

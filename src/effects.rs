//! The effect catalogue: one profile an operation, and the single source of everything that speaks of effects. The key
//! demand, the scope check, the retention of answers and the documents' `x-ai-metadata` are read from here, so that
//! description and enforcement can't drift apart.

use crate::domain::actor::Scope;
use crate::domain::error::Code;
use crate::domain::operation::Operation;
use crate::domain::words::words;
use serde_json::{Value, json};
use std::time::Duration;

words! {
    /// What calling it does to the world.
    pub enum Effect {
        /// Nothing.
        Pure = "pure",
        /// Sets one named state, whatever it was before.
        Idempotent = "idempotent",
        /// Can be undone by setting it back.
        Reversible = "reversible",
        /// Can be made good by another operation.
        Compensable = "compensable",
        /// Can't be taken back.
        Irreversible = "irreversible",
    }
}

words! {
    /// What makes a repeat harmless.
    pub enum KeyRule {
        /// The `Idempotency-Key` header; without it the call is refused.
        Required = "required",
        /// The resource itself; a key is honoured when it is sent.
        Natural = "natural",
        /// Nothing is needed; a key is ignored.
        None = "none",
    }
}

/// How far an effect reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Our database only.
    Local,
    /// Money leaves the process.
    Provider,
}

/// How long a stored answer is kept, and what its key is afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionClass {
    /// The answer goes, the claim stays: the key is never new work again.
    Money,
    /// Afterwards the key is new work.
    Other,
}

/// How long each class keeps its answers.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub money: Duration,
    pub other: Duration,
}

impl Retention {
    /// 7 days for money: a bad Friday deploy and the week that it takes to clean up. 24 hours for the rest.
    pub const DEFAULT: Self =
        Self { money: Duration::from_secs(7 * 24 * 60 * 60), other: Duration::from_secs(24 * 60 * 60) };

    pub fn of(self, class: RetentionClass) -> Duration {
        match class {
            RetentionClass::Money => self.money,
            RetentionClass::Other => self.other,
        }
    }
}

#[derive(Debug)]
pub struct EffectProfile {
    pub method: &'static str,
    pub path: &'static str,
    pub effect: Effect,
    pub reach: Reach,
    pub key: KeyRule,
    /// What stands in for the key, where it is natural.
    pub natural_key: Option<&'static str>,
    pub retention: RetentionClass,
    /// Any one of them is enough; where there are none, every actor may call it.
    pub scopes: &'static [Scope],
    pub side_effects: &'static [&'static str],
    pub dry_run: Option<Operation>,
    pub confirm: Option<Operation>,
    pub compensate: Option<Operation>,
    /// Members, of the request or the answer, whose texts may come from strangers.
    pub untrusted_inputs: &'static [&'static str],
    /// Problems of its own. [`Operation::problems`] adds those that it shares with others.
    pub problems: &'static [&'static [Code]],
}

/// What most operations share: a local read. Each names what it differs in.
const READ: EffectProfile = EffectProfile {
    method: "GET",
    path: "",
    effect: Effect::Pure,
    reach: Reach::Local,
    key: KeyRule::None,
    natural_key: None,
    retention: RetentionClass::Other,
    scopes: &[],
    side_effects: &[],
    dry_run: None,
    confirm: None,
    compensate: None,
    untrusted_inputs: &[],
    problems: &[],
};

const PRODUCT_TEXTS: &[&str] = &["title", "description"];
const ADDRESS_TEXTS: &[&str] = &["shipping_address"];
const CHECKOUT_TEXTS: &[&str] = &["shipping_address", "plan.shipping_address", "plan.lines.title"];
const PLAN_TEXTS: &[&str] = &["plan.shipping_address", "plan.lines.title"];
const REFUND_TEXTS: &[&str] = &["note", "refund.note"];
const ORDER_TEXTS: &[&str] = &["shipping_address", "plan.shipping_address", "plan.lines.title", "refunds.note"];
/// Problems that any call can end in.
const EVERY_CALL: &[Code] = &[
    Code::MalformedRequest,
    Code::Unauthenticated,
    Code::RequestTimeout,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::InternalError,
    Code::StorageUnavailable,
    Code::Overloaded,
];
/// What a cart can run into, looked at or proposed.
const CART_PROBLEMS: &[Code] = &[
    Code::ValidationFailed,
    Code::PlanChanged,
    Code::InsufficientStock,
    Code::ProductUnavailable,
    Code::DiscountUnavailable,
    Code::CurrencyMismatch,
    Code::ShippingUnavailable,
];
/// What a refund can run into, looked at or issued.
const REFUND_PROBLEMS: &[Code] =
    &[Code::ValidationFailed, Code::NotFound, Code::CurrencyMismatch, Code::RefundExceedsRemaining];
/// What a confirm can run into, of whatever.
const CONFIRM_PROBLEMS: &[Code] = &[
    Code::ValidationFailed,
    Code::WrongOperation,
    Code::ConfirmationCancelled,
    Code::ConfirmationExpired,
    Code::ConfirmationMismatch,
    Code::AttemptPending,
    Code::OperationInFlight,
    Code::OutcomeUnknown,
    Code::PaymentNeedsReview,
];
const ANY_CONFIRMATION: &[Scope] = &[Scope::CheckoutPropose, Scope::RefundsCreate, Scope::RefundsConfirm];

impl Operation {
    pub const fn profile(self) -> &'static EffectProfile {
        match self {
            Operation::SearchProducts => &EffectProfile {
                path: "/products",
                scopes: &[Scope::CatalogRead],
                untrusted_inputs: &["products.title", "products.description"],
                problems: &[&[Code::ValidationFailed]],
                ..READ
            },
            Operation::GetProduct => &EffectProfile {
                path: "/products/{product_id}",
                scopes: &[Scope::CatalogRead],
                untrusted_inputs: PRODUCT_TEXTS,
                ..READ
            },
            Operation::BatchGetProducts => &EffectProfile {
                method: "POST",
                path: "/products-batch-get",
                scopes: &[Scope::CatalogRead],
                untrusted_inputs: &["products.title", "products.description"],
                problems: &[&[Code::ValidationFailed]],
                ..READ
            },
            Operation::BatchSearchProducts => &EffectProfile {
                method: "POST",
                path: "/products-batch-search",
                scopes: &[Scope::CatalogRead],
                untrusted_inputs: &["results.products.title", "results.products.description"],
                problems: &[&[Code::ValidationFailed]],
                ..READ
            },
            Operation::BatchUpdateProducts => &EffectProfile {
                method: "POST",
                path: "/products-batch-update",
                effect: Effect::Reversible,
                key: KeyRule::Required,
                scopes: &[Scope::CatalogWrite],
                side_effects: &["makes and changes products", "sets stock"],
                compensate: Some(Operation::BatchUpdateProducts),
                untrusted_inputs: &["updates.set.title", "updates.set.description"],
                problems: &[&[Code::ValidationFailed, Code::BatchStopped]],
                ..READ
            },
            Operation::DryRunCheckout => &EffectProfile {
                method: "POST",
                path: "/checkout-dry-run",
                scopes: &[Scope::CheckoutPropose],
                untrusted_inputs: CHECKOUT_TEXTS,
                problems: &[CART_PROBLEMS],
                ..READ
            },
            Operation::ProposeCheckout => &EffectProfile {
                method: "POST",
                path: "/checkout",
                effect: Effect::Compensable,
                key: KeyRule::Required,
                retention: RetentionClass::Money,
                scopes: &[Scope::CheckoutPropose],
                side_effects: &["stores a confirmation", "holds stock, price and discount uses until it expires"],
                dry_run: Some(Operation::DryRunCheckout),
                confirm: Some(Operation::ConfirmCheckout),
                compensate: Some(Operation::CancelConfirmation),
                untrusted_inputs: CHECKOUT_TEXTS,
                problems: &[CART_PROBLEMS, &[Code::TooManyPending, Code::AttemptPending]],
                ..READ
            },
            Operation::ListConfirmations => &EffectProfile {
                path: "/confirmations",
                scopes: ANY_CONFIRMATION,
                untrusted_inputs: &[
                    "confirmations.plan.shipping_address",
                    "confirmations.plan.lines.title",
                    "confirmations.refund.note",
                ],
                problems: &[&[Code::ValidationFailed]],
                ..READ
            },
            Operation::GetConfirmation => &EffectProfile {
                path: "/confirmations/{confirmation_id}",
                scopes: ANY_CONFIRMATION,
                untrusted_inputs: &["plan.shipping_address", "plan.lines.title", "refund.note"],
                ..READ
            },
            Operation::CancelConfirmation => &EffectProfile {
                method: "DELETE",
                path: "/confirmations/{confirmation_id}",
                effect: Effect::Idempotent,
                key: KeyRule::Natural,
                natural_key: Some("confirmation_id"),
                scopes: &[Scope::CheckoutPropose, Scope::RefundsCreate],
                side_effects: &["frees what the confirmation holds"],
                problems: &[
                    &[Code::NothingToCancel, Code::OperationInFlight, Code::ConfirmationDecided],
                    &[Code::PaymentNeedsReview],
                ],
                ..READ
            },
            Operation::ConfirmCheckout => &EffectProfile {
                method: "POST",
                path: "/confirm-checkout/{confirmation_id}",
                effect: Effect::Irreversible,
                reach: Reach::Provider,
                key: KeyRule::Natural,
                natural_key: Some("confirmation_id"),
                retention: RetentionClass::Money,
                scopes: &[Scope::CheckoutConfirm],
                side_effects: &["charges the payment method", "makes an order", "takes the units out of stock"],
                dry_run: Some(Operation::DryRunCheckout),
                untrusted_inputs: PLAN_TEXTS,
                problems: &[CONFIRM_PROBLEMS, &[Code::PaymentDeclined]],
                ..READ
            },
            Operation::GetOrder => &EffectProfile {
                path: "/orders/{order_id}",
                scopes: &[Scope::OrdersRead],
                untrusted_inputs: ORDER_TEXTS,
                ..READ
            },
            Operation::ListOrders => &EffectProfile {
                path: "/orders",
                scopes: &[Scope::OrdersRead],
                untrusted_inputs: &[
                    "orders.shipping_address",
                    "orders.plan.shipping_address",
                    "orders.plan.lines.title",
                    "orders.refunds.note",
                ],
                problems: &[&[Code::ValidationFailed]],
                ..READ
            },
            Operation::SetShippingAddress => &EffectProfile {
                method: "PUT",
                path: "/orders/{order_id}/shipping-address",
                effect: Effect::Idempotent,
                key: KeyRule::Natural,
                natural_key: Some("order_id"),
                scopes: &[Scope::OrdersWrite],
                side_effects: &["replaces where the order goes"],
                compensate: Some(Operation::SetShippingAddress),
                untrusted_inputs: ADDRESS_TEXTS,
                problems: &[&[Code::ValidationFailed, Code::AddressChangesPrice, Code::DeliveryStarted]],
                ..READ
            },
            Operation::DryRunRefund => &EffectProfile {
                method: "POST",
                path: "/refunds-dry-run",
                scopes: &[Scope::RefundsCreate],
                untrusted_inputs: REFUND_TEXTS,
                problems: &[REFUND_PROBLEMS],
                ..READ
            },
            Operation::IssueRefund => &EffectProfile {
                method: "POST",
                path: "/refunds",
                effect: Effect::Irreversible,
                reach: Reach::Provider,
                key: KeyRule::Required,
                retention: RetentionClass::Money,
                scopes: &[Scope::RefundsCreate],
                side_effects: &[
                    "gives money back to the payment method",
                    "or stores a confirmation for a second step, and reserves the amount until it expires",
                ],
                dry_run: Some(Operation::DryRunRefund),
                confirm: Some(Operation::ConfirmRefund),
                untrusted_inputs: REFUND_TEXTS,
                problems: &[
                    REFUND_PROBLEMS,
                    &[Code::TooManyPending, Code::RefundDeclined, Code::OutcomeUnknown, Code::PaymentNeedsReview],
                ],
                ..READ
            },
            Operation::ConfirmRefund => &EffectProfile {
                method: "POST",
                path: "/confirm-refund/{confirmation_id}",
                effect: Effect::Irreversible,
                reach: Reach::Provider,
                key: KeyRule::Natural,
                natural_key: Some("confirmation_id"),
                retention: RetentionClass::Money,
                scopes: &[Scope::RefundsConfirm],
                side_effects: &["gives money back to the payment method"],
                dry_run: Some(Operation::DryRunRefund),
                untrusted_inputs: &["note"],
                problems: &[CONFIRM_PROBLEMS, &[Code::ApproverMustDiffer, Code::EqualRefundMade, Code::RefundDeclined]],
                ..READ
            },
            Operation::GetRefund => &EffectProfile {
                path: "/refunds/{refund_id}",
                scopes: &[Scope::RefundsCreate, Scope::RefundsConfirm],
                untrusted_inputs: &["note"],
                ..READ
            },
            Operation::GetOperationStatus => &EffectProfile {
                path: "/operation-status",
                untrusted_inputs: &["response"],
                problems: &[&[
                    Code::IdempotencyKeyRequired,
                    Code::IdempotencyKeyInvalid,
                    Code::IdempotencyKeyExpired,
                    Code::InsufficientScope,
                    Code::NotFound,
                ]],
                ..READ
            },
            Operation::GetTask => &EffectProfile { path: "/tasks/{task_id}", ..READ },
        }
    }

    /// Every problem that it can answer, in the order of the error table.
    pub fn problems(self) -> Vec<Code> {
        let profile = self.profile();
        let (keyed, required) = (profile.key != KeyRule::None, profile.key == KeyRule::Required);
        // A natural key of money is a confirmation, which keeps its answer for as long as the order exists.
        let expires = required && profile.retention == RetentionClass::Money;
        let rules: [(bool, &[Code]); 6] = [
            (true, EVERY_CALL),
            (!profile.scopes.is_empty(), &[Code::InsufficientScope]),
            (profile.path.contains('{'), &[Code::NotFound]),
            (required, &[Code::IdempotencyKeyRequired]),
            (keyed, &[Code::IdempotencyKeyInvalid, Code::IdempotencyKeyReused, Code::IdempotencyInFlight]),
            (expires, &[Code::IdempotencyKeyExpired]),
        ];
        let shared = rules.iter().filter(|(holds, _)| *holds).map(|(_, codes)| codes);
        let answered: Vec<&&[Code]> = shared.chain(profile.problems).collect();
        let can = |code: &Code| answered.iter().any(|codes| codes.contains(code));
        Code::ALL.iter().copied().filter(can).collect()
    }

    /// Those whose keys are kept this way.
    pub fn retained(class: RetentionClass) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|operation| operation.profile().retention == class).collect()
    }

    /// Those whose effect reaches so far.
    pub fn reaching(reach: Reach) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|operation| operation.profile().reach == reach).collect()
    }

    /// The operation behind a route.
    pub fn at(method: &str, path: &str) -> Option<Self> {
        let matches = |operation: &&Operation| {
            let profile = operation.profile();
            profile.method == method && profile.path == path
        };
        Self::ALL.iter().find(matches).copied()
    }
}

/// What the fingerprint doesn't see.
const NORMALIZATIONS: &[&str] = &[
    "JSON white space and member order",
    "notation of an amount: 10, 10.0, 10.00, \"10.00\"",
    "letter case of a currency",
    "an optional member that is null or its default counts as absent",
];

/// JSON Schema of `x-ai-metadata`.
pub const METADATA_SCHEMA: &str = include_str!("../openapi/x-ai-metadata.schema.json");

impl EffectProfile {
    /// Whether a request's path is one of this operation's.
    pub fn takes(&self, path: &str) -> bool {
        let same = |(pattern, given): (&str, &str)| pattern == given || (pattern.starts_with('{') && !given.is_empty());
        self.path.split('/').count() == path.split('/').count() && self.path.split('/').zip(path.split('/')).all(same)
    }

    /// The `x-ai-metadata` block of the OpenAPI document.
    pub fn ai_metadata(&self, retention: Retention) -> Value {
        let keyed = self.key != KeyRule::None;
        let pure = self.effect == Effect::Pure;
        json!({
            "effect": self.effect,
            "side_effects": self.side_effects,
            "idempotency": {
                "key": self.key,
                "natural_key": self.natural_key,
                "retention_seconds": keyed.then(|| retention.of(self.retention).as_secs()),
                "normalizations": if keyed { NORMALIZATIONS } else { &[] },
            },
            "dry_run": self.dry_run,
            "confirm": self.confirm,
            "compensate": self.compensate,
            "retry": {
                "on": ["408", "429", "5xx", "timeout", "connection_lost", "recovery:retry_same_key"],
                "backoff": "full_jitter",
            },
            "scopes": self.scopes,
            "untrusted_inputs": self.untrusted_inputs,
            "mcp": {"annotations": {
                "readOnlyHint": pure,
                "destructiveHint": !matches!(self.effect, Effect::Pure | Effect::Compensable),
                "idempotentHint": true,
                "openWorldHint": self.reach == Reach::Provider,
            }},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_harmless_to_repeat() {
        for operation in Operation::ALL {
            let profile = operation.profile();
            let open = matches!(operation, Operation::GetOperationStatus | Operation::GetTask);
            assert_eq!(profile.scopes.is_empty(), open, "{operation:?}");
            assert_eq!(profile.key == KeyRule::None, profile.effect == Effect::Pure, "{operation:?}");
            assert_eq!(profile.key == KeyRule::Natural, profile.natural_key.is_some(), "{operation:?}");
            assert_eq!(profile.effect == Effect::Pure, profile.side_effects.is_empty(), "{operation:?}");
            assert_eq!(Operation::at(profile.method, profile.path), Some(*operation));
        }
    }

    #[test]
    fn money_that_leaves_the_process_is_or_can_be_asked_for_twice() {
        let confirms: Vec<Operation> = Operation::ALL.iter().filter_map(|o| o.profile().confirm).collect();
        for operation in Operation::ALL {
            if operation.profile().reach == Reach::Provider {
                let asks = operation.profile().confirm.is_some();
                assert!(confirms.contains(operation) || asks, "{operation:?} moves money in one step");
            }
        }
    }
}

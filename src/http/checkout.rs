//! Dry run, propose, confirm.

use super::State;
use super::address::{AddressBody, address};
use super::checked::{Checked, Input};
use super::json::{Faults, Integer, MoneyBody, Object};
use crate::domain::checkout::{
    CheckoutRequest, DEFAULT_SHIPPING_OPTION, Guards, Item, MAX_DISCOUNT_CODES, MAX_ITEMS, MAX_QUANTITY,
};
use crate::domain::confirmation::ConfirmationView;
use crate::domain::digest::Digest;
use crate::domain::error::{FaultCode, Problem};
use crate::domain::ids::{ConfirmationId, ProductId};
use crate::domain::order::Confirmed;
use crate::domain::payment::PaymentMethod;
use crate::operations::confirm_checkout as confirm;
use crate::operations::dry_run_checkout::{self as dry_run, DryRun};
use crate::operations::propose_checkout as propose;
use crate::operations::{Context, Reply};
use actix_web::{Responder, post, web};
use serde::Deserialize;
use std::collections::HashMap;

/// Dry-run a checkout
///
/// Show the full effect of a checkout. Use it first, as often as you like: lines, discounts, tax, shipping, total and
/// delivery dates, as they would be held and charged. It writes nothing, reserves nothing, makes no ids and needs no
/// key. It fails where `propose_checkout` would, with the same problem, except for the key, `too_many_pending` and
/// `attempt_pending`, which only the real call tests. Show the plan to whoever decides; then send the same request to
/// `propose_checkout` with `expected_plan_digest`, so that exactly this is held or nothing.
#[utoipa::path(
    operation_id = "dry_run_checkout",
    tag = "checkout",
    request_body = CheckoutBody,
    responses((status = 200, description = "The plan as it would be proposed now", body = DryRun)),
)]
#[post("/checkout-dry-run")]
pub async fn dry_run_checkout(
    state: web::Data<State>,
    request: Checked<CheckoutRequest>,
) -> Result<impl Responder, Problem> {
    dry_run::dry_run_checkout(&state.context, request.call, request.input).await.map(web::Json)
}

/// Propose a checkout
///
/// Propose a checkout: hold price and stock, and get a confirmation. Use it once somebody wants the plan that the dry
/// run showed. Nothing is charged. The confirmation is a firm, single-use offer for this actor until `expires_at` (15
/// minutes, unless configured otherwise). Then confirm it with `confirm_checkout`, or free what it holds with
/// `cancel_confirmation`. `warnings` says when it looks like an order that was made already. Sent again with the same
/// key, it answers the same confirmation; a replay shows it as it was then, `get_confirmation` as it is now.
#[utoipa::path(
    operation_id = "propose_checkout",
    tag = "checkout",
    request_body = CheckoutBody,
    responses((
        status = 201,
        description = "The confirmation",
        body = ConfirmationView,
    )),
)]
#[post("/checkout")]
pub async fn propose_checkout(state: web::Data<State>, request: Checked<CheckoutRequest>) -> Result<Reply, Problem> {
    propose::propose_checkout(&state.context, request.call, request.input).await
}

/// Confirm a checkout
///
/// Confirm a proposed checkout: charge it and make the order, once. Use it when the held plan is still wanted: this
/// moves money. The confirmation is its own key: a repeat, under any key or none and however late, gets the same answer
/// and charges nothing. The optional body guards against confirming another plan than the one that was shown. On 503
/// `outcome_unknown` the money may have moved: send the same confirm again until it is decided, and start nothing new
/// meanwhile. Afterwards `get_order` reads the order and `issue_refund` gives money back.
#[utoipa::path(
    operation_id = "confirm_checkout",
    tag = "checkout",
    params(("confirmation_id" = ConfirmationId, Path, description = "The confirmation's id")),
    request_body = Option<GuardsBody>,
    responses((status = 200, description = "The order was made", body = Confirmed)),
)]
#[post("/confirm-checkout/{confirmation_id}")]
pub async fn confirm_checkout(state: web::Data<State>, request: Checked<Guards>) -> Result<Reply, Problem> {
    let id = request.id(ConfirmationId::parse, "confirmation")?;
    confirm::confirm_checkout(&state.context, request.call, id, request.input).await
}

/// What to buy, where to send it, how to pay.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CheckoutRequest)]
pub struct CheckoutBody {
    /// What to buy, all in one currency. The same product twice is one line, of up to 1,000 units.
    #[schema(value_type = Vec<ItemBody>, min_items = 1, max_items = 100)]
    items: Vec<Object<ItemBody>>,
    /// Where it goes, and what tax and shipping are priced for.
    #[schema(value_type = AddressBody)]
    shipping_address: Object<AddressBody>,
    /// The shop's name for a way of shipping, such as `standard`; 409 `shipping_unavailable` if there is none.
    #[schema(default = "standard", min_length = 1, max_length = 500, pattern = r"\S", example = "standard")]
    shipping_option: Option<String>,
    /// Applied in this order, each to what the ones before it left. Each once.
    #[schema(value_type = Option<Vec<DiscountCode>>, max_items = 10, example = json!(["WELCOME10"]))]
    discount_codes: Option<Vec<String>>,
    /// What to charge: a name that the payment provider knows. The sandbox's are `pm_sandbox_ok`, `pm_sandbox_declined` and
    /// more, each for one fault.
    #[schema(value_type = PaymentMethod)]
    payment_method: String,
    /// Refuse (409 `plan_changed`) if the total is another one.
    #[schema(value_type = Option<MoneyBody>)]
    expected_total: Option<Object<MoneyBody>>,
    /// Refuse (409 `plan_changed`) if the plan is another one.
    #[schema(value_type = Option<Digest>)]
    expected_plan_digest: Option<String>,
}

/// A discount code, as the customer has it.
#[derive(utoipa::ToSchema)]
#[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "WELCOME10")]
#[expect(dead_code, reason = "describes what is read as text")]
struct DiscountCode(String);

/// Some units of one product.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CheckoutItem)]
pub struct ItemBody {
    /// The merchant's SKU.
    #[schema(value_type = ProductId)]
    product_id: String,
    /// How many units.
    #[schema(value_type = i64, minimum = 1, maximum = 1000, example = 2)]
    quantity: Integer,
}

/// What the plan is believed to be.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Guards)]
pub struct GuardsBody {
    /// Refuse (409 `confirmation_mismatch`) if the total is another one.
    #[schema(value_type = Option<MoneyBody>)]
    expected_total: Option<Object<MoneyBody>>,
    /// Refuse (409 `confirmation_mismatch`) if the plan is another one.
    #[schema(value_type = Option<Digest>)]
    expected_plan_digest: Option<String>,
}

impl Input for CheckoutRequest {
    type Raw = CheckoutBody;

    fn validate(body: CheckoutBody, context: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let items = items(&mut faults, body.items);
        let shipping_address = address(&mut faults, "/shipping_address", body.shipping_address.0);
        let shipping_option = body.shipping_option.unwrap_or_else(|| DEFAULT_SHIPPING_OPTION.to_owned());
        let shipping_option = faults.text("/shipping_option", shipping_option);
        let discount_codes = discount_codes(&mut faults, body.discount_codes.unwrap_or_default());
        let payment_method = payment_method(&mut faults, &body.payment_method, context);
        let guards = guards(&mut faults, "/expected_total", body.expected_total, body.expected_plan_digest);
        let request = || {
            Some(CheckoutRequest {
                items: items?,
                shipping_address: shipping_address?,
                shipping_option: shipping_option?,
                discount_codes,
                payment_method: payment_method?,
                guards,
            })
        };
        let request = request();
        faults.finish(request)
    }
}

impl Input for Guards {
    type Raw = GuardsBody;

    fn absent() -> Option<Self> {
        Some(Guards::default())
    }

    fn validate(body: GuardsBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let guards = guards(&mut faults, "/expected_total", body.expected_total, body.expected_plan_digest);
        faults.finish(Some(guards))
    }
}

fn items(faults: &mut Faults, bodies: Vec<Object<ItemBody>>) -> Option<Vec<Item>> {
    let bodies = faults.list("/items", bodies, 1, MAX_ITEMS)?;
    let mut units: HashMap<String, i64> = HashMap::new();
    let mut items = Vec::new();
    for (i, Object(item)) in bodies.into_iter().enumerate() {
        let product_id = faults.product_id(&format!("/items/{i}/product_id"), &item.product_id);
        let Integer(quantity) = item.quantity;
        let units = units.entry(item.product_id).or_default();
        *units = units.saturating_add(quantity.max(0));
        if quantity < 1 || *units > MAX_QUANTITY {
            let detail = format!("Expected 1 to {MAX_QUANTITY} units of one product.");
            faults.add(format!("/items/{i}/quantity"), FaultCode::OutOfRange, detail);
        }
        items.push(product_id.map(|product_id| Item { product_id, quantity }));
    }
    items.into_iter().collect()
}

fn discount_codes(faults: &mut Faults, codes: Vec<String>) -> Vec<String> {
    let codes = faults.list("/discount_codes", codes, 0, MAX_DISCOUNT_CODES).unwrap_or_default();
    for (i, code) in codes.iter().enumerate() {
        let pointer = format!("/discount_codes/{i}");
        if codes[..i].contains(code) {
            faults.add(&pointer, FaultCode::Duplicate, "A code can be used once in a checkout.");
        }
        faults.text(&pointer, code.clone());
    }
    codes
}

fn payment_method(faults: &mut Faults, text: &str, context: &Context) -> Option<PaymentMethod> {
    let method = PaymentMethod::parse(text).filter(|method| context.provider.accepts(method));
    if method.is_none() {
        let detail = "The payment provider doesn't know this payment method.";
        faults.add("/payment_method", FaultCode::UnknownPaymentMethod, detail);
    }
    method
}

/// `at` points to the expected amount.
pub fn guards(faults: &mut Faults, at: &str, amount: Option<Object<MoneyBody>>, digest: Option<String>) -> Guards {
    Guards {
        expected_total: amount.and_then(|Object(money)| faults.money(at, money)),
        expected_plan_digest: digest
            .and_then(|text| faults.parsed("/expected_plan_digest", Digest::parse(&text), "sha256: and 64 hex digits")),
    }
}

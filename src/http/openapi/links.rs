//! What to call next with an answer: OpenAPI `links`, from propose to confirm and cancel, from confirm to the order and
//! its refund.

use crate::domain::operation::Operation;
use serde_json::{Map, Value, json};

/// A path parameter and the member of the answer that it takes.
type Parameter = (&'static str, &'static str);

const CONFIRMATION: Parameter = ("confirmation_id", "confirmation_id");
const ORDER: Parameter = ("order_id", "order_id");
const REFUND: Parameter = ("refund_id", "refund_id");

pub fn of(operation: Operation, status: &str) -> Value {
    let next: &[(Operation, Parameter, &str)] = match (operation, status) {
        (Operation::ProposeCheckout, "201") => &[
            (Operation::ConfirmCheckout, CONFIRMATION, "Charge it and make the order, once."),
            (Operation::CancelConfirmation, CONFIRMATION, "Free what it holds."),
            (Operation::GetConfirmation, CONFIRMATION, "See where it stands."),
        ],
        (Operation::ConfirmCheckout, "200") => &[(Operation::GetOrder, ORDER, "Read the order.")],
        (Operation::IssueRefund, "201") => &[
            (Operation::GetRefund, REFUND, "Read the refund."),
            (Operation::GetOrder, ORDER, "See what is left of the order."),
        ],
        (Operation::IssueRefund, "202") => &[
            (Operation::ConfirmRefund, CONFIRMATION, "Give the money back, once."),
            (Operation::CancelConfirmation, CONFIRMATION, "It was a repeat: free what it reserves."),
            (Operation::GetConfirmation, CONFIRMATION, "See where it stands."),
        ],
        (Operation::ConfirmRefund, "200") => &[(Operation::GetRefund, REFUND, "Read the refund.")],
        _ => &[],
    };
    let mut links: Map<String, Value> = next.iter().map(|link| (link.0.as_str().to_owned(), by_id(link))).collect();
    if operation == Operation::ConfirmCheckout && status == "200" {
        links.insert(Operation::IssueRefund.as_str().to_owned(), refund());
    }
    Value::Object(links)
}

fn by_id((to, (parameter, member), about): &(Operation, Parameter, &str)) -> Value {
    json!({
        "operationId": to,
        "parameters": {*parameter: format!("$response.body#/{member}")},
        "description": about,
    })
}

fn refund() -> Value {
    json!({
        "operationId": Operation::IssueRefund,
        "description": "Give the money back, in part or in whole, under a key of its own: `order_id` is the answer's.",
    })
}

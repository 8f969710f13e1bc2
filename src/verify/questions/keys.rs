//! The key: it is demanded, a repeat gets the first answer, and another request doesn't.

use crate::verify::client::Call;
use crate::verify::document::{KeyRule, Operation};
use crate::verify::shop::{Order, Shop, new_key, permitted};
use crate::verify::{Stop, ensure};
use serde_json::{Value, json};

/// What the contract wants a key for, whatever the document says.
const MOVE_MONEY: [&str; 2] = ["propose_checkout", "issue_refund"];

pub async fn key_demanded(shop: &Shop) -> Result<String, Stop> {
    let profiles = shop.document()?.profiles();
    let keyed: Vec<&Operation> =
        profiles.filter(|(_, profile)| profile.idempotency.key == KeyRule::Required).map(|(op, _)| op).collect();
    for id in MOVE_MONEY {
        let named = keyed.iter().any(|operation| operation.id == id);
        ensure(named, || format!("the document doesn't say that {id} needs a key"))?;
    }
    let order = shop.ordered().await?;
    let refused = async || {
        let mut labels = Vec::new();
        for operation in &keyed {
            let answer = permitted("--key", shop.client.send(keyless(shop, operation, &order)?).await?)?;
            labels.push(answer.expect_problem(400, "idempotency_key_required")?.label);
        }
        Ok(labels.join(", "))
    };
    let labels = shop.without_effect("calls without a key", refused).await?;
    Ok(format!("{labels} without a key: 400 idempotency_key_required each; nothing was changed"))
}

/// A call that would do something. Of an operation that the contract doesn't know, its key is looked at before its body.
fn keyless(shop: &Shop, operation: &Operation, order: &Order) -> Result<Call, Stop> {
    let body = match operation.id.as_str() {
        "propose_checkout" => shop.cart(),
        "issue_refund" => order.refund(10)?,
        "batch_update_products" => shop.update(),
        _ => json!({}),
    };
    let filled = |segment: &str| if segment.starts_with('{') { "none".to_owned() } else { segment.to_owned() };
    let path: Vec<String> = operation.path.split('/').map(filled).collect();
    Ok(Call::new(operation.method.clone(), path.join("/")).json(&body))
}

pub async fn same_key_same_answer(shop: &Shop) -> Result<String, Stop> {
    let proposal = shop.proposed().await?;
    let again = shop.propose(&proposal.key, &proposal.cart).await?;
    again.expect_replay_of(&proposal.answer)?;
    let (order, key) = (shop.ordered().await?, new_key());
    let refund = order.refund(10)?;
    let first = shop.refund(&key, &refund).await?.expect_fresh(&[201, 202])?;
    let second = shop.refund(&key, &refund).await?;
    second.expect_replay_of(&first)?;
    let same = "the second time the same bytes and Location, and Idempotent-Replayed: true";
    Ok(format!("twice with one key, {} and {}; {same}", proposal.answer.says(), first.says()))
}

pub async fn fingerprint_mismatch_refused(shop: &Shop) -> Result<String, Stop> {
    let proposal = shop.proposed().await?;
    let mut other = proposal.cart.clone();
    other["items"][0]["quantity"] = json!(2);
    let refusal = shop.propose(&proposal.key, &other).await?.expect_problem(422, "idempotency_key_reused")?;
    shop.propose(&proposal.key, &proposal.cart).await?.expect_replay_of(&proposal.answer)?;
    let now = shop.get(format!("/confirmations/{}", proposal.id)).await?;
    let of = |json: &Value| [json["status"].clone(), json["plan_digest"].clone()];
    ensure(of(&now.json) == of(&proposal.answer.json), || {
        format!("the first proposal isn't what it was: {}", now.says())
    })?;

    let (order, key) = (shop.ordered().await?, new_key());
    shop.refund(&key, &order.refund(10)?).await?.expect_fresh(&[201, 202])?;
    let refund = shop.refund(&key, &order.refund(20)?).await?.expect_problem(422, "idempotency_key_reused")?;
    let (left, expected) = (shop.remaining(&order).await?, order.less(10)?);
    ensure(left == expected, || format!("{}, but {left} of the order is left instead of {expected}", refund.says()))?;
    Ok(format!(
        "another cart with the key of the first, {}; another amount, {}; what was done first stands",
        refusal.says(),
        refund.says()
    ))
}

//! The same call many times at once: one effect, and everybody else gets its answer or is told to wait.

use crate::verify::answer::{Answer, tally};
use crate::verify::client::Call;
use crate::verify::shop::{Shop, new_key};
use crate::verify::{Stop, ensure};
use futures_util::future::join_all;
use serde_json::Value;

const AT_ONCE: usize = 8;
const IN_FLIGHT: [&str; 2] = ["idempotency_in_flight", "operation_in_flight"];

/// What equal calls at once came to.
struct Storm {
    executed: Answer,
    replays: usize,
    told_to_wait: usize,
}

impl Storm {
    async fn of(shop: &Shop, calls: Vec<Call>) -> Result<Self, Stop> {
        let answers = join_all(calls.into_iter().map(|call| shop.client.send(call))).await;
        let answers = answers.into_iter().collect::<Result<Vec<Answer>, Stop>>()?;
        let says = tally(&answers);
        let (executed, others): (Vec<Answer>, Vec<Answer>) =
            answers.into_iter().partition(|answer| answer.status < 300 && !answer.is_replay());
        let Ok([executed]) = <[Answer; 1]>::try_from(executed) else {
            return Err(Stop::Failed(format!("at once: {says}; expected exactly one that isn't a replay")));
        };
        let (mut replays, mut told_to_wait) = (0, 0);
        for other in &others {
            // That it says for how long is what `back_off_advice` is about.
            if IN_FLIGHT.iter().any(|code| other.is_problem(409, code)) {
                told_to_wait += 1;
                continue;
            }
            other.expect_replay_of(&executed)?;
            replays += 1;
        }
        Ok(Self { executed, replays, told_to_wait })
    }

    fn says(&self) -> String {
        let Self { executed, replays, told_to_wait } = self;
        format!("{AT_ONCE} × {}: 1 executed, {replays} replayed, {told_to_wait} told to wait", executed.label)
    }
}

pub async fn same_key_in_parallel(shop: &Shop) -> Result<String, Stop> {
    let (key, cart) = (new_key(), shop.cart());
    let storm = Storm::of(shop, vec![Call::post("/checkout").key(&key).json(&cart); AT_ONCE]).await?;
    shop.propose(&key, &cart).await?.expect_replay_of(&storm.executed)?;
    let pending = shop.get("/confirmations?status=pending&limit=100").await?;
    let line = "/plan/shipping_address/line1";
    let address = storm.executed.text(line)?;
    let held = count(&pending.json["confirmations"], line, address);
    ensure(held == 1, || format!("{}, but {held} confirmations are pending", storm.says()))?;

    let (order, key) = (shop.ordered().await?, new_key());
    let refund = Call::post("/refunds").key(&key).json(&order.refund(10)?);
    let refunds = Storm::of(shop, vec![refund.clone(); AT_ONCE]).await?;
    shop.client.send(refund).await?.expect_replay_of(&refunds.executed)?;
    let (left, expected) = (shop.remaining(&order).await?, order.less(10)?);
    ensure(left == expected, || format!("{}, but {left} of the order is left instead of {expected}", refunds.says()))?;
    Ok(format!("{}, one confirmation; {}, one refund", storm.says(), refunds.says()))
}

pub async fn confirm_once(shop: &Shop) -> Result<String, Stop> {
    let proposal = shop.proposed().await?;
    let confirm = Shop::confirm(&proposal.id);
    let every_other = |i: usize| if i.is_multiple_of(2) { confirm.clone() } else { confirm.clone().key(&new_key()) };
    let storm = Storm::of(shop, (0..AT_ONCE).map(every_other).collect()).await?;
    for call in [every_other(0), every_other(1)] {
        shop.client.send(call).await?.expect_replay_of(&storm.executed)?;
    }
    let orders = shop.get("/orders?limit=100").await?;
    let made = count(&orders.json["orders"], "/confirmation_id", &proposal.id);
    ensure(made == 1, || format!("{}, but {made} orders are of this confirmation", storm.says()))?;
    Ok(format!(
        "{}, half of them with keys of their own; again with a key and without: replays; one order",
        storm.says()
    ))
}

/// How many of a list have this text there.
fn count(list: &Value, pointer: &str, text: &str) -> usize {
    let items = list.as_array().into_iter().flatten();
    items.filter(|item| item.pointer(pointer).and_then(Value::as_str) == Some(text)).count()
}

//! Refunds: one refund however its amount is written, and never more than was captured.

use crate::domain::money::Money;
use crate::verify::answer::{Answer, tally};
use crate::verify::client::Call;
use crate::verify::shop::{Order, Shop, minor, new_key};
use crate::verify::{Stop, ensure};
use futures_util::future::join_all;

const AT_ONCE: i64 = 4;

pub async fn same_refund_written_differently(shop: &Shop) -> Result<String, Stop> {
    let (order, key) = (shop.ordered().await?, new_key());
    let first = shop.refund(&key, &order.refund(10)?).await?.expect_fresh(&[201, 202])?;
    let mut notations = Vec::new();
    for (amount, body) in other_writings(&order)? {
        let again = shop.client.send(Call::post("/refunds").key(&key).text(body)).await?;
        again.expect_replay_of(&first).map_err(|stop| stop.after(&format!("amount written {amount}")))?;
        notations.push(amount);
    }
    let (left, expected) = (shop.remaining(&order).await?, order.less(10)?);
    ensure(left == expected, || format!("{left} of the order is left instead of {expected}"))?;
    let said = first.says();
    Ok(format!("{said}; its amount as {}, members in another order: replays, one refund", notations.join(", ")))
}

/// The same refund in other bytes, each with its amount as it is written there.
fn other_writings(order: &Order) -> Result<[(String, String); 3], Stop> {
    let amount = minor(10, order.total.currency())?;
    let (currency, written) = (amount.currency().as_str(), amount.to_string());
    let (short, long) = match written.contains('.') {
        true => (written.trim_end_matches('0').to_owned(), format!("{written}0")),
        false => (written.clone(), format!("{written}.0")),
    };
    let id = &order.id;
    let turned = |amount: String, currency: &str| {
        let money = format!(r#"{{"currency": "{currency}", "amount": {amount}}}"#);
        let body =
            format!("{{ \"reason\" : \"other\",\n \"note\": null,\t\"amount\": {money}, \"order_id\": \"{id}\" }}\n");
        (amount, body)
    };
    Ok([turned(short, currency), turned(format!("\"{long}\""), currency), turned(long, &currency.to_lowercase())])
}

pub async fn refund_limit(shop: &Shop) -> Result<String, Stop> {
    let order = shop.ordered().await?;
    let total = order.total.minor();
    let too_much = refused(shop, &order, total + 1, order.total).await?;

    let made = shop.refund(&new_key(), &order.refund(10)?).await?.expect_fresh(&[201, 202])?;
    let rest = order.less(10)?;
    says_what_is_left(&made, rest)?;
    refused(shop, &order, total, rest).await?;

    // Any two of these are more than the rest.
    let refunds = (0..AT_ONCE).map(|less| order.refund(rest.minor() - less)).collect::<Result<Vec<_>, _>>()?;
    let keys: Vec<String> = refunds.iter().map(|_| new_key()).collect();
    let answers = join_all(keys.iter().zip(&refunds).map(|(key, refund)| shop.refund(key, refund))).await;
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let made = answers.iter().filter(|answer| answer.status < 300).count();
    ensure(made == 1 && answers.iter().all(|answer| answer.status < 500), || {
        format!("{AT_ONCE} refunds at once, any two above what is left: {}; expected one of them", tally(&answers))
    })?;
    let left = shop.remaining(&order).await?.minor();
    ensure((0..AT_ONCE).contains(&left), || format!("one such refund was made, but {left} minor units are left"))?;
    let (says, left) = (too_much.says(), "remaining_refundable was right each time");
    Ok(format!("one minor unit above the total: {says}; {AT_ONCE} at once, each nearly the rest: one made; {left}"))
}

async fn refused(shop: &Shop, order: &Order, units: i64, left: Money) -> Result<Answer, Stop> {
    let answer = shop.refund(&new_key(), &order.refund(units)?).await?;
    let answer = answer.expect_problem(409, "refund_exceeds_remaining")?;
    says_what_is_left(&answer, left)?;
    let by_order = shop.remaining(order).await?;
    ensure(by_order == left, || format!("{} of the order is left after {}; expected {left}", by_order, answer.says()))?;
    Ok(answer)
}

fn says_what_is_left(answer: &Answer, left: Money) -> Result<(), Stop> {
    let said = answer.money("/remaining_refundable")?;
    ensure(said == left, || format!("{}, remaining_refundable {said}; expected {left}", answer.says()))
}

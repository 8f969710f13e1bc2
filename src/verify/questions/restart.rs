//! A restart: what was answered before it is answered again after it.

use crate::verify::answer::Answer;
use crate::verify::client::Call;
use crate::verify::shop::{Shop, new_key};
use crate::verify::{Stop, ensure};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// For migrations, recovery and a slow machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

pub async fn answer_survives_restart(shop: &Shop, command: &str) -> Result<String, Stop> {
    let proposal = shop.proposed().await?;
    let propose = Call::post("/checkout").key(&proposal.key).json(&proposal.cart);
    let confirm = Shop::confirm(&proposal.id).key(&new_key());
    let confirmed = shop.client.send(confirm.clone()).await?.expect_fresh(&[200])?;
    let order = shop.ordered().await?;
    let refund = Call::post("/refunds").key(&new_key()).json(&order.refund(10)?);
    let refunded = shop.client.send(refund.clone()).await?.expect_fresh(&[201, 202])?;

    restart(shop, command).await?;
    let before: [(Call, Answer); 3] = [(propose, proposal.answer), (confirm, confirmed), (refund, refunded)];
    let mut says = Vec::new();
    for (call, first) in before {
        let again = shop.client.send(call).await?;
        again.expect_replay_of(&first)?;
        says.push(again.says());
    }
    Ok(format!("after the restart, with the keys and bodies from before: {}; the same bytes", says.join("; ")))
}

async fn restart(shop: &Shop, command: &str) -> Result<(), Stop> {
    // Standard output is the report's; what goes wrong with the command is for whoever reads standard error.
    let status = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).status().await;
    let status = status.map_err(|error| Stop::Failed(format!("the restart command couldn't be run: {error}")))?;
    ensure(status.success(), || format!("the restart command failed: {status}"))?;
    let ready = async {
        while !shop.client.page("/readyz").await.is_ok_and(|answer| answer.status == 200) {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    let in_time = tokio::time::timeout(READY_WITHIN, ready).await;
    ensure(in_time.is_ok(), || format!("/readyz didn't answer within {} s of the restart", READY_WITHIN.as_secs()))
}

//! Two steps: what can't be undone is shown first, without effect, and a confirm is bound to what was shown.

use crate::verify::client::Call;
use crate::verify::document::{Document, Effect};
use crate::verify::shop::{Shop, minor, new_key};
use crate::verify::{Stop, ensure};
use serde_json::json;

pub async fn dry_run_or_two_step(shop: &Shop) -> Result<String, Stop> {
    let irreversible = guarded(shop.document()?)?;
    let checkout = checkout_is_as_shown(shop).await?;
    let refund = refund_is_as_shown(shop).await?;
    let steps = "each has a dry run and a second step, or is one";
    Ok(format!("{}: {steps}; {checkout}; {refund}; dry runs changed nothing", irreversible.join(", ")))
}

/// The irreversible operations. Each has a dry run, and a second step or is one.
fn guarded(document: &Document) -> Result<Vec<&str>, Stop> {
    let mut irreversible = Vec::new();
    for (operation, profile) in document.with_effect(Effect::Irreversible) {
        let id = operation.id.as_str();
        let shows = profile.dry_run.as_deref().and_then(|dry_run| document.find(dry_run));
        let pure =
            shows.and_then(|shows| shows.metadata.as_ref().ok()).is_some_and(|shows| shows.effect == Effect::Pure);
        ensure(pure, || format!("{id} is irreversible and names no dry run that is pure"))?;
        let has_second = profile.confirm.as_deref().is_some_and(|confirm| document.find(confirm).is_some());
        let is_second = document.profiles().any(|(_, first)| first.confirm.as_deref() == Some(id));
        ensure(has_second || is_second, || format!("{id} is irreversible, has no second step and is none"))?;
        irreversible.push(id);
    }
    ensure(!irreversible.is_empty(), || "the document calls nothing irreversible".into())?;
    Ok(irreversible)
}

/// What a dry run shows is held by the proposal, charged by its confirm, and the order's total.
async fn checkout_is_as_shown(shop: &Shop) -> Result<String, Stop> {
    let (key, cart) = (new_key(), shop.cart());
    let dry_run = async || shop.client.send(Call::post("/checkout-dry-run").json(&cart)).await?.expect_fresh(&[200]);
    let shown = shop.without_effect("POST /checkout-dry-run", dry_run).await?.money("/plan/total")?;
    let proposed = shop.propose(&key, &cart).await?.expect_fresh(&[201])?;
    let held = proposed.money("/total")?;
    let confirm = Shop::confirm(proposed.text("/confirmation_id")?);
    let confirmed = shop.client.send(confirm).await?.expect_fresh(&[200])?;
    let charged = confirmed.money("/total")?;
    let order = shop.get(format!("/orders/{}", confirmed.text("/order_id")?)).await?.money("/total")?;
    let same = [held, charged, order].iter().all(|total| *total == shown);
    ensure(same, || {
        format!("the dry run shows {shown}, held is {held}, charged {charged}, the order's total {order}")
    })?;
    Ok(format!("{shown} {} shown, held and charged", shown.currency().as_str()))
}

async fn refund_is_as_shown(shop: &Shop) -> Result<String, Stop> {
    let (order, key) = (shop.ordered().await?, new_key());
    let refund = order.refund(10)?;
    let dry_run = async || shop.client.send(Call::post("/refunds-dry-run").json(&refund)).await?.expect_fresh(&[200]);
    let left = "/remaining_refundable";
    let shown = shop.without_effect("POST /refunds-dry-run", dry_run).await?.money(left)?;
    let made = shop.refund(&key, &refund).await?.expect_fresh(&[201, 202])?.money(left)?;
    ensure(made == shown, || format!("the refund's dry run shows {shown} left, its refund leaves {made}"))?;
    Ok(format!("a refund left {made}, as shown"))
}

pub async fn confirmation_bound(shop: &Shop) -> Result<String, Stop> {
    let proposal = shop.proposed().await?;
    let other = minor(proposal.total.minor() + 1, proposal.total.currency())?;
    let confirm = Shop::confirm(&proposal.id).json(&json!({"expected_total": other}));
    let refusal = shop.client.send(confirm).await?.expect_problem(409, "confirmation_mismatch")?;
    let now = shop.get(format!("/confirmations/{}", proposal.id)).await?;
    let status = now.text("/status")?;
    ensure(status == "pending", || format!("{}, but the confirmation is {status} now", refusal.says()))?;
    let total = proposal.total;
    Ok(format!("expected_total {other} for a plan of {total}: {}; it stays pending", refusal.says()))
}

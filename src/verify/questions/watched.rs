//! What holds of every answer that the other questions got.

use crate::verify::shop::Shop;
use crate::verify::{Stop, ensure};

pub fn no_float_amounts(shop: &Shop) -> Result<String, Stop> {
    let watch = shop.client.watch.borrow();
    let (seen, bad) = (watch.amounts + watch.bad_amounts.len(), &watch.bad_amounts);
    let first = || bad.first().map_or("", String::as_str);
    ensure(bad.is_empty(), || format!("{} of {seen} amounts, such as {}", bad.len(), first()))?;
    ensure(seen > 0, || "no answer had an amount".into())?;
    Ok(format!("every answer: {seen} amounts, each a string with exactly its currency's digits"))
}

pub fn back_off_advice(shop: &Shop) -> Result<String, Stop> {
    let document = shop.document()?;
    for (operation, profile) in document.profiles() {
        let retry = &profile.retry;
        let advised = retry.backoff == "full_jitter" && !retry.on.is_empty();
        ensure(advised, || format!("{}: retry.backoff is {}, retry.on {:?}", operation.id, retry.backoff, retry.on))?;
    }
    let watch = shop.client.watch.borrow();
    let bad = &watch.bad_waits;
    ensure(bad.is_empty(), || format!("{}: no advice, or no Retry-After with retry_same_key", bad.join(", ")))?;
    let advice = format!("retry.backoff is full_jitter, with retry.on, for {} operations", document.profiles().count());
    if !watch.waits.is_empty() {
        let waits: Vec<String> = watch.waits.iter().map(|(code, times)| format!("{times} × {code}")).collect();
        return Ok(format!("{advice}; with Retry-After: {}", waits.join(", ")));
    }
    let described =
        document.find("propose_checkout").is_some_and(|operation| operation.waits.iter().any(|s| s == "409"));
    ensure(described, || {
        "no call was told to wait, and the document has no Retry-After for 409 of propose_checkout".into()
    })?;
    Ok(format!(
        "{advice}; no call was told to wait this time: the document has Retry-After for 409 of propose_checkout"
    ))
}

//! Units and discount uses: what was set, sold, used and held.

use super::evidence::{Evidence, differences};
use super::findings::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::ProductId;
use crate::domain::plan::Plan;
use crate::domain::sums::sums;
use crate::store::books::{Held, Shelf, Uses};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

pub fn stock_adds_up(evidence: &Evidence, findings: &mut Findings) {
    let ours = evidence.ours;
    let sold = sums(ours.orders.iter().flat_map(|order| units(&order.plan)));
    let set_or_sold = ours.stock_set.iter().map(|(id, set)| (id.clone(), *set));
    let left = sums(set_or_sold.chain(sold.iter().map(|(id, sold)| (id.clone(), -sold))));
    let stock = sums(ours.products.iter().map(|shelf| (shelf.product_id.clone(), shelf.stock)));
    for (id, _, stock) in differences(&left, &stock) {
        let of = |sums: &BTreeMap<ProductId, i64>| sums.get(id).copied().unwrap_or(0);
        let (set, sold) = (of(&ours.stock_set), of(&sold));
        findings.wrong(format!("{id}: {set} units were set and {sold} sold, but {stock} are in stock"));
    }
    let known: HashSet<&ProductId> = ours.products.iter().map(|shelf| &shelf.product_id).collect();
    for id in left.keys().filter(|id| !known.contains(id)) {
        findings.wrong(format!("{id} was set or sold, but there is no such product"));
    }
}

pub fn stock_holds_add_up(evidence: &Evidence, findings: &mut Findings) {
    let counted = sums(evidence.ours.products.iter().map(|shelf| (shelf.product_id.clone(), shelf.held)));
    holds_add_up(&needed(evidence, units), &evidence.ours.stock_held, &counted, findings);
}

pub fn held_within_stock(evidence: &Evidence, findings: &mut Findings) {
    for Shelf { product_id: id, stock, held, .. } in &evidence.ours.products {
        if !(0..=*stock).contains(held) {
            findings.wrong(format!("{id}: {held} units are held, and {stock} are in stock"));
        }
    }
}

pub fn discount_uses_add_up(evidence: &Evidence, findings: &mut Findings) {
    let used = sums(evidence.ours.orders.iter().flat_map(|order| codes(&order.plan)));
    let counted = sums(evidence.ours.discounts.iter().map(|uses| (uses.code.clone(), uses.used)));
    for (code, counted, used) in differences(&counted, &used) {
        findings.wrong(format!("{code}: {counted} uses are counted, but {used} orders have it"));
    }
}

pub fn discount_holds_add_up(evidence: &Evidence, findings: &mut Findings) {
    let counted = sums(evidence.ours.discounts.iter().map(|uses| (uses.code.clone(), uses.held)));
    holds_add_up(&needed(evidence, codes), &evidence.ours.discounts_held, &counted, findings);
}

pub fn discount_uses_within_limit(evidence: &Evidence, findings: &mut Findings) {
    for Uses { code, use_limit, held, used } in &evidence.ours.discounts {
        let limit = use_limit.unwrap_or(i64::MAX);
        if *held < 0 || *used < 0 || used.saturating_add(*held) > limit {
            findings.wrong(format!("{code}: {used} uses and {held} held don't fit into {limit}"));
        }
    }
}

fn units(plan: &Plan) -> Vec<(ProductId, i64)> {
    plan.lines.iter().map(|line| (line.product_id.clone(), line.quantity)).collect()
}

fn codes(plan: &Plan) -> Vec<(String, i64)> {
    plan.discounts.iter().map(|discount| (discount.code.clone(), 1)).collect()
}

/// What checkouts that are pending or committing, on paper, need.
fn needed<K: Ord>(evidence: &Evidence, of: impl Fn(&Plan) -> Vec<(K, i64)>) -> Held<K> {
    let live = evidence
        .confirmations_for(Purpose::Checkout)
        .filter(|entry| matches!(entry.status, Status::Pending | Status::Committing));
    sums(live.flat_map(|entry| {
        let id = &entry.confirmation_id;
        let needs = evidence.plan(id).map(&of).unwrap_or_default();
        needs.into_iter().map(|(key, n)| ((id.clone(), key), n))
    }))
}

/// What is held is what is needed, and is counted.
fn holds_add_up<K: Ord + Clone + Display>(
    needed: &Held<K>,
    held: &Held<K>,
    counted: &BTreeMap<K, i64>,
    findings: &mut Findings,
) {
    for ((id, key), needed, held) in differences(needed, held) {
        findings.wrong(format!("{id} should hold {needed} of {key}, but holds {held}"));
    }
    for (key, counted, held) in differences(counted, &sums(held.iter().map(|((_, key), n)| (key.clone(), *n)))) {
        findings.wrong(format!("{key}: {counted} are counted as held, but the holds are {held}"));
    }
}

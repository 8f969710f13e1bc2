//! Units and discount uses: what was set, sold, used and held.

use super::Findings;
use crate::domain::ids::ProductId;
use crate::domain::plan::Plan;
use crate::domain::sums::sums;
use crate::store::books::{Books, Held, Shelf, Uses};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What was set, less what was sold, is the stock; what is held is what live plans need.
pub(super) fn stock(ours: &Books, findings: &mut Findings) {
    let lines = |plan: &Plan| -> Vec<(ProductId, i64)> {
        plan.lines.iter().map(|line| (line.product_id.clone(), line.quantity)).collect()
    };
    let sold = sums(ours.orders.iter().flat_map(|order| lines(&order.plan)));
    let held = holds(ours, &ours.stock_held, lines, findings);
    let known: HashSet<&ProductId> = ours.products.iter().map(|shelf| &shelf.product_id).collect();
    for id in sold.keys().chain(held.keys()).filter(|id| !known.contains(id)) {
        findings.wrong(format!("{id} was sold or is held, but there is no such product"));
    }
    for Shelf { product_id: id, stock, held: counted } in &ours.products {
        let of = |sums: &BTreeMap<ProductId, i64>| sums.get(id).copied().unwrap_or(0);
        let (set, sold, held) = (of(&ours.stock_set), of(&sold), of(&held));
        if set - sold != *stock {
            findings.wrong(format!("{id}: {set} units were set and {sold} sold, but {stock} are in stock"));
        }
        if held != *counted {
            findings.wrong(format!("{id}: {counted} units are counted as held, but the holds are {held}"));
        }
    }
}

pub(super) fn discounts(ours: &Books, findings: &mut Findings) {
    let codes = |plan: &Plan| -> Vec<(String, i64)> {
        plan.discounts.iter().map(|discount| (discount.code.clone(), 1)).collect()
    };
    let used = sums(ours.orders.iter().flat_map(|order| codes(&order.plan)));
    let held = holds(ours, &ours.discounts_held, codes, findings);
    for Uses { code, held: counted_held, used: counted } in &ours.discounts {
        let of = |sums: &BTreeMap<String, i64>| sums.get(code).copied().unwrap_or(0);
        let (used, held) = (of(&used), of(&held));
        if used != *counted {
            findings.wrong(format!("{code}: {counted} uses are counted, but {used} orders have it"));
        }
        if held != *counted_held {
            findings.wrong(format!("{code}: {counted_held} uses are counted as held, but the holds are {held}"));
        }
    }
}

/// Compares what confirmations hold with what their plans need, and returns the sum of the holds.
fn holds<K: Ord + Clone + std::fmt::Display>(
    ours: &Books,
    held: &Held<K>,
    needed: impl Fn(&Plan) -> Vec<(K, i64)>,
    findings: &mut Findings,
) -> BTreeMap<K, i64> {
    let live = ours.live_plans.iter();
    let needed = sums(live.flat_map(|(id, plan)| needed(plan).into_iter().map(|(key, n)| ((id.clone(), key), n))));
    for hold in needed.keys().chain(held.keys()).collect::<BTreeSet<_>>() {
        let of = |sums: &Held<K>| sums.get(hold).copied().unwrap_or(0);
        let ((id, key), needed, held) = (hold, of(&needed), of(held));
        if needed != held {
            findings.wrong(format!("{id} should hold {needed} of {key}, but holds {held}"));
        }
    }
    sums(held.iter().map(|((_, key), n)| (key.clone(), *n)))
}

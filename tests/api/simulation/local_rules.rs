//! The rules of calls whose claim, effect and answer are one step, and of the plan that they share with the dry run.

use super::calls::{Ask, Call, Cart, Tag, Update, Who};
use super::rules::{Next, at, claim, done, in_flight, known};
use super::shop::*;

/// Claim, effect and answer at once.
pub(super) fn local(shop: &Shop, call: &Call, now: Time) -> Vec<Next> {
    match known(shop, call, now) {
        Err(refusal) => return done(shop, refusal),
        Ok(Some(claim)) => return done(shop, claim.answer.map_or_else(in_flight, |answer| answer.replayed())),
        Ok(None) => {}
    }
    let mut after = shop.clone();
    let effect = match &call.ask {
        Ask::Propose(cart) => propose(&mut after, call, cart, now),
        Ask::Cancel(tag) => cancel(&mut after, call.who, *tag, now),
        Ask::Update { atomic, updates } => update(&mut after, *atomic, updates, now),
        Ask::Address { order, house, moves } => return address(shop, call, *order, *house, *moves, now),
        other => unreachable!("{other:?} is not local"),
    };
    match effect {
        Ok(answer) => {
            claim(&mut after, call, Some(answer.clone()), now);
            done(&after, answer)
        }
        // A refusal that isn't the key's answer leaves no trace.
        Err(refusal) => done(shop, refusal),
    }
}

/// The total, or why there is none.
pub(super) fn plan(shop: &Shop, cart: &Cart, now: Time) -> Result<i64, Expect> {
    if cart.lines.iter().any(|(product, quantity)| *quantity > shop.available(*product, now)) {
        return Err(Expect::problem(409, "insufficient_stock"));
    }
    if cart.discount && shop.uses(now) >= shop.use_limit {
        return Err(Expect::problem(409, "discount_unavailable"));
    }
    let subtotal: i64 = cart.lines.iter().map(|(product, quantity)| shop.products[*product].price * quantity).sum();
    let off = if cart.discount { DISCOUNT.min(subtotal) } else { 0 };
    let total = subtotal - off + if cart.pickup { 0 } else { SHIPPING };
    match cart.expected_total {
        Some(expected) if expected != total => Err(Expect::problem(409, "plan_changed")),
        _ => Ok(total),
    }
}

pub(super) fn warnings(shop: &Shop, who: Who, cart: &Cart, now: Time) -> String {
    usize::from(shop.ordered_lately(who, cart, now)).to_string()
}

pub(super) fn dry_run(shop: &Shop, who: Who, cart: &Cart, total: i64, now: Time) -> Expect {
    Expect::ok(200, vec![("/plan/total/amount", usd(total)), ("/warnings", warnings(shop, who, cart, now))])
}

/// Ok: the key's answer. Err: not stored.
pub(super) fn propose(shop: &mut Shop, call: &Call, cart: &Cart, now: Time) -> Result<Expect, Expect> {
    let who = call.who;
    let what = |total| What::Checkout { cart: cart.clone(), total };
    if shop.is_attempting(who, &what(0)) {
        return Err(Expect::problem(409, "attempt_pending"));
    }
    if shop.pending(who, now) >= MAX_PENDING {
        return Err(Expect::problem(409, "too_many_pending"));
    }
    let total = match plan(shop, cart, now) {
        Ok(total) => total,
        Err(refusal) => return Ok(refusal),
    };
    let warnings = warnings(shop, who, cart, now);
    let offer =
        Offer { what: what(total), status: Status::Pending, expires_at: now + TTL, asked_at: now, decision: None };
    shop.offers.insert(call.tag().expect("proposals have keys"), offer);
    let facts = vec![
        ("/status", "pending".into()),
        ("/total/amount", usd(total)),
        ("/expires_at", at(now + TTL)),
        ("/warnings", warnings),
    ];
    Ok(Expect::ok(201, facts))
}

pub(super) fn cancel(shop: &mut Shop, who: Who, tag: Tag, now: Time) -> Result<Expect, Expect> {
    let offer = shop.offers.get_mut(&tag).filter(|_| tag.0 == who);
    let Some(offer) = offer else { return Err(Expect::problem(404, "not_found")) };
    match offer.status {
        Status::Pending if now < offer.expires_at => {
            offer.status = Status::Cancelled;
            Ok(Expect::ok(204, Vec::new()))
        }
        Status::Pending | Status::Cancelled => Err(Expect::problem(404, "nothing_to_cancel")),
        Status::Committing if now >= offer.asked_at + PROVIDER_KEEPS => {
            Err(Expect::problem(409, "payment_needs_review"))
        }
        Status::Committing => Err(Expect::problem(409, "operation_in_flight")),
        Status::Confirmed | Status::Declined => Err(Expect::problem(409, "confirmation_decided")),
    }
}

pub(super) fn update(shop: &mut Shop, atomic: bool, updates: &[Update], now: Time) -> Result<Expect, Expect> {
    let before = shop.clone();
    let mut words = Vec::new();
    for Update { product, stock, price, if_version } in updates {
        let (held, found) = (before.held(*product, now), &mut shop.products[*product]);
        let after = Product {
            stock: stock.unwrap_or(found.stock),
            price: price.unwrap_or(found.price),
            version: found.version + 1,
        };
        words.push(match if_version {
            Some(version) if *version != found.version => "refused",
            _ if after.stock < held => "refused",
            _ if (after.stock, after.price) == (found.stock, found.price) => "unchanged",
            _ => {
                *found = after;
                "updated"
            }
        });
    }
    let stopped = atomic && words.contains(&"refused");
    if stopped {
        *shop = before;
        words.iter_mut().filter(|word| **word != "refused").for_each(|word| *word = "not_written");
    }
    let pointers = ["/results/0/status", "/results/1/status"];
    let facts = pointers.into_iter().zip(words.into_iter().map(str::to_owned)).collect();
    Ok(match stopped {
        true => Expect { facts, ..Expect::problem(409, "batch_stopped") },
        false => Expect::ok(200, facts),
    })
}

/// The delivery window starts days after the order; between the two either answer is right.
pub(super) fn address(shop: &Shop, call: &Call, order: Tag, house: u8, moves: bool, now: Time) -> Vec<Next> {
    // The window is the plan's, also where the order was made late.
    let planned_at = shop.offers[&order].expires_at - TTL;
    let pickup = matches!(&shop.offers[&order].what, What::Checkout { cart, .. } if cart.pickup);
    let started = Expect::problem(409, "delivery_started");
    if pickup {
        return done(shop, started);
    }
    if now > planned_at + 7 * DAY {
        return done(shop, started); // three business days, a weekend and a day to spare
    }
    let mut after = shop.clone();
    let answer = match moves {
        true => Expect::problem(409, "address_changes_price"),
        false => {
            after.orders.get_mut(&order).unwrap().house = house;
            let answer = Expect::ok(200, vec![("/shipping_address/line2", format!("House {house}"))]);
            claim(&mut after, call, Some(answer.clone()), now);
            answer
        }
    };
    let mut ways = done(&after, answer);
    if now > planned_at + 2 * DAY {
        ways.extend(done(shop, started));
    }
    ways
}

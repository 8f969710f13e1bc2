//! What is shown of the shop.

use super::calls::{Ask, Key, Who};
use super::rules::{Next, done, refused};
use super::shop::*;

pub(super) fn status(shop: &Shop, who: Who, key: Key, now: Time) -> Vec<Next> {
    let Some(claim) = shop.claim(who, key, now) else { return refused(shop, 404, "not_found") };
    let answer = match &claim.ask {
        Ask::Confirm(tag, _) | Ask::ConfirmRefund(tag, _) => shop.offers[tag].decision.clone(),
        _ if is_money(&claim.ask) && claim.answer.is_some() && now >= claim.forgotten_at => {
            return refused(shop, 410, "idempotency_key_expired");
        }
        _ => claim.answer.clone(),
    };
    let is = |state: &str, http: String| {
        done(shop, Expect::ok(200, vec![("/status", state.to_owned()), ("/http_status", http)]))
    };
    match answer {
        Some(answer) => is("completed", answer.status.to_string()),
        // Which of the two is the lease's word.
        None => [is("in_flight", String::new()), is("unknown", String::new())].concat(),
    }
}

pub(super) fn read_one(shop: &Shop, who: Who, ask: &Ask, now: Time) -> Expect {
    let missing = || Expect::problem(404, "not_found");
    match ask {
        Ask::GetConfirmation(tag) => match shop.offers.get(tag).filter(|_| tag.0 == who) {
            None => missing(),
            Some(offer) => Expect::ok(200, vec![("/status", word(offer, now).into())]),
        },
        Ask::GetOrder(tag) if shop.sees(who, *tag) => {
            let Order { total, refunded, house, .. } = shop.orders[tag];
            let status = match refunded {
                0 => "confirmed",
                all if all == total => "refunded",
                _ => "partially_refunded",
            };
            let left = usd(shop.remaining(*tag, now));
            let facts = vec![
                ("/status", status.into()),
                ("/total/amount", usd(total)),
                ("/refunded/amount", usd(refunded)),
                ("/shipping_address/line2", format!("House {house}")),
                ("/remaining_refundable/amount", left),
            ];
            Expect::ok(200, facts)
        }
        Ask::GetRefund(tag) => match shop.refunds.get(tag) {
            None => missing(),
            Some(refund) => {
                let status = match refund.status {
                    RefundStatus::Pending => "pending",
                    RefundStatus::Succeeded(_) => "succeeded",
                    RefundStatus::Declined => "declined",
                };
                Expect::ok(200, vec![("/status", status.into()), ("/amount/amount", usd(refund.cents))])
            }
        },
        Ask::GetProduct(index) => {
            let Product { price, version, .. } = shop.products[*index];
            let facts = vec![
                ("/available", shop.available(*index, now).to_string()),
                ("/price/amount", usd(price)),
                ("/version", version.to_string()),
            ];
            Expect::ok(200, facts)
        }
        Ask::BatchGet => {
            let of = |index| shop.available(index, now).to_string();
            Expect::ok(200, vec![("/products/0/available", of(0)), ("/products/1/available", of(1))])
        }
        Ask::Search => Expect::ok(200, vec![("/products", "2".into())]),
        Ask::BatchSearch => Expect::ok(200, vec![("/results/0/products", "2".into())]),
        Ask::ListOrders | Ask::ListConfirmations => Expect::ok(200, Vec::new()),
        _ => missing(),
    }
}

pub(super) fn word(offer: &Offer, now: Time) -> &'static str {
    match offer.status {
        Status::Pending if now >= offer.expires_at => "expired",
        Status::Pending => "pending",
        Status::Committing => "committing",
        Status::Confirmed => "confirmed",
        Status::Declined => "declined",
        Status::Cancelled => "cancelled",
    }
}

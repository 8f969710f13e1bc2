//! Stored answers: only decisions are kept, and each says of its resource what is so. A swept answer says nothing.

use super::evidence::{Evidence, named};
use super::findings::Findings;
use crate::domain::confirmation::{Offer, Purpose, Status};
use crate::domain::digest::Digest;
use crate::domain::error::{Code, Stored};
use crate::domain::ids::{ConfirmationId, OrderId, ProductId, RefundId};
use crate::domain::money::Money;
use crate::domain::operation::Operation;
use crate::domain::refund::RefundRequest;
use crate::domain::time::Timestamp;
use crate::store::claims::Claim;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt::Display;

/// The operations whose answers stand on the claim, and what they answer when they succeed.
const SUCCESSES: [(Operation, &[i64]); 5] = [
    (Operation::ProposeCheckout, &[201]),
    (Operation::IssueRefund, &[201, 202]),
    (Operation::CancelConfirmation, &[204]),
    (Operation::BatchUpdateProducts, &[200]),
    (Operation::SetShippingAddress, &[200]),
];

/// A refusal, as far as it names something.
#[derive(Deserialize)]
pub struct Refused {
    pub code: Code,
    pub status: i64,
    pub confirmation_id: Option<ConfirmationId>,
    pub order_id: Option<OrderId>,
    pub refund_id: Option<RefundId>,
}

/// An answer in the shape that it has to have.
pub fn read<'a, T: Deserialize<'a>>(whose: impl Display, body: &'a str, findings: &mut Findings) -> Option<T> {
    let read = serde_json::from_str(body);
    read.map_err(|error| findings.wrong(format!("{whose} has an answer that can't be read: {error}"))).ok()
}

/// The answers of one status that are kept for an operation's keys.
pub fn kept<'a>(
    evidence: &Evidence<'a>,
    operation: Operation,
    status: i64,
) -> impl Iterator<Item = (&'a Claim, &'a str)> {
    let of_status = evidence.claims_of(operation).filter(move |claim| claim.answer_status == Some(status));
    of_status.filter_map(|claim| Some((claim, claim.answer_body.as_deref()?)))
}

pub fn only_decisions_are_stored(evidence: &Evidence, findings: &mut Findings) {
    for claim in &evidence.ours.claims {
        let (status, body) = match (claim.answer_status, &claim.answer_body) {
            (Some(status), Some(body)) => (status, body),
            (None, Some(_)) => {
                findings.wrong(format!("{} has an answer without a status", named(claim)));
                continue;
            }
            (_, None) => continue,
        };
        match SUCCESSES.iter().find(|(operation, _)| *operation == claim.operation) {
            None => findings.wrong(format!("{} keeps an answer, which has no place there", named(claim))),
            Some((_, successes)) if successes.contains(&status) => {}
            Some(_) => refusal_may_be_stored(claim, status, body, findings),
        }
    }
}

fn refusal_may_be_stored(claim: &Claim, status: i64, body: &str, findings: &mut Findings) {
    let Some(refused) = read::<Refused>(named(claim), body, findings) else { return };
    let (code, row) = (refused.code, refused.code.row());
    let statuses_agree = status == i64::from(row.status) && status == refused.status;
    if row.stored == Stored::No || !statuses_agree || !claim.operation.problems().contains(&code) {
        findings.wrong(format!("{} keeps {status} {}, which is never stored", named(claim), code.as_str()));
    }
}

/// Its plan is compared as text: it was written together with the offer.
#[derive(Deserialize)]
struct Proposed<'a> {
    confirmation_id: ConfirmationId,
    operation: Purpose,
    status: Status,
    plan_digest: Digest,
    expires_at: Timestamp,
    #[serde(borrow)]
    plan: Option<&'a RawValue>,
    total: Option<Money>,
    refund: Option<RefundRequest>,
    amount: Option<Money>,
}

impl Proposed<'_> {
    fn offers(&self, offer: &Offer, written: &str) -> bool {
        match offer {
            Offer::Checkout(plan) => (self.plan.map(RawValue::get), self.total) == (Some(written), Some(plan.total)),
            Offer::Refund(offer) => {
                (self.refund.as_ref(), self.amount) == (Some(&offer.refund), Some(offer.refund.amount))
            }
        }
    }
}

pub fn proposals_answer_with_their_confirmation(evidence: &Evidence, findings: &mut Findings) {
    let checkouts = kept(evidence, Operation::ProposeCheckout, 201);
    for (claim, body) in checkouts.chain(kept(evidence, Operation::IssueRefund, 202)) {
        let Some(said) = read::<Proposed>(named(claim), body, findings) else { continue };
        let id = &said.confirmation_id;
        let Some(made) = evidence.confirmations.get(id) else {
            findings.wrong(format!("{} answers with {id}, which isn't there", named(claim)));
            continue;
        };
        let same = [
            ("actor", claim.actor_id == made.actor_id),
            ("operation", said.operation == made.purpose),
            ("status", said.status == Status::Pending),
            ("offer", evidence.offer(id).is_none_or(|offer| said.offers(offer, &made.offer))),
            ("plan_digest", said.plan_digest == made.plan_digest),
            ("expires_at", said.expires_at == made.expires_at),
            ("resource", claim.resource == Some(id.path())),
            ("location", claim.answer_location == Some(id.path())),
        ];
        findings.compare(named(claim), id, &same);
    }
}

pub fn cancels_answer_with_their_confirmation(evidence: &Evidence, findings: &mut Findings) {
    for (claim, _) in kept(evidence, Operation::CancelConfirmation, 204) {
        let id = claim.resource.as_deref().and_then(ConfirmationId::at);
        let cancelled = id.as_ref().and_then(|id| evidence.confirmations.get(id));
        if cancelled.is_none_or(|entry| entry.status != Status::Cancelled) {
            findings.wrong(format!("{} says that it cancelled what isn't cancelled", named(claim)));
        }
    }
}

#[derive(Deserialize)]
struct BatchUpdated {
    results: Vec<Updated>,
}

#[derive(Deserialize)]
struct Updated {
    product_id: ProductId,
    /// None where the item was refused.
    version: Option<i64>,
}

pub fn batch_updates_answer_with_their_products(evidence: &Evidence, findings: &mut Findings) {
    let products = evidence.ours.products.iter().map(|shelf| (&shelf.product_id, shelf.version));
    let versions: HashMap<_, i64> = products.collect();
    for (claim, body) in kept(evidence, Operation::BatchUpdateProducts, 200) {
        let Some(said) = read::<BatchUpdated>(named(claim), body, findings) else { continue };
        for Updated { product_id: id, version } in said.results {
            let Some(version) = version else { continue };
            match versions.get(&id) {
                None => findings.wrong(format!("{} wrote {id}, which isn't there", named(claim))),
                Some(now) if *now < version => {
                    findings.wrong(format!("{} wrote version {version} of {id}, which has {now}", named(claim)));
                }
                Some(_) => {}
            }
        }
    }
}

#[derive(Deserialize)]
struct Addressed {
    order_id: OrderId,
}

pub fn addresses_answer_with_their_order(evidence: &Evidence, findings: &mut Findings) {
    for (claim, body) in kept(evidence, Operation::SetShippingAddress, 200) {
        let Some(Addressed { order_id: id }) = read(named(claim), body, findings) else { continue };
        if !evidence.orders.contains_key(&id) {
            findings.wrong(format!("{} set the address of {id}, which isn't there", named(claim)));
        }
        if claim.resource != Some(id.path()) {
            findings.wrong(format!("{} set the address of {id}, and is about something else", named(claim)));
        }
    }
}

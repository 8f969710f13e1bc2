//! The stored answers of operations that moved money, or didn't: what they say of orders, payments and refunds is so.

use super::answers::{Refused, kept, read};
use super::evidence::{Evidence, named};
use super::findings::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::error::Code;
use crate::domain::ids::{ConfirmationId, OrderId, RefundId};
use crate::domain::money::Money;
use crate::domain::operation::Operation;
use crate::domain::order::OrderStatus;
use crate::domain::payment::Payment;
use crate::domain::plan::Plan;
use crate::domain::refund::{RefundReason, RefundStatus};
use crate::store::books::ConfirmationEntry;
use crate::store::refunds::RefundRow;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a refund of one step answers that succeeded.
const MADE: i64 = 201;
/// What a confirm answers that succeeded.
const CONFIRMED: i64 = 200;
/// What the provider's no is answered with.
const DECLINED: i64 = 402;

pub fn decided_confirmations_are_answered(evidence: &Evidence, findings: &mut Findings) {
    for entry in &evidence.ours.confirmations {
        let expected = match entry.status {
            Status::Confirmed => Some(CONFIRMED),
            Status::Declined => Some(DECLINED),
            Status::Pending | Status::Committing | Status::Cancelled | Status::Expired => None,
        };
        if entry.answer_status != expected || entry.answer_body.is_some() != expected.is_some() {
            let (id, status) = (&entry.confirmation_id, entry.status.as_str());
            let answer = entry.answer_status.map_or("none".to_owned(), |status| status.to_string());
            findings.wrong(format!("{id} is {status}, its answer is not: {answer}"));
        }
    }
}

#[derive(Deserialize)]
struct Confirmed<'a> {
    order_id: OrderId,
    confirmation_id: ConfirmationId,
    status: OrderStatus,
    total: Money,
    payment: Option<Payment>,
    #[serde(borrow)]
    plan: &'a RawValue,
}

pub fn confirms_answer_with_their_order(evidence: &Evidence, findings: &mut Findings) {
    for (entry, body) in decided(evidence, Purpose::Checkout, CONFIRMED) {
        let id = &entry.confirmation_id;
        let Some(said) = read::<Confirmed>(id, body, findings) else { continue };
        let Some(order) = evidence.orders.get(&said.order_id) else {
            findings.wrong(format!("{id} answers with {}, which isn't there", said.order_id));
            continue;
        };
        let paid = said.payment.as_ref();
        let same = [
            ("order_id", entry.order_id.as_ref() == Some(&said.order_id)),
            ("confirmation_id", (&said.confirmation_id, &order.confirmation_id) == (id, id)),
            ("status", said.status == OrderStatus::Confirmed),
            ("total", (said.total.minor(), said.total.currency()) == (order.total_minor, order.currency)),
            ("payment", paid.map(|payment| &payment.payment_id) == order.payment_id.as_ref()),
            ("payment.amount", paid.is_none_or(|payment| payment.amount == said.total)),
            ("plan", said.plan.get() == entry.offer || is_plan(said.plan.get(), &order.plan)),
        ];
        findings.compare(id, &order.order_id, &same);
    }
}

/// Read only where the text is another than the offer's: a later version may write the same plan otherwise.
fn is_plan(text: &str, plan: &Plan) -> bool {
    serde_json::from_str(text).is_ok_and(|said: Plan| said == *plan)
}

pub fn declines_answer_with_their_confirmation(evidence: &Evidence, findings: &mut Findings) {
    for (entry, body) in decided(evidence, Purpose::Checkout, DECLINED) {
        let id = &entry.confirmation_id;
        let Some(refused) = read::<Refused>(id, body, findings) else { continue };
        let same = [
            ("code", refused.code == Code::PaymentDeclined && refused.status == DECLINED),
            ("confirmation_id", refused.confirmation_id.as_ref() == Some(id)),
        ];
        findings.compare(id, "its decline", &same);
    }
}

/// The answers of one status that confirmations keep.
fn decided<'a>(
    evidence: &Evidence<'a>,
    purpose: Purpose,
    status: i64,
) -> impl Iterator<Item = (&'a ConfirmationEntry, &'a str)> {
    let of_status = evidence.confirmations_for(purpose).filter(move |entry| entry.answer_status == Some(status));
    of_status.filter_map(|entry| Some((entry, entry.answer_body.as_deref()?)))
}

#[derive(Deserialize)]
struct Refunded {
    refund_id: RefundId,
    order_id: OrderId,
    confirmation_id: Option<ConfirmationId>,
    amount: Money,
    reason: RefundReason,
    note: Option<String>,
    status: RefundStatus,
}

pub fn refunds_answer_with_their_refund(evidence: &Evidence, findings: &mut Findings) {
    for (status, ended) in [(MADE, succeeded as Ended), (DECLINED, declined as Ended)] {
        for (claim, body) in kept(evidence, Operation::IssueRefund, status) {
            let Some(refund) = ended(&named(claim), body, evidence, findings) else { continue };
            let path = refund.refund_id.path();
            let location = (status == MADE).then_some(path.as_str());
            let same = [
                ("actor", refund.actor_id == claim.actor_id),
                ("key", refund.idempotency_key.as_ref() == Some(&claim.idempotency_key)),
                ("resource", claim.resource.as_ref() == Some(&path)),
                ("location", claim.answer_location.as_deref() == location),
            ];
            findings.compare(named(claim), &refund.refund_id, &same);
        }
    }
}

pub fn refund_confirms_answer_with_their_refund(evidence: &Evidence, findings: &mut Findings) {
    for (status, ended) in [(CONFIRMED, succeeded as Ended), (DECLINED, declined as Ended)] {
        for (entry, body) in decided(evidence, Purpose::Refund, status) {
            let id = &entry.confirmation_id;
            let Some(refund) = ended(id.as_str(), body, evidence, findings) else { continue };
            let same = [
                ("refund_id", entry.refund_id.as_ref() == Some(&refund.refund_id)),
                ("confirmation_id", refund.confirmation_id.as_ref() == Some(id)),
            ];
            findings.compare(id, &refund.refund_id, &same);
        }
    }
}

/// Reads an answer, holds it against the refund that it names, and returns that.
type Ended = for<'a> fn(&str, &str, &Evidence<'a>, &mut Findings) -> Option<&'a RefundRow>;

fn succeeded<'a>(whose: &str, body: &str, evidence: &Evidence<'a>, findings: &mut Findings) -> Option<&'a RefundRow> {
    let said = read::<Refunded>(whose, body, findings)?;
    let refund = find(whose, &said.refund_id, evidence, findings)?;
    let same = [
        ("order_id", said.order_id == refund.order_id),
        ("confirmation_id", said.confirmation_id == refund.confirmation_id),
        ("amount", (said.amount.minor(), said.amount.currency()) == (refund.amount_minor, refund.currency)),
        ("reason", (said.reason, &said.note) == (refund.reason, &refund.note)),
        ("status", [said.status, refund.status] == [RefundStatus::Succeeded; 2]),
    ];
    findings.compare(whose, &refund.refund_id, &same);
    Some(refund)
}

fn declined<'a>(whose: &str, body: &str, evidence: &Evidence<'a>, findings: &mut Findings) -> Option<&'a RefundRow> {
    let refused = read::<Refused>(whose, body, findings)?;
    let Some(id) = &refused.refund_id else {
        findings.wrong(format!("the answer of {whose} names no refund"));
        return None;
    };
    let refund = find(whose, id, evidence, findings)?;
    let same = [
        ("code", refused.code == Code::RefundDeclined && refused.status == DECLINED),
        ("order_id", refused.order_id.as_ref() == Some(&refund.order_id)),
        ("status", refund.status == RefundStatus::Declined),
    ];
    findings.compare(whose, &refund.refund_id, &same);
    Some(refund)
}

fn find<'a>(whose: &str, id: &RefundId, evidence: &Evidence<'a>, findings: &mut Findings) -> Option<&'a RefundRow> {
    let found = evidence.refunds.get(id).copied();
    if found.is_none() {
        findings.wrong(format!("the answer of {whose} names {id}, which isn't there"));
    }
    found
}

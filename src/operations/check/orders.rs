//! Orders: one each, of what was confirmed, for what was charged.

use super::evidence::{Evidence, repeated};
use super::findings::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::payment::PaymentStatus;
use std::collections::HashSet;

pub fn offers_can_be_read(evidence: &Evidence, findings: &mut Findings) {
    for entry in &evidence.ours.confirmations {
        if evidence.offer(&entry.confirmation_id).is_none() {
            findings.wrong(format!("{} offers something that is no {}", entry.confirmation_id, entry.purpose.as_str()));
        }
    }
}

pub fn one_order_per_confirmation(evidence: &Evidence, findings: &mut Findings) {
    let orders = evidence.ours.orders.iter().map(|order| (&order.confirmation_id, &order.order_id));
    for (id, orders) in repeated(orders) {
        findings.wrong(format!("{id} became more than one order: {orders}"));
    }
}

pub fn confirmed_checkouts_are_orders(evidence: &Evidence, findings: &mut Findings) {
    for order in &evidence.ours.orders {
        let (order_id, id) = (&order.order_id, &order.confirmation_id);
        match evidence.confirmations.get(id) {
            None => findings.wrong(format!("{order_id} was made of {id}, which isn't there")),
            Some(entry) if entry.status != Status::Confirmed => {
                findings.wrong(format!("{order_id} was made of {id}, which is {}", entry.status.as_str()));
            }
            Some(entry) if (entry.order_id.as_ref(), &entry.account_id) != (Some(order_id), &order.account_id) => {
                findings.wrong(format!("{order_id} is not what {id} became"));
            }
            Some(_) => {}
        }
    }
    let ordered: HashSet<_> = evidence.ours.orders.iter().map(|order| &order.confirmation_id).collect();
    for entry in &evidence.ours.confirmations {
        let (id, status) = (&entry.confirmation_id, entry.status.as_str());
        let became = entry.purpose == Purpose::Checkout && entry.status == Status::Confirmed;
        if became && !ordered.contains(id) {
            findings.wrong(format!("{id} is confirmed without an order"));
        }
        if !became && let Some(order) = &entry.order_id {
            findings.wrong(format!("{id} is {status} and names {order}"));
        }
    }
}

pub fn orders_are_as_confirmed(evidence: &Evidence, findings: &mut Findings) {
    for order in &evidence.ours.orders {
        let (order_id, id) = (&order.order_id, &order.confirmation_id);
        if order.total_minor != order.plan.total.minor() || order.currency != order.plan.currency {
            findings.wrong(format!("{order_id} has another total than its plan"));
        }
        if evidence.plan(id).is_some_and(|plan| *plan != order.plan) {
            findings.wrong(format!("{order_id} has another plan than {id}"));
        }
    }
}

pub fn charged_is_order_total(evidence: &Evidence, findings: &mut Findings) {
    for order in &evidence.ours.orders {
        let id = &order.order_id;
        let Some(payment_id) = &order.payment_id else {
            if order.total_minor != 0 {
                findings.wrong(format!("{id} is not paid"));
            }
            continue;
        };
        let Some(payment) = evidence.payments.get(payment_id) else {
            findings.wrong(format!("{id} has a payment that isn't there"));
            continue;
        };
        let same = (payment.amount_minor, payment.currency) == (order.total_minor, order.currency);
        let its_own = payment.confirmation_id.as_ref() == Some(&order.confirmation_id);
        if payment.status != PaymentStatus::Succeeded || !its_own || !same {
            findings.wrong(format!("{id} is not what {payment_id} paid for"));
        }
    }
}

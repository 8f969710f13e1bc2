//! What every answer shows, whatever it was asked for: amounts, advice to wait, and confirmations that are left open.

use super::answer::Answer;
use crate::domain::money::{Currency, Money};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Members that are amounts of money, or hold one.
const MONEY: &[&str] = &[
    "amount",
    "discount",
    "price",
    "refunded",
    "remaining_refundable",
    "shipping",
    "shipping_tax",
    "subtotal",
    "tax",
    "total",
    "unit_price",
];

#[derive(Debug, Default)]
pub struct Watch {
    /// Amounts that were well written.
    pub amounts: usize,
    /// Where one wasn't.
    pub bad_amounts: Vec<String>,
    /// Codes whose recovery is `retry_same_key`, and how often each came with a `Retry-After`.
    pub waits: BTreeMap<String, usize>,
    /// Problems without a `Retry-After` where one is due, or without advice at all.
    pub bad_waits: Vec<String>,
    /// Confirmations that nobody has confirmed yet.
    pub open: BTreeSet<String>,
}

impl Watch {
    pub fn see(&mut self, answer: &Answer) {
        self.see_amounts(&answer.label, "", &answer.json);
        match answer.json["recovery"].as_str() {
            Some("retry_same_key") => self.see_wait(answer),
            None if answer.status >= 400 => self.bad_waits.push(format!("{}: no recovery", answer.says())),
            Some(_) | None => {}
        }
        if let (200..300, Some(id)) = (answer.status, answer.json["confirmation_id"].as_str()) {
            match answer.json["status"].as_str() {
                Some("pending") => drop(self.open.insert(id.to_owned())),
                _ => drop(self.open.remove(id)),
            }
        }
    }

    fn see_amounts(&mut self, label: &str, at: &str, value: &Value) {
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| self.see_amounts(label, &format!("{at}/{i}"), item));
            }
            Value::Object(members) => {
                if let (Some(Value::String(amount)), Some(currency)) = (members.get("amount"), members.get("currency"))
                {
                    match well_written(amount, currency) {
                        true => self.amounts += 1,
                        false => self.bad_amounts.push(format!("{label}: {at}/amount is \"{amount}\" {currency}")),
                    }
                }
                for (name, member) in members {
                    if member.is_number() && MONEY.contains(&name.as_str()) {
                        self.bad_amounts.push(format!("{label}: {at}/{name} is the JSON number {member}"));
                    }
                    self.see_amounts(label, &format!("{at}/{name}"), member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn see_wait(&mut self, answer: &Answer) {
        let seconds = answer.header("Retry-After").and_then(|seconds| seconds.parse::<u64>().ok());
        match seconds {
            Some(1..) => {
                *self.waits.entry(answer.json["code"].as_str().unwrap_or_default().to_owned()).or_default() += 1
            }
            Some(0) | None => self.bad_waits.push(answer.says()),
        }
    }
}

/// With exactly the currency's digits, as it would be written.
fn well_written(amount: &str, currency: &Value) -> bool {
    let currency = currency.as_str().and_then(Currency::parse);
    let money = currency.and_then(|currency| Money::parse(amount, currency).ok());
    money.is_some_and(|money| money.to_string() == amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bad(value: Value) -> usize {
        let mut watch = Watch::default();
        watch.see_amounts("", "", &value);
        watch.bad_amounts.len()
    }

    #[test]
    fn an_amount_is_a_string_with_exactly_its_currencys_digits() {
        let money = |amount: Value, currency: &str| json!([{"total": {"amount": amount, "currency": currency}}]);
        for (amount, currency) in [("47.30", "USD"), ("5800", "JPY"), ("1.000", "KWD"), ("0.00", "EUR")] {
            assert_eq!(bad(money(json!(amount), currency)), 0, "{amount} {currency}");
        }
        for (amount, currency) in
            [("47.3", "USD"), ("5800.00", "JPY"), ("1.00", "KWD"), ("1,000.00", "USD"), ("1.00", "usd")]
        {
            assert_eq!(bad(money(json!(amount), currency)), 1, "{amount} {currency}");
        }
        assert_eq!(bad(money(json!(47.3), "USD")), 1);
        assert_eq!(bad(money(json!(47), "USD")), 1);
        assert_eq!(bad(json!({"total": 47.3, "quantity": 2})), 1);
    }
}

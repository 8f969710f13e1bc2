//! An answer, and what can be expected of it. What isn't as expected is the evidence of a no.

use super::{Stop, ensure};
use crate::domain::money::{Currency, Money};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct Answer {
    /// What was sent, as a reader wants to see it.
    pub label: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Null where the body isn't JSON.
    pub json: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn is_replay(&self) -> bool {
        self.header("Idempotent-Replayed") == Some("true")
    }

    pub fn is_problem(&self, status: u16, code: &str) -> bool {
        self.status == status && self.json["code"] == code
    }

    /// `POST /refunds: 409 refund_exceeds_remaining`
    pub fn says(&self) -> String {
        let code = self.json["code"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
        let replayed = if self.is_replay() { ", replayed" } else { "" };
        format!("{}: {}{code}{replayed}", self.label, self.status)
    }

    /// One of these statuses, and not an old answer.
    pub fn expect_fresh(self, statuses: &[u16]) -> Result<Self, Stop> {
        let expected = statuses.contains(&self.status) && !self.is_replay();
        let detail = self.json["detail"].as_str().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let mut wanted = statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
        if self.is_replay() {
            wanted += ", not replayed";
        }
        ensure(expected, || format!("{}{detail}; expected {wanted}", self.says()))?;
        Ok(self)
    }

    pub fn expect_problem(self, status: u16, code: &str) -> Result<Self, Stop> {
        ensure(self.is_problem(status, code), || format!("{}; expected {status} {code}", self.says()))?;
        Ok(self)
    }

    /// Same status, same bytes, same `Location`, and said to be a replay.
    pub fn expect_replay_of(&self, first: &Answer) -> Result<(), Stop> {
        let says = self.says();
        ensure(self.is_replay(), || format!("{says}, again with its key; expected Idempotent-Replayed: true"))?;
        ensure(self.status == first.status, || format!("{says}, again with its key; at first {}", first.status))?;
        ensure(self.body == first.body, || format!("{says}, but with another body than at first"))?;
        let (now, then) = (self.header("Location"), first.header("Location"));
        ensure(now == then, || format!("{says}, but with Location {now:?}; at first {then:?}"))
    }

    pub fn text(&self, pointer: &str) -> Result<&str, Stop> {
        let text = self.json.pointer(pointer).and_then(Value::as_str);
        text.ok_or_else(|| Stop::Failed(format!("{}, without {pointer}", self.says())))
    }

    pub fn money(&self, pointer: &str) -> Result<Money, Stop> {
        let money = self.json.pointer(pointer).and_then(money_of);
        money.ok_or_else(|| Stop::Failed(format!("{}, without an amount at {pointer}", self.says())))
    }
}

/// An amount, however it is written: how it has to be written is one question, what it comes to another.
pub fn money_of(value: &Value) -> Option<Money> {
    let currency = value["currency"].as_str().and_then(Currency::parse)?;
    let amount = &value["amount"];
    let notation = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    Money::parse(&notation, currency).ok()
}

/// What many answers say: `7 × POST /refunds: 201, replayed`.
pub fn tally(answers: &[Answer]) -> String {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    answers.iter().for_each(|answer| *times.entry(answer.says()).or_default() += 1);
    let counted: Vec<String> = times.iter().map(|(says, times)| format!("{times} × {says}")).collect();
    counted.join(", ")
}

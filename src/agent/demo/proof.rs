//! What the demo proves, from what the server says afterwards and what the agent said meanwhile.

use super::Lives;
use super::plan::Spoken;
use super::server::Server;
use crate::agent::runner::Event;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// For one answer of the server.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Proof {
    pub pattern: &'static str,
    pub evidence: String,
    pub holds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub orders: usize,
    pub charges: usize,
    pub refunds: usize,
    pub confirmations: usize,
}

impl Totals {
    /// What this run made, as the server lists it: its address says whose it is.
    pub async fn read(server: &Server, run: &str) -> Result<Self, String> {
        let whose = format!("For {run}");
        let orders = list(server, "/orders", "orders").await?;
        let orders: Vec<Value> =
            orders.into_iter().filter(|order| order["shipping_address"]["line2"] == whose).collect();
        let confirmations = list(server, "/confirmations", "confirmations").await?;
        let own = |one: &&Value| one["plan"]["shipping_address"]["line2"] == whose;
        Ok(Self {
            orders: orders.len(),
            charges: orders.iter().filter(|order| order["payment"]["status"] == "captured").count(),
            refunds: orders.iter().filter_map(|order| order["refunds"].as_array()).map(Vec::len).sum(),
            confirmations: confirmations.iter().filter(own).count(),
        })
    }
}

/// Every page of a list.
async fn list(server: &Server, path: &str, member: &str) -> Result<Vec<Value>, String> {
    let client = reqwest::Client::builder().timeout(PATIENCE).build().map_err(|e| e.to_string())?;
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let url = format!("{}{path}?limit=100{cursor}", server.url);
        let answer = client.get(&url).bearer_auth(&server.key).send().await.map_err(|e| format!("{url}: {e}"))?;
        let status = answer.status();
        let page: Value = answer.json().await.map_err(|e| format!("{url}: {e}"))?;
        let Some(found) = page[member].as_array() else { return Err(format!("{url}: {status} {page}")) };
        items.extend(found.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(items),
        }
    }
}

pub(super) fn proofs(lives: &Lives, totals: Totals, server: &Server) -> Vec<Proof> {
    let all = || lives.killed.iter().chain(&lives.resumed).chain(&lives.replayed);
    let sent = |tool: &str| {
        all().filter(|said| matches!(said, Spoken::Event(Event::Sending { tool: of, .. }) if of == tool)).count()
    };
    let unheard = all().filter(|said| matches!(said, Spoken::Event(Event::Lost { .. }))).count();
    let mut proofs = vec![
        proof(
            "idempotency key",
            totals.confirmations == 2,
            format!("propose sent {} times: {} confirmations", sent("propose_checkout"), totals.confirmations),
        ),
        proof(
            "propose and confirm",
            totals.orders == 2,
            format!("confirm sent {} times: {} orders", sent("confirm_checkout"), totals.orders),
        ),
        proof(
            "unknown outcome",
            totals.charges == 2,
            format!("{unheard} calls without an answer: {} charges", totals.charges),
        ),
        proof(
            "refund",
            totals.refunds == 1,
            format!("refund sent {} times: {} refund", sent("issue_refund"), totals.refunds),
        ),
        kept_keys(lives),
        same_end(lives),
    ];
    proofs.extend(server.books.as_deref().map(|folder| adds_up(folder, totals)));
    proofs
}

fn proof(pattern: &'static str, holds: bool, evidence: String) -> Proof {
    Proof { pattern, evidence, holds }
}

/// Every step had one key in all of the agent's lives.
fn kept_keys(lives: &Lives) -> Proof {
    let mut keys: BTreeMap<(&str, i64), BTreeSet<&str>> = BTreeMap::new();
    for said in lives.killed.iter().chain(&lives.resumed).chain(&lives.replayed) {
        if let Spoken::Event(Event::Key { step, key, attempt }) = said {
            keys.entry((step, *attempt)).or_default().insert(key);
        }
    }
    let one_each = keys.values().all(|of_step| of_step.len() == 1);
    let made: usize = keys.values().map(BTreeSet::len).sum();
    proof(
        "kill -9 and resume",
        one_each && keys.len() >= 5,
        format!("{} steps in three lives: {made} keys", keys.len()),
    )
}

/// The replayed plan had the same end, and each of its writes got the first answer.
fn same_end(lives: &Lives) -> Proof {
    let finished = |said: &[Spoken]| said.iter().find(|said| matches!(said, Spoken::Finished { .. })).cloned();
    let fresh = lives
        .replayed
        .iter()
        .filter(|said| matches!(said, Spoken::Event(Event::Heard { status: 200..=299, replayed: false, .. })));
    let (fresh, end) = (fresh.count(), finished(&lives.resumed));
    let same = end.is_some() && end == finished(&lives.replayed);
    let words = if same { "the same orders and refund" } else { "another end" };
    proof("replayed plan", same && fresh == 0, format!("{words}, {fresh} calls that did anything new"))
}

/// Our books against the provider's.
fn adds_up(folder: &std::path::Path, totals: Totals) -> Proof {
    let program = std::env::current_exe().unwrap_or_else(|_| "countersign".into());
    let checked = Command::new(program).arg("check").current_dir(folder).output();
    let (holds, said) = match checked {
        Ok(output) => (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => (false, error.to_string()),
    };
    let bookings = totals.charges + totals.refunds;
    let all = said.contains(&format!(" {} orders", totals.orders)) && said.contains(&format!(" {bookings} bookings"));
    proof("the provider's books", holds && all, said)
}

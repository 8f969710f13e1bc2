//! One history: what is said to a real server, what it answers, and whether any shop explains it.

use super::answers::{answered, fits, is_open, is_stored, kind};
use super::calls::{Ask, Call, Kind, Names, Tag, Who};
use super::generate::{AFTERWARDS, Event, Generator};
use super::lane::{Lane, set_up, timestamp};
use super::search::{Lost, Seen, Workers, Worlds};
use super::shop::{Expect, HOUR, KEPT, Product, SECOND, Shop, Time, is_money};
use crate::support::*;
use countersign::operations::check::{Breach, Finding};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Past every lease and `Retry-After`.
const PAST_THE_LEASE: Time = 11 * SECOND;

/// Where two answers have to be the same bytes.
#[derive(PartialEq, Eq, Hash)]
enum Slot {
    Key(Tag),
    Decision(Tag),
}

struct Kept {
    body: Vec<u8>,
    at: Time,
    /// Whether its first answer is among those that were heard.
    executed: bool,
}

pub struct History<'a> {
    lane: &'a mut Lane,
    names: Names,
    generator: Generator,
    worlds: Worlds,
    open: Vec<Call>,
    kept: HashMap<Slot, Kept>,
    workers: Workers,
    pub said: Vec<String>,
    /// How often what happened, and what was answered.
    pub counts: BTreeMap<String, u64>,
}

impl<'a> History<'a> {
    pub async fn begin(lane: &'a mut Lane, seed: u64) -> Self {
        lane.move_clock(lane.now + HOUR);
        if lane.armed {
            lane.restart(); // what happens in a history is the history's own
        }
        let mut generator = Generator::new(seed);
        let products =
            [4, 60].map(|dollars| Product { stock: generator.rng.i64(2..=9), price: dollars * 100, version: 1 });
        let shop = Shop::new(products, generator.rng.i64(1..=2));
        let names = Names::new(seed);
        set_up(lane, &names, &shop).await;
        Self {
            lane,
            names,
            generator,
            worlds: Worlds::new(shop),
            open: Vec::new(),
            kept: HashMap::new(),
            workers: Workers::Rest,
            said: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    pub async fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.generator.rng.usize(10..=24) {
            let event = self.generator.event(self.worlds.any(), &self.names, &self.open, self.lane.now);
            self.happen(event).await?;
        }
        self.settle().await?;
        self.look_around().await?;
        self.lane.move_clock(self.lane.now + AFTERWARDS);
        let wrong = self.wrong();
        match wrong.first() {
            None => Ok(()),
            Some(first) => Err(format!("{first}; {} findings in all", wrong.len())),
        }
    }

    /// What is wrong with the books. All calls were repeated until they were settled: only what is too old to be sent again
    /// may be undecided, and a worker that looked at it may have died.
    fn wrong(&self) -> Vec<String> {
        let found = all_findings(&self.lane.home.database, &self.lane.home.ledger, timestamp(self.lane.now));
        let payment = |what: &str| what.split(' ').next().unwrap_or_default().to_owned();
        let old = found.iter().filter_map(|finding| match finding {
            Finding::Undecided(Breach { invariant: "undecided_payments_can_be_sent_again", what }) => {
                Some(payment(what))
            }
            Finding::Undecided(_) | Finding::Wrong(_) => None,
        });
        let old: Vec<String> = old.collect();
        let is_wrong = |finding: &&Finding| match finding {
            Finding::Wrong(_) => true,
            Finding::Undecided(Breach { what, .. }) => !old.contains(&payment(what)),
        };
        found.iter().filter(is_wrong).map(Finding::to_string).collect()
    }

    async fn happen(&mut self, event: Event) -> Result<(), String> {
        *self.counts.entry(event.word().to_owned()).or_default() += 1;
        match event {
            Event::Calls(calls) => self.calls(calls, Client::Waits).await,
            Event::HangUp(calls, micros) => self.calls(calls, Client::HangsUp(micros)).await,
            Event::Stall { point, calls } => self.stall(point, calls).await,
            Event::Kill(calls, micros) => self.calls(calls, Client::Kills(micros)).await,
            Event::Arm { point, skip } => {
                self.said.push(format!("arm {point} after {skip}"));
                self.lane.process.control().arm(&format!("{point}={skip}*off->1*return(abort)"));
                self.lane.armed = true;
                Ok(())
            }
            Event::Clock(to) => {
                self.said.push(format!("clock +{} ms", to - self.lane.now));
                self.lane.move_clock(to);
                Ok(())
            }
            Event::Restart => {
                self.said.push("restart".to_owned());
                self.restart();
                Ok(())
            }
        }
    }

    /// Its workers look right after the start, at their own pace: what they decide may show at any time from then on.
    fn restart(&mut self) {
        self.lane.restart();
        self.worlds = self.worlds.without_ghosts();
        self.workers = Workers::Recover;
    }

    /// Sends the calls at once, and keeps the shops that explain their answers.
    async fn calls(&mut self, calls: Vec<Call>, client: Client) -> Result<(), String> {
        let answers = self.send(&calls, client).await;
        let killed = matches!(client, Client::Kills(_));
        let silent = answers.iter().any(Option::is_none);
        if silent && self.lane.armed && !matches!(client, Client::HangsUp(_)) {
            eventually("it has ended", async || self.lane.process.has_ended()).await; // its sockets go first
        }
        let died = killed || self.lane.process.has_ended();
        for (call, answer) in calls.iter().zip(&answers) {
            self.said.push(format!("{call:?}{} -> {}", client.word(), answered(answer)));
        }
        if died && !killed && !self.lane.armed {
            return Err("the server ended by itself".to_owned());
        }
        if silent && !died && !matches!(client, Client::HangsUp(_)) {
            return Err("no answer".to_owned());
        }
        let lost = if died { Lost::Died } else { Lost::GoesOn };
        self.hear(calls, answers, &[], lost)?;
        if died {
            self.said.push("restarted".to_owned());
            self.restart();
        }
        Ok(())
    }

    /// Keeps the shops that explain the answers, and what they say for ever. `begun` are times of first steps other than
    /// now.
    fn hear(&mut self, calls: Vec<Call>, answers: Vec<Option<Got>>, begun: &[Time], lost: Lost) -> Result<(), String> {
        for (call, answer) in calls.iter().zip(&answers) {
            *self.counts.entry(format!("{} {}", call.ask.operation().as_str(), kind(answer))).or_default() += 1;
        }
        self.explain(&calls, &answers, begun, lost)?;
        for (call, answer) in calls.iter().zip(&answers) {
            answer.as_ref().map_or(Ok(()), |got| self.lists(call, got))?;
        }
        for (call, answer) in calls.into_iter().zip(answers) {
            if let Some(got) = &answer {
                self.ids(&call, got)?;
                self.bytes(&call, got)?;
            }
            self.remember(call, answer.as_ref());
        }
        Ok(())
    }

    /// One call is held up at a point until others have gone on in its place.
    async fn stall(&mut self, point: &str, calls: Vec<Call>) -> Result<(), String> {
        // Nobody else may be the one who stops.
        let alone = self.workers == Workers::Rest && !self.worlds.have_ghosts();
        if self.lane.armed || !alone {
            return self.calls(calls, Client::Waits).await;
        }
        self.lane.process.control().arm(&format!("{point}=1*return(hold)"));
        let began = self.lane.now;
        let first = tokio::spawn(try_send(self.request(&calls[0])));
        while !first.is_finished() && !self.lane.process.control().is_held() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if first.is_finished() {
            self.lane.process.control().arm("");
            let answer = first.await.unwrap().ok();
            self.said.push(format!("{:?} -> {}", calls[0], answered(&answer)));
            return self.hear(calls[..1].to_vec(), vec![answer], &[], Lost::GoesOn);
        }
        self.lane.move_clock(began + PAST_THE_LEASE);
        let mut answers = self.send(&calls[1..], Client::Waits).await;
        self.lane.process.control().release();
        answers.insert(0, first.await.unwrap().ok());
        for (call, answer) in calls.iter().zip(&answers) {
            self.said.push(format!("{call:?} (the first stops at {point}) -> {}", answered(answer)));
        }
        if answers.iter().any(Option::is_none) {
            return Err("no answer".to_owned());
        }
        self.hear(calls, answers, &[began], Lost::GoesOn)
    }

    async fn send(&self, calls: &[Call], client: Client) -> Vec<Option<Got>> {
        let process = &self.lane.process;
        let all = join_all(calls.iter().map(|call| async {
            let answer = try_send(self.request(call));
            match client {
                Client::HangsUp(micros) => {
                    let answer = tokio::time::timeout(Duration::from_micros(micros), answer).await;
                    answer.ok().and_then(Result::ok)
                }
                Client::Waits if !self.lane.armed => answer.await.inspect_err(|why| println!("{why:?}")).ok(),
                Client::Waits | Client::Kills(_) => answer.await.ok(),
            }
        }));
        let kill = async {
            if let Client::Kills(micros) = client {
                tokio::time::sleep(Duration::from_micros(micros)).await;
                process.kill_9();
            }
        };
        tokio::join!(all, kill).0
    }

    fn request(&self, call: &Call) -> reqwest::RequestBuilder {
        let (method, path, body) = self.names.request(&call.ask);
        let mut request = self.lane.process.caller(call.who.credential()).request(method, &path);
        request = request.header("Agent-Task-Id", self.names.task());
        if let Some(key) = call.key {
            request = request.header("Idempotency-Key", self.names.key(key));
        }
        match body {
            Some(body) => request.json(&body),
            None => request,
        }
    }

    fn explain(&mut self, calls: &[Call], answers: &[Option<Got>], begun: &[Time], lost: Lost) -> Result<(), String> {
        let fits: Vec<_> =
            answers.iter().map(|got| got.as_ref().map(|got| move |expect: &Expect| fits(expect, got))).collect();
        let burst: Vec<Seen> = calls
            .iter()
            .zip(&fits)
            .enumerate()
            .map(|(i, (call, fits))| {
                let fits = fits.as_ref().map(|fits| fits as &dyn Fn(&Expect) -> bool);
                let begun_at = begun.get(i).copied().unwrap_or(self.lane.now);
                Seen { call: Arc::new(call.clone()), begun_at, fits }
            })
            .collect();
        let after = self.worlds.after(&burst, lost, self.workers, self.lane.now);
        if after.are_none() {
            let example = self.worlds.any();
            return Err(format!("no shop explains the last answers; one that explained those before: {example:?}"));
        }
        self.worlds = after;
        Ok(())
    }

    /// An id is one thing's for ever.
    fn ids(&mut self, call: &Call, got: &Got) -> Result<(), String> {
        if got.status >= 300 && got.status != 402 {
            return Ok(());
        }
        let body = if got.body.is_empty() { Value::Null } else { got.json() };
        let id = |name: &str| body[name].as_str().map(str::to_owned);
        let tag = match &call.ask {
            Ask::Propose(_) | Ask::Refund { .. } => call.tag(),
            Ask::Confirm(tag, _) | Ask::ConfirmRefund(tag, _) | Ask::GetConfirmation(tag) | Ask::GetOrder(tag) => {
                Some(*tag)
            }
            _ => None,
        };
        if let Some(tag) = tag {
            let named = [(Kind::Confirmation, "confirmation_id"), (Kind::Refund, "refund_id")];
            for (kind, member) in named {
                id(member).map_or(Ok(()), |id| self.names.learn(kind, tag, &id))?;
            }
            if !matches!(call.ask, Ask::Refund { .. } | Ask::ConfirmRefund(..)) {
                id("order_id").map_or(Ok(()), |id| self.names.learn(Kind::Order, tag, &id))?;
            }
        }
        Ok(())
    }

    /// A stored answer never changes, and is made once; but for keys that may be forgotten meanwhile.
    fn bytes(&mut self, call: &Call, got: &Got) -> Result<(), String> {
        let slot = match (&call.ask, call.tag()) {
            (Ask::Confirm(tag, _) | Ask::ConfirmRefund(tag, _), _) => Slot::Decision(*tag),
            (ask, Some(tag)) if ask.writes() => Slot::Key(tag),
            _ => return Ok(()),
        };
        let new = Kept { body: got.body.clone(), at: self.lane.now, executed: !got.is_replay() };
        let is_decided = got.is_replay() || got.status < 300 || is_stored(got);
        if !is_decided {
            return Ok(());
        }
        let may_be_new = |kept: &Kept| !is_money(&call.ask) && (!kept.executed || self.lane.now >= kept.at + KEPT);
        let Some(kept) = self.kept.get_mut(&slot).filter(|kept| !may_be_new(kept)) else {
            self.kept.insert(slot, new);
            return Ok(());
        };
        if new.executed && kept.executed {
            return Err(format!("{call:?} was executed twice"));
        }
        kept.executed |= new.executed;
        if kept.body == new.body { Ok(()) } else { Err(format!("{call:?} was answered otherwise before")) }
    }

    /// A list has everything of this history that the caller may see and that was there before.
    fn lists(&self, call: &Call, got: &Got) -> Result<(), String> {
        let (kind, list, member) = match call.ask {
            Ask::ListOrders => (Kind::Order, "orders", "order_id"),
            Ask::ListConfirmations => (Kind::Confirmation, "confirmations", "confirmation_id"),
            _ => return Ok(()),
        };
        if got.status != 200 {
            return Ok(());
        }
        let body = got.json();
        let sees = |tag: &Tag| match kind {
            Kind::Order => call.who.sees_all_orders() || call.who.account() == tag.0.account(),
            Kind::Confirmation | Kind::Refund => call.who == tag.0,
        };
        let listed: Vec<&str> =
            body[list].as_array().unwrap().iter().filter_map(|item| item[member].as_str()).collect();
        for tag in self.names.all(kind) {
            let is_listed = listed.contains(&self.names.known(kind, tag).unwrap());
            if is_listed != sees(&tag) {
                return Err(format!(
                    "{tag:?} is listed: {is_listed}, among {} and {}",
                    listed.len(),
                    body["next_cursor"]
                ));
            }
        }
        Ok(())
    }

    /// A write without a final answer has to be asked again.
    fn remember(&mut self, call: Call, got: Option<&Got>) {
        self.open.retain(|other| *other != call);
        if call.ask.writes() && got.is_none_or(is_open) {
            self.open.push(call);
        }
    }

    /// Every call without a final answer is repeated until it has one.
    async fn settle(&mut self) -> Result<(), String> {
        self.said.push("settle".to_owned());
        for _ in 0..30 {
            let Some(call) = self.open.first().cloned() else { return Ok(()) };
            self.lane.move_clock(self.lane.now + PAST_THE_LEASE);
            self.open.rotate_left(1);
            self.calls(vec![call], Client::Waits).await?;
        }
        Err(format!("never settled: {:?}", self.open))
    }

    /// What is left is what the answers said.
    async fn look_around(&mut self) -> Result<(), String> {
        let mut calls: Vec<(Who, Ask)> = vec![(Who::Merchant, Ask::GetProduct(0)), (Who::Merchant, Ask::GetProduct(1))];
        calls.extend(self.names.all(Kind::Confirmation).into_iter().map(|tag| (tag.0, Ask::GetConfirmation(tag))));
        calls.extend(self.names.all(Kind::Order).into_iter().map(|tag| (Who::Support, Ask::GetOrder(tag))));
        calls.extend(self.names.all(Kind::Refund).into_iter().map(|tag| (Who::Support, Ask::GetRefund(tag))));
        calls.extend([Who::Shopper, Who::Stranger].map(|who| (who, Ask::ListOrders)));
        for (who, ask) in calls {
            self.calls(vec![Call { who, key: None, ask }], Client::Waits).await?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Client {
    Waits,
    HangsUp(u64),
    Kills(u64),
}

impl Client {
    fn word(self) -> &'static str {
        match self {
            Client::Waits => "",
            Client::HangsUp(_) => " (hangs up)",
            Client::Kills(_) => " (killed)",
        }
    }
}

//! The server that histories talk to, and what a history finds in it.

use super::calls::Names;
use super::shop::{DISCOUNT, MAX_PENDING, Shop, Time, usd};
use crate::process::Process;
use crate::support::*;
use countersign::domain::time::Timestamp;
use serde_json::json;

/// A server, its databases and its clock, which histories use one after the other.
pub struct Lane {
    pub home: Home,
    pub(super) process: Process,
    pub(super) now: Time,
    /// Whether the server may be waiting for a point at which to end itself.
    pub(super) armed: bool,
}

impl Lane {
    pub fn new() -> Self {
        let (home, now) = (Home::new(), 1_796_117_400_000);
        let process = start(&home, now);
        Self { home, process, now, armed: false }
    }

    pub(super) fn move_clock(&mut self, to: Time) {
        self.now = to;
        self.process.control().set_clock(timestamp(to));
    }

    pub(super) fn restart(&mut self) {
        self.process.kill();
        self.process = start(&self.home, self.now);
        self.armed = false;
    }
}

pub(super) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_unix_millis(time).unwrap()
}

/// Its workers look once, when it starts.
fn start(home: &Home, now: Time) -> Process {
    let flags = ["--provider-timeout", "150ms", "--lease", "10s", "--worker-interval", "1h", "--sandbox-delay", "10ms"];
    let connections = ["--max-pending", &MAX_PENDING.to_string(), "--database-connections", "4"];
    Process::start_at(home, timestamp(now), &[&flags[..], &connections].concat())
}

pub(super) async fn set_up(lane: &Lane, names: &Names, shop: &Shop) {
    let products = shop.products.iter().enumerate().map(|(i, product)| {
        let price = json!({"amount": usd(product.price), "currency": "USD"});
        let set = json!({"title": names.word(), "price": price, "stock": product.stock, "tax_class": "exempt"});
        json!({"product_id": names.product(i), "set": set})
    });
    let batch = json!({"mode": "atomic", "updates": products.collect::<Vec<_>>()});
    let got = lane.process.caller(MERCHANT).update(&format!("{}-setup", names.history), &batch).await;
    assert_eq!(got.status, 200, "{}", got.text());
    add_discount_code(lane, names, shop.use_limit);
}

/// Discount codes have no operation of their own.
fn add_discount_code(lane: &Lane, names: &Names, use_limit: i64) {
    let code = names.discount();
    let columns = "code, amount_minor, currency, use_limit, held, used";
    let values = format!("'{code}', {DISCOUNT}, 'USD', {use_limit}, 0, 0");
    batch(&lane.home.database, &format!("INSERT INTO discounts ({columns}) VALUES ({values})"));
}

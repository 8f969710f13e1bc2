//! The model of the shop: what it owes and holds, in plain values. Nothing of the server's code is in it.

use super::calls::{Ask, Cart, Key, Tag, Who};
use countersign::payments::sandbox::Method;
use std::collections::{BTreeMap, BTreeSet};

/// Milliseconds.
pub type Time = i64;

pub const SECOND: Time = 1_000;
pub const MINUTE: Time = 60 * SECOND;
pub const HOUR: Time = 60 * MINUTE;
pub const DAY: Time = 24 * HOUR;
/// How long an offer stands.
pub const TTL: Time = 15 * MINUTE;
/// How long an equal order, and an equal refund, counts as recent.
pub const RECENT_ORDER: Time = DAY;
pub const LOOKALIKE: Time = 10 * MINUTE;
/// Refunds of one order above this sum take a second step.
pub const THRESHOLD: i64 = 10_000;
pub const MAX_PENDING: usize = 3;
pub const SHIPPING: i64 = 495;
pub const DISCOUNT: i64 = 1_000;
/// Keys are remembered for so long.
pub const KEPT: Time = DAY;
pub const KEPT_MONEY: Time = 7 * DAY;

/// After so long the provider may have forgotten a key, and nothing is sent under it any more.
pub const PROVIDER_KEEPS: Time = DAY;

pub fn usd(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// An answer as it has to be: its status, the problem's code, and members by JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expect {
    pub status: u16,
    pub code: Option<&'static str>,
    /// None where both a first answer and a replay are right.
    pub replay: Option<bool>,
    pub facts: Vec<(&'static str, String)>,
}

impl Expect {
    pub fn ok(status: u16, facts: Vec<(&'static str, String)>) -> Self {
        Self { status, code: None, replay: Some(false), facts }
    }

    pub fn problem(status: u16, code: &'static str) -> Self {
        Self { status, code: Some(code), replay: Some(false), facts: Vec::new() }
    }

    pub fn replayed(&self) -> Self {
        Self { replay: Some(true), ..self.clone() }
    }

    /// Where it isn't known who wrote it down.
    pub fn by_anyone(&self) -> Self {
        Self { replay: None, ..self.clone() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub stock: i64,
    pub price: i64,
    pub version: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Pending,
    Committing,
    Confirmed,
    Declined,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    Checkout { cart: Cart, total: i64 },
    Refund { order: Tag, cents: i64, similar: BTreeSet<Tag> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    pub what: What,
    pub status: Status,
    pub expires_at: Time,
    /// When its money was asked for.
    pub asked_at: Time,
    /// What confirming it answered.
    pub decision: Option<Expect>,
}

impl Offer {
    pub fn amount(&self) -> i64 {
        match &self.what {
            What::Checkout { total, .. } => *total,
            What::Refund { cents, .. } => *cents,
        }
    }

    pub fn is_live(&self, now: Time) -> bool {
        self.status == Status::Pending && now < self.expires_at
    }

    /// Whether it keeps what it is for from others.
    fn holds(&self, now: Time) -> bool {
        self.is_live(now) || self.status == Status::Committing
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    pub total: i64,
    pub refunded: i64,
    pub made_at: Time,
    /// Where it goes now.
    pub house: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefundStatus {
    Pending,
    Succeeded(Time),
    Declined,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refund {
    pub order: Tag,
    pub cents: i64,
    pub status: RefundStatus,
    pub two_steps: bool,
    pub asked_at: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    pub ask: Ask,
    pub answer: Option<Expect>,
    pub forgotten_at: Time,
}

/// What the shop may be like, as far as the answers tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shop {
    pub products: [Product; 2],
    pub use_limit: i64,
    pub claims: BTreeMap<Tag, Claim>,
    pub offers: BTreeMap<Tag, Offer>,
    pub orders: BTreeMap<Tag, Order>,
    pub refunds: BTreeMap<Tag, Refund>,
}

impl Shop {
    pub fn new(products: [Product; 2], use_limit: i64) -> Self {
        let (claims, offers, orders, refunds) = Default::default();
        Self { products, use_limit, claims, offers, orders, refunds }
    }

    pub fn held(&self, product: usize, now: Time) -> i64 {
        let live = self.offers.values().filter(|offer| offer.holds(now));
        live.map(|offer| match &offer.what {
            What::Checkout { cart, .. } => cart.lines.iter().filter(|line| line.0 == product).map(|line| line.1).sum(),
            What::Refund { .. } => 0,
        })
        .sum()
    }

    pub fn available(&self, product: usize, now: Time) -> i64 {
        self.products[product].stock - self.held(product, now)
    }

    /// Uses of the discount code that are gone or held.
    pub fn uses(&self, now: Time) -> i64 {
        let used = |offer: &&Offer| offer.holds(now) || offer.status == Status::Confirmed;
        let carts = self.offers.values().filter(used).filter_map(|offer| match &offer.what {
            What::Checkout { cart, .. } => Some(cart),
            What::Refund { .. } => None,
        });
        carts.filter(|cart| cart.discount).count() as i64
    }

    /// What can still be refunded of an order.
    pub fn remaining(&self, order: Tag, now: Time) -> i64 {
        let Some(found) = self.orders.get(&order) else { return 0 };
        let offered = self.offers.values().filter(|offer| offer.is_live(now)).filter_map(|offer| match &offer.what {
            What::Refund { order: of, cents, .. } if *of == order => Some(*cents),
            What::Refund { .. } | What::Checkout { .. } => None,
        });
        let sent =
            self.refunds.values().filter(|refund| refund.order == order && refund.status == RefundStatus::Pending);
        found.total - found.refunded - offered.sum::<i64>() - sent.map(|refund| refund.cents).sum::<i64>()
    }

    /// Equal refunds that are undecided or succeeded a short while ago.
    pub fn similar(&self, order: Tag, cents: i64, now: Time) -> BTreeSet<Tag> {
        let recent = |refund: &Refund| match refund.status {
            RefundStatus::Pending => true,
            RefundStatus::Succeeded(at) => at > now - LOOKALIKE,
            RefundStatus::Declined => false,
        };
        let equal = self.refunds.iter().filter(|(_, refund)| (refund.order, refund.cents) == (order, cents));
        equal.filter(|(_, refund)| recent(refund)).map(|(tag, _)| *tag).collect()
    }

    /// Live offers of an actor.
    pub fn pending(&self, who: Who, now: Time) -> usize {
        self.offers.iter().filter(|(tag, offer)| tag.0 == who && offer.is_live(now)).count()
    }

    /// Whether the actor has an undecided attempt at the same thing.
    pub fn is_attempting(&self, who: Who, what: &What) -> bool {
        let committing = self.offers.iter().filter(|(tag, offer)| tag.0 == who && offer.status == Status::Committing);
        committing.into_iter().any(|(_, offer)| same_attempt(&offer.what, what))
    }

    pub fn ordered_lately(&self, who: Who, cart: &Cart, now: Time) -> bool {
        let recent = self.orders.iter().filter(|(tag, order)| tag.0 == who && order.made_at > now - RECENT_ORDER);
        let carts = recent.filter_map(|(tag, _)| self.offers.get(tag)).filter_map(|offer| match &offer.what {
            What::Checkout { cart, .. } => Some(cart),
            What::Refund { .. } => None,
        });
        carts.into_iter().any(|other| attempt(other) == attempt(cart))
    }

    /// Another account's order looks like none.
    pub fn sees(&self, who: Who, order: Tag) -> bool {
        self.orders.contains_key(&order) && (who.sees_all_orders() || who.account() == order.0.account())
    }

    /// What stands behind a key, unless its time is over.
    pub fn claim(&self, who: Who, key: Key, now: Time) -> Option<&Claim> {
        let claim = self.claims.get(&(who, key))?;
        (is_money(&claim.ask) || now < claim.forgotten_at).then_some(claim)
    }
}

pub fn is_money(ask: &Ask) -> bool {
    matches!(ask, Ask::Propose(_) | Ask::Confirm(..) | Ask::Refund { .. } | Ask::ConfirmRefund(..))
}

pub fn same_attempt(one: &What, other: &What) -> bool {
    match (one, other) {
        (What::Checkout { cart: one, .. }, What::Checkout { cart: other, .. }) => attempt(one) == attempt(other),
        (What::Refund { order: a, cents: x, .. }, What::Refund { order: b, cents: y, .. }) => (a, x) == (b, y),
        (What::Checkout { .. }, What::Refund { .. }) | (What::Refund { .. }, What::Checkout { .. }) => false,
    }
}

/// What makes two carts one purchase.
fn attempt(cart: &Cart) -> (Vec<(usize, i64)>, u8, Method) {
    let mut lines = cart.lines.clone();
    lines.sort_unstable();
    (lines, cart.place, cart.method)
}

//! What happens next in a history: mostly what makes sense, often twice, sometimes nonsense.

use super::calls::{Ask, Call, Cart, Guard, Key, Kind, METHODS, Names, Tag, Update, Who};
use super::shop::{DAY, MINUTE, SECOND, Shop, Status, TTL, Time, What};
use countersign::failpoints;
use countersign::payments::sandbox::Method;
use fastrand::Rng;

/// What the next step is.
#[derive(Debug)]
pub enum Event {
    /// Calls at once; with one call, it has the server for itself.
    Calls(Vec<Call>),
    /// Calls at once whose clients go away after so many microseconds.
    HangUp(Vec<Call>, u64),
    /// The server is killed so many microseconds after these calls were sent.
    Kill(Vec<Call>, u64),
    /// The server kills itself when it passes the point the next time but so many.
    Arm {
        point: &'static str,
        skip: u32,
    },
    /// The first call stops at the point until its lease is over and the others were answered.
    Stall {
        point: &'static str,
        calls: Vec<Call>,
    },
    /// The time moves on to here.
    Clock(Time),
    Restart,
}

/// Where whoever stops keeps nobody waiting.
const OUTSIDE_TRANSACTIONS: [&str; 4] = [
    failpoints::AFTER_PHASE_ONE,
    failpoints::BEFORE_PROVIDER,
    failpoints::PROVIDER_ACTED,
    failpoints::PROVIDER_ANSWERED,
];
impl Event {
    pub fn word(&self) -> &'static str {
        match self {
            Event::Calls(calls) if calls.len() == 1 => "a call",
            Event::Calls(_) => "calls at once",
            Event::HangUp(..) => "clients that hang up",
            Event::Kill(..) => "a kill",
            Event::Arm { .. } => "a point armed",
            Event::Stall { .. } => "a stall",
            Event::Clock(_) => "time that passes",
            Event::Restart => "a restart",
        }
    }
}

const BUYERS: [Who; 3] = [Who::Shopper, Who::Second, Who::Stranger];

pub struct Generator {
    pub rng: Rng,
    next_key: Key,
    /// What was sent under a key until now.
    said: Vec<Call>,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), next_key: 0, said: Vec::new() }
    }

    /// `open` are calls without a final answer.
    pub fn event(&mut self, shop: &Shop, names: &Names, open: &[Call], now: Time) -> Event {
        // What isn't known for too long isn't worth knowing.
        if open.len() > 2 || (!open.is_empty() && self.rng.u32(..3) == 0) {
            return Event::Calls(self.pick(open).cloned().into_iter().collect());
        }
        match self.rng.u32(..100) {
            0..=59 => Event::Calls(vec![self.call(shop, names, open)]),
            60..=74 => Event::Calls(self.burst(shop, names, open)),
            75..=78 => {
                let point = *self.pick(&OUTSIDE_TRANSACTIONS).unwrap();
                let mut calls = vec![self.money_call(shop, names, open)];
                calls.extend(self.burst(shop, names, &calls.clone()));
                Event::Stall { point, calls }
            }
            79..=83 => Event::HangUp(self.burst(shop, names, open), self.rng.u64(..8_000)),
            84..=87 => Event::Kill(self.burst(shop, names, open), self.rng.u64(..12_000)),
            88..=91 => {
                let point = *self.pick(failpoints::ALL).unwrap();
                Event::Arm { point, skip: self.rng.u32(..3) }
            }
            92 => Event::Restart,
            _ => Event::Clock(self.clock(shop, now)),
        }
    }

    fn pick<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        (!among.is_empty()).then(|| &among[self.rng.usize(..among.len())])
    }

    /// Deadlines are met to the millisecond.
    fn clock(&mut self, shop: &Shop, now: Time) -> Time {
        let deadlines: Vec<Time> =
            shop.offers.values().map(|offer| offer.expires_at).filter(|at| *at > now + 1).collect();
        if let Some(deadline) = self.pick(&deadlines).copied()
            && self.rng.u32(..3) == 0
        {
            return deadline + self.rng.i64(-1..=1);
        }
        now + match self.rng.u32(..20) {
            0..=5 => SECOND,
            6..=10 => 11 * SECOND,
            11..=13 => 6 * MINUTE,
            14..=16 => 11 * MINUTE,
            17..=18 => DAY + SECOND,
            _ => 8 * DAY,
        }
    }

    /// Two or three calls; often the same one, or about the same thing.
    fn burst(&mut self, shop: &Shop, names: &Names, open: &[Call]) -> Vec<Call> {
        let first = self.call(shop, names, open);
        let mut burst = vec![first.clone()];
        for _ in 0..self.rng.usize(1..=2) {
            burst.push(match self.rng.u32(..10) {
                0..=3 => first.clone(),
                4..=5 if first.ask.writes() => Call { key: first.key.map(|_| self.fresh()), ..first.clone() },
                _ => self.call(shop, names, open),
            });
        }
        self.said.extend(burst.iter().filter(|call| call.key.is_some()).cloned());
        burst
    }

    fn fresh(&mut self) -> Key {
        self.next_key += 1;
        self.next_key
    }

    fn call(&mut self, shop: &Shop, names: &Names, open: &[Call]) -> Call {
        let roll = self.rng.u32(..100);
        let repeated = match roll {
            0..=24 => self.pick(open).cloned(),
            25..=34 => {
                let said = std::mem::take(&mut self.said);
                let call = self.pick(&said).cloned();
                self.said = said;
                call
            }
            _ => None,
        };
        if let Some(call) = repeated {
            return call;
        }
        let (who, ask) = self.ask(shop, names);
        let who = if self.rng.u32(..25) == 0 { *self.pick(&Who::ALL).unwrap() } else { who };
        let demanded = matches!(ask, Ask::Propose(_) | Ask::Refund { .. } | Ask::Update { .. });
        let key = match (&ask, ask.writes()) {
            (Ask::Status(key), _) => Some(*key),
            (_, false) => None,
            (_, true) if self.rng.u32(..12) == 0 && self.has_said(who) => self.said_key(who),
            (_, true) if demanded || self.rng.u32(..3) > 0 => Some(self.fresh()),
            (_, true) => None,
        };
        let call = Call { who, key, ask };
        if call.ask.writes() && call.key.is_some() {
            self.said.push(call.clone());
        }
        call
    }

    fn has_said(&self, who: Who) -> bool {
        self.said.iter().any(|call| call.who == who)
    }

    /// A key that the actor has used for something else.
    fn said_key(&mut self, who: Who) -> Option<Key> {
        let keys: Vec<Key> = self.said.iter().filter(|call| call.who == who).filter_map(|call| call.key).collect();
        self.pick(&keys).copied()
    }

    /// A call whose money leaves the process, if there is something to pay or to give back.
    fn money_call(&mut self, shop: &Shop, names: &Names, open: &[Call]) -> Call {
        let is_money = |call: &Call| matches!(call.ask, Ask::Confirm(..) | Ask::Refund { .. } | Ask::ConfirmRefund(..));
        let calls: Vec<Call> = (0..8).map(|_| self.call(shop, names, open)).collect();
        calls.iter().find(|call| is_money(call)).unwrap_or(&calls[0]).clone()
    }

    fn ask(&mut self, shop: &Shop, names: &Names) -> (Who, Ask) {
        let buyer = *self.pick(&BUYERS).unwrap();
        // Whoever hasn't heard an id can't say it. Nothing is ever made under key 0.
        let (offers, orders) = (names.all(Kind::Confirmation), names.all(Kind::Order));
        let open: Vec<Tag> = offers.iter().copied().filter(|tag| is_open(shop, *tag)).collect();
        let among = if self.rng.u32(..10) < 7 && !open.is_empty() { &open } else { &offers };
        let offer = self.pick(among).copied().unwrap_or((buyer, 0));
        let order = self.pick(&orders).copied().unwrap_or((buyer, 0));
        // There is little to say about nothing.
        let roll = match (offers.len(), orders.len()) {
            (0, _) => self.rng.u32(..22),
            (_, 0) => self.rng.u32(..58),
            _ => self.rng.u32(..100),
        };
        match roll {
            0..=15 => (buyer, Ask::Propose(self.cart(shop))),
            16..=18 => (buyer, Ask::DryRun(self.cart(shop))),
            19..=41 => self.confirm(shop, names, offer),
            42..=46 => (offer.0, Ask::Cancel(offer)),
            47..=52 => (Who::Merchant, self.update(shop)),
            53..=76 => (Who::Support, Ask::Refund { order, cents: self.cents(shop, order) }),
            77..=79 => (Who::Support, Ask::DryRunRefund { order, cents: self.cents(shop, order) }),
            80..=82 => {
                let (house, moves) = (self.rng.u8(10..20), self.rng.u32(..5) == 0);
                (order.0, Ask::Address { order, house, moves })
            }
            83..=99 => self.read(names, buyer, offer, order),
            _ => unreachable!("below a hundred"),
        }
    }

    fn confirm(&mut self, shop: &Shop, names: &Names, offer: Tag) -> (Who, Ask) {
        // Offers of refunds are few, and rather more interesting.
        let mut refunds = names.all(Kind::Confirmation);
        refunds.retain(|tag| tag.0 == Who::Support && is_open(shop, *tag));
        let offer = if self.rng.u32(..3) == 0 { self.pick(&refunds).copied().unwrap_or(offer) } else { offer };
        let amount = shop.offers.get(&offer).map_or(100, super::shop::Offer::amount);
        let guard = match self.rng.u32(..10) {
            0..=1 => Guard::Amount(amount),
            2 => Guard::Amount(amount + 1),
            _ => Guard::None,
        };
        let refund = offer.0 == Who::Support;
        // Sometimes as something that it isn't.
        let refund = if self.rng.u32(..20) == 0 { !refund } else { refund };
        (offer.0, if refund { Ask::ConfirmRefund(offer, guard) } else { Ask::Confirm(offer, guard) })
    }

    /// Sometimes one that was proposed before: by the same actor it is another attempt at the same purchase.
    fn cart(&mut self, shop: &Shop) -> Cart {
        let carts = shop.offers.values().filter_map(|offer| match &offer.what {
            What::Checkout { cart, .. } => Some(cart.clone()),
            What::Refund { .. } => None,
        });
        let carts: Vec<Cart> = carts.collect();
        if let Some(cart) = self.pick(&carts)
            && self.rng.u32(..3) == 0
        {
            return Cart { expected_total: None, ..cart.clone() };
        }
        let first = self.rng.usize(..2);
        let mut lines = vec![(first, self.rng.i64(1..=3))];
        if self.rng.u32(..3) == 0 {
            lines.push((1 - first, self.rng.i64(1..=2)));
        }
        let price = |(product, n): &(usize, i64)| shop.products[*product].price * n;
        let guess: i64 = lines.iter().map(price).sum::<i64>() + super::shop::SHIPPING;
        Cart {
            discount: self.rng.u32(..4) == 0,
            place: self.rng.u8(..2),
            method: if self.rng.bool() { Method::Ok } else { *self.pick(&METHODS).unwrap() },
            pickup: self.rng.u32(..6) == 0,
            expected_total: (self.rng.u32(..6) == 0).then_some(guess),
            lines,
        }
    }

    /// Few amounts, so that refunds are equal to each other.
    fn cents(&mut self, shop: &Shop, order: Tag) -> i64 {
        let total = shop.orders.get(&order).map_or(100, |order| order.total);
        match self.rng.u32(..6) {
            0..=1 => 500,
            2 => total.max(1),
            3 => (total / 2).max(1),
            4 => total + 1,
            _ => 6_000,
        }
    }

    fn update(&mut self, shop: &Shop) -> Ask {
        let mut products = vec![0, 1];
        self.rng.shuffle(&mut products);
        products.truncate(self.rng.usize(1..=2));
        let update = |product: usize, rng: &mut Rng| Update {
            product,
            stock: (rng.u32(..4) > 0).then(|| rng.i64(0..=6)),
            price: (rng.u32(..3) == 0).then(|| rng.i64(3..=7) * 1_000),
            if_version: (rng.u32(..4) == 0).then(|| shop.products[product].version + rng.i64(0..=1)),
        };
        let updates: Vec<Update> = products.into_iter().map(|product| update(product, &mut self.rng)).collect();
        // An update that sets nothing is malformed.
        let updates = updates
            .into_iter()
            .map(|one| if one.stock.or(one.price).is_none() { Update { stock: Some(4), ..one } } else { one });
        Ask::Update { atomic: self.rng.bool(), updates: updates.collect() }
    }

    fn read(&mut self, names: &Names, buyer: Who, offer: Tag, order: Tag) -> (Who, Ask) {
        let refunds = names.all(Kind::Refund);
        let refund = self.pick(&refunds).copied().unwrap_or((Who::Support, 0));
        match self.rng.u32(..13) {
            0..=1 => (offer.0, Ask::GetConfirmation(offer)),
            2..=3 => (order.0, Ask::GetOrder(order)),
            4 => (Who::Support, Ask::GetRefund(refund)),
            5 => (buyer, Ask::GetProduct(self.rng.usize(..2))),
            6 => (buyer, Ask::BatchGet),
            7 => (buyer, Ask::Search),
            8 => (buyer, Ask::BatchSearch),
            9 => (buyer, Ask::ListOrders),
            10 => (buyer, Ask::ListConfirmations),
            11 => (buyer, Ask::Task),
            _ => match self.pick(&self.said.clone()).cloned() {
                Some(Call { who, key: Some(key), .. }) => (who, Ask::Status(key)),
                _ => (buyer, Ask::Status(1)),
            },
        }
    }
}

/// Whether something may still become of it.
fn is_open(shop: &Shop, offer: Tag) -> bool {
    shop.offers.get(&offer).is_some_and(|offer| matches!(offer.status, Status::Pending | Status::Committing))
}

/// Long enough that nothing of a history is pending any more.
pub const AFTERWARDS: Time = TTL + MINUTE;

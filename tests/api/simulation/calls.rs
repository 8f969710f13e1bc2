//! What the actors of a history say: every operation, in the history's own names for products, offers and orders.

use super::shop::usd;
use crate::support::{APPROVER, MERCHANT, SECOND, SHOPPER, STRANGER, SUPPORT};
use countersign::domain::operation::Operation;
use countersign::payments::sandbox::Method;
use reqwest::Method as Verb;
use serde_json::{Value, json};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    Shopper,
    /// Another actor of the shopper's account.
    Second,
    Stranger,
    Support,
    /// Another actor of support's account.
    Approver,
    Merchant,
}

impl Who {
    pub const ALL: [Self; 6] =
        [Self::Shopper, Self::Second, Self::Stranger, Self::Support, Self::Approver, Self::Merchant];

    pub fn credential(self) -> &'static str {
        match self {
            Self::Shopper => SHOPPER,
            Self::Second => SECOND,
            Self::Stranger => STRANGER,
            Self::Support => SUPPORT,
            Self::Approver => APPROVER,
            Self::Merchant => MERCHANT,
        }
    }

    pub fn account(self) -> &'static str {
        match self {
            Self::Shopper | Self::Second => "demo",
            Self::Stranger => "elsewhere",
            Self::Support | Self::Approver => "support",
            Self::Merchant => "store",
        }
    }

    pub fn may(self, operation: Operation) -> bool {
        use Operation::*;
        match operation {
            SearchProducts | GetProduct | BatchGetProducts | BatchSearchProducts => {
                matches!(self, Self::Shopper | Self::Second | Self::Stranger | Self::Merchant)
            }
            BatchUpdateProducts => self == Self::Merchant,
            DryRunCheckout | ProposeCheckout | ConfirmCheckout | SetShippingAddress => self.buys(),
            CancelConfirmation => self.buys() || self == Self::Support,
            ListConfirmations | GetConfirmation => self != Self::Merchant,
            GetOrder | ListOrders => self != Self::Merchant,
            DryRunRefund | IssueRefund => self == Self::Support,
            ConfirmRefund | GetRefund => matches!(self, Self::Support | Self::Approver),
            GetOperationStatus | GetTask => true,
        }
    }

    pub fn buys(self) -> bool {
        matches!(self, Self::Shopper | Self::Second | Self::Stranger)
    }

    /// `orders:any`.
    pub fn sees_all_orders(self) -> bool {
        matches!(self, Self::Support | Self::Approver)
    }
}

/// An idempotency key of the history, by number.
pub type Key = u16;
/// What a keyed call made, named for the call. An order has the name of its confirmation.
pub type Tag = (Who, Key);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cart {
    /// Which product and how many.
    pub lines: Vec<(usize, i64)>,
    pub discount: bool,
    pub place: u8,
    pub method: Method,
    pub pickup: bool,
    /// In cents.
    pub expected_total: Option<i64>,
}

/// How carts are paid: what goes well, what is declined, and faults of each kind.
pub const METHODS: [Method; 10] = [
    Method::Ok,
    Method::Declined,
    Method::Slow,
    Method::ErrorBefore,
    Method::ErrorAfter,
    Method::TimeoutAfter,
    Method::ArrivesLate,
    Method::RefundDeclined,
    Method::RefundErrorAfter,
    Method::RefundErrorBefore,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    pub product: usize,
    pub stock: Option<i64>,
    pub price: Option<i64>,
    pub if_version: Option<i64>,
}

/// What a confirm says that it confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    None,
    /// This total or amount, in cents.
    Amount(i64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    Propose(Cart),
    DryRun(Cart),
    Confirm(Tag, Guard),
    ConfirmRefund(Tag, Guard),
    Cancel(Tag),
    Refund {
        order: Tag,
        cents: i64,
    },
    DryRunRefund {
        order: Tag,
        cents: i64,
    },
    Update {
        atomic: bool,
        updates: Vec<Update>,
    },
    /// To another house in the same place, or to another state.
    Address {
        order: Tag,
        house: u8,
        moves: bool,
    },
    GetConfirmation(Tag),
    GetOrder(Tag),
    GetRefund(Tag),
    GetProduct(usize),
    BatchGet,
    Search,
    BatchSearch,
    ListOrders,
    ListConfirmations,
    Status(Key),
    Task,
}

impl Ask {
    pub fn operation(&self) -> Operation {
        match self {
            Ask::Propose(_) => Operation::ProposeCheckout,
            Ask::DryRun(_) => Operation::DryRunCheckout,
            Ask::Confirm(..) => Operation::ConfirmCheckout,
            Ask::ConfirmRefund(..) => Operation::ConfirmRefund,
            Ask::Cancel(_) => Operation::CancelConfirmation,
            Ask::Refund { .. } => Operation::IssueRefund,
            Ask::DryRunRefund { .. } => Operation::DryRunRefund,
            Ask::Update { .. } => Operation::BatchUpdateProducts,
            Ask::Address { .. } => Operation::SetShippingAddress,
            Ask::GetConfirmation(_) => Operation::GetConfirmation,
            Ask::GetOrder(_) => Operation::GetOrder,
            Ask::GetRefund(_) => Operation::GetRefund,
            Ask::GetProduct(_) => Operation::GetProduct,
            Ask::BatchGet => Operation::BatchGetProducts,
            Ask::Search => Operation::SearchProducts,
            Ask::BatchSearch => Operation::BatchSearchProducts,
            Ask::ListOrders => Operation::ListOrders,
            Ask::ListConfirmations => Operation::ListConfirmations,
            Ask::Status(_) => Operation::GetOperationStatus,
            Ask::Task => Operation::GetTask,
        }
    }

    pub fn writes(&self) -> bool {
        use Operation::*;
        matches!(
            self.operation(),
            ProposeCheckout
                | ConfirmCheckout
                | ConfirmRefund
                | CancelConfirmation
                | IssueRefund
                | BatchUpdateProducts
                | SetShippingAddress
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub who: Who,
    pub key: Option<Key>,
    pub ask: Ask,
}

impl Call {
    /// What its key names, where it has one.
    pub fn tag(&self) -> Option<Tag> {
        self.key.map(|key| (self.who, key))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Confirmation,
    Order,
    Refund,
}

/// The ids that the server gave to what the history made, and the history's own prefix of names.
pub struct Names {
    pub history: u64,
    ids: HashMap<(Kind, Tag), String>,
}

impl Names {
    pub fn new(history: u64) -> Self {
        Self { history, ids: HashMap::new() }
    }

    pub fn product(&self, index: usize) -> String {
        format!("SIM-{}-{index}", self.history)
    }

    pub fn discount(&self) -> String {
        format!("SIM-{}", self.history)
    }

    /// No beginning of another history's word: a search takes those for hits, too.
    pub fn word(&self) -> String {
        format!("simulated{}end", self.history)
    }

    pub fn key(&self, key: Key) -> String {
        format!("{}-{key}", self.history)
    }

    pub fn task(&self) -> String {
        format!("task-{}", self.history)
    }

    pub fn known(&self, kind: Kind, tag: Tag) -> Option<&str> {
        self.ids.get(&(kind, tag)).map(String::as_str)
    }

    pub fn all(&self, kind: Kind) -> Vec<Tag> {
        let mut tags: Vec<Tag> = self.ids.keys().filter(|(of, _)| *of == kind).map(|(_, tag)| *tag).collect();
        tags.sort();
        tags
    }

    /// One id for one thing, for ever.
    pub fn learn(&mut self, kind: Kind, tag: Tag, id: &str) -> Result<(), String> {
        let owner = self.ids.iter().find(|((of, _), known)| *of == kind && *known == id).map(|((_, owner), _)| *owner);
        if owner.is_some_and(|owner| owner != tag) {
            return Err(format!("{id} is {owner:?}'s and {tag:?}'s"));
        }
        let known = self.ids.entry((kind, tag)).or_insert_with(|| id.to_owned());
        if known == id { Ok(()) } else { Err(format!("{tag:?} became {known} and {id}")) }
    }

    /// What isn't known looks like what isn't there.
    fn id(&self, kind: Kind, tag: Tag) -> String {
        let prefix = match kind {
            Kind::Confirmation => "cnf",
            Kind::Order => "ord",
            Kind::Refund => "rfd",
        };
        self.known(kind, tag).map_or_else(|| format!("{prefix}_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e"), str::to_owned)
    }

    /// The method, the path and the body of a call.
    pub fn request(&self, ask: &Ask) -> (Verb, String, Option<Value>) {
        let id = |kind, tag: &Tag| self.id(kind, *tag);
        let post = |path: &str, body| (Verb::POST, path.to_owned(), Some(body));
        let get = |path: String| (Verb::GET, path, None);
        match ask {
            Ask::Propose(cart) => post("/checkout", self.cart(cart)),
            Ask::DryRun(cart) => post("/checkout-dry-run", self.cart(cart)),
            Ask::Confirm(tag, guard) => (
                Verb::POST,
                format!("/confirm-checkout/{}", id(Kind::Confirmation, tag)),
                body(*guard, "expected_total"),
            ),
            Ask::ConfirmRefund(tag, guard) => (
                Verb::POST,
                format!("/confirm-refund/{}", id(Kind::Confirmation, tag)),
                body(*guard, "expected_amount"),
            ),
            Ask::Cancel(tag) => (Verb::DELETE, format!("/confirmations/{}", id(Kind::Confirmation, tag)), None),
            Ask::Refund { order, cents } => post("/refunds", self.refund(*order, *cents)),
            Ask::DryRunRefund { order, cents } => post("/refunds-dry-run", self.refund(*order, *cents)),
            Ask::Update { atomic, updates } => {
                let updates: Vec<Value> = updates.iter().map(|update| self.update(update)).collect();
                let mode = if *atomic { "atomic" } else { "per_item" };
                post("/products-batch-update", json!({"mode": mode, "updates": updates}))
            }
            Ask::Address { order, house, moves } => {
                let address = self.address(*house, if *moves { "CA" } else { "OR" });
                (Verb::PUT, format!("/orders/{}/shipping-address", id(Kind::Order, order)), Some(address))
            }
            Ask::GetConfirmation(tag) => get(format!("/confirmations/{}", id(Kind::Confirmation, tag))),
            Ask::GetOrder(tag) => get(format!("/orders/{}", id(Kind::Order, tag))),
            Ask::GetRefund(tag) => get(format!("/refunds/{}", id(Kind::Refund, tag))),
            Ask::GetProduct(index) => get(format!("/products/{}", self.product(*index))),
            Ask::BatchGet => post("/products-batch-get", json!({"product_ids": [self.product(0), self.product(1)]})),
            Ask::Search => get(format!("/products?q={}", self.word())),
            Ask::BatchSearch => post("/products-batch-search", json!({"queries": [{"q": self.word()}]})),
            Ask::ListOrders => get("/orders?limit=100".to_owned()),
            Ask::ListConfirmations => get("/confirmations?limit=100".to_owned()),
            Ask::Status(_) => get("/operation-status".to_owned()),
            Ask::Task => get(format!("/tasks/{}", self.task())),
        }
    }

    fn address(&self, house: u8, region: &str) -> Value {
        json!({"name": "Ada Lovelace", "line1": format!("{} Simulated Street", self.history), "line2": format!("House {house}"),
               "city": "Salem", "region": region, "postal_code": "97301", "country": "US"})
    }

    fn cart(&self, cart: &Cart) -> Value {
        let lines = cart.lines.iter();
        let items: Vec<Value> = lines.map(|(i, n)| json!({"product_id": self.product(*i), "quantity": n})).collect();
        let mut body = json!({
            "items": items,
            "shipping_address": self.address(cart.place, "OR"),
            "payment_method": cart.method.as_str(),
            "shipping_option": if cart.pickup { "pickup" } else { "standard" },
        });
        if cart.discount {
            body["discount_codes"] = json!([self.discount()]);
        }
        if let Some(cents) = cart.expected_total {
            body["expected_total"] = money(cents);
        }
        body
    }

    fn refund(&self, order: Tag, cents: i64) -> Value {
        json!({"order_id": self.id(Kind::Order, order), "amount": money(cents), "reason": "other"})
    }

    fn update(&self, update: &Update) -> Value {
        let mut set = json!({});
        if let Some(stock) = update.stock {
            set["stock"] = json!(stock);
        }
        if let Some(cents) = update.price {
            set["price"] = money(cents);
        }
        let mut item = json!({"product_id": self.product(update.product), "set": set});
        if let Some(version) = update.if_version {
            item["if_version"] = json!(version);
        }
        item
    }
}

fn money(cents: i64) -> Value {
    json!({"amount": usd(cents), "currency": "USD"})
}

fn body(guard: Guard, member: &str) -> Option<Value> {
    match guard {
        Guard::None => None,
        Guard::Amount(cents) => Some(json!({member: money(cents)})),
    }
}

//! The payment provider as everything else sees it: charge, refund and find, under our own keys. Nothing but this folder knows which
//! provider is there.

pub mod sandbox;

use crate::domain::money::Currency;
use crate::domain::payment::{Charge, Decision, GiveBack, PaymentMethod, PaymentStatus, ProviderKey};
use std::pin::Pin;
use std::time::Duration;

/// A provider's answer, on its way.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The outcome of one request. Unknown is not failed: the money may have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Decided(Decision),
    /// A time-out, a 401, 429 or 5xx, or an answer that makes no sense; the reason is for the log.
    Unknown(String),
}

/// What the provider knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Decided(Decision),
    /// Proves nothing: the request may still be on its way.
    NotSeen,
    /// The look-up itself failed; the reason is for the log.
    Unknown(String),
}

/// A line of the provider's books.
#[derive(Clone, Debug)]
pub struct Booking {
    pub provider_key: ProviderKey,
    /// The charge that a refund gives back; none for a charge.
    pub refund_of: Option<ProviderKey>,
    pub amount_minor: i64,
    pub currency: Currency,
    pub status: PaymentStatus,
}

/// A provider promises this: requests with one key and the same bytes have one effect, for as long as it keeps the key.
pub trait PaymentProvider: Send + Sync {
    fn accepts(&self, method: &PaymentMethod) -> bool;

    /// How long the provider keeps a key. Sending it again later could charge again.
    fn key_lifetime(&self) -> Duration;

    /// The bytes to send for a charge: stored before the first attempt, the same on every one.
    fn charge_request(&self, charge: &Charge) -> String;

    fn charge<'a>(&'a self, key: &'a ProviderKey, request: &'a str) -> Answering<'a, Outcome>;

    /// The same for a refund.
    fn refund_request(&self, refund: &GiveBack) -> String;

    fn refund<'a>(&'a self, key: &'a ProviderKey, request: &'a str) -> Answering<'a, Outcome>;

    /// Charges and refunds alike.
    fn find<'a>(&'a self, key: &'a ProviderKey) -> Answering<'a, Found>;
}

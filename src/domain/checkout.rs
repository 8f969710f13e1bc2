//! A checkout as it was asked for: the one input of dry run and propose.

use super::address::Address;
use super::digest::Digest;
use super::ids::ProductId;
use super::money::Money;
use super::payment::PaymentMethod;
use serde::Serialize;

/// Lines in one checkout.
pub const MAX_ITEMS: usize = 100;
/// Units of one product in one checkout.
pub const MAX_QUANTITY: i64 = 1_000;
/// Discount codes in one checkout.
pub const MAX_DISCOUNT_CODES: usize = 10;
/// The shipping option of a request that names none.
pub const DEFAULT_SHIPPING_OPTION: &str = "standard";

#[derive(Clone, Debug, Serialize)]
pub struct Item {
    pub product_id: ProductId,
    pub quantity: i64,
}

/// Parsed and in range; whether it can be had is the catalogue's word. Serialized, it is what the fingerprint is
/// taken of.
#[derive(Clone, Debug, Serialize)]
pub struct CheckoutRequest {
    pub items: Vec<Item>,
    pub shipping_address: Address,
    pub shipping_option: String,
    pub discount_codes: Vec<String>,
    pub payment_method: PaymentMethod,
    #[serde(flatten)]
    pub guards: Guards,
}

impl CheckoutRequest {
    /// One line a product, in order of first appearance, quantities of the same product added up.
    pub fn lines(&self) -> Vec<Item> {
        let mut lines: Vec<Item> = Vec::new();
        for item in &self.items {
            match lines.iter_mut().find(|line| line.product_id == item.product_id) {
                Some(line) => line.quantity += item.quantity,
                None => lines.push(item.clone()),
            }
        }
        lines
    }

    /// The lines in the order in which products are locked: by id.
    pub fn lines_by_product(&self) -> Vec<Item> {
        let mut lines = self.lines();
        lines.sort_by(|a, b| a.product_id.cmp(&b.product_id));
        lines
    }

    pub fn product_ids(&self) -> Vec<ProductId> {
        self.items.iter().map(|item| item.product_id.clone()).collect()
    }

    /// What makes two checkouts attempts at the same purchase, whatever their keys: products and quantities, address,
    /// payment method.
    pub fn attempt_digest(&self) -> Digest {
        Digest::of(&(self.lines_by_product(), &self.shipping_address, &self.payment_method))
    }
}

/// What the caller believes the plan, or the refund, to be. Absent members guard nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Guards {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_total: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_plan_digest: Option<Digest>,
}

impl Guards {
    pub fn hold(&self, amount: Money, digest: &Digest) -> bool {
        self.expected_total.is_none_or(|expected| expected == amount)
            && self.expected_plan_digest.as_ref().is_none_or(|expected| expected == digest)
    }
}

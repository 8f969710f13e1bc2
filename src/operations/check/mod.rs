//! Check: reads our books and the provider's, and says which invariants don't hold. It changes nothing, and a server
//! may be running meanwhile. Each invariant is looked at in the rows themselves: what a constraint of the database
//! forbids is found all the same, should the constraint be gone.

mod answers;
mod evidence;
mod findings;
mod goods;
mod invariants;
mod keys;
mod money_answers;
mod orders;
mod payments;
mod refunds;

use crate::domain::time::Timestamp;
use crate::payments::Booking;
use crate::store::books;
use crate::store::{self, StoreConfig};
use evidence::Evidence;
pub use findings::{Breach, Finding};
pub use invariants::{INVARIANTS, Invariant};

/// How much was looked at, and what was found.
#[derive(Debug)]
pub struct Report {
    pub orders: usize,
    pub payments: usize,
    pub bookings: usize,
    pub products: usize,
    pub findings: Vec<Finding>,
}

/// The provider's books are read before ours and after: a charge of the first reading has to be in ours, and what we
/// know to be paid has to be in the second.
pub fn check(
    database: &StoreConfig,
    provider_books: impl Fn() -> Result<Vec<Booking>, String>,
    now: Timestamp,
) -> Result<Report, String> {
    let before = provider_books()?;
    let ours = store::inspect(database, |db| Ok(books::read(db)?))?;
    let after = provider_books()?;
    let evidence = Evidence::of(&ours, &before, &after, now);
    Ok(Report {
        orders: ours.orders.len(),
        payments: ours.payments.len(),
        bookings: after.len(),
        products: ours.products.len(),
        findings: INVARIANTS.iter().flat_map(|invariant| invariant.findings(&evidence)).collect(),
    })
}

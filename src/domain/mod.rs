//! What Countersign is about, without a database, a network or a clock: pure types and functions. Times come in as
//! arguments. Nothing here depends on another module of the crate.

pub mod actor;
pub mod address;
pub mod answer;
pub mod catalogue;
pub mod checkout;
pub mod confirmation;
pub mod digest;
pub mod discount;
pub mod error;
pub mod ids;
pub mod key;
pub mod money;
pub mod operation;
pub mod order;
pub mod page;
pub mod payment;
pub mod plan;
pub mod product;
pub mod product_update;
pub mod refund;
pub mod search;
pub mod sums;
pub mod task;
pub mod time;
pub(crate) mod words;

//! The API, over real HTTP, against real databases. One file an operation or a kind of trouble; test names are
//! sentences, and those that stand for a fault seen in the field carry its id.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm)]

mod actors;
mod architecture;
mod cancel_confirmation;
mod confirm_checkout;
#[cfg(feature = "failpoints")]
mod crash;
mod dry_run_checkout;
mod errors;
mod hang_up;
mod orders;
mod process;
mod products;
mod propose_checkout;
mod provider_faults;
mod requests;
mod routes;
mod storage;
mod support;

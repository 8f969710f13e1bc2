//! The API, over real HTTP, against real databases. One file an operation or a kind of trouble; test names are
//! sentences, and those that stand for a fault seen in the field carry its id.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::wildcard_enum_match_arm)]

mod actors;
mod agent;
mod amounts;
mod architecture;
mod batch_update_products;
mod cancel_confirmation;
mod check;
mod confirm_checkout;
mod constraints;
mod contention;
mod contract;
#[cfg(feature = "failpoints")]
mod crash;
mod crowds;
mod document;
mod dry_run_checkout;
mod errors;
mod examples;
mod expiry;
mod faulty;
mod forget;
mod fuzz;
mod hang_up;
mod home;
mod hot_spots;
mod lists;
#[cfg(feature = "failpoints")]
mod matrix;
mod orders;
mod pages;
mod postgres;
mod process;
mod products;
mod propose_checkout;
mod provider_faults;
mod refund_faults;
mod refunds;
mod replays;
mod requests;
mod routes;
mod search_products;
mod set_shipping_address;
#[cfg(feature = "failpoints")]
mod simulation;
mod stop;
mod storage;
mod support;
mod tasks;
mod verify;
mod verify_faults;

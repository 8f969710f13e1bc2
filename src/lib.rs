//! Countersign: a commerce backend that software agents can retry without fear. Send it again; it happens once.

pub mod agent;
pub mod app;
pub mod clock;
pub mod config;
pub mod database;
mod demo;
pub mod domain;
pub mod effects;
pub mod failpoints;
pub mod http;
pub mod operations;
pub mod payments;
pub mod store;
pub mod verify;
pub mod workers;

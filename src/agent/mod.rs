//! The caller's half of a safe retry, small enough to lift into an agent of your own: a key is made outside the model,
//! once for each authorised step, and stored before the first byte is sent; a retry keeps it, and knows when to stop.

pub mod client;
pub mod dedupe;
pub mod demo;
pub mod identity;
pub mod keys;
pub mod retry;
pub mod runner;
mod schema;

use crate::domain::time::Timestamp;
use std::time::Duration;

/// The time, and waiting for it: passed in, so that a test needn't wait.
pub trait Time: Send + Sync {
    fn now(&self) -> Timestamp;
    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTime;

impl Time for SystemTime {
    fn now(&self) -> Timestamp {
        crate::clock::Clock::System.now()
    }

    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

/// Where chance comes from: passed in, so that a seed makes a run repeatable.
pub trait Chance: Send {
    /// Any of `0..=most`, each as likely.
    fn up_to(&mut self, most: u64) -> u64;
}

impl Chance for fastrand::Rng {
    fn up_to(&mut self, most: u64) -> u64 {
        self.u64(0..=most)
    }
}

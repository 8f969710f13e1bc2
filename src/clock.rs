//! The time, passed in wherever it is needed, so that a test can move it.

use crate::domain::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Stands still until it is moved.
    Manual(Arc<AtomicI64>),
    /// Moved from another process: milliseconds since 1970, as text.
    #[cfg(feature = "failpoints")]
    File(Arc<std::path::Path>),
}

impl Clock {
    pub fn manual(start: Timestamp) -> Self {
        Clock::Manual(Arc::new(AtomicI64::new(start.unix_millis())))
    }

    pub fn now(&self) -> Timestamp {
        let millis = match self {
            Clock::System => chrono::Utc::now().timestamp_millis(),
            Clock::Manual(millis) => millis.load(Ordering::SeqCst),
            #[cfg(feature = "failpoints")]
            Clock::File(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.trim().parse().unwrap_or_default()
            }
        };
        // Every source stays within the years that RFC 3339 can write.
        #[expect(clippy::expect_used, reason = "a clock beyond the year 9999 is not supported")]
        Timestamp::from_unix_millis(millis).expect("a time before the year 10000")
    }

    /// Moves a manual clock; the others aren't moved from here.
    pub fn advance(&self, by: Duration) {
        if let Clock::Manual(millis) = self {
            millis.store(self.now().after(by).unix_millis(), Ordering::SeqCst);
        }
    }
}

//! One file a pattern, named for it. Each operation takes the context, who calls, and a parsed request, and returns an
//! answer or a problem. `once` and `phases` are the two envelopes that make a repeat harmless.

pub mod actors;
pub mod authenticate;
pub mod batch_update_products;
pub mod cancel_confirmation;
pub mod check;
pub mod confirm;
pub mod confirm_checkout;
pub mod confirm_refund;
pub mod dry_run_checkout;
pub mod dry_run_refund;
pub mod expire;
pub mod forget;
pub mod get_confirmation;
pub mod get_operation_status;
pub mod get_order;
pub mod get_products;
pub mod get_refund;
pub mod get_task;
pub mod issue_refund;
pub mod list_confirmations;
pub mod list_orders;
pub mod once;
pub mod phases;
pub mod propose_checkout;
pub mod search_products;
pub mod set_shipping_address;
pub mod settle;
pub mod settle_checkout;
pub mod settle_refund;
pub mod tally;

use crate::domain::actor::Caller;
use crate::domain::answer::{Answer, Delivery};
use crate::domain::error::Problem;
use crate::domain::ids::TaskId;
use crate::domain::key::IdempotencyKey;
use crate::domain::refund::RefundPolicy;
use crate::domain::time::Timestamp;
use crate::effects::Retention;
use crate::payments::PaymentProvider;
use crate::store::Store;
use search_products::Searches;
use std::sync::Arc;
use std::time::Duration;
use tally::Tally;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// Everything an operation needs. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub store: Store,
    pub provider: Arc<dyn PaymentProvider>,
    pub settings: Settings,
    pub tasks: Tasks,
    pub tally: Tally,
    pub searches: Searches,
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub confirmation_ttl: Duration,
    pub max_pending: i64,
    pub retention: Retention,
    pub provider_timeout: Duration,
    pub lease: Duration,
    pub refunds: RefundPolicy,
    /// How often the workers look, and the first step of the back-off between recoveries.
    pub worker_interval: Duration,
}

/// Who calls, under which key, for which task.
#[derive(Clone, Debug)]
pub struct Call {
    pub caller: Caller,
    pub key: Option<IdempotencyKey>,
    pub task: Option<TaskId>,
    pub request_id: String,
}

/// An answer, how it came about, and when its key will be forgotten.
#[derive(Clone, Debug)]
pub struct Reply {
    pub answer: Answer,
    pub delivery: Delivery,
    pub key_expires_at: Option<Timestamp>,
}

/// Work that goes on when the connection that asked for it is gone.
#[derive(Clone)]
pub struct Tasks {
    runtime: Handle,
    running: TaskTracker,
}

impl Tasks {
    /// On the runtime of the caller, which has to outlive every connection.
    pub fn on_current_runtime() -> Self {
        Self { runtime: Handle::current(), running: TaskTracker::new() }
    }

    /// Runs a task to its end, whether or not anybody waits for it.
    pub async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let running = self.running.spawn_on(task, &self.runtime);
        running.await.unwrap_or_else(|died| match died.is_cancelled() {
            true => Err(Problem::storage_unavailable("the server stopped before the task had ended")),
            false => Err(Problem::internal(died)),
        })
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn_on(task, &self.runtime);
    }

    /// Waits until everything that was started has ended.
    pub async fn finish(&self) {
        self.running.close();
        self.running.wait().await;
    }
}

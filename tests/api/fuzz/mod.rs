//! Every parser that meets the outside, given anything: valid input a few edits away from valid, and noise. No panic, no
//! 5xx, no answer that isn't documented, and nothing accepted that isn't allowed. `PROPTEST_CASES` takes the place of every
//! number of cases, for a longer run.

mod bodies;
mod damage;
mod heads;
mod parsers;
pub mod raw;
mod readers;

use crate::support::*;
use countersign::domain::operation::Operation;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use reqwest::Method;
use tokio::runtime::Runtime;

/// It has every scope, so that nothing ends at the door.
const ALL: &str = "csk_demo_all";

/// Fails with the smallest input for which it doesn't hold.
fn check<S: Strategy>(cases: u32, input: S, holds: impl Fn(S::Value)) {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let ran = TestRunner::new(config).run(&input, |value| {
        holds(value);
        Ok(())
    });
    ran.unwrap_or_else(|failed| panic!("{failed}"));
}

/// A letter that some parser may trip over, or any.
fn letter() -> impl Strategy<Value = char> {
    let hostile: Vec<char> =
        "0159aAfFzZ.,:;-+_eE%/\\'\"[]{}()=&?#~ \t\r\n\0\u{7f}é٣０\u{feff}\u{202e}".chars().collect();
    prop_oneof![3 => prop::sample::select(hostile), 1 => any::<char>()]
}

/// One of these texts after a few edits, or any text at all.
fn text_near<T: AsRef<str>>(valid: &[T]) -> BoxedStrategy<String> {
    let valid: Vec<String> = valid.iter().map(|text| text.as_ref().to_owned()).collect();
    // Where, what is put there, and whether what stands there stays.
    let edits = prop::collection::vec((any::<Index>(), prop::option::of(letter()), any::<bool>()), 0..4);
    let near = (prop::sample::select(valid), edits).prop_map(|(text, edits)| {
        let mut letters: Vec<char> = text.chars().collect();
        for (at, new, stays) in edits {
            let at = at.index(letters.len() + 1);
            if !stays && at < letters.len() {
                letters.remove(at);
            }
            letters.splice(at..at, new);
        }
        letters.into_iter().collect()
    });
    let noise = prop::collection::vec(letter(), 0..40).prop_map(|letters| letters.into_iter().collect());
    prop_oneof![4 => near, 1 => noise].boxed()
}

/// A server with something to ask for, and the one who asks.
struct Target {
    app: TestApp,
    order: String,
    confirmation: String,
    runtime: Runtime,
}

impl Target {
    fn open() -> Self {
        let runtime = Runtime::new().unwrap();
        let (app, order, confirmation) = runtime.block_on(async {
            let app = TestApp::with(|config| config.settings.max_pending = 10_000).await;
            app.set_stock("%", 1_000_000);
            let buyer = app.caller(ALL);
            let order = buyer.ordered("order", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
            buyer.ordered("another", &mugs()).await; // a list of more than one page
            let confirmation = buyer.proposed("confirmation", &mugs()).await;
            (app, order, confirmation)
        });
        Self { app, order, confirmation, runtime }
    }

    /// The operation's path, about something that is there.
    fn path(&self, operation: Operation) -> String {
        let path = operation.profile().path.replace("{order_id}", &self.order);
        let path = path.replace("{confirmation_id}", &self.confirmation).replace("{product_id}", "MUG-BLUE");
        path.replace("{refund_id}", "rfd_0123456789abcdef0123456789abcdef").replace("{task_id}", "task-1")
    }

    /// What it answers, which is documented and no failure of its own.
    fn ask(&self, operation: Operation, body: Vec<u8>) -> Got {
        let method: Method = operation.profile().method.parse().unwrap();
        let request = self.app.caller(ALL).request(method, &self.path(operation)).body(body);
        let request = request.header("Content-Type", "application/json");
        let key = uuid::Uuid::now_v7().to_string();
        let got = self.runtime.block_on(send(request.header("Idempotency-Key", key)));
        assert!(got.status < 500, "{}", got.text());
        got
    }

    /// After all that it still serves, and its books are right.
    fn close(self) {
        let http = reqwest::Client::new();
        let ready = self.runtime.block_on(send(http.get(format!("{}/readyz", self.app.url))));
        assert_eq!(ready.status, 200);
        self.app.assert_consistent();
    }
}

//! The demo's agent: a process of its own, so that it can be killed. What it thinks is one line of JSON each on stdout.

use crate::agent::SystemTime;
use crate::agent::client::{Answer, Http, Lost, Request, Transport};
use crate::agent::identity::Run;
use crate::agent::keys::KeyStore;
use crate::agent::retry::{Class, Policy, classify};
use crate::agent::runner::{Call, Done, Event, Runner, Stop};
use crate::domain::words::words;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

words! {
    /// How the agent goes about its plan.
    pub enum Manner {
        /// With the runtime: keys, stored answers.
        Keys = "keys",
        /// The same, but its stored answers are gone: everything is sent again, under the stored keys.
        Replay = "replay",
        /// No keys, nothing stored, and a retry whenever no answer came.
        Naive = "naive",
    }
}

#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    #[arg(long)]
    pub url: String,
    #[arg(long, env = "COUNTERSIGN_KEY", hide_env_values = true)]
    pub key: String,
    /// The folder of its key store.
    #[arg(long)]
    pub state: PathBuf,
    #[arg(long, value_parser = |word: &str| Manner::parse(word).ok_or("no such manner"))]
    pub manner: Manner,
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The run that it belongs to: started again with the same one, it goes on.
    #[arg(long, default_value = "shopping")]
    pub run: String,
    /// Aborts at its n-th word, for tests.
    #[arg(long)]
    pub die_at: Option<usize>,
    /// Aborts when its n-th call was answered, before it has read the answer, for tests.
    #[arg(long)]
    pub die_unheard: Option<usize>,
}

/// A connection that its agent doesn't always live to hear from.
struct Mortal {
    http: Http,
    calls_left: Option<AtomicUsize>,
}

impl Transport for Mortal {
    async fn send(&self, request: &Request) -> Result<Answer, Lost> {
        let outcome = self.http.send(request).await;
        if self.calls_left.as_ref().is_some_and(|left| left.fetch_sub(1, Ordering::SeqCst) == 1) {
            std::process::abort();
        }
        outcome
    }
}

/// One line of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Spoken {
    Event(Event),
    /// What it has in the end.
    Finished {
        orders: Vec<String>,
        refund: String,
    },
    Stopped {
        stopped: String,
    },
}

/// Short waits, so that it can be watched; many sends, since the connection is bad.
const POLICY: Policy = Policy {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
    sends: 20,
    total: Duration::from_secs(60),
    ..Policy::DEFAULT
};
const PATIENCE: Duration = Duration::from_secs(5);

/// True where the plan was carried out.
pub async fn run_agent(args: AgentArgs) -> Result<bool, String> {
    let said = AtomicUsize::new(0);
    let die_at = args.die_at;
    let say = move |spoken: Spoken| {
        println!("{}", serde_json::to_string(&spoken).unwrap_or_default());
        if Some(said.fetch_add(1, Ordering::SeqCst) + 1) == die_at {
            std::process::abort();
        }
    };
    let http = Http::new(&args.url, &args.key, &args.run, PATIENCE)?;
    let http = Mortal { http, calls_left: args.die_unheard.map(AtomicUsize::new) };
    let ended = match args.manner {
        Manner::Naive => naive(&http, &say).await,
        Manner::Keys | Manner::Replay => with_keys(&args, &http, &say).await?,
    };
    match ended {
        Ok(finished) => {
            say(finished);
            Ok(true)
        }
        Err(stopped) => {
            say(Spoken::Stopped { stopped });
            Ok(false)
        }
    }
}

async fn with_keys(
    args: &AgentArgs,
    http: &Mortal,
    say: &(impl Fn(Spoken) + Send + Sync),
) -> Result<Result<Spoken, String>, String> {
    let store = KeyStore::open(&args.state.join("keys.db")).map_err(|e| e.to_string())?;
    let run = Run { tenant: "demo".to_owned(), id: args.run.clone() };
    if args.manner == Manner::Replay {
        store.forget_answers(&run).map_err(|e| e.to_string())?;
    }
    let mut runner = Runner {
        transport: http,
        time: &SystemTime,
        store: &store,
        run,
        policy: POLICY,
        chance: Box::new(fastrand::Rng::with_seed(args.seed)),
        watch: Box::new(|event| say(Spoken::Event(event))),
    };
    Ok(shop(&mut runner, &args.run).await.map_err(|stop| stop.to_string()))
}

/// The plan: two purchases, and part of the first given back.
async fn shop<T: Transport>(runner: &mut Runner<'_, T, SystemTime>, run: &str) -> Result<Spoken, Stop> {
    let mug = buy(runner, "mug", cart("MUG-BLUE", "pm_sandbox_ok", run)).await?;
    // This payment method charges, and its provider never answers.
    let shirt = buy(runner, "shirt", cart("SHIRT-M", "pm_sandbox_timeout_after_charge", run)).await?;
    let orders = [&mug, &shirt].map(|done| done.answer["order_id"].as_str().unwrap_or_default().to_owned());
    let refund = give_back(runner, &orders[0]).await?;
    Ok(Spoken::Finished { orders: orders.to_vec(), refund })
}

async fn buy<T: Transport>(runner: &mut Runner<'_, T, SystemTime>, name: &str, cart: Value) -> Result<Done, Stop> {
    let propose = Call {
        step: format!("{name}: propose"),
        tool: "propose_checkout",
        method: "POST",
        path: "/checkout".to_owned(),
        body: None,
    };
    // The same once more is authorised, should the confirmation expire meanwhile.
    let confirm = |proposed: &Value, attempt| confirm(name, "confirm_checkout", "/confirm-checkout", proposed, attempt);
    runner.two_steps(&propose, &[cart.clone(), cart], confirm).await
}

/// In one step, or in two where the server wants a second look.
async fn give_back<T: Transport>(runner: &mut Runner<'_, T, SystemTime>, order: &str) -> Result<String, Stop> {
    let amount = json!({"amount": "5.00", "currency": "USD"});
    let issue = Call {
        step: "mug: refund".to_owned(),
        tool: "issue_refund",
        method: "POST",
        path: "/refunds".to_owned(),
        body: Some(json!({"order_id": order, "amount": amount, "reason": "damaged"})),
    };
    let mut done = runner.call(&issue).await?;
    if done.answer["refund_id"].is_null() {
        let second = confirm("mug: refund", "confirm_refund", "/confirm-refund", &done.answer, done.attempt);
        done = runner.call(&second).await?;
    }
    Ok(done.answer["refund_id"].as_str().unwrap_or_default().to_owned())
}

/// Of one attempt: another attempt has another confirmation.
fn confirm(name: &str, tool: &'static str, path: &str, proposed: &Value, attempt: i64) -> Call {
    let id = proposed["confirmation_id"].as_str().unwrap_or_default();
    Call {
        step: format!("{name}: confirm {attempt}"),
        tool,
        method: "POST",
        path: format!("{path}/{id}"),
        body: Some(json!({"expected_plan_digest": proposed["plan_digest"]})),
    }
}

fn cart(product: &str, method: &str, run: &str) -> Value {
    json!({
        "items": [{"product_id": product, "quantity": 1}],
        "shipping_address": {
            "name": "Ada Lovelace", "line1": "1 Market Street", "line2": format!("For {run}"), "city": "San Francisco",
            "region": "CA", "postal_code": "94105", "country": "US",
        },
        "payment_method": method,
    })
}

/// The same plan as it is often written: a loop around the call.
async fn naive(http: &Mortal, say: &impl Fn(Spoken)) -> Result<Spoken, String> {
    for (step, path) in [("mug: buy", "/buy"), ("shirt: buy", "/buy"), ("mug: refund", "/refund")] {
        let request = Request { method: "POST", path: path.to_owned(), body: Some("{}".to_owned()), key: None };
        let step = || step.to_owned();
        loop {
            say(Spoken::Event(Event::Sending { step: step(), tool: path.trim_start_matches('/').to_owned() }));
            let outcome = http.send(&request).await;
            say(Spoken::Event(match &outcome {
                Ok(answer) => Event::Heard { step: step(), status: answer.status, code: None, replayed: false },
                Err(Lost::NotSent(why)) => Event::Lost { step: step(), why: why.clone(), sent: false },
                Err(Lost::NoAnswer(why)) => Event::Lost { step: step(), why: why.clone(), sent: true },
            }));
            if matches!(classify(&outcome), Class::Done | Class::Terminal) {
                break;
            }
        }
    }
    Ok(Spoken::Finished { orders: vec![], refund: String::new() })
}

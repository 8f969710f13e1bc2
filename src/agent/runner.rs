//! Runs the steps of a plan so that each happens once: the key first, then the call, again with the same key until the answer
//! is final, and that is written down before anything builds on it. A run that is started again, at whatever line it was
//! killed, goes on where it was.

use super::client::{Answer, Lost, Request, Transport};
use super::identity::{Parameters, Run, Step};
use super::keys::{KeyError, KeyStore, Keyed};
use super::retry::{Budget, Class, Policy, classify};
use super::{Chance, Time};
use crate::domain::error::{Code, Recovery};
use crate::domain::key::IdempotencyKey;
use crate::domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// A write as it was authorised.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its place in the plan.
    pub step: String,
    /// The operation's id.
    pub tool: &'static str,
    pub method: &'static str,
    pub path: String,
    pub body: Option<Value>,
}

impl Call {
    /// Everything that makes it another call counts as a parameter.
    fn step(&self) -> Step {
        let parameters = Parameters::of(&json!([self.method, self.path, self.body]));
        Step { id: self.step.clone(), tool: self.tool.to_owned(), parameters }
    }

    fn request(&self, key: &IdempotencyKey) -> Request {
        let body = self.body.as_ref().map(Value::to_string);
        Request { method: self.method, path: self.path.clone(), body, key: Some(key.clone()) }
    }
}

/// What a step came to.
#[derive(Clone, Debug)]
pub struct Done {
    pub answer: Value,
    pub key: IdempotencyKey,
    pub attempt: i64,
}

/// Why a step doesn't go on: what the problem's recovery verb asks for, or that the answer isn't known.
#[derive(Clone, Debug)]
pub enum Stop {
    /// `new_key`, `propose_again`: decided, and nothing happened. A new attempt is right, if it is still wanted.
    Again {
        because: IdempotencyKey,
        attempt: i64,
        problem: Answer,
    },
    /// `fix_request`: whoever made the request has to mend it.
    Fix(Answer),
    /// `ask_human`, and whatever isn't a problem of this API.
    Human(Answer),
    /// `stop`: nothing is left to do.
    Over(Answer),
    /// A later attempt was begun than this plan has bodies for.
    NotAuthorised {
        attempt: i64,
    },
    /// Patience is at its end, and nothing was done. The same run can go on later.
    NotYet(String),
    /// Patience is at its end, and it may have happened. The same run can go on later; nothing else may take its place.
    Unknown(String),
    Key(KeyError),
}

impl From<KeyError> for Stop {
    fn from(error: KeyError) -> Self {
        Stop::Key(error)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Again { problem, .. } | Stop::Fix(problem) | Stop::Human(problem) | Stop::Over(problem) => {
                let body = problem.json();
                let word = |member: &str| body[member].as_str().unwrap_or("?").to_owned();
                write!(f, "{} {} ({}): {}", problem.status, word("code"), word("recovery"), word("detail"))
            }
            Stop::NotAuthorised { attempt } => write!(f, "attempt {attempt} was begun, and this plan authorises fewer"),
            Stop::NotYet(why) => write!(f, "nothing was done: {why}"),
            Stop::Unknown(why) => write!(f, "not known yet: {why}"),
            Stop::Key(error) => error.fmt(f),
        }
    }
}

/// What a runner tells whoever watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The step's key: made now, or the one that was made before.
    Key {
        step: String,
        key: String,
        attempt: i64,
    },
    /// Its final answer was there already.
    Remembered {
        step: String,
    },
    Sending {
        step: String,
        tool: String,
    },
    Heard {
        step: String,
        status: u16,
        code: Option<String>,
        replayed: bool,
    },
    /// `sent`: it may have happened.
    Lost {
        step: String,
        why: String,
        sent: bool,
    },
    Waiting {
        step: String,
        millis: u64,
    },
    LookedUp {
        step: String,
        state: String,
    },
    Concluded {
        step: String,
        status: u16,
    },
}

pub struct Runner<'a, T, W> {
    pub transport: &'a T,
    pub time: &'a W,
    pub store: &'a KeyStore,
    pub run: Run,
    pub policy: Policy,
    pub chance: Box<dyn Chance>,
    pub watch: Box<dyn Fn(Event) + Send + 'a>,
}

impl<T: Transport, W: Time> Runner<'_, T, W> {
    /// One write, once.
    pub async fn call(&mut self, call: &Call) -> Result<Done, Stop> {
        let keyed = self.store.create_or_get(&self.run, &call.step(), self.time.now())?;
        let Keyed { key, attempt, sent_at, answer } = keyed;
        (self.watch)(Event::Key { step: call.step.clone(), key: key.as_str().to_owned(), attempt });
        let answer = match answer {
            Some(answer) => {
                (self.watch)(Event::Remembered { step: call.step.clone() });
                answer
            }
            None => {
                self.store.mark_sent(&key, self.time.now())?;
                let answer = self.settle(call, &key, sent_at).await?;
                if is_kept(&answer) {
                    self.store.conclude(&key, &answer)?;
                    (self.watch)(Event::Concluded { step: call.step.clone(), status: answer.status });
                }
                answer
            }
        };
        judge(answer, key, attempt)
    }

    /// Propose, then confirm. A final no that says so takes a new attempt: with the next of the bodies that were authorised,
    /// as many times as there are bodies. Returns what confirming answered.
    pub async fn two_steps(
        &mut self,
        propose: &Call,
        bodies: &[Value],
        confirm: impl Fn(&Value, i64) -> Call,
    ) -> Result<Done, Stop> {
        let begun = self.store.attempt(&self.run, &propose.step)?;
        let mut told: Option<(IdempotencyKey, Answer)> = None;
        for (attempt, body) in (1..).zip(bodies).filter(|(attempt, _)| *attempt >= begun) {
            let propose = Call { body: Some(body.clone()), ..propose.clone() };
            if let Some((because, _)) = &told {
                self.store.raise(&self.run, &propose.step(), attempt - 1, because, self.time.now())?;
            }
            let ended = match self.call(&propose).await {
                Ok(proposed) => self.call(&confirm(&proposed.answer, attempt)).await,
                Err(stop) => Err(stop),
            };
            match ended {
                Err(Stop::Again { because, problem, .. }) => told = Some((because, problem)),
                ended => return ended,
            }
        }
        let attempt = i64::try_from(bodies.len()).unwrap_or(i64::MAX);
        Err(match told {
            Some((because, problem)) => Stop::Again { because, attempt, problem },
            None => Stop::NotAuthorised { attempt: begun },
        })
    }

    /// Sends it until the answer won't change. `sent_at` is when an earlier life sent it first.
    async fn settle(&mut self, call: &Call, key: &IdempotencyKey, sent_at: Option<Timestamp>) -> Result<Answer, Stop> {
        let request = call.request(key);
        let mut budget = Budget::new(self.policy, self.time.now());
        let mut may_have_happened = sent_at.is_some();
        while sent_at.is_none_or(|at| self.time.now() <= at.after(self.policy.resend_within)) {
            (self.watch)(Event::Sending { step: call.step.clone(), tool: call.tool.to_owned() });
            let outcome = self.transport.send(&request).await;
            self.tell(call, &outcome);
            let class = classify(&outcome);
            may_have_happened |= class == Class::Unknown;
            let floor = match outcome {
                Ok(answer) if answer.is_final() => return Ok(answer),
                Ok(_) if class == Class::Terminal && may_have_happened => break,
                Ok(answer) if class == Class::Terminal => return Ok(answer),
                Ok(answer) => {
                    if let Some(at) = answer.key_expires {
                        budget.within(at);
                    }
                    answer.retry_after.unwrap_or_default()
                }
                Err(_) => Duration::ZERO,
            };
            let Some(wait) = budget.next(self.time.now(), floor, self.chance.as_mut()) else { break };
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            (self.watch)(Event::Waiting { step: call.step.clone(), millis });
            self.time.sleep(wait).await;
        }
        match may_have_happened {
            true => self.look_up(call, key).await,
            false => Err(Stop::NotYet(format!("{} isn't sent any more", call.step))),
        }
    }

    /// The last question is what became of the key: it runs nothing.
    async fn look_up(&self, call: &Call, key: &IdempotencyKey) -> Result<Answer, Stop> {
        let path = "/operation-status".to_owned();
        let lookup = Request { method: "GET", path, body: None, key: Some(key.clone()) };
        let looked = self.transport.send(&lookup).await;
        let found = looked.ok().filter(|answer| answer.status == 200).map(|answer| answer.json()).unwrap_or_default();
        let state = found["status"].as_str().unwrap_or("not told").to_owned();
        (self.watch)(Event::LookedUp { step: call.step.clone(), state: state.clone() });
        let status = found["http_status"].as_u64().and_then(|status| u16::try_from(status).ok());
        match (state.as_str(), status) {
            ("completed", Some(status)) => {
                Ok(Answer { status, body: found["response"].to_string(), replayed: true, ..Answer::default() })
            }
            _ => Err(Stop::Unknown(format!("{} isn't sent any more, and its key is {state}", call.step))),
        }
    }

    fn tell(&self, call: &Call, outcome: &Result<Answer, Lost>) {
        let step = call.step.clone();
        (self.watch)(match outcome {
            Ok(answer) => Event::Heard {
                step,
                status: answer.status,
                code: answer.code().map(|code| code.as_str().to_owned()),
                replayed: answer.replayed,
            },
            Err(Lost::NotSent(why)) => Event::Lost { step, why: why.clone(), sent: false },
            Err(Lost::NoAnswer(why)) => Event::Lost { step, why: why.clone(), sent: true },
        });
    }
}

/// What is written down: what decides the call, what has to be mended in it (nothing was sent before that could have
/// happened), and what only a person may go past, however often the run is started again.
fn is_kept(answer: &Answer) -> bool {
    let mend = answer.recovery() == Some(Recovery::FixRequest);
    mend || answer.is_final() || answer.code().is_some_and(Code::awaits_a_person)
}

/// What an answer that won't change makes of the step.
fn judge(answer: Answer, because: IdempotencyKey, attempt: i64) -> Result<Done, Stop> {
    if classify(&Ok(answer.clone())) == Class::Done {
        return Ok(Done { answer: answer.json(), key: because, attempt });
    }
    Err(match answer.recovery() {
        Some(Recovery::NewKey | Recovery::ProposeAgain) => Stop::Again { because, attempt, problem: answer },
        Some(Recovery::FixRequest) => Stop::Fix(answer),
        Some(Recovery::Stop) => Stop::Over(answer),
        Some(Recovery::AskHuman | Recovery::RetrySameKey) | None => Stop::Human(answer),
    })
}

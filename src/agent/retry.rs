//! When to send it again, how long to wait, and when to stop. Full jitter (Exponential Backoff and Jitter, AWS
//! Architecture Blog, 2015): who failed together must not come back together. `Retry-After` is a floor, and the jitter comes
//! on top of it: those who were told the same wait would all come at its end otherwise.

use super::Chance;
use super::client::{Answer, Lost};
use crate::domain::error::{Code, Recovery};
use crate::domain::time::Timestamp;
use std::time::Duration;

/// What an outcome means for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It did what was asked.
    Done,
    /// Nothing was done, and a wait may help.
    Transient,
    /// It may have happened: the same call again, with the same key, and nothing else instead.
    Unknown,
    /// It won't change: exactly one attempt.
    Terminal,
}

pub fn classify(outcome: &Result<Answer, Lost>) -> Class {
    match outcome {
        Err(Lost::NotSent(_)) => Class::Transient,
        Err(Lost::NoAnswer(_)) => Class::Unknown,
        Ok(answer) => match (answer.code(), answer.recovery()) {
            (Some(code), Some(Recovery::RetrySameKey)) => classify_wait(code),
            (None, Some(Recovery::RetrySameKey)) => Class::Unknown,
            (_, Some(_)) => Class::Terminal,
            (_, None) if answer.is_success() => Class::Done,
            (_, None) => classify_status(answer.status),
        },
    }
}

fn classify_wait(code: Code) -> Class {
    let unknown = code.is_undecided() || code == Code::InternalError;
    if unknown { Class::Unknown } else { Class::Transient }
}

/// Without a problem of the API's own it is somebody's in between: what a proxy turns away or answers with a page may have
/// gone through.
fn classify_status(status: u16) -> Class {
    match status {
        200..=299 | 408 | 429 | 500.. => Class::Unknown,
        _ => Class::Terminal,
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The first wait is up to this; each one after is up to twice as much.
    pub base: Duration,
    /// No wait is longer, but for `Retry-After`.
    pub cap: Duration,
    /// How often one call is sent by one life of a run.
    pub sends: u32,
    /// From the first of them to the last.
    pub total: Duration,
    /// A call whose answer was lost isn't sent again by a later life of the run than this, but looked up: once its key is
    /// forgotten, it would be new work. Half of the shortest retention that the server has.
    pub resend_within: Duration,
}

impl Policy {
    /// Two minutes: an outage that is longer is for a person, or for the next run. 12 hours: keys are kept for 24 and more.
    pub const DEFAULT: Self = Self {
        base: Duration::from_millis(500),
        cap: Duration::from_secs(15),
        sends: 12,
        total: Duration::from_secs(120),
        resend_within: Duration::from_secs(12 * 60 * 60),
    };

    /// The longest wait after so many sends, without a floor.
    pub fn ceiling(&self, sent: u32) -> Duration {
        self.base.saturating_mul(1 << sent.saturating_sub(1).min(16)).min(self.cap)
    }

    pub fn wait(&self, sent: u32, floor: Duration, chance: &mut dyn Chance) -> Duration {
        let ceiling = u64::try_from(self.ceiling(sent).as_millis()).unwrap_or(u64::MAX);
        floor.saturating_add(Duration::from_millis(chance.up_to(ceiling)))
    }
}

/// What one call may still cost.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    policy: Policy,
    sent: u32,
    begun: Timestamp,
    ends: Timestamp,
}

impl Budget {
    pub fn new(policy: Policy, now: Timestamp) -> Self {
        Self { policy, sent: 0, begun: now, ends: now.after(policy.total) }
    }

    /// A key isn't used beyond half of what its answer is kept for: a repeat that comes after that would be new work, or
    /// refused.
    pub fn within(&mut self, key_expires: Timestamp) {
        self.ends = self.ends.min(self.begun.after(key_expires.until(self.begun) / 2));
    }

    /// The wait before the next attempt. None: enough.
    pub fn next(&mut self, now: Timestamp, floor: Duration, chance: &mut dyn Chance) -> Option<Duration> {
        self.sent += 1;
        if self.sent >= self.policy.sends {
            return None;
        }
        let wait = self.policy.wait(self.sent, floor, chance);
        (wait < self.ends.until(now)).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const POLICY: Policy = Policy::DEFAULT;

    fn millis(wait: Duration) -> u64 {
        u64::try_from(wait.as_millis()).unwrap()
    }

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let ceilings: Vec<u64> = (1..=8).map(|attempts| millis(POLICY.ceiling(attempts))).collect();
        assert_eq!(ceilings, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
        assert_eq!(POLICY.ceiling(u32::MAX), POLICY.cap);
    }

    #[test]
    fn waits_are_uniform_from_zero_to_the_ceiling() {
        let mut chance = fastrand::Rng::with_seed(1);
        let mut buckets = [0_u32; 10];
        for _ in 0..10_000 {
            let wait = millis(POLICY.wait(2, Duration::ZERO, &mut chance));
            assert!(wait <= 1000);
            buckets[usize::try_from(wait * 10 / 1001).unwrap()] += 1;
        }
        // 1,000 each; the standard deviation is 30.
        assert!(buckets.iter().all(|count| (850..1150).contains(count)), "{buckets:?}");
    }

    #[test]
    fn retry_after_is_a_floor_with_the_jitter_on_top() {
        let mut chance = fastrand::Rng::with_seed(2);
        let floor = Duration::from_secs(3);
        let waits: Vec<Duration> = (0..1000).map(|_| POLICY.wait(1, floor, &mut chance)).collect();
        assert!(waits.iter().all(|wait| (floor..=floor + Duration::from_millis(500)).contains(wait)));
        let late = waits.iter().filter(|wait| **wait > floor + Duration::from_millis(250)).count();
        assert!((400..600).contains(&late), "{late}");
    }

    #[test]
    fn patience_ends_with_the_attempts_the_time_or_half_of_what_the_answer_is_kept_for() {
        let mut chance = fastrand::Rng::with_seed(3);
        let begun = Timestamp::from_unix_millis(1_796_117_400_000).unwrap();
        let mut budget = Budget::new(POLICY, begun);
        let attempts = std::iter::from_fn(|| budget.next(begun, Duration::ZERO, &mut chance)).count();
        assert_eq!(attempts, 11, "and the first makes twelve");

        let mut budget = Budget::new(POLICY, begun);
        let late = begun.after(Duration::from_secs(119));
        assert_eq!(budget.next(late, Duration::from_secs(1), &mut chance), None);
        assert_eq!(budget.next(begun, Duration::MAX, &mut chance), None, "whatever Retry-After says");

        let mut budget = Budget::new(POLICY, begun);
        budget.within(begun.after(Duration::from_secs(20)));
        assert!(budget.next(begun.after(Duration::from_secs(5)), Duration::ZERO, &mut chance).is_some());
        assert_eq!(budget.next(begun.after(Duration::from_secs(10)), Duration::ZERO, &mut chance), None);
    }

    #[test]
    fn a_fleet_does_not_come_back_in_waves() {
        // 200 agents whose calls all failed at one moment, and the server told each to wait a second.
        let arrivals = |attempt: u32| {
            let mut arrivals: BTreeMap<u64, u32> = BTreeMap::new();
            for agent in 0..200 {
                let mut chance = fastrand::Rng::with_seed(agent);
                let at: u64 = (1..=attempt).map(|n| millis(POLICY.wait(n, Duration::from_secs(1), &mut chance))).sum();
                *arrivals.entry(at / 100).or_default() += 1;
            }
            arrivals
        };
        for (attempt, most) in [(1, 65), (2, 40), (4, 20), (6, 12)] {
            let (arrivals, most_at_once) = (arrivals(attempt), most);
            let peak = arrivals.values().max().copied().unwrap();
            assert!(peak <= most_at_once, "after {attempt} attempts, {peak} of 200 come within 100 ms");
        }
    }

    #[test]
    fn every_problem_has_its_class() {
        for code in Code::ALL {
            let row = code.row();
            let body = format!(r#"{{"code":"{}","recovery":"{}"}}"#, code.as_str(), row.recovery.as_str());
            let class = classify(&Ok(Answer { status: row.status, body, ..Answer::default() }));
            let waits = row.recovery == Recovery::RetrySameKey;
            assert_eq!(matches!(class, Class::Transient | Class::Unknown), waits, "{code:?}");
            assert_eq!(class == Class::Terminal, !waits, "{code:?}");
        }
        let bare = |status| classify(&Ok(Answer { status, ..Answer::default() }));
        let page = |status, body: &str| classify(&Ok(Answer { status, body: body.to_owned(), ..Answer::default() }));
        assert_eq!([page(200, "{}"), page(204, "")], [Class::Done; 2]);
        assert_eq!(page(200, "<html>"), Class::Unknown, "a login page");
        assert_eq!(page(503, r#"{"code":"newer_than_this","recovery":"retry_same_key"}"#), Class::Unknown);
        assert_eq!([408, 429, 500, 502, 503, 504].map(bare), [Class::Unknown; 6]);
        assert_eq!([301, 400, 404, 409, 422].map(bare), [Class::Terminal; 5]);
        assert_eq!(classify(&Err(Lost::NotSent(String::new()))), Class::Transient);
        assert_eq!(classify(&Err(Lost::NoAnswer(String::new()))), Class::Unknown);
    }
}

//! Which shops explain what was answered. Calls that overlap may take their steps in any order (Wing and Gong,
//! "Testing and verifying concurrent objects", 1993); one whose answer is lost may have stopped anywhere.

use super::calls::Call;
use super::rules::{Step, Subject, begin, decide, finish, undecided};
use super::shop::{Expect, Shop, Status, Time, is_money};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Progress {
    Waiting,
    Asked(Subject),
    Done,
}

/// A call whose client went away, and which may still be running.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ghost {
    call: Arc<Call>,
    progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    shop: Arc<Shop>,
    ghosts: Vec<Ghost>,
}

/// A call of a burst: what it was, and how to tell whether an answer is the one that it got. None: its answer is lost.
pub struct Seen<'a> {
    pub call: Arc<Call>,
    /// When it took its first step.
    pub begun_at: Time,
    pub fits: Option<&'a dyn Fn(&Expect) -> bool>,
}

/// What becomes of a call whose answer is lost.
#[derive(Clone, Copy, PartialEq)]
pub enum Lost {
    /// The server has died with it.
    Died,
    /// The server may go on with it.
    GoesOn,
}

/// Whether the server's workers may go on with what was begun.
#[derive(Clone, Copy, PartialEq)]
pub enum Workers {
    Recover,
    Rest,
}

/// More shops than so many explain nothing any more.
const LIMIT: usize = 20_000;

/// Every shop that explains what was answered until now.
pub struct Worlds(Set<World>);

/// Of the same order in every run, so that a seed tells the same history.
type Set<T> = HashSet<T, BuildHasherDefault<DefaultHasher>>;

impl Worlds {
    pub fn new(shop: Shop) -> Self {
        Self(Set::from_iter([World { shop: Arc::new(shop), ghosts: Vec::new() }]))
    }

    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Any of the shops.
    pub fn any(&self) -> &Shop {
        &self.0.iter().next().expect("something explains it").shop
    }

    pub fn have_ghosts(&self) -> bool {
        self.0.iter().any(|world| !world.ghosts.is_empty())
    }

    /// Nobody goes on with anything: their server has died.
    pub fn without_ghosts(&self) -> Self {
        Self(self.0.iter().map(|world| World { ghosts: Vec::new(), shop: world.shop.clone() }).collect())
    }

    /// The shops that explain a burst of calls too. None are left if nothing does.
    pub fn after(&self, burst: &[Seen], lost: Lost, workers: Workers, now: Time) -> Self {
        type State = (World, Vec<Progress>);
        let start = vec![Progress::Waiting; burst.len()];
        let mut all: Set<State> = self.0.iter().map(|world| (world.clone(), start.clone())).collect();
        let mut fresh: Vec<State> = all.iter().cloned().collect();
        while let Some((world, progress)) = fresh.pop() {
            let mut reached: Vec<State> = Vec::new();
            for (i, seen) in burst.iter().enumerate() {
                let busy = || overlaps(burst, &world.ghosts, i);
                for (shop, next) in steps(&world.shop, &seen.call, &progress[i], seen.fits, &busy, (seen.begun_at, now))
                {
                    let mut progress = progress.clone();
                    progress[i] = next;
                    reached.push((World { shop, ghosts: world.ghosts.clone() }, progress));
                }
            }
            for (i, ghost) in world.ghosts.iter().enumerate() {
                for (shop, next) in steps(&world.shop, &ghost.call, &ghost.progress, None, &|| true, (now, now)) {
                    let mut ghosts = world.ghosts.clone();
                    ghosts[i].progress = next;
                    reached.push((World { ghosts: haunting(ghosts, &shop), shop }, progress.clone()));
                }
            }
            if workers == Workers::Recover {
                for subject in undecided(&world.shop) {
                    let shop = Arc::new(decide(&world.shop, subject, now).0);
                    reached.push((World { shop, ghosts: world.ghosts.clone() }, progress.clone()));
                }
            }
            for state in reached {
                assert!(all.len() < LIMIT, "too many shops explain it");
                if all.insert(state.clone()) {
                    fresh.push(state);
                }
            }
        }
        Self(all.into_iter().filter_map(|(world, progress)| end(world, progress, burst, lost)).collect())
    }
}

/// The world after a burst, if every call that was answered has been.
fn end(mut world: World, progress: Vec<Progress>, burst: &[Seen], lost: Lost) -> Option<World> {
    for (seen, progress) in burst.iter().zip(progress) {
        match (progress, seen.fits) {
            (Progress::Done, _) => {}
            (_, Some(_)) => return None,
            (_, None) if lost == Lost::Died => {}
            (_, None) if !seen.call.ask.writes() => {}
            (progress, None) => world.ghosts.push(Ghost { call: seen.call.clone(), progress }),
        }
    }
    if lost == Lost::Died {
        world.ghosts.clear();
    }
    world.ghosts = haunting(world.ghosts, &world.shop);
    Some(world)
}

/// Those that may still do something, in an order of their own: equal sets are equal.
fn haunting(mut ghosts: Vec<Ghost>, shop: &Shop) -> Vec<Ghost> {
    let is_settled = |ghost: &Ghost| match ghost.progress {
        Progress::Done => true,
        Progress::Asked(subject) => !undecided(shop).contains(&subject),
        Progress::Waiting => is_answered(shop, &ghost.call),
    };
    ghosts.retain(|ghost| !is_settled(ghost));
    ghosts.sort_by_cached_key(|ghost| format!("{ghost:?}"));
    ghosts.dedup_by(|one, other| one == other && is_money(&one.call.ask)); // the second is told what the first did
    ghosts
}

/// Whether the call can only be told what is decided.
fn is_answered(shop: &Shop, call: &Call) -> bool {
    // Other keys are forgotten after a day, and then it is new work.
    let claim = call.tag().filter(|_| is_money(&call.ask)).and_then(|tag| shop.claims.get(&tag));
    let has_key = claim.is_some_and(|claim| claim.answer.is_some());
    let is_over = about(call)
        .and_then(|tag| shop.offers.get(&tag))
        .is_some_and(|offer| matches!(offer.status, Status::Confirmed | Status::Declined | Status::Cancelled));
    has_key || is_over
}

/// What one call may do next.
fn steps(
    shop: &Arc<Shop>,
    call: &Call,
    progress: &Progress,
    fits: Option<&dyn Fn(&Expect) -> bool>,
    busy: &dyn Fn() -> bool,
    (begun_at, now): (Time, Time),
) -> Vec<(Arc<Shop>, Progress)> {
    let ways = match progress {
        Progress::Waiting => begin(shop, call, begun_at),
        Progress::Asked(subject) => finish(shop, *subject, now),
        Progress::Done => return Vec::new(),
    };
    let fits = |expect: &Expect| fits.is_none_or(|fits| fits(expect));
    let mut next: Vec<_> = ways
        .into_iter()
        .filter_map(|(shop, step)| match step {
            Step::Asked(subject) => Some((Arc::new(shop), Progress::Asked(subject))),
            Step::Answered(expect) if fits(&expect) => Some((Arc::new(shop), Progress::Done)),
            Step::Answered(_) => None,
        })
        .collect();
    // Whoever comes while the same thing is being done may be told to wait.
    let wait = ["idempotency_in_flight", "operation_in_flight"];
    if *progress == Progress::Waiting && busy() && wait.iter().any(|code| fits(&Expect::problem(409, code))) {
        next.push((shop.clone(), Progress::Done));
    }
    next
}

/// Whether another call that is about the same may be running.
fn overlaps(burst: &[Seen], ghosts: &[Ghost], this: usize) -> bool {
    let call = &burst[this].call;
    let same = |other: &Call| {
        let key = call.tag().is_some() && other.tag() == call.tag();
        key || about(other).is_some_and(|offer| Some(offer) == about(call))
    };
    let others = burst.iter().enumerate().filter(|(i, _)| *i != this).map(|(_, seen)| &*seen.call);
    others.chain(ghosts.iter().map(|ghost| &*ghost.call)).any(same)
}

/// The confirmation that a call moves.
fn about(call: &Call) -> Option<super::calls::Tag> {
    use super::calls::Ask;
    match call.ask {
        Ask::Confirm(tag, _) | Ask::ConfirmRefund(tag, _) | Ask::Cancel(tag) => Some(tag),
        _ => None,
    }
}

//! What a test may do to a server in another process, with the cargo feature `failpoints` and a folder that the
//! environment variable `COUNTERSIGN_CONTROL` names. Without the feature every call is an empty function, and the clock
//! is the system's.
//!
//! - `failpoints`: points and what they do, such as `before_claim=1*return(abort)` (the notation of the crate `fail`,
//!   joined by `;`). Whoever passes a point next takes the file away; from then on these are armed, and no others.
//! - `held`: made by whoever stops at a point that is told to `return(hold)`; it goes on when the file is gone.
//! - `clock`: the time, in milliseconds since 1970. Without it at the start, the system's clock counts.

use crate::clock::Clock;
use crate::domain::error::Problem;

/// Every point, in the order in which a purchase passes them.
pub const ALL: &[&str] = &[
    BEFORE_CLAIM,
    BEFORE_LOCAL_COMMIT,
    AFTER_LOCAL_COMMIT,
    BEFORE_PHASE_ONE_COMMIT,
    AFTER_PHASE_ONE,
    BEFORE_PROVIDER,
    PROVIDER_ACTED,
    PROVIDER_ANSWERED,
    BEFORE_PHASE_THREE_COMMIT,
    AFTER_PHASE_THREE_COMMIT,
];

pub const BEFORE_CLAIM: &str = "before_claim";
/// The effect and the answer of a local operation are written, not committed.
pub const BEFORE_LOCAL_COMMIT: &str = "before_local_commit";
/// They are committed, and the answer is not on its way yet.
pub const AFTER_LOCAL_COMMIT: &str = "after_local_commit";
/// What is about to be asked, or refused, is written, not committed.
pub const BEFORE_PHASE_ONE_COMMIT: &str = "before_phase_one_commit";
pub const AFTER_PHASE_ONE: &str = "after_phase_one";
pub const BEFORE_PROVIDER: &str = "before_provider";
/// Inside the sandbox provider: its ledger has the charge, its answer is not on its way yet.
pub const PROVIDER_ACTED: &str = "provider_acted";
pub const PROVIDER_ANSWERED: &str = "provider_answered";
pub const BEFORE_PHASE_THREE_COMMIT: &str = "before_phase_three_commit";
pub const AFTER_PHASE_THREE_COMMIT: &str = "after_phase_three_commit";

/// Fails, aborts or waits if the point is armed.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) -> Result<(), Problem> {
    control::arm();
    fail::fail_point!(name, |action| match action.as_deref() {
        Some("abort") => std::process::abort(),
        Some("hold") => {
            control::hold();
            Ok(())
        }
        Some(_) | None => Err(Problem::internal(format!("failpoint {name}"))),
    });
    Ok(())
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) -> Result<(), Problem> {
    Ok(())
}

/// The clock that the server goes by.
pub fn clock() -> Clock {
    #[cfg(feature = "failpoints")]
    if let Some(clock) = control::FOLDER.as_ref().map(|folder| folder.join("clock")).filter(|clock| clock.exists()) {
        return Clock::File(clock.into());
    }
    Clock::System
}

#[cfg(feature = "failpoints")]
mod control {
    use std::path::PathBuf;
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::Duration;
    use tokio::runtime::{Handle, RuntimeFlavor};

    pub static FOLDER: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("COUNTERSIGN_CONTROL").map(PathBuf::from));

    static ARMING: Mutex<()> = Mutex::new(());

    /// Arms what the file says, once.
    pub fn arm() {
        let Some(file) = FOLDER.as_ref().map(|folder| folder.join("failpoints")) else { return };
        let _one_at_a_time = ARMING.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(points) = std::fs::read_to_string(&file) else { return };
        let _ = std::fs::remove_file(&file);
        let armed = super::ALL.iter().map(|point| (*point, "off"));
        for (point, actions) in armed.chain(points.split(';').filter_map(|point| point.trim().split_once('='))) {
            if let Err(error) = fail::cfg(point, actions) {
                tracing::error!(point, actions, error, "not armed");
            }
        }
    }

    /// On a runtime of many threads other tasks go on meanwhile; on a connection's thread they wait.
    pub fn hold() {
        let Some(held) = FOLDER.as_ref().map(|folder| folder.join("held")) else { return };
        let wait = || {
            let _ = std::fs::write(&held, "");
            while held.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            Ok(_) | Err(_) => wait(),
        }
    }
}

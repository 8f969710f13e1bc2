//! Named points where a test makes the server fail (`return`) or abort (`return(abort)`), through the environment
//! variable `FAILPOINTS` and the cargo feature `failpoints`. Without the feature every call is an empty function.

use crate::domain::error::Problem;

/// Every point, in the order in which a purchase passes them.
pub const ALL: &[&str] = &[
    BEFORE_CLAIM,
    BEFORE_LOCAL_COMMIT,
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
pub const AFTER_PHASE_ONE: &str = "after_phase_one";
pub const BEFORE_PROVIDER: &str = "before_provider";
/// Inside the sandbox provider: its ledger has the charge, its answer is not on its way yet.
pub const PROVIDER_ACTED: &str = "provider_acted";
pub const PROVIDER_ANSWERED: &str = "provider_answered";
pub const BEFORE_PHASE_THREE_COMMIT: &str = "before_phase_three_commit";
pub const AFTER_PHASE_THREE_COMMIT: &str = "after_phase_three_commit";

/// Fails or aborts if the point is armed.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) -> Result<(), Problem> {
    fail::fail_point!(name, |action| match action.as_deref() {
        Some("abort") => std::process::abort(),
        Some(_) | None => Err(Problem::internal(format!("failpoint {name}"))),
    });
    Ok(())
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) -> Result<(), Problem> {
    Ok(())
}

/// Reads `FAILPOINTS` once, at start-up.
pub fn arm() {
    #[cfg(feature = "failpoints")]
    std::mem::forget(fail::FailScenario::setup());
}

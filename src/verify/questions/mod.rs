//! The checklist. Each question makes its own keys and buys what it needs; none relies on another.

mod confirmations;
mod documents;
mod keys;
mod parallel;
mod refunds;
mod restart;
mod strangers;
mod watched;

use super::report::Outcome;
use super::shop::Shop;
use super::{Stop, VerifyArgs};

/// In the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    KeyDemanded,
    SameKeySameAnswer,
    FingerprintMismatchRefused,
    SameRefundWrittenDifferently,
    SameKeyInParallel,
    ConfirmOnce,
    DryRunOrTwoStep,
    ConfirmationBound,
    NoFloatAmounts,
    OthersSeeNothing,
    EffectProfilePublished,
    BackOffAdvice,
    RefundLimit,
    AnswerSurvivesRestart,
}

use Question::{
    AnswerSurvivesRestart, BackOffAdvice, ConfirmOnce, ConfirmationBound, DryRunOrTwoStep, EffectProfilePublished,
    FingerprintMismatchRefused, KeyDemanded, NoFloatAmounts, OthersSeeNothing, RefundLimit, SameKeyInParallel,
    SameKeySameAnswer, SameRefundWrittenDifferently,
};

impl Question {
    pub const ALL: [Question; 14] = [
        KeyDemanded,
        SameKeySameAnswer,
        FingerprintMismatchRefused,
        SameRefundWrittenDifferently,
        SameKeyInParallel,
        ConfirmOnce,
        DryRunOrTwoStep,
        ConfirmationBound,
        NoFloatAmounts,
        OthersSeeNothing,
        EffectProfilePublished,
        BackOffAdvice,
        RefundLimit,
        AnswerSurvivesRestart,
    ];

    /// Two are about every answer that the others got: they come last.
    pub fn in_order_of_asking() -> Vec<Question> {
        let (last, mut first): (Vec<_>, Vec<_>) =
            Self::ALL.into_iter().partition(|question| matches!(question, NoFloatAmounts | BackOffAdvice));
        first.extend(last);
        first
    }

    /// Its name for programs, which doesn't change, and for people.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            KeyDemanded => ("key_demanded", "Is a call without its key refused?"),
            SameKeySameAnswer => ("same_key_same_answer", "Does a repeat get the first answer?"),
            FingerprintMismatchRefused => ("fingerprint_mismatch_refused", "Is a key kept from other requests?"),
            SameRefundWrittenDifferently => {
                ("same_refund_written_differently", "Is a refund the same in any notation?")
            }
            SameKeyInParallel => ("same_key_in_parallel", "Do parallel calls have one effect?"),
            ConfirmOnce => ("confirm_once", "Does a confirmation make one order?"),
            DryRunOrTwoStep => ("dry_run_or_two_step", "Is the irreversible shown first?"),
            ConfirmationBound => ("confirmation_bound", "Is confirming bound to the total?"),
            NoFloatAmounts => ("no_float_amounts", "Are amounts decimal strings?"),
            OthersSeeNothing => ("others_see_nothing", "Are others kept out?"),
            EffectProfilePublished => ("effect_profile_published", "Is each effect profile published?"),
            BackOffAdvice => ("back_off_advice", "Is there advice when to retry?"),
            RefundLimit => ("refund_limit", "Is no more refunded than was paid?"),
            AnswerSurvivesRestart => ("answer_survives_restart", "Do answers survive a restart?"),
        }
    }

    pub const fn id(self) -> &'static str {
        self.names().0
    }

    pub const fn text(self) -> &'static str {
        self.names().1
    }

    pub async fn ask(self, shop: &Shop, args: &VerifyArgs) -> Result<Outcome, Stop> {
        let evidence = match self {
            KeyDemanded => keys::key_demanded(shop).await,
            SameKeySameAnswer => keys::same_key_same_answer(shop).await,
            FingerprintMismatchRefused => keys::fingerprint_mismatch_refused(shop).await,
            SameRefundWrittenDifferently => refunds::same_refund_written_differently(shop).await,
            SameKeyInParallel => parallel::same_key_in_parallel(shop).await,
            ConfirmOnce => parallel::confirm_once(shop).await,
            DryRunOrTwoStep => confirmations::dry_run_or_two_step(shop).await,
            ConfirmationBound => confirmations::confirmation_bound(shop).await,
            NoFloatAmounts => watched::no_float_amounts(shop),
            OthersSeeNothing => strangers::others_see_nothing(shop, args.other_key.as_deref()).await,
            EffectProfilePublished => documents::effect_profile_published(shop).await,
            BackOffAdvice => watched::back_off_advice(shop),
            RefundLimit => refunds::refund_limit(shop).await,
            AnswerSurvivesRestart => {
                let Some(command) = &args.restart_command else {
                    return Ok(Outcome::Skipped("not asked: it takes --restart-command".into()));
                };
                restart::answer_survives_restart(shop, command).await
            }
        };
        evidence.map(Outcome::Pass)
    }
}

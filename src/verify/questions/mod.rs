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
use crate::domain::words::words;

words! {
    /// In the order of the report. The words are for programs, and don't change.
    pub enum Question {
        KeyDemanded = "key_demanded",
        SameKeySameAnswer = "same_key_same_answer",
        FingerprintMismatchRefused = "fingerprint_mismatch_refused",
        SameRefundWrittenDifferently = "same_refund_written_differently",
        SameKeyInParallel = "same_key_in_parallel",
        ConfirmOnce = "confirm_once",
        DryRunOrTwoStep = "dry_run_or_two_step",
        ConfirmationBound = "confirmation_bound",
        NoFloatAmounts = "no_float_amounts",
        OthersSeeNothing = "others_see_nothing",
        EffectProfilePublished = "effect_profile_published",
        BackOffAdvice = "back_off_advice",
        RefundLimit = "refund_limit",
        AnswerSurvivesRestart = "answer_survives_restart",
    }
}

impl Question {
    /// Two are about every answer that the others got: they come last.
    pub fn in_order_of_asking() -> Vec<Question> {
        let mut questions = Self::ALL.to_vec();
        questions.sort_by_key(|question| matches!(question, Question::NoFloatAmounts | Question::BackOffAdvice));
        questions
    }

    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Question::KeyDemanded => "Is a call without its key refused?",
            Question::SameKeySameAnswer => "Does a repeat get the first answer?",
            Question::FingerprintMismatchRefused => "Is a key kept from other requests?",
            Question::SameRefundWrittenDifferently => "Is a refund the same in any notation?",
            Question::SameKeyInParallel => "Do parallel calls have one effect?",
            Question::ConfirmOnce => "Does a confirmation make one order?",
            Question::DryRunOrTwoStep => "Is the irreversible shown first?",
            Question::ConfirmationBound => "Is confirming bound to the total?",
            Question::NoFloatAmounts => "Are amounts decimal strings?",
            Question::OthersSeeNothing => "Are others kept out?",
            Question::EffectProfilePublished => "Is each effect profile published?",
            Question::BackOffAdvice => "Is there advice when to retry?",
            Question::RefundLimit => "Is no more refunded than was paid?",
            Question::AnswerSurvivesRestart => "Do answers survive a restart?",
        }
    }

    pub async fn ask(self, shop: &Shop, args: &VerifyArgs) -> Result<Outcome, Stop> {
        let evidence = match self {
            Question::KeyDemanded => keys::key_demanded(shop).await,
            Question::SameKeySameAnswer => keys::same_key_same_answer(shop).await,
            Question::FingerprintMismatchRefused => keys::fingerprint_mismatch_refused(shop).await,
            Question::SameRefundWrittenDifferently => refunds::same_refund_written_differently(shop).await,
            Question::SameKeyInParallel => parallel::same_key_in_parallel(shop).await,
            Question::ConfirmOnce => parallel::confirm_once(shop).await,
            Question::DryRunOrTwoStep => confirmations::dry_run_or_two_step(shop).await,
            Question::ConfirmationBound => confirmations::confirmation_bound(shop).await,
            Question::NoFloatAmounts => watched::no_float_amounts(shop),
            Question::OthersSeeNothing => strangers::others_see_nothing(shop, args.other_key.as_deref()).await,
            Question::EffectProfilePublished => documents::effect_profile_published(shop).await,
            Question::BackOffAdvice => watched::back_off_advice(shop),
            Question::RefundLimit => refunds::refund_limit(shop).await,
            Question::AnswerSurvivesRestart => {
                let Some(command) = &args.restart_command else {
                    return Ok(Outcome::Skipped("not asked: it takes --restart-command".into()));
                };
                restart::answer_survives_restart(shop, command).await
            }
        };
        evidence.map(Outcome::Pass)
    }
}

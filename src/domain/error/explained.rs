//! What each problem means, at more length than its `detail`: for the pages under `/problems/`.

use super::Code;

/// A problem explained to whoever builds the caller.
#[derive(Clone, Copy, Debug)]
pub struct Explained {
    pub what_happened: &'static str,
    pub what_to_do: &'static str,
}

impl Code {
    pub const fn explained(self) -> Explained {
        let (what_happened, what_to_do) = match self {
            Code::MalformedRequest => (
                "The request isn't what is documented: its body is not JSON of the documented shape (a syntax error, a wrong \
                 type, a missing, unknown or duplicate member, an unknown word, a NUL character), or its query has an \
                 unknown or repeated parameter. It was refused before anything was looked up or stored.",
                "Compare the request with the operation's schema; `detail` says where reading stopped. Send the corrected \
                 request. A key that came with it is unused.",
            ),
            Code::IdempotencyKeyRequired => (
                "The operation changes something that a repeat would change again, and came without an Idempotency-Key.",
                "Make a key outside the model, once for this step; store it; send the request with it, and keep it on every \
                 retry.",
            ),
            Code::IdempotencyKeyInvalid => (
                "The Idempotency-Key header is blank, was sent twice, is longer than 255 characters, or has characters \
                 that aren't visible ASCII.",
                "Send exactly one Idempotency-Key of 1 to 255 visible ASCII characters, as it is or as a quoted string \
                 (RFC 9651). A random UUID will do.",
            ),
            Code::Unauthenticated => (
                "The Authorization header is missing, malformed, or names no enabled actor.",
                "Send Authorization: Bearer with the actor's credential. If that is what was sent, it was mistyped or the \
                 actor was disabled: whoever runs the server can tell. An agent can't mend this by itself.",
            ),
            Code::PaymentDeclined => (
                "The payment provider said no. Nothing was charged, the confirmation is over, and what it held is free. \
                 This is decided: every repeat of the confirm gets the same answer.",
                "Ask the customer for another payment method, then propose again under a new key.",
            ),
            Code::RefundDeclined => (
                "The payment provider refused to give the money back. No money moved, and the amount can be refunded \
                 again. The refund stays readable as declined.",
                "A person has to find another way: the card may be closed, or the charge disputed. Trying again by itself \
                 gets an agent nowhere.",
            ),
            Code::InsufficientScope => (
                "The actor is known, but may not do this. Scopes are looked at again on each call, replays included.",
                "Ask whoever runs the server for an actor with one of the scopes that `detail` names.",
            ),
            Code::ApproverMustDiffer => (
                "This server wants a second actor for refunds of high stakes, and the one who proposed it tried to confirm \
                 it.",
                "Another actor of the same account, with the scope refunds:confirm, confirms it. It stays pending until it \
                 expires.",
            ),
            Code::NotFound => (
                "There is no such resource for this credential. Whether it exists for somebody else is not told. For a key \
                 that is looked up: nothing is known of it.",
                "Check the id, and that the credential is one that may see it. A key that was looked up: send its call again \
                 with it, if that was a moment ago; otherwise look at the resource first.",
            ),
            Code::NothingToCancel => (
                "The confirmation is cancelled or expired already: the state is the one that was asked for (RFC 9110, \
                 9.2.2: a repeated DELETE has the same effect, not the same status).",
                "Nothing. Count it as done.",
            ),
            Code::MethodNotAllowed => (
                "The path exists, but takes other methods: the header Allow lists them.",
                "Look the operation up in /openapi.json.",
            ),
            Code::RequestTimeout => {
                ("The body didn't arrive in full. Nothing was done.", "Send the same request again, with the same key.")
            }
            Code::PlanChanged => (
                "The request said which total or plan it expected, and the catalogue gives another one now: a price, a \
                 discount, a tax rate or the delivery dates changed since the dry run. Nothing was reserved. `plan` is the \
                 current one. A key is spent on this answer.",
                "Show the current plan to whoever decides. If it is still wanted, propose it with its `plan_digest`, under a \
                 new key.",
            ),
            Code::InsufficientStock => (
                "Fewer units are available than were asked for: they are sold, or held by somebody's confirmation. \
                 `available` has the numbers. Nothing was reserved. A key is spent on this answer, even if stock comes \
                 in later.",
                "Ask for no more than is available, or wait; then send it under a new key.",
            ),
            Code::ProductUnavailable => (
                "Some of the products aren't sold here. Nothing was reserved.",
                "Leave out those that `product_ids` names, and send it under a new key. `search_products` finds what is sold.",
            ),
            Code::DiscountUnavailable => (
                "A discount code can't be used: `reason` says why. Nothing was reserved.",
                "Leave the code out, or make the cart fit it, and send it under a new key.",
            ),
            Code::CurrencyMismatch => (
                "A cart holds products of more than one currency, or a refund is not in the currency that the order was \
                 paid in. Nothing is ever converted.",
                "Make one cart for each currency, or refund in the order's; under a new key.",
            ),
            Code::ShippingUnavailable => (
                "The shipping option is unknown, has no price in the cart's currency, or doesn't go to the address's \
                 country; or no tax rate is known there. `reason` says which.",
                "Choose another option or address, and send it under a new key.",
            ),
            Code::BatchStopped => (
                "An atomic batch has an item that can't be written, so none was. `results` says which, and why.",
                "Mend the refused items or leave them out, and send the batch under a new key. `per_item` writes those that \
                 can be.",
            ),
            Code::ProductIncomplete => (
                "An update names a product that doesn't exist, and sets too little to make it. Only inside a batch's \
                 results.",
                "Check the id. If a new product is meant, set title, price and stock; under a new key.",
            ),
            Code::VersionMismatch => (
                "The product changed since it was read: `if_version` is not its version any more. Nothing was written. Only \
                 inside a batch's results.",
                "Read the product, decide anew, and send that under a new key.",
            ),
            Code::StockBelowHeld => (
                "Confirmations hold more units than the new stock would have. They were promised at a price; they come \
                 first. Only inside a batch's results.",
                "Set at least what is held, or wait until the holds end; under a new key.",
            ),
            Code::AddressChangesPrice => (
                "The new address is in another country or region than the plan was priced for, so its tax or shipping \
                 would differ. Nothing was changed.",
                "Keep to the country and region. Otherwise a person has to refund the order and have it placed anew.",
            ),
            Code::DeliveryStarted => (
                "The order's delivery window has begun: the parcel may be on its way. Nothing was changed.",
                "A person has to ask the carrier.",
            ),
            Code::RefundExceedsRemaining => (
                "More was asked for than is left of the order, after refunds that were made, are under way or are offered. \
                 Nothing was refunded. `remaining_refundable` is what is left, `similar` are equal refunds.",
                "If `similar` isn't empty, this may be a repeat of a refund that was made: look at it first. Otherwise a \
                 person has to say whether less is wanted: asking for less by oneself is how a repeat becomes a second \
                 refund.",
            ),
            Code::EqualRefundMade => (
                "After this refund was offered, an equal one of the same order was made. No money moved now, and the \
                 confirmation is still pending.",
                "If this was a repeat, cancel the confirmation. If a second refund is wanted, a person says so: cancel it and \
                 ask anew.",
            ),
            Code::TooManyPending => (
                "This actor has as many pending confirmations as it may have. Nothing was held. `confirmation_ids` names \
                 them.",
                "Cancel those that aren't wanted, or wait for one to be confirmed or to expire; then send the same request again, \
                 with the same key.",
            ),
            Code::AttemptPending => (
                "An equal purchase or refund of this actor was sent to the provider and its outcome isn't known yet. \
                 Starting a second one now is how customers are charged twice.",
                "Settle the first: `detail` says how. When it is decided, a person has to say whether this one is wanted \
                 besides; then send it again, with the same key.",
            ),
            Code::WrongOperation => (
                "The confirmation is for another operation than the path that it was sent to. It is unchanged.",
                "Read the confirmation: what is it for? Two ids may have been mixed up. If it is the one that is meant, its \
                 `next.confirm` is the path.",
            ),
            Code::ConfirmationMismatch => (
                "The confirm said which amount or plan it expected, and the confirmation is for another one. No money \
                 moved; it is still pending.",
                "Find out which is right. Confirm it as it is only if that is what is wanted; otherwise cancel it.",
            ),
            Code::ConfirmationDecided => (
                "The confirmation was confirmed or declined and can't be cancelled any more.",
                "Nothing is left to cancel. To undo a purchase, refund its order.",
            ),
            Code::OperationInFlight => (
                "The confirmation is being confirmed by another call right now.",
                "A confirm: send the same one again after Retry-After, it answers with the outcome. A cancel comes too late: read \
                 the confirmation to see the end.",
            ),
            Code::IdempotencyInFlight => (
                "The first call with this key is still running. This is not a failure: the first call may well succeed.",
                "Send the same request again, with the same key, after Retry-After: it answers with the first call's outcome.",
            ),
            Code::PaymentNeedsReview => (
                "The provider was asked to move money long ago, nobody knows what became of it, and the provider may have \
                 forgotten: sending it again isn't safe any more. It was not sent again.",
                "A person has to compare the provider's books. `countersign check` lists such payments.",
            ),
            Code::ConfirmationCancelled => (
                "The confirmation was cancelled. No money moved.",
                "If it is still wanted, propose again under a new key.",
            ),
            Code::ConfirmationExpired => (
                "The confirmation's time is over: price and stock are held only until `expires_at`. No money moved.",
                "If it is still wanted, propose again under a new key. A replay of the old proposal shows the old expiry.",
            ),
            Code::IdempotencyKeyExpired => (
                "The key was used so long ago that its answer is no longer kept. A key of money is never new work again, so \
                 nothing was done now. `resource` is what its first call made, if anything.",
                "Look at the resource. Start anew, under a new key, only if a person still wants it.",
            ),
            Code::PayloadTooLarge => (
                "The body is larger than 256 KiB. It was not read.",
                "Send less in one call: batches take up to 100 items.",
            ),
            Code::UnsupportedMediaType => (
                "The body isn't declared as JSON in UTF-8, or is compressed.",
                "Send Content-Type: application/json, without Content-Encoding.",
            ),
            Code::ValidationFailed => (
                "The request is well formed, but some values are out of range or notation. `errors` names each of them with a \
                 pointer (RFC 6901), all at once. Nothing was looked up or stored.",
                "Correct every value that `errors` names and send the request again. A key that came with it is unused.",
            ),
            Code::IdempotencyKeyReused => (
                "The key names another request of this actor: the operation, the path or the body differs. Nothing was \
                 done. The commonest cause is a retry that the model wrote anew instead of sending what was sent before.",
                "To repeat the first request, send it exactly as it was. Only a new intent, which somebody wants a second \
                 effect of, gets a new key.",
            ),
            Code::InternalError => (
                "Something failed on our side. Whether the call took effect is not known.",
                "Send the same call again, with the same key: it happens once. The request id finds the cause in the log.",
            ),
            Code::StorageUnavailable => (
                "The database didn't answer in time, or the connection was lost while it did. Whether the call took effect \
                 is not known.",
                "Send the same call again, with the same key: it happens once.",
            ),
            Code::Overloaded => (
                "The server has too much to do, or other calls were in the way. This call did nothing.",
                "Send the same call again, with the same key, after Retry-After; wait longer each time, by a random time \
                 (full jitter).",
            ),
            Code::OutcomeUnknown => (
                "The payment provider was asked to move money, and its answer isn't known: it timed out, or failed. The money \
                 may have moved. Unknown is not failed.",
                "Send the same call again, with the same key (a confirm: to the same path). The server asks the provider \
                 what became of it, and never moves the money twice. Do not start a new purchase or refund meanwhile.",
            ),
        };
        Explained { what_happened, what_to_do }
    }
}

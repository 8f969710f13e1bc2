//! Every row of the error table, by its code, over the wire.

use crate::support::*;
use countersign::domain::error::Code;
use countersign::domain::refund::Approver;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Makes the server answer with a code. A new row of the table doesn't compile until it is provoked here.
async fn provoke(code: Code) -> Got {
    let app = TestApp::with(|config| {
        config.settings.max_pending = 2;
        config.settings.refunds.approver = Approver::Other;
    })
    .await;
    let shopper = app.shopper();
    let pay = |method: &str| cart("MUG-BLUE", 1, method);
    match code {
        Code::MalformedRequest => shopper.propose("k", &json!({})).await,
        Code::IdempotencyKeyRequired => shopper.post("/checkout", &mugs()).await,
        Code::IdempotencyKeyInvalid => shopper.propose("\"", &mugs()).await,
        Code::Unauthenticated => app.caller("csk_unknown").get("/products/MUG-BLUE").await,
        Code::InsufficientScope => app.caller(READONLY).propose("k", &mugs()).await,
        Code::NotFound => shopper.get("/no/such/route").await,
        Code::NothingToCancel => {
            let id = shopper.proposed("k", &mugs()).await;
            shopper.delete(&format!("/confirmations/{id}")).await;
            shopper.delete(&format!("/confirmations/{id}")).await
        }
        Code::RequestTimeout => tokio::task::block_in_place(|| cut_off_body(&app.url)),
        Code::MethodNotAllowed => send(shopper.request(Method::PUT, "/checkout")).await,
        Code::PlanChanged => {
            let guarded = with(mugs(), "/expected_total", json!({"amount": 1, "currency": "USD"}));
            shopper.propose("k", &guarded).await
        }
        Code::InsufficientStock => shopper.propose("k", &cart("LAST-ONE", 2, "pm_sandbox_ok")).await,
        Code::ProductUnavailable => shopper.propose("k", &cart("NO-SUCH", 1, "pm_sandbox_ok")).await,
        Code::DiscountUnavailable => {
            shopper.propose("k", &with(mugs(), "/discount_codes", json!(["SUMMER2025"]))).await
        }
        Code::CurrencyMismatch => {
            let items = json!([{"product_id": "MUG-BLUE", "quantity": 1}, {"product_id": "INCENSE", "quantity": 1}]);
            shopper.propose("k", &with(mugs(), "/items", items)).await
        }
        Code::ShippingUnavailable => shopper.propose("k", &with(mugs(), "/shipping_option", json!("rocket"))).await,
        Code::BatchStopped => app.caller(MERCHANT).update("k", &update("NO-SUCH", json!({"stock": 1}))).await,
        Code::ProductIncomplete => {
            first_result(app.caller(MERCHANT).update("k", &update("NO-SUCH", json!({"stock": 1}))).await)
        }
        Code::VersionMismatch => {
            let set = with(update("MUG-BLUE", json!({"stock": 1})), "/updates/0/if_version", json!(7));
            first_result(app.caller(MERCHANT).update("k", &set).await)
        }
        Code::StockBelowHeld => {
            shopper.proposed("k", &mugs()).await;
            first_result(app.caller(MERCHANT).update("k", &update("MUG-BLUE", json!({"stock": 1}))).await)
        }
        Code::AddressChangesPrice => {
            let order = shopper.ordered("k", &mugs()).await;
            shopper.set_address(&order, &address("DE")).await
        }
        Code::DeliveryStarted => {
            let order = shopper.ordered("k", &mugs()).await;
            app.clock.advance(30 * DAY);
            shopper.set_address(&order, &address("US")).await
        }
        Code::TooManyPending => {
            for key in ["1", "2"] {
                shopper.proposed(key, &mugs()).await;
            }
            shopper.propose("3", &mugs()).await
        }
        Code::AttemptPending => {
            let id = shopper.proposed("1", &pay("pm_sandbox_timeout_before_charge")).await;
            shopper.confirm(&id).await;
            shopper.propose("2", &pay("pm_sandbox_timeout_before_charge")).await
        }
        Code::WrongOperation => {
            let id = app.caller("csk_demo_all").proposed("k", &mugs()).await;
            app.caller("csk_demo_all").confirm_refund(&id).await
        }
        Code::RefundExceedsRemaining => {
            let order = shopper.ordered("k", &mugs()).await;
            app.caller(SUPPORT).refund("r", &refund(&order, "99.00", "USD")).await
        }
        Code::EqualRefundMade => {
            let order = shopper.ordered("k", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
            let large = refund(&order, "101.00", "USD");
            let offers = [app.caller(SUPPORT).refund("a", &large).await, app.caller(SUPPORT).refund("b", &large).await];
            let [a, b] = offers.map(|offer| offer.json()["confirmation_id"].as_str().unwrap().to_owned());
            assert_eq!(app.caller(APPROVER).confirm_refund(&a).await.status, 200);
            app.caller(APPROVER).confirm_refund(&b).await
        }
        Code::RefundDeclined => {
            let order = shopper.ordered("k", &pay("pm_sandbox_refund_declined")).await;
            app.caller(SUPPORT).refund("r", &refund(&order, "1.00", "USD")).await
        }
        Code::ApproverMustDiffer => {
            let order = shopper.ordered("k", &cart("LAST-ONE", 1, "pm_sandbox_ok")).await;
            let offered = app.caller(SUPPORT).refund("r", &refund(&order, "100.01", "USD")).await.json();
            app.caller(SUPPORT).confirm_refund(offered["confirmation_id"].as_str().unwrap()).await
        }
        Code::ConfirmationMismatch => {
            let id = shopper.proposed("k", &mugs()).await;
            let guard = json!({"expected_total": {"amount": 1, "currency": "USD"}});
            shopper.post(&format!("/confirm-checkout/{id}"), &guard).await
        }
        Code::ConfirmationDecided => {
            let id = shopper.proposed("k", &mugs()).await;
            shopper.confirm(&id).await;
            shopper.delete(&format!("/confirmations/{id}")).await
        }
        Code::OperationInFlight => {
            let id = shopper.proposed("k", &pay("pm_sandbox_timeout_before_charge")).await;
            shopper.confirm(&id).await;
            shopper.delete(&format!("/confirmations/{id}")).await
        }
        Code::IdempotencyInFlight => {
            let id = shopper.proposed("k", &pay("pm_sandbox_timeout_before_charge")).await;
            shopper.confirm_keyed(&id, "c").await;
            app.execute("UPDATE payments SET lease_owner = 'another', lease_until = '2026-12-01 09:30:30'");
            shopper.confirm_keyed(&id, "c").await
        }
        Code::PaymentDeclined => {
            let id = shopper.proposed("k", &pay("pm_sandbox_declined")).await;
            shopper.confirm(&id).await
        }
        Code::PaymentNeedsReview => {
            let id = shopper.proposed("k", &pay("pm_sandbox_timeout_before_charge")).await;
            shopper.confirm(&id).await;
            app.clock.advance(DAY);
            shopper.confirm(&id).await
        }
        Code::ConfirmationCancelled => {
            let id = shopper.proposed("k", &mugs()).await;
            shopper.delete(&format!("/confirmations/{id}")).await;
            shopper.confirm(&id).await
        }
        Code::ConfirmationExpired => {
            let id = shopper.proposed("k", &mugs()).await;
            app.clock.advance(TTL);
            shopper.confirm(&id).await
        }
        Code::IdempotencyKeyExpired => {
            shopper.proposed("k", &mugs()).await;
            app.clock.advance(7 * DAY);
            shopper.propose("k", &mugs()).await
        }
        Code::PayloadTooLarge => shopper.post_raw("/checkout", "k", " ".repeat(300_000)).await,
        Code::UnsupportedMediaType => {
            send(shopper.request(Method::POST, "/checkout").header("Idempotency-Key", "k").body("{}")).await
        }
        Code::ValidationFailed => shopper.propose("k", &cart("MUG-BLUE", 0, "pm_sandbox_ok")).await,
        Code::IdempotencyKeyReused => {
            shopper.proposed("k", &mugs()).await;
            shopper.propose("k", &pay("pm_sandbox_ok")).await
        }
        Code::InternalError => {
            let id = shopper.proposed("k", &mugs()).await;
            app.execute("UPDATE confirmations SET offer = 'secret-plan'");
            shopper.get(&format!("/confirmations/{id}")).await
        }
        Code::StorageUnavailable => {
            // On PostgreSQL the commit itself fails; SQLite ends the transaction by itself.
            app.execute(match app.home.is_postgres() {
                true => {
                    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret'; END $$; \
                     CREATE CONSTRAINT TRIGGER t AFTER INSERT ON claims DEFERRABLE INITIALLY DEFERRED \
                     FOR EACH ROW EXECUTE FUNCTION fail()"
                }
                false => "CREATE TRIGGER t BEFORE INSERT ON claims BEGIN SELECT RAISE(ROLLBACK, 'secret'); END",
            });
            shopper.propose("k", &mugs()).await
        }
        Code::Overloaded => {
            app.context.store.close().await;
            shopper.propose("k", &mugs()).await
        }
        Code::OutcomeUnknown => {
            let id = shopper.proposed("k", &pay("pm_sandbox_error_after_charge")).await;
            shopper.confirm(&id).await
        }
    }
}

/// An atomic batch of one.
fn update(product: &str, set: Value) -> Value {
    json!({"mode": "atomic", "updates": [{"product_id": product, "set": set}]})
}

/// The problem of a batch's first item, as if it had come by itself.
fn first_result(got: Got) -> Got {
    Got { body: got.json()["results"][0]["problem"].to_string().into(), ..got }
}

/// Declares a hundred bytes, sends six, and sends no more.
fn cut_off_body(url: &str) -> Got {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /checkout HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SHOPPER}\r\nIdempotency-Key: k\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"item"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let got = Got { status, headers, body: body.into() };
    assert_documented(&Method::POST, "/checkout", &got);
    got
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_error_table_is_met_by_its_code() {
    for code in Code::ALL {
        let (got, row) = (provoke(*code).await, code.row());
        assert_eq!((got.code().as_str(), got.status), (code.as_str(), row.status), "{}", got.text());
        let body = got.json();
        assert_eq!(body["type"], format!("/problems/{}", code.as_str()));
        assert_eq!(body["title"], row.title);
        assert_eq!(body["status"], row.status);
        assert_eq!(body["recovery"], row.recovery.as_str());
        assert_eq!(body["instance"].as_str(), got.header("X-Request-Id"));
        assert!(!body["detail"].as_str().unwrap().is_empty());
        assert_eq!(got.header("Content-Type"), Some("application/problem+json"));
        assert!(!got.text().contains("secret"), "the cause is for the log only: {}", got.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_refusal_keeps_the_id_of_the_request_that_was_refused_first() {
    let app = TestApp::start().await;
    let refused = app.shopper().propose("k", &cart("LAST-ONE", 2, "pm_sandbox_ok")).await;
    app.clock.advance(Duration::from_secs(1));
    let again = app.shopper().propose("k", &cart("LAST-ONE", 2, "pm_sandbox_ok")).await;
    again.assert_replay_of(&refused);
    assert_ne!(again.header("X-Request-Id"), again.json()["instance"].as_str(), "the first request's");
}

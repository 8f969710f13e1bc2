use crate::support::*;
use socket2::SockRef;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
enum HangUp {
    Fin,
    Rst,
}

/// Sends a confirm.
fn confirm(app: &TestApp, id: &str, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(app.url.trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /confirm-checkout/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SHOPPER}\r\nIdempotency-Key: {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Goes away without reading the answer.
fn hang_up(stream: TcpStream, how: HangUp) {
    match how {
        HangUp::Fin => stream.shutdown(Shutdown::Both).unwrap(),
        HangUp::Rst => SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap(),
    }
    drop(stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn f06_a_client_that_hangs_up_in_the_middle_changes_nothing() {
    let app = TestApp::with(|config| {
        config.settings.provider_timeout = Duration::from_secs(5);
        config.sandbox_delay = Duration::from_millis(200);
    })
    .await;
    let mut orders = 0;
    for how in [HangUp::Fin, HangUp::Rst] {
        for millis in [0, 50, 200, 1000] {
            let (propose, key) = (format!("propose-{how:?}-{millis}"), format!("confirm-{how:?}-{millis}"));
            let id = app.shopper().proposed(&propose, &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
            let stream = confirm(&app, &id, &key);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            hang_up(stream, how);
            eventually("a retry gets the answer", async || app.shopper().confirm_keyed(&id, &key).await.status == 200)
                .await;
            assert!(app.shopper().confirm_keyed(&id, &key).await.is_replay());
            orders += 1;
            assert_eq!(app.number("SELECT count(*) AS n FROM orders"), orders, "{key}");
            assert_eq!(app.charges(), orders, "{key}");
        }
    }
    assert_eq!(number(&app.ledger(), "SELECT max(count) AS n FROM attempts"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f06_what_was_begun_is_finished_when_nobody_asks_again() {
    let app = TestApp::with(|config| {
        config.settings.provider_timeout = Duration::from_secs(5);
        config.sandbox_delay = Duration::from_millis(100);
    })
    .await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    let stream = confirm(&app, &id, "c");
    eventually("it was begun", async || app.number("SELECT count(*) AS n FROM payments") == 1).await;
    hang_up(stream, HangUp::Rst);
    let path = format!("/confirmations/{id}");
    eventually("it is confirmed", async || app.shopper().get(&path).await.json()["status"] == "confirmed").await;
    assert_eq!(app.charges(), 1);
}

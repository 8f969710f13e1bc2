//! What is refused before any claim is looked up.

use crate::fuzz::raw::exchange;
use crate::support::*;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_the_documented_json_is_400() {
    let app = TestApp::start().await;
    let good = mugs().to_string();
    let bad_bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"x\"".to_vec(),
        b"{".to_vec(),
        format!("{good} x").into(),
        format!("{good}{good}").into(),
        format!("\u{feff}{good}").into(),
        good.replace("\"items\"", "\"extra\":1,\"items\"").into(),
        good.replace("\"items\"", "\"items\":[],\"items\"").into(),
        good.replace("\"quantity\":2", "\"quantity\":2,\"quantity\":2").into(),
        good.replace("\"quantity\":2", "\"quantity\":2,\"price\":1").into(),
        good.replace("\"quantity\":2", "\"quantity\":2.5").into(),
        good.replace("\"quantity\":2", "\"quantity\":2.0").into(),
        good.replace("\"quantity\":2", "\"quantity\":\"2\"").into(),
        good.replace("\"quantity\":2", "\"quantity\":+2").into(),
        good.replace("\"quantity\":2", "\"quantity\":null").into(),
        good.replace("\"quantity\":2", "\"quantity\":NaN").into(),
        good.replace(",\"quantity\":2", "").replace("\"quantity\":2,", "").into(),
        good.replace("Ada Lovelace", "Ada\\u0000Lovelace").into(),
        good.replace("Ada Lovelace", "Ada\0Lovelace").into(),
        good.replace("Ada Lovelace", "Ada \\ud800").into(),
        good.replace("{\"product_id\":\"MUG-BLUE\",\"quantity\":2}", "[\"MUG-BLUE\",2]").into(),
        good.replace("{\"product_id\":\"MUG-BLUE\",\"quantity\":2}", "null").into(),
        with(mugs(), "/items", json!({})).to_string().into(),
        with(mugs(), "/items", Value::Null).to_string().into(),
        with(mugs(), "/discount_codes", json!("WELCOME10")).to_string().into(),
        with(mugs(), "/discount_codes", json!([null])).to_string().into(),
        with(mugs(), "/shipping_address", json!("here")).to_string().into(),
        with(mugs(), "/shipping_address/city", Value::Null).to_string().into(),
        with(mugs(), "/expected_total", json!({"amount": true, "currency": "USD"})).to_string().into(),
        with(mugs(), "/expected_total", json!({"amount": null, "currency": "USD"})).to_string().into(),
        with(mugs(), "/expected_total", json!({"amount": 1})).to_string().into(),
        with(mugs(), "/expected_total", json!(5)).to_string().into(),
        good.replace("Ada", "A\u{fffd}").replace('\u{fffd}', "\u{1}").into(),
        [good.replace("Ada Lovelace", "Ada ").as_bytes(), b"\xff"].concat(),
        b"[".repeat(100_000).to_vec(),
    ];
    for body in bad_bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(400)]).into_owned();
        let got = app.shopper().post_raw("/checkout", "k", body).await;
        assert_eq!((got.status, got.code().as_str()), (400, "malformed_request"), "{shown}\n{}", got.text());
        assert_eq!(got.header("Idempotency-Key"), Some("k"));
    }
    let bare = good
        .replace("\"payment_method\"", "\"expected_total\":{\"amount\":+1,\"currency\":\"USD\"},\"payment_method\"");
    app.shopper().post_raw("/checkout", "k", bare).await.assert_problem(400, "malformed_request");
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 0);
    assert_eq!(app.shopper().propose("k", &mugs()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn f13_f14_f35_what_is_out_of_range_or_notation_is_422_with_a_pointer() {
    let app = TestApp::start().await;
    let long = "x".repeat(501);
    let total = |amount: Value| with(mugs(), "/expected_total", json!({"amount": amount, "currency": "USD"}));
    let yen = |amount: Value| with(mugs(), "/expected_total", json!({"amount": amount, "currency": "JPY"}));
    let raw = |amount: &str| {
        mugs()
            .to_string()
            .replace("\"items\"", &format!("\"expected_total\":{{\"amount\":{amount},\"currency\":\"USD\"}},\"items\""))
    };
    let quantity = |n: &str| mugs().to_string().replace("\"quantity\":2", &format!("\"quantity\":{n}"));
    let cases: Vec<(&str, String)> = vec![
        ("/items/0/quantity", quantity("0")),
        ("/items/0/quantity", quantity("-0")),
        ("/items/0/quantity", quantity("-5")),
        ("/items/0/quantity", quantity("1001")),
        ("/items/0/quantity", quantity("2147483647")),
        ("/items/0/quantity", quantity("2147483648")),
        ("/items/0/quantity", quantity("4294967296")),
        ("/items/0/quantity", quantity("9223372036854775807")),
        ("/items/0/quantity", quantity("99999999999999999999999")),
        (
            "/items/1/quantity",
            with(mugs(), "/items", json!([{"product_id": "A", "quantity": 600}, {"product_id": "A", "quantity": 600}]))
                .to_string(),
        ),
        (
            "/items/1/quantity",
            with(mugs(), "/items", json!([{"product_id": "A", "quantity": 5}, {"product_id": "A", "quantity": -4}]))
                .to_string(),
        ),
        (
            "/items/1/quantity",
            with(mugs(), "/items", json!([{"product_id": "A", "quantity": 5}, {"product_id": "B", "quantity": -4}]))
                .to_string(),
        ),
        (
            "/items/0/quantity",
            with(mugs(), "/items", json!(vec![json!({"product_id": "A", "quantity": i64::MAX}); 2])).to_string(),
        ),
        ("/items", with(mugs(), "/items", json!([])).to_string()),
        ("/items", with(mugs(), "/items", json!(vec![json!({"product_id": "A", "quantity": 1}); 101])).to_string()),
        ("/items/0/product_id", with(mugs(), "/items", json!([{"product_id": "a b", "quantity": 1}])).to_string()),
        ("/shipping_address/name", with(mugs(), "/shipping_address/name", json!("  ")).to_string()),
        ("/shipping_address/name", with(mugs(), "/shipping_address/name", json!("\u{a0}\u{feff}")).to_string()),
        ("/shipping_address/name", with(mugs(), "/shipping_address/name", json!(long)).to_string()),
        ("/shipping_address/line2", with(mugs(), "/shipping_address/line2", json!("")).to_string()),
        ("/shipping_address/country", with(mugs(), "/shipping_address/country", json!("us")).to_string()),
        ("/shipping_address/country", with(mugs(), "/shipping_address/country", json!("USA")).to_string()),
        ("/shipping_option", with(mugs(), "/shipping_option", json!("")).to_string()),
        (
            "/discount_codes",
            with(mugs(), "/discount_codes", json!((0..11).map(|i| format!("C{i}")).collect::<Vec<_>>())).to_string(),
        ),
        ("/discount_codes/1", with(mugs(), "/discount_codes", json!(["A", "A"])).to_string()),
        ("/payment_method", with(mugs(), "/payment_method", json!("pm_sandbox_nothing")).to_string()),
        ("/payment_method", with(mugs(), "/payment_method", json!("")).to_string()),
        (
            "/expected_total/currency",
            with(mugs(), "/expected_total", json!({"amount": 1, "currency": "GBP"})).to_string(),
        ),
        ("/expected_plan_digest", with(mugs(), "/expected_plan_digest", json!("sha256:0")).to_string()),
        ("/expected_total/amount", total(json!("10.001")).to_string()),
        ("/expected_total/amount", yen(json!("58.50")).to_string()),
        ("/expected_total/amount", total(json!("-".repeat(200_000))).to_string()),
        ("/expected_total/amount", total(json!("-".repeat(499))).to_string()),
        ("/expected_total/amount", raw(&format!("10.{}", "0".repeat(2_000)))),
        (
            "/expected_total/currency",
            with(mugs(), "/expected_total", json!({"amount": 1, "currency": "U".repeat(9_000)})).to_string(),
        ),
        (
            "/discount_codes",
            with(mugs(), "/discount_codes", json!((0..20_000).map(|i| format!("C{i}")).collect::<Vec<_>>()))
                .to_string(),
        ),
        ("/expected_total/amount", raw("1e1")),
        ("/expected_total/amount", raw("1e400")),
        ("/expected_total/amount", raw("-0")),
        ("/expected_total/amount", raw("1.1234127836128763")),
        ("/expected_total/amount", raw("9007199254740993")),
        ("/expected_total/amount", total(json!("+1")).to_string()),
        ("/expected_total/amount", total(json!("01")).to_string()),
        ("/expected_total/amount", total(json!(".5")).to_string()),
        ("/expected_total/amount", total(json!("1,000.00")).to_string()),
        ("/expected_total/amount", total(json!("NaN")).to_string()),
        ("/expected_total/amount", total(json!("")).to_string()),
        ("/expected_total/amount", total(json!(-1)).to_string()),
    ];
    for (pointer, body) in cases {
        let got = app.shopper().post_raw("/checkout", "k", body.clone()).await;
        let problem = got.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}\n{problem}");
        assert!(got.body.len() < 2_000, "an answer doesn't grow with what was sent: {pointer}");
    }
    let two = with(with(mugs(), "/payment_method", json!("x")), "/shipping_address/city", json!(""));
    let problem = app.shopper().propose("k", &two).await.assert_problem(422, "validation_failed");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "all of them at once");
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn f45_a_key_is_one_header_of_visible_ascii_with_or_without_quotes() {
    let app = TestApp::start().await;
    let first = app.shopper().propose("abc", &mugs()).await;
    for same in ["\"abc\"", " abc "] {
        app.shopper().propose(same, &mugs()).await.assert_replay_of(&first);
    }
    let lower_case = app.shopper().request(Method::POST, "/checkout").header("idempotency-key", "abc").json(&mugs());
    send(lower_case).await.assert_replay_of(&first);
    let upper_case = app.shopper().propose("ABC", &mugs()).await;
    assert_eq!((upper_case.status, upper_case.is_replay()), (201, false), "a key's case matters");

    let long = "k".repeat(256);
    let long_in_quotes = format!("\"{long}\"");
    for bad in ["", " ", "\"", "\"\"", "\" \"", "\"abc", "a b", "\"abc\"x", long.as_str(), long_in_quotes.as_str()] {
        let got = app.shopper().propose(bad, &mugs()).await;
        got.assert_problem(400, "idempotency_key_invalid");
        assert_eq!(got.header("Idempotency-Key"), None);
    }
    let bytes = reqwest::header::HeaderValue::from_bytes("schlüssel".as_bytes()).unwrap();
    let request = app.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", bytes).json(&mugs());
    send(request).await.assert_problem(400, "idempotency_key_invalid");
    let twice =
        app.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", "a").header("Idempotency-Key", "a");
    send(twice.json(&mugs())).await.assert_problem(400, "idempotency_key_invalid");
    let none = app.shopper().post("/checkout", &mugs()).await;
    none.assert_problem(400, "idempotency_key_required");
    let got = app.shopper().propose(&"k".repeat(255), &mugs()).await;
    assert_eq!(got.status, 201);
    app.shopper().propose(&format!("\"{}\"", "k".repeat(255)), &mugs()).await.assert_replay_of(&got);
    let one = app.shopper().propose("k", &mugs()).await;
    assert_eq!((one.status, one.is_replay()), (201, false));

    // No client library sends these.
    let body = mugs().to_string();
    for key in ["a\0b", "\0", "a\u{1}b", "a\u{7f}b"] {
        let head = format!(
            "POST /checkout HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SHOPPER}\r\nIdempotency-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(exchange(&app.url, head.as_bytes()).map(|got| got.status), Some(400), "{key:?}");
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_come_in_their_order() {
    let app = TestApp::start().await;
    let text = |request: reqwest::RequestBuilder| request.header("Content-Type", "text/plain").body("{");
    let http = reqwest::Client::new();
    let anonymous = http.post(format!("{}/checkout", app.url)).header("Idempotency-Key", "\"");
    let got = send(text(anonymous)).await;
    got.assert_problem(401, "unauthenticated");
    assert_eq!(got.header("WWW-Authenticate"), Some("Bearer realm=\"countersign\""));
    let readonly = app.caller(READONLY).request(Method::POST, "/checkout").header("Idempotency-Key", "\"");
    send(text(readonly)).await.assert_problem(403, "insufficient_scope");
    let shopper = |key: &str| app.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", key);
    send(text(shopper("\""))).await.assert_problem(400, "idempotency_key_invalid");
    send(text(shopper("k"))).await.assert_problem(415, "unsupported_media_type");
    let zipped = shopper("k").header("Content-Type", "application/json").header("Content-Encoding", "gzip").body("{");
    send(zipped).await.assert_problem(415, "unsupported_media_type");
    let latin = shopper("k").header("Content-Type", "application/json; charset=latin1").body("{}");
    send(latin).await.assert_problem(415, "unsupported_media_type");
    let utf8 = shopper("k").header("Content-Type", "application/json; charset=UTF-8").body("{");
    send(utf8).await.assert_problem(400, "malformed_request");
    let task = shopper("k").header("Agent-Task-Id", "a b").json(&mugs());
    send(task).await.assert_problem(400, "malformed_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_up_to_256_kib() {
    let app = TestApp::start().await;
    let padded = |length: usize| format!("{}{}", mugs(), " ".repeat(length - mugs().to_string().len()));
    assert_eq!(app.shopper().post_raw("/checkout", "k", padded(256 * 1024)).await.status, 201);
    let got = app.shopper().post_raw("/checkout", "k2", padded(256 * 1024 + 1)).await;
    got.assert_problem(413, "payload_too_large");
    let chunks = futures_util::stream::iter((0..300).map(|_| Ok::<_, std::io::Error>(" ".repeat(1024))));
    let chunked = reqwest::Body::wrap_stream(chunks);
    app.shopper().post_raw("/checkout", "k3", chunked).await.assert_problem(413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_echoed_or_made() {
    let app = TestApp::start().await;
    let with_id =
        |id: &'static str| send(app.shopper().request(Method::GET, "/products/NO-SUCH").header("X-Request-Id", id));
    let got = with_id("mine-1").await;
    assert_eq!(got.header("X-Request-Id"), Some("mine-1"));
    assert_eq!(got.json()["instance"], "mine-1");
    let got = with_id("not fit").await;
    assert!(got.header("X-Request-Id").unwrap().starts_with("req_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_grow_with_what_was_sent() {
    let app = TestApp::start().await;
    let ids = json!({"product_ids": vec![""; 60_000]});
    let got = app.shopper().post("/products-batch-get", &ids).await;
    got.assert_problem(422, "validation_failed");
    assert!(got.body.len() < 2_000);
    let named = with(mugs(), &format!("/{}", "x".repeat(200_000)), json!(1));
    let got = app.shopper().propose("k", &named).await;
    got.assert_problem(400, "malformed_request");
    assert!(got.body.len() < 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_chunked_body_is_no_body() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let empty = || reqwest::Body::wrap_stream(futures_util::stream::iter(Vec::<std::io::Result<String>>::new()));
    let some = || reqwest::Body::wrap_stream(futures_util::stream::iter([Ok::<_, std::io::Error>("{}")]));
    let confirm = |body| send(app.shopper().request(Method::POST, &format!("/confirm-checkout/{id}")).body(body));
    confirm(some()).await.assert_problem(415, "unsupported_media_type");
    assert_eq!(confirm(empty()).await.status, 200);
}

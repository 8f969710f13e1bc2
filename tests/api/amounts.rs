//! Amounts on their whole way: from the catalogue through dry run, offer and charge to the refund, in every currency.

use crate::refunds::without_lookalikes;
use crate::support::*;
use serde_json::{Value, json};

/// A product without tax; picked up, its price is the total.
async fn listed(app: &TestApp, id: &str, amount: &str, currency: &str) -> Got {
    let price = json!({"amount": amount, "currency": currency});
    let set = json!({"title": id, "price": price, "stock": 10, "tax_class": "exempt"});
    app.caller(MERCHANT).update(id, &json!({"mode": "atomic", "updates": [{"product_id": id, "set": set}]})).await
}

fn picked_up(id: &str, country: &str) -> Value {
    let cart = with(cart(id, 1, "pm_sandbox_ok"), "/shipping_address/country", json!(country));
    with(cart, "/shipping_option", json!("pickup"))
}

/// What the provider has charged, in minor units.
fn charged(app: &TestApp) -> i64 {
    number(&app.ledger(), "SELECT sum(amount_minor) AS n FROM ledger WHERE refund_of IS NULL")
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_f16_f17_an_amount_is_the_same_when_shown_offered_charged_and_given_back() {
    let app = TestApp::with(without_lookalikes).await;
    let support = app.caller(SUPPORT);
    for (n, (amount, minor, currency, country, unit, part)) in [
        ("5800", 5800, "JPY", "JP", "1", "800"),
        ("1.000", 1000, "KWD", "KW", "0.001", "0.250"),
        ("7.500", 7500, "KWD", "KW", "0.001", "0.005"),
        ("0.001", 1, "KWD", "KW", "0.001", ""),
        ("1.18", 118, "USD", "US", "0.01", "0.29"),
        ("7.77", 777, "USD", "US", "0.01", "7.76"),
        ("4.35", 435, "USD", "US", "0.01", "1.17"),
        ("0.29", 29, "USD", "US", "0.01", "0.28"),
        ("4.35", 435, "EUR", "DE", "0.01", "0.07"),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, money) = (format!("AMOUNT-{n}"), json!({"amount": amount, "currency": currency}));
        assert_eq!(listed(&app, &id, amount, currency).await.status, 200);
        let guarded = with(picked_up(&id, country), "/expected_total", money.clone());
        let shown = app.shopper().post("/checkout-dry-run", &guarded).await.json();
        let offered = app.shopper().propose(&id, &guarded).await.json();
        assert_eq!((&shown["plan"]["total"], &offered["plan"]), (&money, &shown["plan"]), "{amount} {currency}");
        let (before, back) = (charged(&app), app.given_back());
        let confirmed = app.shopper().confirm(offered["confirmation_id"].as_str().unwrap()).await.json();
        assert_eq!((&confirmed["total"], charged(&app) - before), (&money, minor), "{amount} {currency}");

        let order = confirmed["order_id"].as_str().unwrap();
        let finer = if currency == "JPY" { "58.50".to_owned() } else { format!("{unit}5") };
        for (key, path) in [(Some("finer"), "/refunds"), (None, "/refunds-dry-run")] {
            let asked = refund(order, &finer, currency);
            let got = match key {
                Some(key) => support.post_keyed(path, key, &asked).await,
                None => support.post(path, &asked).await,
            };
            let problem = got.assert_problem(422, "validation_failed");
            assert_eq!(problem["errors"][0]["pointer"], "/amount/amount", "{finer} {currency}");
        }
        for (step, part) in [unit, part].into_iter().filter(|part| !part.is_empty() && *part != amount).enumerate() {
            let got = support.refund(&format!("{id}-{step}"), &refund(order, part, currency)).await;
            assert_eq!((got.status, &got.json()["amount"]["amount"]), (201, &json!(part)), "{}", got.text());
        }
        let left = support.get(&format!("/orders/{order}")).await.json()["remaining_refundable"].clone();
        if left["amount"].as_str().unwrap().contains(|digit| matches!(digit, '1'..='9')) {
            let rest = refund(order, left["amount"].as_str().unwrap(), currency);
            let shown = support.post("/refunds-dry-run", &rest).await.json();
            let got = support.refund(&format!("{id}-rest"), &rest).await;
            assert_eq!(got.status, 201, "{}", got.text());
            assert_eq!(got.json()["remaining_refundable"], shown["remaining_refundable"]);
        }
        assert_eq!(app.given_back().1 - back.1, minor, "{amount} {currency}");
    }
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_f16_f17_a_full_refund_in_one_step_reaches_the_provider_as_the_whole_charge() {
    let app = TestApp::start().await;
    for (amount, minor, currency, country) in
        [("5800", 5800, "JPY", "JP"), ("7.500", 7500, "KWD", "KW"), ("7.77", 777, "USD", "US")]
    {
        assert_eq!(listed(&app, currency, amount, currency).await.status, 200);
        let order = app.shopper().ordered(currency, &picked_up(currency, country)).await;
        let before = app.given_back().1;
        let got = app.caller(SUPPORT).refund(currency, &refund(&order, amount, currency)).await;
        assert_eq!(got.status, 201, "{}", got.text());
        assert_eq!(app.given_back().1 - before, minor);
        assert_eq!(app.caller(SUPPORT).get(&format!("/orders/{order}")).await.json()["status"], "refunded");
    }
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_f16_f17_a_digit_that_the_currency_does_not_have_is_refused_and_never_rounded() {
    let app = TestApp::start().await;
    let before = app.dump();
    for (amount, currency) in
        [("58.50", "JPY"), ("0.5", "JPY"), ("0.0005", "KWD"), ("7.5001", "KWD"), ("1.005", "USD"), ("4.359", "EUR")]
    {
        let problem = listed(&app, "FINE", amount, currency).await.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], "/updates/0/set/price/amount");
        for path in ["/checkout-dry-run", "/checkout"] {
            let total = json!({"amount": amount, "currency": currency});
            let got = app.shopper().post_keyed(path, "k", &with(mugs(), "/expected_total", total)).await;
            let problem = got.assert_problem(422, "validation_failed");
            assert_eq!(problem["errors"][0]["pointer"], "/expected_total/amount", "{amount} {currency}");
        }
    }
    assert_eq!(app.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn f35_an_amount_that_no_double_holds_is_one_amount_in_every_notation() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 2, "pm_sandbox_ok")).await;
    let asked = |amount: &str| {
        let body =
            format!(r#"{{"order_id":"{order}","amount":{{"amount":{amount},"currency":"USD"}},"reason":"damaged"}}"#);
        app.caller(SUPPORT).post_raw("/refunds", "r", body)
    };
    let first = asked("4.81").await;
    assert_eq!((first.status, &first.json()["amount"]["amount"]), (201, &json!("4.81")));
    for same in ["4.810", "\"4.81\"", "\"4.8100\""] {
        asked(same).await.assert_replay_of(&first);
    }
    for other in ["4.8", "4.80", "4.82", "481"] {
        asked(other).await.assert_problem(422, "idempotency_key_reused");
    }
    for none in ["1.1234127836128763", "4.8100000000000001", "4.809999999999999", "1e1", "481e-2"] {
        asked(none).await.assert_problem(422, "validation_failed");
    }
    assert_eq!(app.given_back(), (1, 481));
}

#[tokio::test(flavor = "multi_thread")]
async fn f13_a_code_worth_more_than_the_goods_leaves_nothing_to_pay_and_no_less() {
    let app = TestApp::start().await;
    let cart = with(picked_up("GIFT-WRAP", "US"), "/discount_codes", json!(["FIVEOFF"]));
    let shown = app.shopper().post("/checkout-dry-run", &cart).await.json()["plan"].clone();
    assert_eq!((&shown["discount"]["amount"], &shown["total"]["amount"]), (&json!("1.18"), &json!("0.00")));
    let order = app.shopper().ordered("k", &cart).await;
    assert_eq!(app.charges(), 0);
    let nothing = app.caller(SUPPORT).refund("r", &refund(&order, "0.01", "USD")).await;
    nothing.assert_problem(409, "refund_exceeds_remaining");
    let shipped = with(cart, "/shipping_option", json!("standard"));
    let shown = app.shopper().post("/checkout-dry-run", &shipped).await.json()["plan"].clone();
    assert_eq!((&shown["shipping"]["amount"], &shown["shipping_tax"]["amount"]), (&json!("4.95"), &json!("0.35")));
    assert_eq!(shown["total"]["amount"], "5.30", "what is left of the code pays for nothing else");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f34_neighbours_beyond_what_a_double_can_tell_apart_are_never_one_amount() {
    let app = TestApp::start().await;
    let yen = |amount: &str| {
        let total = format!("\"expected_total\":{{\"amount\":{amount},\"currency\":\"JPY\"}},\"items\"");
        mugs().to_string().replace("\"items\"", &total)
    };
    for amount in ["9007199254740992", "9007199254740993"] {
        app.shopper().post_raw("/checkout", "big", yen(amount)).await.assert_problem(422, "validation_failed");
    }
    app.shopper().post_raw("/checkout", "k", yen("999999999998")).await.assert_problem(409, "plan_changed");
    app.shopper().post_raw("/checkout", "k", yen("999999999999")).await.assert_problem(422, "idempotency_key_reused");
}

#[tokio::test(flavor = "multi_thread")]
async fn f14_a_total_beyond_the_range_of_money_is_422() {
    let app = TestApp::start().await;
    app.execute("UPDATE products SET price_minor = 999999999999, stock = 1000 WHERE product_id = 'MUG-BLUE'");
    for quantity in [1, 2, 1_000] {
        let got = app.shopper().propose("k", &cart("MUG-BLUE", quantity, "pm_sandbox_ok")).await;
        assert_eq!(got.assert_problem(422, "validation_failed")["errors"][0]["pointer"], "/items");
    }
}

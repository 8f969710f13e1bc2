//! `countersign verify` of servers with one fault each: no to the question that is about it, and to no other.

use crate::faulty::{Ask, Faulty, bend_json};
use crate::support::*;
use crate::verify::{ALL, Report};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

fn fresh() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// A server that bends requests and answers like this fails exactly these questions.
async fn assert_fails(
    expected: &[&str],
    ask: impl Fn(&mut Ask) + Send + Sync + 'static,
    answer: impl Fn(&Ask, &mut Got) + Send + Sync + 'static,
) {
    let app = TestApp::start().await;
    let server = Faulty::new(&app.url, ask, answer);
    let report = Report::of(&server.url, &[]).await;
    assert_eq!(report.with("fail"), expected, "{:#}", report.json);
    assert_eq!((report.code, &report.json["passed"]), (1, &json!(false)));
    assert_eq!(report.errors, format!("countersign: failed: {}\n", expected.join(", ")));
    assert_eq!(report.with("skipped"), ["answer_survives_restart"]);
}

fn as_it_is(_: &Ask, _: &mut Got) {}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_demands_no_key_is_found() {
    let make_one = |ask: &mut Ask| {
        if ask.key().is_none() {
            ask.set_key(&fresh());
        }
    };
    assert_fails(&["key_demanded"], make_one, as_it_is).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_a_repeat_afresh_is_found() {
    let keyed = [
        "same_key_same_answer",
        "fingerprint_mismatch_refused",
        "same_refund_written_differently",
        "same_key_in_parallel",
    ];
    let forget = |ask: &mut Ask| {
        if ask.key().is_some() {
            ask.set_key(&fresh());
        }
    };
    assert_fails(&keyed, forget, as_it_is).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_fingerprint_is_found() {
    let bodies: Mutex<HashMap<_, _>> = Mutex::default();
    let first_body = move |ask: &mut Ask| {
        if let Some(key) = ask.key() {
            ask.body = bodies.lock().unwrap().entry((ask.path.clone(), key)).or_insert(ask.body.clone()).clone();
        }
    };
    assert_fails(&["fingerprint_mismatch_refused"], first_body, as_it_is).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fingerprint_of_bytes_is_found() {
    let of_bytes = |ask: &mut Ask| {
        if let Some(key) = ask.key() {
            ask.set_key(&format!("{key}-{}", uuid::Uuid::from_u128(sum(&ask.body))));
        }
    };
    let expected = ["fingerprint_mismatch_refused", "same_refund_written_differently"];
    assert_fails(&expected, of_bytes, as_it_is).await;
}

/// Differs where the bytes do, which is enough here.
fn sum(bytes: &[u8]) -> u128 {
    bytes.iter().fold(7, |sum: u128, byte| sum.wrapping_mul(257).wrapping_add(u128::from(*byte)))
}

/// Looks a key up and writes it down only when it is done.
#[tokio::test(flavor = "multi_thread")]
async fn a_race_between_look_up_and_write_is_found() {
    let running: Arc<Mutex<HashSet<String>>> = Arc::default();
    let done = running.clone();
    let look_up = move |ask: &mut Ask| {
        if let Some(key) = ask.key().filter(|key| !running.lock().unwrap().insert(key.clone())) {
            ask.set_key(&format!("{key}-{}", fresh()));
        }
    };
    let write_down = move |ask: &Ask, _: &mut Got| {
        if let Some(key) = ask.key() {
            done.lock().unwrap().remove(&key);
        }
    };
    assert_fails(&["same_key_in_parallel"], look_up, write_down).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirm_that_passes_for_a_new_one_each_time_is_found() {
    let unmarked = |ask: &Ask, got: &mut Got| {
        if ask.path.starts_with("/confirm-checkout/") {
            got.headers.remove("Idempotent-Replayed");
        }
    };
    assert_fails(&["confirm_once"], |_| (), unmarked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_with_an_effect_is_found() {
    let propose = |ask: &mut Ask| {
        if ask.path == "/checkout-dry-run" {
            ask.path = "/checkout".to_owned();
            ask.headers.insert("dry-run", "1".parse().unwrap());
            ask.set_key(&fresh());
        }
    };
    let shown = |ask: &Ask, got: &mut Got| {
        if ask.headers.contains_key("dry-run") {
            got.status = 200;
        }
    };
    assert_fails(&["dry_run_or_two_step"], propose, shown).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirm_without_guards_is_found() {
    let unguarded = |ask: &mut Ask| {
        if ask.path.starts_with("/confirm-checkout/") {
            ask.headers.remove("content-type");
            ask.body = "".into();
        }
    };
    assert_fails(&["confirmation_bound"], unguarded, as_it_is).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn float_amounts_are_found() {
    fn to_float(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(to_float),
            Value::Object(members) => {
                for (name, member) in members {
                    match member.as_str().filter(|_| name == "amount").and_then(|text| text.parse::<f64>().ok()) {
                        Some(amount) => *member = json!(amount),
                        None => to_float(member),
                    }
                }
            }
            _ => {}
        }
    }
    assert_fails(&["no_float_amounts"], |_| (), |_, got| bend_json(got, to_float)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_everybody_is_found() {
    let known = |ask: &mut Ask| {
        ask.headers.entry("authorization").or_insert(format!("Bearer {ALL}").parse().unwrap());
    };
    assert_fails(&["others_see_nothing"], known, as_it_is).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_without_an_effect_profile_is_found() {
    let hide = |ask: &Ask, got: &mut Got| {
        if ask.path == "/openapi.json" {
            bend_json(got, |document| {
                *document = with(document.take(), "/paths/~1products/get/x-ai-metadata", Value::Null)
            });
        }
    };
    assert_fails(&["effect_profile_published"], |_| (), hide).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_without_a_time_is_found() {
    let untimed = |ask: &Ask, got: &mut Got| {
        got.headers.remove("Retry-After");
        if ask.path == "/openapi.json" {
            got.body = String::from_utf8_lossy(&got.body).replace("Retry-After", "Retry-Sometime").into_bytes();
        }
    };
    assert_fails(&["back_off_advice"], |_| (), untimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_above_the_total_is_found() {
    let generous = |_: &Ask, got: &mut Got| {
        if got.status == 409 && got.code() == "refund_exceeds_remaining" {
            got.status = 201;
        }
    };
    assert_fails(&["refund_limit"], |_| (), generous).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_forgotten_at_a_restart_is_found() {
    let app = TestApp::start().await;
    let restarted = app.home.path().join("restarted");
    let command = format!("touch {}", restarted.display());
    let forget = move |ask: &mut Ask| {
        if let Some(key) = ask.key().filter(|_| restarted.exists()) {
            ask.set_key(&format!("{key}-after"));
        }
    };
    let server = Faulty::new(&app.url, forget, as_it_is);
    let report = Report::of(&server.url, &["--restart-command", &command]).await;
    assert_eq!((report.code, report.with("fail")), (1, vec!["answer_survives_restart"]), "{:#}", report.json);
    assert_eq!(report.with("pass").len(), 13);
}

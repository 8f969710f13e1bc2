//! The parsers alone: what each accepts is what its words or the document say, and what it has read is written as it was.

use super::*;
use crate::contract::DOCUMENT;
use clap::Parser;
use countersign::config::{Cli, Command};
use countersign::database::DatabaseUrl;
use countersign::domain::actor::Scopes;
use countersign::domain::digest::Digest;
use countersign::domain::ids::*;
use countersign::domain::key::IdempotencyKey;
use countersign::domain::money::{AmountFault, Currency, Money};
use countersign::domain::payment::{PaymentMethod, ProviderKey};
use countersign::domain::product::Category;
use countersign::domain::refund::Thresholds;
use countersign::domain::search::{Availability, Position, ProductQuery, words};
use countersign::domain::time::Timestamp;
use std::collections::BTreeSet;

const NOTATIONS: &[&str] = &[
    "0",
    "0.00",
    "10",
    "10.00",
    "47.30",
    "0.001",
    "58.000",
    "9999999999.99",
    "999999999999",
    "1000000000000",
    "-5.00",
];

fn any_currency() -> impl Strategy<Value = Currency> {
    prop::sample::select(Currency::ALL)
}

/// Minor units by long multiplication, where the text is plain decimal notation that needs no rounding.
fn minor_by_hand(text: &str, digits: usize) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let decimal = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if !decimal(whole) || !decimal(fraction) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let mut fraction = fraction.chars();
    let kept: String = (0..digits).map(|_| fraction.next().unwrap_or('0')).collect();
    let exact = fraction.all(|c| c == '0');
    let add = |sum: i64, c: char| Some(sum * 10 + i64::from(c.to_digit(10)?)).filter(|sum| *sum <= Money::MAX_MINOR);
    whole.chars().chain(kept.chars()).try_fold(0, add).filter(|_| exact)
}

#[test]
fn f35_an_amount_is_what_its_digits_say_and_is_written_one_way() {
    check(20_000, (text_near(NOTATIONS), any_currency()), |(text, currency)| {
        let parsed = Money::parse(&text, currency);
        assert_eq!(parsed.ok().map(Money::minor), minor_by_hand(&text, currency.digits()), "{text:?} {currency:?}");
        let Ok(money) = parsed else { return };
        let written = money.to_string();
        assert_eq!(Money::parse(&written, currency), Ok(money));
        let fraction = written.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        assert_eq!(fraction, currency.digits(), "{written}");
    });
}

#[test]
fn f35_amounts_are_equal_where_their_minor_units_are_and_a_digit_too_many_is_refused() {
    let minor = 0..=Money::MAX_MINOR;
    check(5_000, (minor.clone(), minor, any_currency(), 0_usize..20), |(one, other, currency, zeros)| {
        let money = |minor| Money::from_minor(minor, currency).unwrap();
        assert_eq!(money(one) == money(other), one == other);
        let point = if currency.digits() == 0 { "." } else { "" };
        let longer = format!("{}{point}{}", money(one), "0".repeat(zeros));
        if !longer.ends_with('.') {
            assert_eq!(Money::parse(&longer, currency), Ok(money(one)), "{longer}");
        }
        let too_long = format!("{longer}1");
        assert_eq!(Money::parse(&too_long, currency), Err(AmountFault::TooPrecise), "{too_long}");
    });
}

fn is_key(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| (b'!'..=b'~').contains(&byte))
}

/// As RFC 9651 writes a string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn f45_a_key_is_read_bare_or_quoted_and_nothing_else_is_one() {
    let near = text_near(&["abc", "\"abc\"", "\"a\\\"b\\\\c\"", " abc ", "\t\"abc\"", &"k".repeat(255)]);
    let value = prop_oneof![near.prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..300)];
    check(20_000, value, |value| {
        let read = IdempotencyKey::from_header(&value).map(|key| key.as_str().to_owned());
        let text = String::from_utf8_lossy(&value);
        let text = text.trim_matches([' ', '\t']);
        match &read {
            Some(key) if text.starts_with('"') => assert!(is_key(key) && text == quoted(key), "{text:?}"),
            Some(key) => assert!(is_key(text) && text == key, "{text:?}"),
            None => assert!(!is_key(text) || text.starts_with('"'), "{text:?}"),
        }
        if is_key(text) {
            let key = IdempotencyKey::from_header(quoted(text).as_bytes());
            assert_eq!(key.unwrap().as_str(), text, "quoted");
        }
    });
}

type Read = fn(&str) -> Option<String>;

macro_rules! words_of {
    ($($kind:ident as $pattern:expr,)+) => {
        &[$((stringify!($kind), |text| $kind::parse(text).map(|word| word.as_str().to_owned()), $pattern),)+]
    };
}

/// Each kind of word, how it is read, and its pattern where the document has none.
const WORDS: &[(&str, Read, Option<&str>)] = words_of! {
    ConfirmationId as None,
    OrderId as None,
    RefundId as None,
    PaymentId as None,
    ActorId as Some("^act_[0-9a-f]{32}$"),
    AccountId as Some("^acc_[0-9a-f]{32}$"),
    StockChangeId as Some("^stc_[0-9a-f]{32}$"),
    ProviderKey as Some("^countersign-pay_[0-9a-f]{32}$"),
    ProductId as None,
    TaskId as Some("^[!-~]{1,128}$"),
    Category as None,
    PaymentMethod as None,
    Digest as None,
};

#[test]
fn a_word_is_read_where_its_pattern_allows_it_and_written_as_it_was() {
    let hex = "0123456789abcdef0123456789abcdef";
    let ids = ["cnf", "ord", "rfd", "pay", "act", "acc", "stc", "countersign-pay"].map(|kind| format!("{kind}_{hex}"));
    let mut near: Vec<String> = ["MUG-BLUE", "mugs", "task-1", "pm_sandbox_ok", "pm_", ""].map(str::to_owned).to_vec();
    near.extend(ids);
    near.extend([64, 65, 128, 129].map(|length| "x".repeat(length)));
    near.extend([252, 253].map(|length| format!("pm_{}", "x".repeat(length))));
    near.push(format!("sha256:{hex}{hex}"));
    let allowed: Vec<jsonschema::Validator> = WORDS
        .iter()
        .map(|(kind, _, pattern)| {
            let documented = &DOCUMENT["components"]["schemas"][*kind];
            let pattern = pattern.map_or(documented.clone(), |pattern| serde_json::json!({"pattern": pattern}));
            assert!(pattern["pattern"].is_string(), "{kind} has no pattern");
            jsonschema::validator_for(&pattern).unwrap()
        })
        .collect();
    check(10_000, text_near(&near), |text| {
        for ((kind, read, _), allowed) in WORDS.iter().zip(&allowed) {
            let wanted = allowed.is_valid(&serde_json::json!(text)).then(|| text.clone());
            assert_eq!(read(&text), wanted, "{kind} {text:?}");
        }
    });
}

#[test]
fn a_path_leads_to_the_resource_that_it_was_made_of() {
    let hex = "0123456789abcdef0123456789abcdef";
    let kinds = ["/orders/ord", "/refunds/rfd", "/confirmations/cnf"].map(|kind| format!("{kind}_{hex}"));
    let near = kinds.iter().flat_map(|path| [path.clone(), format!("{path}/"), format!("/{path}")]).collect::<Vec<_>>();
    check(5_000, text_near(&near), |text| {
        let paths = [
            OrderId::at(&text).map(|id| id.path()),
            RefundId::at(&text).map(|id| id.path()),
            ConfirmationId::at(&text).map(|id| id.path()),
        ];
        assert!(paths.into_iter().flatten().all(|path| path == text), "{text:?}");
    });
}

#[test]
fn a_cursor_is_read_where_it_was_written_for_the_same_search() {
    let query = |text: &str| ProductQuery { words: words(text), category: None, availability: Availability::Any };
    let position = |score: i64| Position { score, product_id: ProductId::parse("MUG-BLUE").unwrap() };
    let near: Vec<String> = [0, 5, i64::MAX].map(|score| position(score).cursor(&query("mug"))).to_vec();
    check(4_000, (text_near(&near), any::<i64>()), |(text, score)| {
        if let Some(read) = Position::parse(&text, &query("mug")) {
            assert_eq!(read.cursor(&query("mug")), text);
        }
        assert_eq!(Position::parse(&text, &query("tea")), None);
        assert_eq!(Position::parse(&position(score).cursor(&query(&text)), &query(&text)), Some(position(score)));
    });
}

#[test]
fn the_words_of_a_text_are_few_short_and_in_lower_case() {
    let long = "é".repeat(70);
    check(5_000, text_near(&["Blue stoneware MUGS, blue!", "ǅungla İstanbul ß", "ΣΑΣ", &long]), |text| {
        let found: BTreeSet<String> = words(&text);
        for word in found {
            assert!((1..=64).contains(&word.chars().count()) && word.chars().all(char::is_alphanumeric), "{word:?}");
        }
    });
}

#[test]
fn a_time_is_read_as_it_is_written_and_never_outside_rfc_3339() {
    let documented = jsonschema::validator_for(&DOCUMENT["components"]["schemas"]["Timestamp"]).unwrap();
    let near =
        ["2026-12-01T09:30:00.007Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999+14:00", "2016-12-31T23:59:60Z"];
    let written_well = |at: Timestamp| {
        let written = serde_json::json!(at);
        assert!(documented.is_valid(&written), "{written}");
        assert_eq!(serde_json::from_value::<Timestamp>(written).unwrap(), at);
    };
    let millis = prop_oneof![any::<i64>(), -100_000_000_000_000_i64..300_000_000_000_000];
    check(10_000, (text_near(&near), millis), |(text, millis)| {
        serde_json::from_value::<Timestamp>(serde_json::json!(text)).into_iter().for_each(written_well);
        let Some(at) = Timestamp::from_unix_millis(millis) else { return };
        assert_eq!(at.unix_millis(), millis);
        written_well(at);
    });
}

#[test]
fn a_flag_is_in_its_range_or_refused() {
    let near = ["15m", "7d", "1h 30m", "1ms", "100y", "0", "1ns", "99999999999999999999y", "1.5s"];
    check(300, text_near(&near), |text| {
        let lease = format!("--lease={text}");
        let Ok(Cli { command: Command::Serve(serve) }) = Cli::try_parse_from(["countersign", "serve", &lease]) else {
            return;
        };
        assert!((1..=100 * 365 * 86_400 * 1_000).contains(&serve.lease.as_millis()), "{text:?}");
    });
    check(
        10_000,
        text_near(&["USD:100.00,EUR:100.00,JPY:15000,KWD:30.000", "JPY:0", "catalog:read orders:any"]),
        |text| {
            let named = Thresholds::parse(&text).map(|_| text.split(',').count());
            assert!(named.is_none_or(|named| named <= Currency::ALL.len()), "{text:?}");
            let scopes = Scopes::parse(&text).map(|scopes| scopes.as_str().to_owned());
            assert!(scopes.is_none_or(|scopes| scopes == text), "{text:?}");
        },
    );
    check(5_000, text_near(&["sqlite://data/a.db", "postgres://u:p@h/d", "postgresql://h?options=-c"]), |text| {
        let address = DatabaseUrl::parse(&text).map(|url| url.address());
        assert!(address.is_none_or(|address| address == text), "{text:?}");
    });
}

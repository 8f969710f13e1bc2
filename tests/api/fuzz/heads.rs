//! Heads: any bytes in each header that is read, in the path and in the query.

use super::raw::exchange;
use super::*;
use crate::contract::{DOCUMENT, assert_documented, resolve};

/// Headers that are read, each with values near which to look.
const HEADERS: &[(&str, &[&str])] = &[
    ("Idempotency-Key", &["abc", "\"abc\"", "\"a\\\"b\\\\c\"", " abc ", "\"abc\";v=1"]),
    ("Authorization", &["Bearer csk_demo_all", "bearer  csk_demo_all", "Basic YTpi", "Bearer"]),
    ("Agent-Task-Id", &["task-1", "~!$%&'()"]),
    ("X-Request-Id", &["mine-1", "req_~.-"]),
    (
        "Content-Type",
        &["application/json", "application/json; charset=utf-8", "application/json;charset=\"UTF-8\"", "*/*"],
    ),
    ("Content-Encoding", &["identity", "gzip", "br, gzip"]),
    ("Accept", &["application/json", "*/*;q=0.1", "text/html"]),
    ("Accept-Encoding", &["gzip", "identity;q=0", "*"]),
    ("If-None-Match", &["*", "\"abc\"", "W/\"abc\", \"def\""]),
    ("Host", &["localhost", "127.0.0.1:80", "[::1]"]),
];

/// Values near which to look in a query.
const VALUES: &[&str] = &[
    "",
    "mug",
    "blue+mug",
    "mugs",
    "true",
    "false",
    "1",
    "100",
    "101",
    "0",
    "-1",
    "99999999999999999999",
    "pending",
    "%00",
    "%FF",
    "%C3%A9",
    "%zz",
    "%",
    "cnf_0123456789abcdef0123456789abcdef",
    "ord_0123456789abcdef0123456789abcdef",
];

/// Ids of each kind that name nothing, and what is no id.
const SEGMENTS: &[&str] = &[
    "MUG-BLUE",
    "cnf_0123456789abcdef0123456789abcdef",
    "ord_0123456789abcdef0123456789abcdef",
    "task-1",
    "a%2Fb",
    "rfd_0123456789abcdef0123456789abcdef",
    "%00",
    "%FF",
    "%zz",
    "..",
    ".",
    "*",
];

fn any_bytes(near: &[&str]) -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        3 => text_near(near).prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ]
    .boxed()
}

/// A few headers, of which one may come twice.
fn any_headers() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    let each = HEADERS.iter().map(|(name, near)| any_bytes(near).prop_map(move |value| (*name, value)).boxed());
    prop::collection::vec(proptest::strategy::Union::new(each), 1..4)
}

impl Target {
    /// What it answers to bytes. What isn't HTTP at all is refused before the API sees it, or hung up on.
    fn ask_raw(&self, operation: Operation, target: &[u8], headers: &[(&str, Vec<u8>)]) -> Option<Got> {
        let method = operation.profile().method;
        let mut request = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nConnection: close\r\n"].concat();
        let usual = [("Host", "x"), ("Authorization", "Bearer csk_demo_all"), ("Content-Type", "application/json")];
        let usual = usual.map(|(name, value)| (name, value.as_bytes().to_vec()));
        let left = usual.iter().filter(|(name, _)| headers.iter().all(|(other, _)| other != name));
        for (name, value) in headers.iter().chain(left) {
            request.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        request.extend(b"Content-Length: 2\r\n\r\n{}");
        let got = exchange(&self.app.url, &request)?;
        assert!(got.status < 500, "{got:?}");
        match got.header("X-Request-Id") {
            Some(_) => {
                let path = target.split(|byte| b"?#".contains(byte)).next().unwrap();
                assert_documented(&method.parse().unwrap(), &String::from_utf8_lossy(path), &got);
            }
            None => assert!((400..500).contains(&got.status), "{got:?}"),
        }
        Some(got)
    }
}

#[test]
fn any_bytes_in_a_header_are_read_or_refused() {
    let target = Target::open();
    let input = (prop::sample::select(Operation::ALL), any_headers());
    check(1_000, input, |(operation, headers)| {
        target.ask_raw(operation, target.path(operation).as_bytes(), &headers);
    });
    target.close();
}

#[test]
fn any_query_is_read_or_refused() {
    let target = Target::open();
    let cursor = |path: &str| {
        let page = target.runtime.block_on(target.app.caller(ALL).get(path));
        page.json()["next_cursor"].as_str().unwrap().to_owned()
    };
    let mut near: Vec<String> = VALUES.iter().map(|value| (*value).to_owned()).collect();
    near.extend(["/products?limit=1", "/products?limit=1&q=mug", "/orders?limit=1"].map(cursor));
    let names: Vec<String> = Operation::ALL.iter().flat_map(|operation| parameters(*operation)).collect();
    let value = prop_oneof![3 => prop::sample::select(near.clone()), 2 => text_near(&near)];
    let name = prop_oneof![9 => prop::sample::select(names), 1 => text_near(&["dry_run"])];
    let query = prop::collection::vec((name, value), 0..4);
    let lists = [Operation::SearchProducts, Operation::ListOrders, Operation::ListConfirmations];
    let operation = prop_oneof![4 => prop::sample::select(lists.to_vec()), 1 => prop::sample::select(Operation::ALL)];
    check(700, (operation, query), |(operation, query)| {
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let path = format!("{}?{}", target.path(operation), query.join("&"));
        target.ask_raw(operation, path.as_bytes(), &[]);
    });
    target.close();
}

/// The names of an operation's query parameters.
fn parameters(operation: Operation) -> Vec<String> {
    let profile = operation.profile();
    let all = DOCUMENT["paths"][profile.path][profile.method.to_lowercase()]["parameters"].as_array();
    let in_query = all.into_iter().flatten().map(resolve).filter(|parameter| parameter["in"] == "query");
    in_query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn any_bytes_in_a_path_name_what_is_there_or_nothing() {
    let target = Target::open();
    let named: Vec<Operation> =
        Operation::ALL.iter().copied().filter(|operation| operation.profile().path.contains('{')).collect();
    let input = (prop::sample::select(named), any_bytes(SEGMENTS));
    check(700, input, |(operation, segment)| {
        let path = operation.profile().path;
        let (before, rest) = path.split_once('{').unwrap();
        let (_, after) = rest.split_once('}').unwrap();
        let path = [before.as_bytes(), &segment, after.as_bytes()].concat();
        target.ask_raw(operation, &path, &[("Idempotency-Key", b"key".to_vec())]);
    });
    target.close();
}

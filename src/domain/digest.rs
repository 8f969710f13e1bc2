//! SHA-256 digests of canonical JSON (RFC 8785): the plan digest, the attempt digest and the request fingerprint.

use super::operation::Operation;
use super::words::text_newtype;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a value's canonical JSON (RFC 8785): `sha256:` and 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[derive(Serialize, diesel::AsExpression, diesel::FromSqlRow, utoipa::ToSchema)]
#[diesel(sql_type = diesel::sql_types::Text)]
#[schema(value_type = String, pattern = "^sha256:[0-9a-f]{64}$")]
#[schema(example = "sha256:4be54fd1c5e5ab4ccf0ee64d9cb04f6c2b9a6f0e4f7b1a3f5f9f6e9b9f1d8f6e")]
pub struct Digest(String);

impl Digest {
    /// The digest of a value's canonical JSON. Give it strings and small integers only: RFC 8785 writes numbers as
    /// doubles, which can't tell 2^53 from 2^53 + 1.
    pub fn of(value: &impl Serialize) -> Self {
        // Fails only for maps with keys that aren't strings and for serializers that refuse; we have neither.
        #[expect(clippy::expect_used, reason = "derived serializers over string keys don't fail")]
        let canonical = serde_json_canonicalizer::to_vec(value).expect("canonical JSON");
        Self(format!("sha256:{}", sha256_hex(&canonical)))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let well_formed = hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        well_formed.then(|| Self(text.to_owned()))
    }
}

text_newtype!(Digest);

/// What a request is, for telling a retry from a reuse: the digest of its operation, its path parameters and the
/// parsed, typed request. White space, member order, notations of one amount and members given as their default are
/// gone by then, and so is the letter case of a currency; nothing else is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// Raise it whenever an equal request would get another fingerprint. It is stored beside each one, and those of
    /// another version aren't compared.
    pub const VERSION: i64 = 1;

    pub fn of(operation: Operation, path: &[&str], request: &impl Serialize) -> Self {
        Self(Digest::of(&(operation, path, request)))
    }

    pub fn digest(&self) -> &Digest {
        &self.0
    }
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn f33_a_digest_does_not_depend_on_member_order() {
        let one: serde_json::Value = serde_json::from_str(r#"{"b": 1, "a": {"d": "é", "c": null}}"#).unwrap();
        let two: serde_json::Value = serde_json::from_str(r#"{"a":{"c":null,"d":"é"},"b":1}"#).unwrap();
        assert_eq!(Digest::of(&one), Digest::of(&two));
        let canonical = r#"{"a":{"c":null,"d":"é"},"b":1}"#;
        assert_eq!(Digest::of(&one).as_str(), format!("sha256:{}", sha256_hex(canonical.as_bytes())));
    }

    #[test]
    fn f25_a_fingerprint_tells_operations_and_paths_apart() {
        let of = |operation, path: &[&str]| Fingerprint::of(operation, path, &json!({}));
        let cancel = of(Operation::CancelConfirmation, &["a"]);
        assert_ne!(cancel, of(Operation::CancelConfirmation, &["b"]));
        assert_ne!(cancel, of(Operation::ConfirmCheckout, &["a"]));
        assert_eq!(cancel, of(Operation::CancelConfirmation, &["a"]));
    }
}

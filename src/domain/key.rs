//! The idempotency key: the caller's name for one intended effect
//! (draft-ietf-httpapi-idempotency-key-header, with the bare form that practice uses as well).

use super::digest::sha256_hex;
use super::words::text_column;

/// 1–255 visible ASCII characters, case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, diesel::AsExpression, diesel::FromSqlRow)]
#[diesel(sql_type = diesel::sql_types::Text)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads a header's value. One level of quotes is taken off as RFC 9651 writes strings, so `"abc"` and `abc` are
    /// one key.
    pub fn from_header(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
        match text.strip_prefix('"') {
            Some(rest) => Self::parse(&unquote(rest)?),
            None => Self::parse(text),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let well_formed = (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        well_formed.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Enough of a hash to find a key's calls in the log without showing the key.
    pub fn log_hash(&self) -> String {
        sha256_hex(self.0.as_bytes())[..12].to_owned()
    }
}

text_column!(IdempotencyKey);

/// The rest of an RFC 9651 string after its opening quote: `\"` and `\\` are the only escapes, and nothing follows
/// the closing quote.
fn unquote(rest: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return chars.next().is_none().then_some(text),
            '\\' => text.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            plain => text.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<String> {
        IdempotencyKey::from_header(value.as_bytes()).map(|key| key.as_str().to_owned())
    }

    #[test]
    fn f45_one_level_of_quotes_is_taken_off() {
        for same in ["abc", "\"abc\"", " abc ", "\t\"abc\""] {
            assert_eq!(read(same).as_deref(), Some("abc"), "{same}");
        }
        assert_eq!(read(r#""a\"b\\c""#).as_deref(), Some(r#"a"b\c"#));
        assert_eq!(read("ABC").as_deref(), Some("ABC"));
    }

    #[test]
    fn f45_what_is_not_a_key_is_refused() {
        for bad in
            ["", " ", "\"\"", "\"", "\"abc", "\"a\"b\"", "\"abc\";v=1", "a b", "\"a b\"", "é", "a\0b", r#""a\b""#]
        {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert!(read(&"k".repeat(255)).is_some());
        assert!(read(&format!("\"{}\"", "k".repeat(255))).is_some());
        assert_eq!(read(&"k".repeat(256)), None);
        assert_eq!(IdempotencyKey::from_header(&[0xff, 0xfe]), None);
    }
}

//! JSON bodies, read strictly: no unknown or duplicate member, no NUL, no array in place of an object, nothing after the
//! value; and no number through a binary float.

use crate::domain::error::{Fault, FaultCode, Problem};
use crate::domain::ids::ProductId;
use crate::domain::money::{AmountFault, Currency, Money};
use crate::domain::page::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::domain::product::Category;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::marker::PhantomData;

/// Characters of a text, unless said otherwise.
pub const MAX_TEXT: usize = 500;
/// Characters of a reader's message, which can quote what it read.
const MAX_REASON: usize = 300;

pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let malformed = |error: serde_json::Error| {
        let reason: String = error.to_string().chars().take(MAX_REASON).collect();
        Problem::malformed(format!("The body is not the documented JSON: {reason}."))
    };
    let Object(value) = serde_json::from_slice::<Object<T>>(bytes).map_err(malformed)?;
    if has_nul(bytes) {
        return Err(Problem::malformed("The body has a NUL character (\\u0000)."));
    }
    Ok(value)
}

/// Whether valid JSON has an escaped NUL in one of its strings, the only place where it can have one.
fn has_nul(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        if rest[at..].starts_with(b"\\u0000") {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

/// A JSON object. serde's derived readers would take an array of the members' values as well.
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMaps<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMaps<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(OnlyMaps(PhantomData))
    }
}

/// A JSON integer of any size; beyond 64 bits it saturates, and is out of every range then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer(pub i64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        integer(raw.get()).map(Self).ok_or_else(|| D::Error::custom("expected an integer"))
    }
}

/// Reads an integer; beyond 64 bits it saturates.
pub fn integer(text: &str) -> Option<i64> {
    let (digits, limit) = match text.strip_prefix('-') {
        Some(digits) => (digits, i64::MIN),
        None => (text, i64::MAX),
    };
    let well_formed = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    well_formed.then(|| text.parse().unwrap_or(limit))
}

/// The notation of an amount as it was sent: a string's text or a number's digits.
#[derive(Debug)]
pub struct Notation(String);

impl<'de> Deserialize<'de> for Notation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match raw.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw.get()).map(Self).map_err(D::Error::custom),
            Some(b'-' | b'0'..=b'9') => Ok(Self(raw.get().to_owned())),
            _ => Err(D::Error::custom("expected an amount: a decimal string or a number")),
        }
    }
}

impl utoipa::PartialSchema for Notation {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
        OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^(0|[1-9][0-9]*)(\.[0-9]+)?$")))
            .item(ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)))
            .description(Some("Plain decimal notation, exactly representable in the currency: \"47.30\", 47.3 and 47.300 are the same amount of USD. No sign, no exponent, no leading zero; up to 999999999999 minor units."))
            .examples([serde_json::json!("47.30"), serde_json::json!(47.3)])
            .into()
    }
}

impl utoipa::ToSchema for Notation {}

/// An amount of money as it is sent.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MoneyInput)]
pub struct MoneyBody {
    #[schema(inline)]
    amount: Notation,
    /// ISO 4217: USD, EUR, JPY or KWD, in any letter case.
    #[schema(pattern = "^([Uu][Ss][Dd]|[Ee][Uu][Rr]|[Jj][Pp][Yy]|[Kk][Ww][Dd])$", example = "USD")]
    currency: String,
}

/// As `\s` of ECMA-262 has it, and so the patterns of the document: Unicode's white space with U+FEFF and without U+0085.
fn is_blank(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Collects what is wrong with the values of a body, so that the caller hears all of it at once.
#[derive(Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) {
        self.0.push(Fault::new(pointer, code, detail));
    }

    /// Turns the collected faults into the refusal, if there are any.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(Problem::validation_failed(self.0)),
        }
    }

    pub fn parsed<T>(&mut self, pointer: &str, value: Option<T>, expected: &str) -> Option<T> {
        if value.is_none() {
            self.add(pointer, FaultCode::WrongFormat, format!("Expected {expected}."));
        }
        value
    }

    /// A text with something in it.
    pub fn text(&mut self, pointer: &str, text: String) -> Option<String> {
        let length = text.chars().count();
        if text.chars().all(is_blank) || length > MAX_TEXT {
            let detail = format!("Expected 1 to {MAX_TEXT} characters that aren't all blank.");
            self.add(pointer, FaultCode::WrongLength, detail);
            return None;
        }
        Some(text)
    }

    /// A longer text, which may be empty.
    pub fn prose(&mut self, pointer: &str, text: String, max: usize) -> Option<String> {
        if text.chars().count() > max {
            self.add(pointer, FaultCode::WrongLength, format!("Expected up to {max} characters."));
            return None;
        }
        Some(text)
    }

    pub fn product_id(&mut self, pointer: &str, text: &str) -> Option<ProductId> {
        self.parsed(pointer, ProductId::parse(text), ProductId::NOTATION)
    }

    pub fn category(&mut self, pointer: &str, text: &str) -> Option<Category> {
        self.parsed(pointer, Category::parse(text), Category::NOTATION)
    }

    /// Items of a page.
    pub fn limit(&mut self, pointer: &str, limit: Option<i64>) -> usize {
        let limit = limit.map(|limit| self.integer(pointer, limit, 1, MAX_LIMIT as i64));
        limit.flatten().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT)
    }

    pub fn integer(&mut self, pointer: &str, value: i64, min: i64, max: i64) -> Option<i64> {
        if !(min..=max).contains(&value) {
            self.add(pointer, FaultCode::OutOfRange, format!("Expected {min} to {max}."));
            return None;
        }
        Some(value)
    }

    /// The list, if it is of an acceptable length: a longer one isn't looked into.
    pub fn list<T>(&mut self, pointer: &str, list: Vec<T>, min: usize, max: usize) -> Option<Vec<T>> {
        let count = list.len();
        if !(min..=max).contains(&count) {
            self.add(pointer, FaultCode::WrongLength, format!("Expected {min} to {max} items, got {count}."));
            return None;
        }
        Some(list)
    }

    pub fn money(&mut self, pointer: &str, money: MoneyBody) -> Option<Money> {
        let Some(currency) = Currency::parse_any_case(&money.currency) else {
            let known: Vec<&str> = Currency::ALL.iter().map(Currency::as_str).collect();
            let detail = format!("Expected one of {}.", known.join(", "));
            self.add(format!("{pointer}/currency"), FaultCode::UnknownCurrency, detail);
            return None;
        };
        let Notation(notation) = &money.amount;
        if notation.len() > MAX_TEXT {
            self.add(
                format!("{pointer}/amount"),
                FaultCode::WrongLength,
                format!("Expected up to {MAX_TEXT} characters."),
            );
            return None;
        }
        let digits = currency.digits();
        let (code, detail) = match Money::parse(notation, currency) {
            Ok(money) => return Some(money),
            Err(AmountFault::NotPlainDecimal) => {
                (FaultCode::WrongFormat, format!("Expected plain decimal notation, such as {}.", Money::zero(currency)))
            }
            Err(AmountFault::Negative) => (FaultCode::OutOfRange, "An amount has no sign.".to_owned()),
            Err(AmountFault::TooPrecise) => {
                (FaultCode::WrongFormat, format!("{} has {digits} decimal digits.", currency.as_str()))
            }
            Err(AmountFault::TooLarge) => {
                (FaultCode::OutOfRange, format!("An amount has up to {} minor units.", Money::MAX_MINOR))
            }
        };
        self.add(format!("{pointer}/amount"), code, detail);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        n: Integer,
        text: Option<String>,
    }

    fn read(json: &str) -> Result<Sample, Problem> {
        parse(json.as_bytes())
    }

    #[test]
    fn an_integer_of_any_size_is_an_integer() {
        for (json, n) in [("7", 7), ("-7", -7), ("9223372036854775808", i64::MAX), ("-99999999999999999999", i64::MIN)]
        {
            assert_eq!(read(&format!("{{\"n\":{json}}}")).unwrap().n, Integer(n));
        }
        for bad in ["1.0", "1e3", "\"1\"", "null", "true", "[]"] {
            assert!(read(&format!("{{\"n\":{bad}}}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_the_documented_object_is_refused() {
        for bad in [
            "",
            "null",
            "[1]",
            "[]",
            "{}",
            "{\"n\":1,}",
            "{\"n\":1} x",
            "{\"n\":1,\"n\":1}",
            "{\"n\":1,\"m\":1}",
            "{\"n\":1,\"text\":\"a\\u0000\"}",
            "{\"n\":1,\"text\":\"\\\\\\u0000\"}",
            "{\"n\":1,\"text\":\"\\ud800\"}",
            "\u{feff}{\"n\":1}",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read(r#"{"n":1,"text":"\\u0000"}"#).unwrap().text.as_deref(), Some(r"\u0000"));
        assert!(parse::<Sample>(b"{\"n\":1,\"text\":\"\xff\"}").is_err());
    }
}

//! Money: whole minor units of one currency, from the wire to the payment provider. No binary float, no rounding on
//! the way in, checked arithmetic inside.

use super::words::words;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

words! {
    /// ISO 4217 codes that the shop sells in.
    pub enum Currency {
        Usd = "USD",
        Eur = "EUR",
        Jpy = "JPY",
        Kwd = "KWD",
    }
}

impl Currency {
    /// ISO 4217's exponent: how many decimal digits the minor unit has.
    pub const fn digits(self) -> usize {
        match self {
            Currency::Jpy => 0,
            Currency::Usd | Currency::Eur => 2,
            Currency::Kwd => 3,
        }
    }

    /// Letter case doesn't matter: `usd` is `USD`.
    pub fn parse_any_case(text: &str) -> Option<Self> {
        Self::parse(&text.to_ascii_uppercase())
    }
}

/// Why a notation isn't an amount of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountFault {
    /// Not plain decimal notation: a sign, an exponent, a leading zero, a separator, …
    NotPlainDecimal,
    /// Below zero.
    Negative,
    /// More digits than the currency's minor unit has, and not zeros.
    TooPrecise,
    /// Above [`Money::MAX_MINOR`].
    TooLarge,
}

/// A sum left the range of [`Money`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

/// Zero or more minor units of one currency, never below zero and never above [`Money::MAX_MINOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Money {
    /// Twelve digits, as card networks carry them (ISO 8583, field 4). Far below 2^53, so that no reader of our JSON
    /// can lose a digit either.
    pub const MAX_MINOR: i64 = 999_999_999_999;

    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    pub fn from_minor(minor: i64, currency: Currency) -> Result<Self, OutOfRange> {
        (0..=Self::MAX_MINOR).contains(&minor).then_some(Self { minor, currency }).ok_or(OutOfRange)
    }

    pub const fn minor(self) -> i64 {
        self.minor
    }

    pub const fn currency(self) -> Currency {
        self.currency
    }

    pub const fn is_zero(self) -> bool {
        self.minor == 0
    }

    /// Reads `10`, `10.0` and `10.00` as the same amount, and refuses whatever would need rounding or guessing.
    pub fn parse(notation: &str, currency: Currency) -> Result<Self, AmountFault> {
        let minor = parse_minor(notation, currency.digits())?;
        Self::from_minor(minor, currency).map_err(|OutOfRange| AmountFault::TooLarge)
    }

    /// Adding two currencies is a bug in the caller, shown as out of range rather than as a wrong sum.
    pub fn plus(self, other: Money) -> Result<Money, OutOfRange> {
        self.combine(other, i64::checked_add)
    }

    pub fn minus(self, other: Money) -> Result<Money, OutOfRange> {
        self.combine(other, i64::checked_sub)
    }

    pub fn times(self, factor: i64) -> Result<Money, OutOfRange> {
        self.minor.checked_mul(factor).ok_or(OutOfRange).and_then(|minor| Self::from_minor(minor, self.currency))
    }

    pub fn sum(currency: Currency, parts: impl IntoIterator<Item = Money>) -> Result<Money, OutOfRange> {
        parts.into_iter().try_fold(Money::zero(currency), Money::plus)
    }

    /// `parts_per_million` of this amount, rounded half up to the minor unit.
    pub fn fraction(self, parts_per_million: i64) -> Result<Money, OutOfRange> {
        const MILLION: i128 = 1_000_000;
        let scaled = i128::from(self.minor) * i128::from(parts_per_million) + MILLION / 2;
        i64::try_from(scaled / MILLION).map_err(|_| OutOfRange).and_then(|minor| Self::from_minor(minor, self.currency))
    }

    /// Splits this amount in proportion to `weights` by largest remainder, so that the parts add up to the whole.
    /// No part exceeds its weight when the whole doesn't exceed their sum. All weights zero: the first part takes all.
    pub fn split(self, weights: &[Money]) -> Vec<Money> {
        let whole = i128::from(self.minor);
        let total: i128 = weights.iter().map(|w| i128::from(w.minor)).sum();
        let share = |weight: &Money| (whole * i128::from(weight.minor)).checked_div_euclid(total).unwrap_or(0);
        let remainder = |weight: &Money| (whole * i128::from(weight.minor)).checked_rem_euclid(total).unwrap_or(0);

        let mut parts: Vec<i128> = weights.iter().map(share).collect();
        let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
        by_remainder.sort_by_key(|&i| std::cmp::Reverse(remainder(&weights[i])));
        let mut left = whole - parts.iter().sum::<i128>();
        if total == 0 {
            parts.iter_mut().take(1).for_each(|first| *first += std::mem::take(&mut left));
        }
        for i in by_remainder {
            let extra = left.min(1);
            parts[i] += extra;
            left -= extra;
        }
        // Each part lies between zero and the whole, which is an i64.
        parts.into_iter().map(|part| Money { minor: part as i64, currency: self.currency }).collect()
    }

    fn combine(self, other: Money, op: fn(i64, i64) -> Option<i64>) -> Result<Money, OutOfRange> {
        if self.currency != other.currency {
            return Err(OutOfRange);
        }
        op(self.minor, other.minor).ok_or(OutOfRange).and_then(|minor| Self::from_minor(minor, self.currency))
    }
}

fn parse_minor(notation: &str, digits: usize) -> Result<i64, AmountFault> {
    match notation.strip_prefix('-') {
        Some(unsigned) => parse_unsigned(unsigned, digits).and(Err(AmountFault::Negative)),
        None => parse_unsigned(notation, digits),
    }
}

fn parse_unsigned(notation: &str, digits: usize) -> Result<i64, AmountFault> {
    let (whole, fraction) = match notation.split_once('.') {
        Some((_, "")) => return Err(AmountFault::NotPlainDecimal),
        Some(both) => both,
        None => (notation, ""),
    };
    let decimal = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || leading_zero || !decimal(whole) || !decimal(fraction) {
        return Err(AmountFault::NotPlainDecimal);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > digits {
        return Err(AmountFault::TooPrecise);
    }
    format!("{whole}{fraction:0<digits$}").parse().map_err(|_| AmountFault::TooLarge)
}

/// The decimal notation alone, always with exactly the currency's digits: `47.30`, `5800`, `1.000`.
impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.currency.digits();
        if digits == 0 {
            return write!(f, "{}", self.minor);
        }
        let scale = 10_i64.pow(digits as u32);
        write!(f, "{}.{:0digits$}", self.minor / scale, self.minor % scale)
    }
}

/// An amount of money: a decimal string with exactly the currency's digits (USD 2, JPY 0, KWD 3).
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Money)]
pub struct WrittenMoney {
    /// Whole minor units, written with a decimal point: exactly 2 digits for USD and EUR, none for JPY, 3 for KWD.
    #[schema(example = "47.30", pattern = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$")]
    amount: String,
    /// ISO 4217.
    currency: Currency,
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenMoney { amount: self.to_string(), currency: self.currency }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WrittenMoney { amount, currency } = WrittenMoney::deserialize(deserializer)?;
        Money::parse(&amount, currency).map_err(|fault| serde::de::Error::custom(format!("{fault:?}")))
    }
}

impl utoipa::PartialSchema for Money {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        WrittenMoney::schema()
    }
}

impl utoipa::ToSchema for Money {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
        WrittenMoney::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usd(minor: i64) -> Money {
        Money::from_minor(minor, Currency::Usd).unwrap()
    }

    #[test]
    fn f35_every_notation_of_one_value_is_one_amount() {
        for notation in ["10", "10.0", "10.00", "10.000"] {
            assert_eq!(Money::parse(notation, Currency::Usd), Ok(usd(1000)), "{notation}");
        }
        assert_eq!(Money::parse("58.00", Currency::Jpy).unwrap().minor(), 58);
    }

    #[test]
    fn f35_what_would_need_rounding_or_guessing_is_refused() {
        use AmountFault::{Negative, NotPlainDecimal, TooLarge, TooPrecise};
        for (notation, currency, fault) in [
            ("10.001", Currency::Usd, TooPrecise),
            ("58.50", Currency::Jpy, TooPrecise),
            ("0.0005", Currency::Kwd, TooPrecise),
            ("1.1234127836128763", Currency::Usd, TooPrecise),
            ("1e1", Currency::Usd, NotPlainDecimal),
            ("+1", Currency::Usd, NotPlainDecimal),
            ("01", Currency::Usd, NotPlainDecimal),
            (".5", Currency::Usd, NotPlainDecimal),
            ("5.", Currency::Usd, NotPlainDecimal),
            ("1,000.00", Currency::Usd, NotPlainDecimal),
            ("NaN", Currency::Usd, NotPlainDecimal),
            ("", Currency::Usd, NotPlainDecimal),
            (" 1", Currency::Usd, NotPlainDecimal),
            ("٣", Currency::Usd, NotPlainDecimal),
            ("--5", Currency::Usd, NotPlainDecimal),
            ("-5", Currency::Usd, Negative),
            ("-0", Currency::Usd, Negative),
            ("10000000000.00", Currency::Usd, TooLarge),
            ("9007199254740993", Currency::Usd, TooLarge),
            ("99999999999999999999999999", Currency::Usd, TooLarge),
        ] {
            assert_eq!(Money::parse(notation, currency), Err(fault), "{notation}");
        }
    }

    #[test]
    fn f15_f16_f17_the_currency_says_how_many_digits() {
        for (notation, currency, minor) in [
            ("5800", Currency::Jpy, 5800),
            ("1.000", Currency::Kwd, 1000),
            ("7.500", Currency::Kwd, 7500),
            ("0.001", Currency::Kwd, 1),
            ("1.18", Currency::Usd, 118),
            ("7.77", Currency::Usd, 777),
            ("4.35", Currency::Eur, 435),
            ("0.29", Currency::Usd, 29),
        ] {
            let money = Money::parse(notation, currency).unwrap();
            assert_eq!(money.minor(), minor, "{notation}");
            assert_eq!(money.to_string(), notation);
        }
    }

    #[test]
    fn f14_a_sum_that_leaves_the_range_is_an_error_not_a_wrap() {
        assert_eq!(usd(Money::MAX_MINOR).plus(usd(1)), Err(OutOfRange));
        assert_eq!(usd(Money::MAX_MINOR).times(i64::MAX), Err(OutOfRange));
        assert_eq!(usd(1).minus(usd(2)), Err(OutOfRange));
        assert_eq!(usd(1).plus(Money::zero(Currency::Eur)), Err(OutOfRange));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(minor in 0..=Money::MAX_MINOR, which in 0..Currency::ALL.len()) {
            let money = Money::from_minor(minor, Currency::ALL[which]).unwrap();
            prop_assert_eq!(Money::parse(&money.to_string(), money.currency()), Ok(money));
        }

        #[test]
        fn the_parts_of_a_split_add_up_to_the_whole(
            weights in prop::collection::vec(0_i64..100_000, 1..20),
            share in 0_i64..=1_000_000,
        ) {
            let weights: Vec<Money> = weights.into_iter().map(usd).collect();
            let whole = Money::sum(Currency::Usd, weights.iter().copied()).unwrap().fraction(share).unwrap();
            let parts = whole.split(&weights);
            prop_assert_eq!(Money::sum(Currency::Usd, parts.iter().copied()), Ok(whole));
            for (part, weight) in parts.iter().zip(&weights) {
                prop_assert!(part.minor() <= weight.minor());
            }
        }
    }
}

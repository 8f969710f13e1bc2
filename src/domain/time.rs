//! One point in time: UTC, cut to the millisecond, so that the time shown is the time stored and the time tested.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta};
use diesel::backend::Backend;
use diesel::sql_types;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// RFC 3339, UTC, three digits of a second: `2026-12-01T09:30:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(diesel::AsExpression, diesel::FromSqlRow, utoipa::ToSchema)]
#[diesel(sql_type = sql_types::Timestamp)]
#[schema(value_type = String, format = DateTime, example = "2026-12-01T09:30:00.000Z")]
#[schema(pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$")]
pub struct Timestamp(NaiveDateTime);

impl Timestamp {
    /// Milliseconds since 1970-01-01T00:00:00Z. None outside the years that RFC 3339 can write.
    pub fn from_unix_millis(millis: i64) -> Option<Self> {
        DateTime::from_timestamp_millis(millis).and_then(|at| Self::writable(at.naive_utc()))
    }

    /// RFC 3339 has four digits for the year, and no sign.
    fn writable(at: NaiveDateTime) -> Option<Self> {
        (0..=9999).contains(&at.year()).then_some(Self(at))
    }

    pub fn unix_millis(self) -> i64 {
        self.0.and_utc().timestamp_millis()
    }

    pub fn date(self) -> NaiveDate {
        self.0.date()
    }

    /// Saturates far beyond any deadline that is set here.
    pub fn after(self, span: Duration) -> Self {
        self.shifted(span, 1)
    }

    pub fn before(self, span: Duration) -> Self {
        self.shifted(span, -1)
    }

    /// How long until `self`, seen from `now`; zero when it is past.
    pub fn until(self, now: Timestamp) -> Duration {
        (self.0 - now.0).to_std().unwrap_or(Duration::ZERO)
    }

    fn shifted(self, span: Duration, sign: i32) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let shifted = TimeDelta::try_milliseconds(millis).and_then(|delta| self.0.checked_add_signed(delta * sign));
        shifted.and_then(Self::writable).unwrap_or(self)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.and_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let at = DateTime::<chrono::Utc>::deserialize(deserializer)?;
        Self::from_unix_millis(at.timestamp_millis()).ok_or_else(|| serde::de::Error::custom("out of range"))
    }
}

impl<DB: Backend> diesel::deserialize::FromSql<sql_types::Timestamp, DB> for Timestamp
where
    NaiveDateTime: diesel::deserialize::FromSql<sql_types::Timestamp, DB>,
{
    fn from_sql(bytes: DB::RawValue<'_>) -> diesel::deserialize::Result<Self> {
        NaiveDateTime::from_sql(bytes).map(Self)
    }
}

impl<DB: Backend> diesel::serialize::ToSql<sql_types::Timestamp, DB> for Timestamp
where
    NaiveDateTime: diesel::serialize::ToSql<sql_types::Timestamp, DB>,
{
    fn to_sql<'b>(&'b self, out: &mut diesel::serialize::Output<'b, '_, DB>) -> diesel::serialize::Result {
        self.0.to_sql(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_rfc_3339_with_milliseconds() {
        let at = Timestamp::from_unix_millis(1_796_117_400_007).unwrap();
        assert_eq!(at.to_string(), "2026-12-01T09:30:00.007Z");
        assert_eq!(at.after(Duration::from_micros(1_999)).unix_millis(), at.unix_millis() + 1);
        assert_eq!(at.after(Duration::MAX), at);
    }

    #[test]
    fn a_year_has_four_digits() {
        let first = Timestamp::from_unix_millis(-62_167_219_200_000).unwrap();
        let last = Timestamp::from_unix_millis(253_402_300_799_999).unwrap();
        let written = [first, last].map(|at| at.to_string());
        assert_eq!(written, ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]);
        for outside in [i64::MIN, -62_167_219_200_001, 253_402_300_800_000, i64::MAX] {
            assert_eq!(Timestamp::from_unix_millis(outside), None);
        }
        let milli = Duration::from_millis(1);
        assert_eq!((first.before(milli), last.after(milli)), (first, last));
    }
}

//! A value kept as JSON text.

use diesel::backend::Backend;
use diesel::deserialize::FromSql;
use diesel::serialize::{Output, ToSql};
use diesel::sql_types::Text;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Clone, Debug, diesel::AsExpression, diesel::FromSqlRow)]
#[diesel(sql_type = Text)]
pub struct Json<T: std::fmt::Debug>(pub T);

impl<T: DeserializeOwned + std::fmt::Debug, DB: Backend> FromSql<Text, DB> for Json<T>
where
    String: FromSql<Text, DB>,
{
    fn from_sql(bytes: DB::RawValue<'_>) -> diesel::deserialize::Result<Self> {
        Ok(Self(serde_json::from_str(&String::from_sql(bytes)?)?))
    }
}

impl<T: Serialize + std::fmt::Debug> ToSql<Text, diesel::pg::Pg> for Json<T> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::pg::Pg>) -> diesel::serialize::Result {
        serde_json::to_writer(out, &self.0)?;
        Ok(diesel::serialize::IsNull::No)
    }
}

impl<T: Serialize + std::fmt::Debug> ToSql<Text, diesel::sqlite::Sqlite> for Json<T> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::sqlite::Sqlite>) -> diesel::serialize::Result {
        out.set_value(serde_json::to_string(&self.0)?);
        Ok(diesel::serialize::IsNull::No)
    }
}

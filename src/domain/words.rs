//! Small macros for types that are one word or one id on the wire and in a TEXT column.
//! Both promise the same: what `parse` accepts is exactly what `as_str` gives back.

/// Stores a type that has `as_str` and `parse` as TEXT, on any diesel backend.
macro_rules! text_column {
    ($name:ident) => {
        impl<DB: diesel::backend::Backend> diesel::deserialize::FromSql<diesel::sql_types::Text, DB> for $name
        where
            String: diesel::deserialize::FromSql<diesel::sql_types::Text, DB>,
        {
            fn from_sql(bytes: DB::RawValue<'_>) -> diesel::deserialize::Result<Self> {
                let text = String::from_sql(bytes)?;
                Self::parse(&text).ok_or_else(|| format!("not a {}: {text}", stringify!($name)).into())
            }
        }

        impl<DB: diesel::backend::Backend> diesel::serialize::ToSql<diesel::sql_types::Text, DB> for $name
        where
            str: diesel::serialize::ToSql<diesel::sql_types::Text, DB>,
        {
            fn to_sql<'b>(&'b self, out: &mut diesel::serialize::Output<'b, '_, DB>) -> diesel::serialize::Result {
                self.as_str().to_sql(out)
            }
        }
    };
}

/// A checked text that is shown as it is: `as_str`, `Display`, JSON, and a TEXT column. `parse` is the type's own, and
/// the only way in.
macro_rules! text_newtype {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom(concat!("not a ", stringify!($name))))
            }
        }

        $crate::domain::words::text_column!($name);
    };
}

/// A closed set of words: an enum whose variants are spelled the same in Rust, JSON, SQL and the documents.
macro_rules! words {
    ($(#[doc = $about:literal])* pub enum $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[derive(diesel::AsExpression, diesel::FromSqlRow)]
        #[diesel(sql_type = diesel::sql_types::Text)]
        pub enum $name { $($(#[doc = $doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            pub const fn as_str(&self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(word: &str) -> Result<Self, ()> {
                Self::parse(word).ok_or(())
            }
        }

        // utoipa's derive doesn't see a rename that a macro hands on.
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($word,)+]))
                    .description(Some($crate::domain::words::legend(concat!($($about,)*), &[$(($word, concat!($($doc,)*)),)+])))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}

        $crate::domain::words::text_column!($name);
    };
}

/// What the set and each of its words means, for the documents.
pub fn legend(about: &str, words: &[(&str, &str)]) -> String {
    let explained = words.iter().filter(|(_, meaning)| !meaning.is_empty());
    let lines = explained.map(|(word, meaning)| format!("\n- `{word}`:{meaning}"));
    format!("{}{}", about.trim_start(), lines.collect::<String>())
}

pub(crate) use {text_column, text_newtype, words};

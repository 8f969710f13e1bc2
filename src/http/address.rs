//! An address as it is sent.

use super::json::Faults;
use crate::domain::address::Address;
use serde::Deserialize;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AddressInput)]
pub struct AddressBody {
    #[schema(min_length = 1, max_length = 500, example = "Ada Lovelace")]
    name: String,
    #[schema(min_length = 1, max_length = 500, example = "1 Market Street")]
    line1: String,
    #[schema(min_length = 1, max_length = 500)]
    line2: Option<String>,
    #[schema(min_length = 1, max_length = 500, example = "San Francisco")]
    city: String,
    #[schema(min_length = 1, max_length = 500, example = "CA")]
    region: Option<String>,
    #[schema(min_length = 1, max_length = 500, example = "94105")]
    postal_code: String,
    /// ISO 3166-1 alpha-2, capitals.
    #[schema(pattern = "^[A-Z]{2}$", example = "US")]
    country: String,
}

/// `at` points to it in the body.
pub fn address(faults: &mut Faults, at: &str, body: AddressBody) -> Option<Address> {
    let name = faults.text(&format!("{at}/name"), body.name);
    let line1 = faults.text(&format!("{at}/line1"), body.line1);
    let line2 = body.line2.and_then(|line2| faults.text(&format!("{at}/line2"), line2));
    let city = faults.text(&format!("{at}/city"), body.city);
    let region = body.region.and_then(|region| faults.text(&format!("{at}/region"), region));
    let postal_code = faults.text(&format!("{at}/postal_code"), body.postal_code);
    let capitals = body.country.len() == 2 && body.country.bytes().all(|b| b.is_ascii_uppercase());
    let country = capitals.then_some(body.country);
    let country = faults.parsed(&format!("{at}/country"), country, "two capitals (ISO 3166-1 alpha-2)");
    Some(Address {
        name: name?,
        line1: line1?,
        line2,
        city: city?,
        region,
        postal_code: postal_code?,
        country: country?,
    })
}

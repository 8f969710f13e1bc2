//! An address as it is sent.

use super::json::Faults;
use crate::domain::address::Address;
use serde::Deserialize;

/// A postal address: where the parcel goes, and what tax and shipping are priced for.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AddressInput)]
pub struct AddressBody {
    /// Who receives it.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "Ada Lovelace")]
    name: String,
    /// Street and number, or a post-office box.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "1 Market Street")]
    line1: String,
    /// What the first line has no room for.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "Apartment 4")]
    line2: Option<String>,
    /// The town.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "San Francisco")]
    city: String,
    /// State, province or prefecture, as the country's post writes it. Some tax rates depend on it.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "CA")]
    region: Option<String>,
    /// As the country's post writes it.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "94105")]
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

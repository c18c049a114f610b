//! Codec parameters: the type of each, and the error for another type.

use crate::error::{Error, ErrorKind};
use crate::metadata::{Configuration, excerpt};
use serde_json::Value;

/// Type of a parameter. Every parameter may also be null, as numcodecs writes unset ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A list.
    List,
    /// Data type of a filter's decoded elements, in NumPy's notation.
    DecodedType,
    /// Data type of a filter's stored elements, in NumPy's notation.
    StoredType,
    /// Text, or its number in numcodecs.
    TextOrInteger,
    /// An object, or text.
    Any,
}

impl ParameterType {
    /// Returns whether `value` has this type.
    pub fn has(self, value: &Value) -> bool {
        match self {
            ParameterType::Integer => value.is_i64() || value.is_u64(),
            ParameterType::Number => value.is_number(),
            ParameterType::Bool => value.is_boolean(),
            ParameterType::Text | ParameterType::DecodedType | ParameterType::StoredType => value.is_string(),
            ParameterType::List => value.is_array(),
            ParameterType::TextOrInteger => value.is_string() || value.is_i64(),
            ParameterType::Any => true,
        }
    }

    /// Returns the type's name, for error messages.
    pub fn name(self) -> &'static str {
        match self {
            ParameterType::Integer => "a whole number",
            ParameterType::Number => "a number",
            ParameterType::Bool => "true or false",
            ParameterType::Text | ParameterType::DecodedType | ParameterType::StoredType => "text",
            ParameterType::List => "a list",
            ParameterType::TextOrInteger => "text or a whole number",
            ParameterType::Any => "any value",
        }
    }
}

/// Error for a parameter: its name, its value, and what was `expected`.
pub fn wrong_parameter(configuration: &Configuration, key: &str, expected: &str) -> Error {
    let found = match configuration.get(key) {
        None => "is missing".to_owned(),
        Some(value) => format!("is {}", excerpt(value)),
    };
    ErrorKind::BadCodec(format!("{key} {found}, expected {expected}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_given_and_expected_is_named() {
        let configuration = json!({"endian": 5, "long": "x".repeat(1000)}).as_object().cloned().unwrap();
        let text = |key: &str| wrong_parameter(&configuration, key, "\"little\" or \"big\"").to_string();
        assert_eq!(text("endian"), "invalid codec: endian is 5, expected \"little\" or \"big\"");
        assert_eq!(text("order"), "invalid codec: order is missing, expected \"little\" or \"big\"");
        assert!(text("long").len() < 200);
    }
}

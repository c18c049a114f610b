//! Builds the values of a JSON text, with lists and strings that report failed allocations.
//!
//! The parser's own memory does not: the text of a string with escapes, while it is read, and the tables of objects.
//! [`Outline`](super::parse_memory) checks those beforehand.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;
use zarrow_array::allocation::{self, Grow};

/// Builds the tree of a text.
#[derive(Default)]
pub(super) struct ValueTree {
    is_short: Cell<bool>,
    /// Whether the outermost object was begun.
    has_root: Cell<bool>,
}

impl ValueTree {
    /// Whether memory for a tree was short.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.get()
    }

    /// Converts a failed allocation to an error that ends the parse; [`ValueTree::is_short`] identifies it.
    fn had<T, E: Error>(&self, memory: zarrow_array::Result<T>) -> Result<T, E> {
        memory.map_err(|error| {
            self.is_short.set(true);
            E::custom(error)
        })
    }
}

impl<'de> DeserializeSeed<'de> for &ValueTree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &ValueTree {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.had(allocation::text(text)).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            self.had::<_, A::Error>(list.try_push(item))?;
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        /// Members of an array's document, and some more, so that its table need not grow.
        const ROOT_MEMBERS: usize = 14;
        let mut map = if self.has_root.replace(true) { Map::new() } else { Map::with_capacity(ROOT_MEMBERS) };
        while let Some(key) = members.next_key::<String>()? {
            map.insert(key, members.next_value_seed(self)?);
        }
        Ok(Value::Object(map))
    }
}

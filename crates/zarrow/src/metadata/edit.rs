//! Edits members of a JSON object, and keeps every other byte.
//!
//! A document of another program may hold members unknown to this crate, or values outside its types: integers beyond
//! 64 bits, bare `NaN`, an order of keys. So the text itself is edited:
//! 1. the text was parsed before, so that the scanner only needs to find where members begin and end;
//! 2. members are spans of the text, with their keys unescaped, which may be invalid as a Rust string (`members`);
//! 3. a value is replaced in its span, a member is removed with one adjacent comma, and a new one is added at the end,
//!    indented like its neighbours.

use std::collections::HashSet;

use serde_json::{Map, Value};
use zarrow_array::allocation::{self, Grow};

use super::json::{self, Document};
use super::member_spans::{Member, indented, key_text, member, members};
use super::{Attributes, MetadataError, ZarrFormat, normal_form, repair};

/// Text of a JSON object, for editing.
#[derive(Debug, Clone)]
pub(crate) struct JsonText(Vec<u8>);

impl Default for JsonText {
    fn default() -> JsonText {
        JsonText(b"{}".to_vec())
    }
}

impl JsonText {
    /// Parses the text of an object, at most `limit` bytes.
    pub(crate) fn parse(bytes: Vec<u8>, limit: u64) -> Result<JsonText, MetadataError> {
        // Step 1.
        Document::parse(&bytes, limit)?;
        Ok(JsonText(bytes))
    }

    /// Takes the text of an object inside a document that was parsed.
    pub(super) fn from_object(text: &[u8]) -> Result<JsonText, MetadataError> {
        Ok(JsonText(allocation::copied(text)?))
    }

    /// Returns the current text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the current text.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Serialises an object.
    pub(crate) fn from_value(value: &Value) -> Result<JsonText, MetadataError> {
        Ok(JsonText(json::text(value)?))
    }

    /// Indents JSON like documents.
    pub(super) fn indented(json: &str) -> Result<JsonText, MetadataError> {
        Ok(JsonText(indented(json)?))
    }

    /// Whether the object is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// Creates an object of these members, each with the text of its value.
    pub(crate) fn new(
        members: impl IntoIterator<Item = (String, JsonText)>,
    ) -> Result<JsonText, MetadataError> {
        let mut text: Vec<u8> = Vec::new();
        for (number, (key, value)) in members.into_iter().enumerate() {
            text.try_append(if number > 0 { b",\n" } else { b"{" })?;
            text.try_append(&quoted(&key)?)?;
            text.try_append(b": ")?;
            text.try_append(&value.0)?;
        }
        text.try_append(if text.is_empty() { b"{}" } else { b"}" })?;
        Ok(JsonText(text))
    }

    /// Returns the keys, with repetitions.
    pub(crate) fn keys(&self) -> impl Iterator<Item = String> {
        self.members().into_iter().map(|member| key_text(member.key))
    }

    /// Returns the object as values, which may lose information.
    pub(crate) fn values(&self) -> Result<Map<String, Value>, MetadataError> {
        Ok(Document::parse(&self.0, u64::MAX)?.into_map())
    }

    /// Returns the object in `key`; an empty one if it is missing.
    pub(crate) fn object(&self, key: &str) -> Result<JsonText, MetadataError> {
        let text = member(&self.0, key.as_bytes()).filter(|text| text.first() == Some(&b'{'));
        JsonText::from_object(text.unwrap_or(b"{}"))
    }

    /// Sets `key` to the value. Afterwards the key occurs once.
    pub(crate) fn set(&mut self, key: &str, value: &Value) -> Result<(), MetadataError> {
        self.put(key.as_bytes(), &quoted(key)?, &JsonText::from_value(value)?.0, true)
    }

    /// Sets `key` to the value with the text `json`.
    pub(super) fn set_text(&mut self, key: &str, json: &str) -> Result<(), MetadataError> {
        self.put(key.as_bytes(), &quoted(key)?, &indented(json)?, true)
    }

    /// Sets each of the keys of `attributes` to the text of its value.
    pub(crate) fn update(&mut self, attributes: &Attributes) -> Result<(), MetadataError> {
        let text = attributes.text();
        for member in members(text.as_bytes()) {
            if let (Some(key), Some(value)) = (text.get(member.name()), text.get(member.value.clone())) {
                self.put(&member.key, key.as_bytes(), &indented(value)?, true)?;
            }
        }
        Ok(())
    }

    /// Removes all keys of `attributes` if `named`, else all other keys.
    pub(crate) fn remove_all(&mut self, attributes: &Attributes, named: bool) {
        let keys: HashSet<Vec<u8>> =
            members(attributes.text().as_bytes()).into_iter().map(|member| member.key).collect();
        for member in self.members().iter().rev().filter(|member| keys.contains(&member.key) == named) {
            self.cut(member);
        }
    }

    /// Sets `key` to the object, with its text unchanged.
    pub(crate) fn set_object(&mut self, key: &str, object: &JsonText) -> Result<(), MetadataError> {
        self.put(key.as_bytes(), &quoted(key)?, &object.0, false)
    }

    /// Rewrites codecs and chunk grid of an array in the form that every reader accepts.
    pub(crate) fn normalise_array(&mut self, format: ZarrFormat) -> Result<(), MetadataError> {
        let value = |text: &JsonText, key: &str| {
            let value = member(&text.0, key.as_bytes());
            value.and_then(|value| serde_json::from_slice(value).ok()).unwrap_or(Value::Null)
        };
        let shape = value(self, "shape");
        if format == ZarrFormat::V2 {
            let mut chunks = value(self, "chunks");
            return match repair::chunk_shape(&mut chunks, &shape, None) {
                true => self.set("chunks", &chunks),
                false => Ok(()),
            };
        }
        let (mut codecs, mut grid) = (value(self, "codecs"), value(self, "chunk_grid"));
        if normal_form::normalise(&mut codecs) {
            self.set("codecs", &codecs)?;
        }
        if repair::chunk_grid(&mut grid, &shape, &codecs) {
            self.set("chunk_grid", &grid)?;
        }
        Ok(())
    }

    /// Sets the key (given unescaped and as JSON) to the value, indented like its neighbours if `indent`.
    fn put(
        &mut self,
        key: &[u8],
        key_as_json: &[u8],
        value: &[u8],
        indent: bool,
    ) -> Result<(), MetadataError> {
        let members = self.members();
        let indentation = self.indentation(&members);
        let mut moved: Vec<u8> = allocation::with_capacity(value.len())?;
        for (number, line) in value.split(|byte| *byte == b'\n').enumerate() {
            if number > 0 {
                // At another depth each line after the first is indented further, since no string has a line break.
                moved.try_append(indentation.as_deref().filter(|_| indent).unwrap_or(b"\n"))?;
            }
            moved.try_append(line)?;
        }
        let Some(last) = members.iter().rposition(|member| member.key == key) else {
            return self.push(key_as_json, &moved, members.last(), indentation);
        };
        self.0.make_room(moved.len())?;
        self.0.splice(members[last].value.clone(), moved);
        for member in members[..last].iter().rev().filter(|member| member.key == key) {
            self.cut(member);
        }
        Ok(())
    }

    /// Removes `key` with its repetitions; returns whether it occurred.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let members = self.members();
        let of_key = members.iter().rev().filter(|member| member.key == key.as_bytes());
        let found = of_key.map(|member| self.cut(member));
        found.count() > 0
    }

    /// Returns the line break and the white space before a member, if members are on separate lines.
    fn indentation(&self, members: &[Member]) -> Option<Vec<u8>> {
        let first = members.first()?;
        let before = &self.0[..first.span.start];
        let line = before.iter().rposition(|byte| *byte == b'\n')?;
        Some(before[line..].to_vec())
    }

    fn push(
        &mut self,
        key_as_json: &[u8],
        value: &[u8],
        last: Option<&Member>,
        indentation: Option<Vec<u8>>,
    ) -> Result<(), MetadataError> {
        let at = match last {
            Some(last) => last.span.end,
            None => self.0.iter().position(|byte| *byte == b'{').map_or(0, |brace| brace + 1),
        };
        let comma: &[u8] = if last.is_some() { b"," } else { b"" };
        let space = match (&indentation, last) {
            (Some(indentation), _) => indentation.as_slice(),
            (None, Some(_)) => b" ",
            (None, None) => b"",
        };
        let member = allocation::concatenated(&[comma, space, key_as_json, b": ", value])?;
        self.0.make_room(member.len())?;
        self.0.splice(at..at, member);
        Ok(())
    }

    /// Removes one member, and an adjacent comma.
    fn cut(&mut self, member: &Member) {
        let is_space = |byte: &u8| byte.is_ascii_whitespace();
        let before = self.0[..member.span.start].iter().rposition(|byte| !is_space(byte)).unwrap_or(0);
        let after = self.0[member.span.end..].iter().position(|byte| !is_space(byte));
        let after = member.span.end + after.unwrap_or(0);
        let span = match (self.0.get(before), self.0.get(after)) {
            (Some(b','), _) => before..member.span.end,
            (_, Some(b',')) => {
                let next = self.0[after + 1..].iter().position(|byte| !is_space(byte)).unwrap_or(0);
                member.span.start..after + 1 + next
            }
            _ => before + 1..after,
        };
        self.0.drain(span);
    }

    /// Step 2.
    fn members(&self) -> Vec<Member> {
        members(&self.0)
    }
}

/// Returns a key as JSON.
fn quoted(key: &str) -> Result<Vec<u8>, MetadataError> {
    json::text(&key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str) -> JsonText {
        JsonText::parse(text.as_bytes().to_vec(), 1 << 20).unwrap()
    }

    fn shown(text: JsonText) -> String {
        String::from_utf8(text.into_bytes()).unwrap()
    }

    #[test]
    fn only_the_member_changes() {
        let before = "{ \"a\":NaN,\n \"b\" : [1, \"}\\\"\", {}],\n \"big\": 123456789012345678901234567890 , \"c\":1e400}";
        let mut after = text(&before.replace("1e400", "1"));
        after.set("b", &Value::from(2)).unwrap();
        let expected = "{ \"a\":NaN,\n \"b\" : 2,\n \"big\": 123456789012345678901234567890 , \"c\":1}";
        assert_eq!(shown(after), expected);
    }

    #[test]
    fn new_members_are_indented_like_the_others() {
        let mut compact = text("{\"a\": 1}");
        compact.set("b", &serde_json::json!({"c": 1})).unwrap();
        assert_eq!(shown(compact.clone()).lines().count(), 3);
        let mut indented = text("{\n    \"a\": 1\n}");
        indented.set("b", &serde_json::json!({"c": [2]})).unwrap();
        let expected = "{\n    \"a\": 1,\n    \"b\": {\n      \"c\": [\n        2\n      ]\n    }\n}";
        assert_eq!(shown(indented), expected);
        let mut empty = text("{}");
        empty.set("é\"", &Value::Null).unwrap();
        assert_eq!(shown(empty), "{\"é\\\"\": null}");
    }

    #[test]
    fn codecs_get_the_normal_form_and_the_rest_stays() {
        let mut document = text("{\"a\": NaN, \"codecs\": [\"bytes\", {\"name\": \"crc32c\"}], \"b\":1.50}");
        document.normalise_array(ZarrFormat::V3).unwrap();
        let normal = shown(document.clone());
        assert!(
            normal.starts_with("{\"a\": NaN, \"codecs\": [") && normal.ends_with("], \"b\":1.50}"),
            "{normal}"
        );
        assert_eq!(normal.matches("\"configuration\": {}").count(), 2);
        document.normalise_array(ZarrFormat::V3).unwrap();
        assert_eq!(shown(document), normal);
    }

    #[test]
    fn members_go_with_their_comma() {
        for (before, after) in [
            ("{\"x\": 1}", "{}"),
            ("{ \"x\": 1 , \"b\": 2}", "{ \"b\": 2}"),
            ("{\"a\": 1, \"x\": 2}", "{\"a\": 1}"),
            ("{\"a\": 1, \"x\": 2, \"x\": 3, \"b\": 4}", "{\"a\": 1, \"b\": 4}"),
            ("{\"\\u0078\": 1}", "{}"),
        ] {
            let mut document = text(before);
            assert!(document.remove("x"), "{before}");
            assert!(!document.remove("x"));
            assert_eq!(shown(document), after);
        }
    }

    #[test]
    fn duplicate_keys_are_merged() {
        let mut document = text("{\"x\": 1, \"a\": {\"x\": 0}, \"x\": 3}");
        document.set("x", &Value::from(4)).unwrap();
        assert_eq!(shown(document), "{\"a\": {\"x\": 0}, \"x\": 4}");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-c\"\\\\{}:,\\[\\] \n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\\\ ]{0,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_does(
            map in prop::collection::btree_map("[a-c\"\\\\ ]{0,2}", values(), 0..5),
            changes in prop::collection::vec(("[a-c\"\\\\ ]{0,2}", prop::option::of(values())), 0..6),
            indented: bool,
        ) {
            let mut expected = Value::Object(map.into_iter().collect());
            let document = if indented { format!("{expected:#}") } else { expected.to_string() };
            let mut document = text(&document);
            for (key, value) in changes {
                match value {
                    Some(value) => {
                        document.set(&key, &value).unwrap();
                        expected[&key] = value;
                    }
                    None => {
                        let was_there = expected.as_object_mut().unwrap().shift_remove(&key).is_some();
                        prop_assert_eq!(document.remove(&key), was_there);
                    }
                }
                let found: Value = serde_json::from_slice(&document.clone().into_bytes()).unwrap();
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}

//! Structured types: records of named fields, like NumPy's structured arrays.
//!
//! Fields are sorted by offset and do not overlap. Bytes between fields are padding: they are copied with the
//! element, and their values are undefined.

use super::{DataType, WordRun};
use crate::error::{Error, Result};
use crate::shape;
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// Maximum length of a displayed type: names and nesting are unbounded.
const MAX_TEXT: usize = 256;

/// A named field of every element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Name, unique within the type.
    pub name: Box<str>,
    /// Type of one item, with a fixed size and not optional.
    pub data_type: DataType,
    /// Shape of the field's items, empty for a single item (NumPy's subarrays).
    pub shape: Box<[u64]>,
    /// Bytes from the start of the element to the field.
    pub offset: usize,
}

/// The fields of a structured type, validated. Clones share them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Struct {
    fields: Arc<[Field]>,
    item_size: usize,
    runs: usize,
}

impl Struct {
    /// Maximum number of runs of words in a type. Real types have far fewer; a hostile document could ask for any
    /// number.
    pub const MAX_RUNS: usize = 1 << 16;

    /// Creates the type with elements of `item_size` bytes and these fields.
    ///
    /// # Errors
    /// [`Error::BadStruct`] if there are no fields, or if a field has an empty or duplicate name, is of variable
    /// length or optional, overlaps another field, or exceeds the element.
    ///
    /// ```
    /// use zarrow_array::{DataType, Field, Number, Struct};
    /// let field = |name: &str, number: Number, offset| Field {
    ///     name: name.into(), data_type: number.into(), shape: [].into(), offset,
    /// };
    /// let fields = vec![field("id", Number::UInt16, 0), field("value", Number::Float32, 4)];
    /// let point = DataType::Struct(Struct::new(fields, 8)?);
    /// assert_eq!(point.to_string(), "struct{id: uint16, value: float32}");
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn new(fields: Vec<Field>, item_size: usize) -> Result<Struct> {
        let refuse = |reason: String| Err(Error::BadStruct(reason));
        if fields.is_empty() {
            return refuse("it has no fields".into());
        }
        let (mut end, mut runs) = (0usize, 0usize);
        let mut names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return refuse(format!("two fields have the name {:?}", short(pair[0])));
        }
        for field in &fields {
            let name = short(&field.name);
            if name.is_empty() {
                return refuse("a field has no name".into());
            }
            let Some(nbytes) = field.nbytes() else {
                return refuse(format!("field {name:?} has no fixed size"));
            };
            if field.offset < end {
                return refuse(format!("field {name:?} overlaps the one before it"));
            }
            end = match field.offset.checked_add(nbytes) {
                Some(end) if end <= item_size => end,
                _ => return refuse(format!("field {name:?} exceeds the element size of {item_size} bytes")),
            };
            runs = match field.runs().and_then(|more| runs.checked_add(more)) {
                Some(runs) if runs <= Self::MAX_RUNS => runs,
                _ => return refuse(format!("it has more than {} runs of words", Self::MAX_RUNS)),
            };
        }
        Ok(Struct { fields: fields.into(), item_size, runs })
    }

    /// Creates the type with these fields (name, type and shape), without padding.
    ///
    /// # Errors
    /// See [`Struct::new`].
    pub fn packed(fields: impl IntoIterator<Item = (Box<str>, DataType, Box<[u64]>)>) -> Result<Struct> {
        let mut offset = 0usize;
        let mut placed = Vec::new();
        for (name, data_type, shape) in fields {
            let field = Field { name, data_type, shape, offset };
            let end = field.nbytes().and_then(|nbytes| offset.checked_add(nbytes));
            offset =
                end.ok_or_else(|| Error::BadStruct(format!("field {:?} has no fixed size", field.name)))?;
            placed.push(field);
        }
        Struct::new(placed, offset)
    }

    /// Returns the fields, sorted by offset.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the field named `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    /// Returns the bytes of one element, including padding.
    #[must_use]
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// Returns whether any bytes belong to no field, also within the fields' own types.
    #[must_use]
    pub fn has_padding(&self) -> bool {
        let mut end = 0;
        let gap = self.fields.iter().any(|field| {
            let gap = field.offset != end;
            end = field.offset + field.nbytes().unwrap_or(0);
            gap || matches!(&field.data_type, DataType::Struct(inner) if inner.has_padding())
        });
        gap || end != self.item_size
    }

    /// Appends the words of all fields for an element that starts at `offset`.
    pub(super) fn collect_words(&self, offset: usize, words: &mut Vec<WordRun>) {
        for field in &*self.fields {
            let item_size = field.data_type.item_size().unwrap_or(0);
            let count = shape::nbytes(&field.shape, 1).unwrap_or(0);
            let start = offset + field.offset;
            match &field.data_type {
                DataType::Struct(inner) => {
                    (0..count).for_each(|at| inner.collect_words(start + at * item_size, words));
                }
                plain => {
                    let size = plain.word_size();
                    words.push(WordRun { offset: start, size, count: count * item_size / size.max(1) });
                }
            }
        }
    }
}

impl Field {
    /// Returns the bytes of all items of the field; `None` for variable-length types and on overflow.
    #[must_use]
    pub fn nbytes(&self) -> Option<usize> {
        match &self.data_type {
            DataType::Optional(_) => None,
            fixed => shape::nbytes(&self.shape, fixed.item_size()?).ok().filter(|nbytes| *nbytes > 0),
        }
    }

    /// Returns the number of runs of words in the field.
    fn runs(&self) -> Option<usize> {
        match &self.data_type {
            DataType::Struct(inner) => inner.runs.checked_mul(shape::nbytes(&self.shape, 1).ok()?),
            _ => Some(1),
        }
    }
}

/// Truncates a text to the displayed length.
fn short(text: &str) -> &str {
    text.char_indices().nth(MAX_TEXT).map_or(text, |(end, _)| &text[..end])
}

/// Text that stops growing at the displayed length.
struct Text(String);

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(short(text));
        if self.0.len() > MAX_TEXT { Err(fmt::Error) } else { Ok(()) }
    }
}

impl fmt::Display for Struct {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text(String::new());
        let written = self.fields.iter().enumerate().try_for_each(|(at, field)| {
            let separator = if at == 0 { "" } else { ", " };
            write!(text, "{separator}{}: {}", field.name, field.data_type)?;
            if field.shape.is_empty() { Ok(()) } else { write!(text, "{:?}", field.shape) }
        });
        let rest = if written.is_ok() { "" } else { "…" };
        write!(formatter, "struct{{{}{rest}}}", short(&text.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Number;

    fn field(name: &str, data_type: impl Into<DataType>, shape: &[u64], offset: usize) -> Field {
        Field { name: name.into(), data_type: data_type.into(), shape: shape.into(), offset }
    }

    #[test]
    fn words_include_fields_at_any_depth() {
        let inner =
            Struct::new(vec![field("x", Number::UInt8, &[], 0), field("y", Number::Int16, &[2], 1)], 5);
        let fields = vec![
            field("points", DataType::Struct(inner.unwrap()), &[2], 0),
            field("z", Number::Complex128, &[], 16),
            field("name", DataType::FixedLengthUtf32 { length: 3 }, &[], 32),
        ];
        let outer = DataType::Struct(Struct::new(fields, 44).unwrap());
        let words: Vec<_> =
            outer.words().iter().map(|words| (words.offset, words.size, words.count)).collect();
        assert_eq!(words, [(0, 1, 1), (1, 2, 2), (5, 1, 1), (6, 2, 2), (16, 8, 2), (32, 4, 3)]);
        assert_eq!((outer.item_size(), outer.word_size()), (Some(44), 8));
    }

    #[test]
    fn padding_is_detected_at_any_depth() {
        let tight = Struct::packed([("a".into(), Number::Int16.into(), [3].into())]).unwrap();
        assert!(!tight.has_padding());
        let loose = Struct::new(vec![field("a", Number::Int16, &[], 0)], 4).unwrap();
        assert!(loose.has_padding());
        let outer = Struct::new(vec![field("inner", DataType::Struct(loose), &[], 0)], 4).unwrap();
        assert!(outer.has_padding());
    }

    #[test]
    fn invalid_structures_are_refused() {
        let number = |name: &str, offset| field(name, Number::Int32, &[], offset);
        for (fields, item_size) in [
            (vec![], 4),
            (vec![number("", 0)], 4),
            (vec![number("a", 0), number("a", 4)], 8),
            (vec![number("a", 0), number("b", 3)], 8),
            (vec![number("b", 4), number("a", 0)], 8),
            (vec![number("a", 0), number("b", 4)], 7),
            (vec![field("a", DataType::String, &[], 0)], 8),
            (vec![field("a", DataType::Optional(Box::new(Number::Int8.into())), &[], 0)], 8),
            (vec![field("a", Number::Int8, &[0], 0)], 8),
            (vec![field("a", Number::Int8, &[u64::MAX, 2], 0)], usize::MAX),
        ] {
            assert!(matches!(Struct::new(fields, item_size), Err(Error::BadStruct(_))));
        }
    }

    #[test]
    fn displayed_types_are_truncated() {
        let mut nested = DataType::from(Number::Int16);
        for _ in 0..100 {
            nested = DataType::Struct(Struct::packed([("é".repeat(100).into(), nested, [].into())]).unwrap());
        }
        assert!(nested.to_string().len() < 3 * MAX_TEXT);
        assert!(nested.to_string().ends_with("…}"));
    }

    #[test]
    fn nested_subarrays_are_limited_in_words() {
        let mut nested = DataType::from(Number::Int16);
        let outcome = (0..30).try_for_each(|_| {
            nested = DataType::Struct(Struct::packed([("a".into(), nested.clone(), [8].into())])?);
            Ok::<(), Error>(())
        });
        assert!(matches!(outcome, Err(Error::BadStruct(_))));
    }
}

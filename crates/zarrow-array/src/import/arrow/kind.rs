//! Converts an Arrow type to an element type and the axes of a row. Nested fixed-size lists and
//! `arrow.fixed_shape_tensor` give a row its axes.
//!
//! Unknown extension types are read as their storage type, as Arrow specifies.

use crate::dtype::{DataType, Number, TimeUnit};
use crate::error::{Error, Result};
use crate::export::arrow_abi::ArrowSchema;
use serde_json::Value;

/// Maximum nesting of lists: the maximum number of axes of a tensor.
const MAX_LISTS: usize = 64;

/// Our equivalent of an Arrow type.
#[derive(Debug)]
pub struct Kind {
    /// Lengths of the fixed-size lists, outermost first.
    pub lists: Vec<i64>,
    /// Shape of a row in memory order. It has as many elements as the nested lists.
    pub row: Vec<i64>,
    /// Permutation from memory order to the logical axes, including axis 0; `None` if they are the same.
    pub permutation: Option<Vec<usize>>,
    /// The elements.
    pub element: Element,
}

/// Element type, and how to import it.
#[derive(Debug)]
pub enum Element {
    /// Fixed-size elements, shared without a copy.
    Shared(DataType),
    /// 1-bit bools.
    Bits,
    /// 32-bit days, converted to 64-bit times.
    Widened(DataType),
    /// Variable-length text or bytes.
    Text {
        /// String or bytes.
        dtype: DataType,
        /// Encoding of the offsets.
        offsets: Offsets,
    },
    /// Dictionary indices.
    Dictionary {
        /// Integer type of the indices.
        index: Number,
        /// Type of the values.
        values: Box<Kind>,
    },
}

impl Element {
    /// Returns a description of the elements if every import copies them; `None` if they can be shared.
    pub fn copied(&self) -> Option<&'static str> {
        match self {
            Element::Bits => Some("packed bools"),
            Element::Widened(_) => Some("32-bit dates"),
            Element::Text { offsets: Offsets::Narrow, .. } => Some("32-bit offsets"),
            Element::Text { offsets: Offsets::Views, .. } => Some("views of text"),
            Element::Dictionary { .. } => Some("a dictionary"),
            Element::Shared(_) | Element::Text { offsets: Offsets::Wide, .. } => None,
        }
    }
}

/// Encoding of variable-length elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offsets {
    /// 32-bit offsets.
    Narrow,
    /// 64-bit offsets.
    Wide,
    /// Views.
    Views,
}

impl Kind {
    /// Returns the kind of a type.
    pub fn from_schema(schema: &ArrowSchema) -> Result<Kind> {
        let (mut lists, mut row) = (Vec::new(), Vec::new());
        let mut permutation = None;
        let mut at = schema;
        while let Some(length) = list_length(at)? {
            if lists.len() == MAX_LISTS {
                return Err(unknown(schema));
            }
            if at.metadata("ARROW:extension:name") == Some(b"arrow.fixed_shape_tensor") && lists.is_empty() {
                let tensor = TensorShape::from_schema(at, length)?;
                row.extend(tensor.shape);
                permutation = tensor.permutation;
            } else {
                row.push(length);
            }
            lists.push(length);
            at = child(at)?;
        }
        // The permutation covers only the axes of the tensor: axis 0 stays first, and the axes of its elements last.
        let permutation = permutation.map(|order| {
            let inner = order.len() + 1..row.len() + 1;
            std::iter::once(0).chain(order.into_iter().map(|axis| axis + 1)).chain(inner).collect()
        });
        Ok(Kind { lists, row, permutation, element: element(at)? })
    }
}

fn unknown(schema: &ArrowSchema) -> Error {
    let name = format!("{:?}", schema.format().to_string_lossy());
    Error::UnknownType { protocol: "the Arrow", name }
}

fn bad(what: &str) -> Error {
    Error::BadArrow(what.into())
}

/// Returns the length of a fixed-size list; `None` for any other type.
fn list_length(schema: &ArrowSchema) -> Result<Option<i64>> {
    let Some(digits) = schema.format().to_bytes().strip_prefix(b"+w:") else { return Ok(None) };
    let length = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok());
    length.filter(|length| *length >= 0).map(Some).ok_or_else(|| unknown(schema))
}

fn child(schema: &ArrowSchema) -> Result<&ArrowSchema> {
    super::foreign::only_child(schema).ok_or_else(|| bad("a list type must have exactly one child"))
}

/// Metadata of `arrow.fixed_shape_tensor`.
struct TensorShape {
    shape: Vec<i64>,
    permutation: Option<Vec<usize>>,
}

impl TensorShape {
    fn from_schema(schema: &ArrowSchema, length: i64) -> Result<TensorShape> {
        let wrong = || bad("the metadata of a fixed_shape_tensor does not match its storage");
        let text = schema.metadata("ARROW:extension:metadata").ok_or_else(wrong)?;
        let metadata: Value = serde_json::from_slice(text).map_err(|_| wrong())?;
        let integers = |key: &str| -> Result<Option<Vec<i64>>> {
            let Some(list) = metadata.get(key).filter(|list| !list.is_null()) else { return Ok(None) };
            let list = list.as_array().ok_or_else(wrong)?;
            list.iter()
                .map(|value| value.as_i64().filter(|value| *value >= 0))
                .collect::<Option<_>>()
                .map(Some)
                .ok_or_else(wrong)
        };
        let shape = integers("shape")?.filter(|shape| shape.len() <= MAX_LISTS).ok_or_else(wrong)?;
        let product = match shape.contains(&0) {
            true => Some(0),
            false => shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent)),
        };
        if product != Some(length) {
            return Err(wrong());
        }
        let permutation = integers("permutation")?
            .map(|order| order.into_iter().map(|axis| axis as usize).collect::<Vec<usize>>());
        if let Some(order) = &permutation {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..shape.len()) {
                return Err(wrong());
            }
            // pyarrow writes the inverse of the specified permutation, and reads both forms wrongly. Only self-inverse
            // permutations are unambiguous.
            if order.iter().enumerate().any(|(at, axis)| order[*axis] != at) {
                let name = "fixed_shape_tensor with rotated axes (ambiguous between writers)".into();
                return Err(Error::UnknownType { protocol: "the Arrow", name });
            }
        }
        Ok(TensorShape { shape, permutation })
    }
}

/// Returns the element type of a non-list type.
fn element(schema: &ArrowSchema) -> Result<Element> {
    let format = schema.format().to_bytes();
    if let Some(values) = super::foreign::dictionary_of(schema) {
        let index = primitive(format)
            .filter(|number| !matches!(number, Number::Float16 | Number::Float32 | Number::Float64));
        let index = index.ok_or_else(|| bad("dictionary indices must be integers"))?;
        // Checked before the recursion: a producer may nest types deeper than the stack allows.
        let nested = match super::foreign::dictionary_of(values) {
            Some(_) => Some("dictionaries"),
            None => list_length(values)?.map(|_| "lists"),
        };
        if let Some(nested) = nested {
            return Err(Error::UnknownType {
                protocol: "the Arrow",
                name: format!("a dictionary of {nested}"),
            });
        }
        return Ok(Element::Dictionary { index, values: Box::new(Kind::from_schema(values)?) });
    }
    if let Some(number) = named(schema) {
        return Ok(Element::Shared(number.into()));
    }
    if let Some(number) = primitive(format) {
        return Ok(Element::Shared(number.into()));
    }
    let text = |dtype, offsets| Ok(Element::Text { dtype, offsets });
    match format {
        b"b" => Ok(Element::Bits),
        b"u" => text(DataType::String, Offsets::Narrow),
        b"U" => text(DataType::String, Offsets::Wide),
        b"vu" => text(DataType::String, Offsets::Views),
        b"z" => text(DataType::Bytes, Offsets::Narrow),
        b"Z" => text(DataType::Bytes, Offsets::Wide),
        b"vz" => text(DataType::Bytes, Offsets::Views),
        [b'w', b':', digits @ ..] => {
            let length = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            let length = length.filter(|length| *length > 0).ok_or_else(|| unknown(schema))?;
            Ok(Element::Shared(DataType::RawBytes { length }))
        }
        _ => time(format)?.ok_or_else(|| unknown(schema)),
    }
}

fn primitive(format: &[u8]) -> Option<Number> {
    let is_it = |number: &&Number| number.names().arrow.is_some_and(|code| code.as_bytes() == format);
    Number::ALL.iter().find(is_it).copied()
}

/// Returns the number type of an Arrow extension type: 1-byte bool, or a type that only Zarr names.
fn named(schema: &ArrowSchema) -> Option<Number> {
    match schema.metadata("ARROW:extension:name")? {
        b"arrow.bool8" if schema.format() == c"c" => Some(Number::Bool),
        b"arrow.opaque" => {
            let metadata: Value =
                serde_json::from_slice(schema.metadata("ARROW:extension:metadata")?).ok()?;
            if metadata.get("vendor_name")? != "zarr" {
                return None;
            }
            let number = Number::from_zarr_name(metadata.get("type_name")?.as_str()?)?;
            let storage = format!("w:{}", number.names().item_size);
            (schema.format().to_bytes() == storage.as_bytes()).then_some(number)
        }
        _ => None,
    }
}

/// Returns the element type of a timestamp, date or duration.
///
/// Refuses types that would lose their meaning: Zarr cannot store time zones, times of day would become durations,
/// and 64-bit dates would become timestamps.
fn time(format: &[u8]) -> Result<Option<Element>> {
    let loses = |what: String, instead| Error::LosesMeaning { protocol: "an Arrow", what, instead };
    let unit = match format.get(2) {
        Some(b's') => TimeUnit::Second,
        Some(b'm') => TimeUnit::Millisecond,
        Some(b'u') => TimeUnit::Microsecond,
        Some(b'n') => TimeUnit::Nanosecond,
        Some(b'D') => TimeUnit::Day,
        _ => return Ok(None),
    };
    let point = DataType::DateTime64 { unit, scale: 1 };
    let span = DataType::TimeDelta64 { unit, scale: 1 };
    Ok(Some(match (format, unit) {
        ([b't', b's', _, b':', zone @ ..], unit) if unit != TimeUnit::Day => match zone {
            [] => Element::Shared(point),
            zone => {
                let what = format!("times in time zone {:?}", String::from_utf8_lossy(zone));
                return Err(loses(
                    what,
                    "cast it to a timestamp in UTC without a time zone, and store the zone separately",
                ));
            }
        },
        ([b't', b'D', _], unit) if unit != TimeUnit::Day => Element::Shared(span),
        ([b't', b'd', b'D'], _) => Element::Widened(point),
        ([b't', b'd', b'm'], _) => {
            return Err(loses("dates in milliseconds".to_owned(), "cast it to date32 or to a timestamp"));
        }
        ([b't', b't', _], unit) if unit != TimeUnit::Day => {
            let instead = "cast it to an integer and then to a duration since midnight";
            return Err(loses("times of day".to_owned(), instead));
        }
        _ => return Ok(None),
    }))
}

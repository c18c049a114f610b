//! The Arrow type of an array, from its data type, its shape, and the chosen [`ArrowForm`].
//!
//! - Numbers are primitive; bool is `arrow.bool8` or packed; complex is a fixed-size list of two floats.
//! - Numbers without an Arrow type (bfloat16, 8-bit floats) are `arrow.opaque` over their bytes, so that consumers
//!   do not read them as integers.
//! - Times are timestamps, durations and, for days, dates, if Arrow has the unit.
//! - Raw and null-terminated bytes are fixed-size binary; fixed-length text becomes a string, like text of any
//!   length.
//! - A 1-D array is an array of elements. With more axes, axis 0 is the array, and each row is one of its elements.
//!
//! Sources: Arrow C data interface, "Data type description"; canonical extension types.

use crate::dtype::{DataType, Number, TimeUnit};
use crate::error::{Error, Result};
use crate::export::arrow::form::{ArrowForm, BoolForm, RowForm, TextForm};
use crate::export::arrow_abi::SchemaNode;
use std::fmt::Write as _;

/// A type to export, without memory.
#[derive(Debug, Clone, Copy)]
pub struct ArrowField<'a> {
    /// Element type.
    pub dtype: &'a DataType,
    /// Extents, outermost axis first.
    pub shape: &'a [i64],
    /// The axes of a row (all but axis 0, counted from axis 1) from the slowest in memory to the fastest; `None`
    /// for C order.
    pub order: Option<&'a [usize]>,
    /// Dimension names, if there are any.
    pub dimension_names: Option<&'a [Option<String>]>,
    /// The chosen form.
    pub form: ArrowForm,
}

impl ArrowField<'_> {
    /// Returns the Arrow type.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] if Arrow has no such type, [`Error::NeedsCopy`] for a 0-dimensional array.
    pub fn schema(&self) -> Result<SchemaNode> {
        let element = element(self.dtype, self.form)?;
        let Some((_, row)) = self.shape.split_first() else { return Err(no_axis()) };
        match rows(self.form, self.dtype) {
            _ if row.is_empty() => Ok(element),
            RowForm::Flat => Ok(element),
            RowForm::Nested => Ok(row.iter().rev().fold(element, |item, extent| list(*extent, item))),
            RowForm::Tensor => {
                let length = row.iter().product();
                Ok(extension("arrow.fixed_shape_tensor", self.tensor_metadata(row), list(length, element)))
            }
        }
    }

    /// The extension records the shape in memory order, and the permutation to the logical order.
    fn tensor_metadata(&self, row: &[i64]) -> String {
        let own: Vec<usize> = (0..row.len()).collect();
        let order = self.order.unwrap_or(&own);
        let stored: Vec<i64> = order.iter().map(|axis| row[*axis]).collect();
        let mut metadata = format!("{{\"shape\":{stored:?}");
        let names = self.dimension_names.and_then(|names| {
            let name = |axis: &usize| names.get(axis + 1).cloned().flatten();
            order.iter().map(name).collect::<Option<Vec<String>>>()
        });
        if let Some(names) = names {
            let _ = write!(metadata, ",\"dim_names\":{}", serde_json::Value::from(names));
        }
        if order != own {
            let _ = write!(metadata, ",\"permutation\":{order:?}");
        }
        metadata.push('}');
        metadata
    }
}

/// Returns the row form for `dtype`: tensors cannot hold variable-length elements.
pub fn rows(form: ArrowForm, dtype: &DataType) -> RowForm {
    match form.rows {
        RowForm::Tensor if is_text(dtype) => RowForm::Nested,
        other => other,
    }
}

/// Returns whether elements become strings or bytes of any length.
pub fn is_text(dtype: &DataType) -> bool {
    dtype.is_variable() || matches!(dtype, DataType::FixedLengthUtf32 { .. })
}

/// Returns whether elements become 32-bit Arrow dates.
pub fn is_date(dtype: &DataType) -> bool {
    matches!(dtype, DataType::DateTime64 { unit: TimeUnit::Day, scale: 1 })
}

/// Returns the error for a 0-dimensional array.
pub fn no_axis() -> Error {
    Error::NeedsCopy { protocol: "Arrow", what: "a 0-dimensional array" }
}

fn list(length: i64, item: SchemaNode) -> SchemaNode {
    SchemaNode { children: vec![item.named("item")], ..SchemaNode::formatted(&format!("+w:{length}")) }
}

fn extension(name: &str, metadata: String, storage: SchemaNode) -> SchemaNode {
    let metadata =
        vec![("ARROW:extension:name".into(), name.into()), ("ARROW:extension:metadata".into(), metadata)];
    SchemaNode { metadata, ..storage }
}

/// Returns the type of one element.
fn element(dtype: &DataType, form: ArrowForm) -> Result<SchemaNode> {
    let refused = |protocol| Error::NoSuchType { protocol, dtype: dtype.clone() };
    Ok(match dtype {
        DataType::Number(Number::Bool) => match form.bools {
            BoolForm::Bytes => extension("arrow.bool8", String::new(), SchemaNode::plain(c"c")),
            BoolForm::Bits => SchemaNode::plain(c"b"),
        },
        DataType::Number(Number::Complex64) => list(2, SchemaNode::plain(c"f")),
        DataType::Number(Number::Complex128) => list(2, SchemaNode::plain(c"g")),
        DataType::Number(number) => match number.names().arrow {
            Some(format) => SchemaNode::formatted(format),
            None => opaque(number.names().zarr, number.names().item_size),
        },
        days if is_date(days) => SchemaNode::plain(c"tdD"),
        DataType::DateTime64 { unit, scale } | DataType::TimeDelta64 { unit, scale } => {
            let unit = match (unit, scale) {
                (TimeUnit::Second, 1) => 's',
                (TimeUnit::Millisecond, 1) => 'm',
                (TimeUnit::Microsecond, 1) => 'u',
                (TimeUnit::Nanosecond, 1) => 'n',
                _ => return Err(refused("Arrow, which counts 64-bit times in s, ms, us or ns,")),
            };
            match dtype {
                DataType::DateTime64 { .. } => SchemaNode::formatted(&format!("ts{unit}:")),
                _ => SchemaNode::formatted(&format!("tD{unit}")),
            }
        }
        DataType::RawBytes { length } | DataType::NullTerminatedBytes { length } => {
            SchemaNode::formatted(&format!("w:{length}"))
        }
        DataType::String | DataType::FixedLengthUtf32 { .. } => SchemaNode::plain(match form.text {
            TextForm::Large => c"U",
            TextForm::Small => c"u",
            TextForm::Views => c"vu",
        }),
        DataType::Bytes => SchemaNode::plain(match form.text {
            TextForm::Large => c"Z",
            TextForm::Small => c"z",
            TextForm::Views => c"vz",
        }),
        _ => return Err(refused("Arrow")),
    })
}

/// Exports elements as opaque bytes, labelled with the type's Zarr name.
fn opaque(name: &str, item_size: usize) -> SchemaNode {
    let metadata = format!("{{\"type_name\":{},\"vendor_name\":\"zarr\"}}", serde_json::Value::from(name));
    extension("arrow.opaque", metadata, SchemaNode::formatted(&format!("w:{item_size}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(dtype: &DataType, shape: &[i64], rows: RowForm) -> Result<String> {
        let form = ArrowForm { rows, ..ArrowForm::default() };
        let mut node = ArrowField { dtype, shape, order: None, dimension_names: None, form }.schema()?;
        let mut text = String::new();
        loop {
            text.push_str(&node.format.to_string_lossy());
            match node.children.pop() {
                Some(child) => node = child,
                None => return Ok(text),
            }
        }
    }

    #[test]
    fn rows_have_three_forms() {
        let float = DataType::from(Number::Float32);
        let forms = [RowForm::Tensor, RowForm::Nested, RowForm::Flat];
        let all = |dtype: &DataType| forms.map(|form| schema(dtype, &[5, 2, 3], form).unwrap());
        assert_eq!(all(&float), ["+w:6f", "+w:2+w:3f", "f"]);
        assert_eq!(all(&DataType::String), ["+w:2+w:3U", "+w:2+w:3U", "U"]);
        assert_eq!(schema(&float, &[5], RowForm::Nested).unwrap(), "f");
        assert!(matches!(schema(&float, &[], RowForm::Flat), Err(Error::NeedsCopy { .. })));
        assert_eq!(schema(&Number::Complex64.into(), &[5, 3], RowForm::Nested).unwrap(), "+w:3+w:2f");
    }

    #[test]
    fn dimension_names_follow_the_memory_order() {
        let names = ["time", "a \"b\"", "c"].map(|name| Some(name.to_owned()));
        let dtype = Number::Float32.into();
        let field = ArrowField {
            dtype: &dtype,
            shape: &[5, 2, 3],
            order: Some(&[1, 0]),
            dimension_names: Some(&names),
            form: ArrowForm::default(),
        };
        let metadata = field.tensor_metadata(&[2, 3]);
        assert_eq!(metadata, r#"{"shape":[3, 2],"dim_names":["c","a \"b\""],"permutation":[1, 0]}"#);
    }

    #[test]
    fn types_that_arrow_lacks_are_opaque_or_refused() {
        let bfloat = element(&Number::BFloat16.into(), ArrowForm::default()).unwrap();
        assert_eq!(bfloat.metadata[0].1, "arrow.opaque");
        assert_eq!(bfloat.metadata[1].1, r#"{"type_name":"bfloat16","vendor_name":"zarr"}"#);
        let days = |scale| DataType::DateTime64 { unit: TimeUnit::Day, scale };
        assert_eq!(element(&days(1), ArrowForm::default()).unwrap().format.as_ref(), c"tdD");
        assert!(matches!(element(&days(2), ArrowForm::default()), Err(Error::NoSuchType { .. })));
        let halves = DataType::DateTime64 { unit: TimeUnit::Second, scale: 30 };
        assert!(matches!(element(&halves, ArrowForm::default()), Err(Error::NoSuchType { .. })));
    }
}

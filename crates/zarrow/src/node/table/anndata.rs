//! Groups that represent one array or one table, as written by AnnData.
//!
//! The attribute `encoding-type` says what a group is:
//! - `nullable-integer`, `nullable-boolean`, `nullable-string-array`: arrays `values` and `mask`, True for missing
//!   values;
//! - `categorical`: arrays `codes`, -1 for a missing value, and `categories`, and an attribute `ordered`;
//! - `dataframe`: one member per column, in the order of the attribute `column-order`, and one named by `_index`.
//!
//! A group with `column-order` but without a type is a table without an index: `zarrow.save` writes such tables.
//!
//! Source: AnnData, "On-disk format", encoding versions 0.1.0 and 0.2.0.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::MetadataError;
use crate::node::any::Node;
use crate::node::array::Array;
use crate::node::batch::read_each;
use crate::node::group::Group;
use crate::selection::IntoSelection;
use serde_json::Value;
use zarrow_array::export::arrow;
use zarrow_array::export::arrow_abi::ArrayNode;
use zarrow_array::{
    DataType, DecodedArray, Mask, MaskedTensor, MaskedVariable, Number, SharedTensor, Tensor, allocation,
};

const ENCODING: &str = "encoding-type";

/// An array stored as a group of several arrays.
#[derive(Debug, Clone)]
pub enum EncodedArray {
    /// Values with a mask.
    Nullable {
        /// The values.
        values: Array,
        /// True for missing values.
        missing: Array,
    },
    /// Values drawn from a small set of categories.
    Categorical {
        /// Index of each element's category; negative for a missing value.
        codes: Array,
        /// The categories.
        categories: Array,
        /// Whether the categories have an order.
        ordered: bool,
    },
}

/// Decoded form of an [`EncodedArray`].
#[derive(Debug)]
pub enum EncodedValues {
    /// A masked layout.
    Masked(DecodedArray),
    /// Codes and categories.
    Categorical {
        /// Index of each element's category; negative for a missing value.
        codes: SharedTensor,
        /// All categories.
        categories: DecodedArray,
        /// Whether the categories have an order.
        ordered: bool,
    },
}

impl EncodedArray {
    /// Returns the array that `group` represents; `None` for any other group.
    ///
    /// # Errors
    /// [`ErrorKind::Metadata`] if its members do not fit together, and errors of opening them.
    pub fn from_group(group: &Group) -> Result<Option<EncodedArray>> {
        let Some(names) = EncodedArray::member_names(group) else { return Ok(None) };
        EncodedArray::from_members(group, &mut group.get_each(&names)?.into_iter())
    }

    /// Returns the names of the two arrays of a group that represents an array.
    pub(crate) fn member_names(group: &Group) -> Option<[&'static str; 2]> {
        match group.attributes().get(ENCODING)?.as_str()? {
            "nullable-integer" | "nullable-boolean" | "nullable-string-array" => Some(["values", "mask"]),
            "categorical" => Some(["codes", "categories"]),
            _ => None,
        }
    }

    /// As [`from_group`](EncodedArray::from_group). `members` begins with the opened
    /// [`member_names`](EncodedArray::member_names).
    pub(crate) fn from_members(
        group: &Group,
        members: &mut impl Iterator<Item = Result<Node>>,
    ) -> Result<Option<EncodedArray>> {
        let Some(encoding) = group.attributes().get(ENCODING).and_then(Value::as_str) else {
            return Ok(None);
        };
        let refused = |what: &str| {
            let reason = format!("a group of type {encoding} needs {what}");
            Error::from(MetadataError::invalid(ENCODING, reason)).in_array(group.store().name(), group.path())
        };
        let mut member = |name: &str| match members.next().unwrap_or_else(|| group.get(name))? {
            Node::Array(array) => Ok(array),
            Node::Group(_) => Err(refused(&format!("an array at {name:?}, found a group"))),
        };
        match encoding {
            "nullable-integer" | "nullable-boolean" | "nullable-string-array" => {
                let (values, missing) = (member("values")?, member("mask")?);
                if *missing.data_type() != DataType::Number(Number::Bool) || missing.shape() != values.shape()
                {
                    return Err(refused("a bool mask with the shape of its values"));
                }
                if matches!(values.data_type(), DataType::Optional(_)) {
                    return Err(refused("values that are not masked themselves"));
                }
                Ok(Some(EncodedArray::Nullable { values, missing }))
            }
            "categorical" => {
                let (codes, categories) = (member("codes")?, member("categories")?);
                let is_integer =
                    codes.data_type().numpy_code().is_some_and(|code| code.starts_with(['i', 'u']));
                if codes.shape().len() != 1 || categories.shape().len() != 1 || !is_integer {
                    return Err(refused("1-D integer codes and 1-D categories"));
                }
                if matches!(categories.data_type(), DataType::Optional(_)) {
                    return Err(refused("categories without missing elements"));
                }
                let ordered = group.attributes().get("ordered").and_then(Value::as_bool).unwrap_or(false);
                Ok(Some(EncodedArray::Categorical { codes, categories, ordered }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        self.arrays()[0].shape()
    }

    /// Returns the arrays to read for a selection.
    pub(crate) fn arrays(&self) -> Vec<&Array> {
        match self {
            EncodedArray::Nullable { values, missing } => vec![values, missing],
            EncodedArray::Categorical { codes, .. } => vec![codes],
        }
    }

    /// Reads `selection`, together with all categories if there are any. `cancel` says whether to stop: it is called from
    /// time to time, on the calling thread.
    ///
    /// # Errors
    /// As [`ReadRequest::read`](crate::ReadRequest::read).
    pub fn read<'s>(
        &'s self,
        selection: impl IntoSelection<'s>,
        cancel: &'s dyn Fn() -> bool,
    ) -> Result<EncodedValues> {
        let selection = &*self.arrays()[0].selection(selection)?;
        match self {
            EncodedArray::Nullable { values, missing } => {
                let requests = [values.request(selection)?.cancel(cancel), missing.request(selection)?];
                let masked = masked(read_each(&requests)?).map_err(|error| values.place(error))?;
                Ok(EncodedValues::Masked(masked))
            }
            EncodedArray::Categorical { codes, categories, ordered } => {
                let requests = [codes.request(selection)?.cancel(cancel), categories.request(..)?];
                let [codes, categories] = pair(read_each(&requests)?)?;
                let own = self.arrays()[0];
                let codes = tensor(codes)?.into_shared().map_err(ErrorKind::Array)?;
                check_distinct(&categories).map_err(|error| own.place(error))?;
                check_codes(&codes, &categories).map_err(|error| own.place(error))?;
                Ok(EncodedValues::Categorical { codes, categories, ordered: *ordered })
            }
        }
    }
}

/// Combines values and mask to the masked layout. Nothing is copied.
///
/// # Errors
/// [`ErrorKind::Array`] if their lengths differ.
pub(crate) fn masked(decoded: Vec<DecodedArray>) -> Result<DecodedArray> {
    let [values, missing] = pair(decoded)?;
    let mask = Mask::new(vec![tensor(missing)?.into_buffer()]).map_err(ErrorKind::Array)?;
    let masked = match values {
        DecodedArray::Tensor(tensor) => MaskedTensor::new(tensor, mask).map(DecodedArray::MaskedTensor),
        DecodedArray::Variable(variable) => {
            MaskedVariable::new(variable, mask).map(DecodedArray::MaskedVariable)
        }
        _ => return Err(ErrorKind::Internal("the values are masked already".into()).into()),
    };
    Ok(masked.map_err(ErrorKind::Array)?)
}

/// Checks that each code is negative or the index of a category.
fn check_codes(codes: &SharedTensor, categories: &DecodedArray) -> Result<()> {
    let length = categories.shape().first().copied().unwrap_or(0);
    let categories = ArrayNode { length: i64::try_from(length).unwrap_or(i64::MAX), ..ArrayNode::default() };
    Ok(arrow::dictionary_memory(codes, categories).map(drop).map_err(ErrorKind::Array)?)
}

/// Checks that categories are distinct, as pandas and Arrow require.
///
/// # Errors
/// [`ErrorKind::Metadata`]; [`ErrorKind::Array`] without memory for a list of the categories.
pub(crate) fn check_distinct(categories: &DecodedArray) -> Result<()> {
    let count = categories.shape().first().copied().unwrap_or(0);
    let mut elements: Vec<&[u8]> = allocation::with_capacity(usize::try_from(count).unwrap_or(usize::MAX))?;
    match categories {
        DecodedArray::Tensor(tensor) => {
            let size = tensor.dtype().item_size().unwrap_or(1).max(1);
            elements.extend(tensor.bytes().chunks_exact(size));
        }
        DecodedArray::Variable(variable) => {
            elements.extend((0..variable.size()).filter_map(|index| variable.element(index)));
        }
        _ => {}
    }
    elements.sort_unstable();
    if elements.windows(2).any(|pair| pair[0] == pair[1]) {
        let reason = "a group of type categorical has a category twice: store each category once";
        return Err(MetadataError::invalid(ENCODING, reason).into());
    }
    Ok(())
}

fn pair(decoded: Vec<DecodedArray>) -> Result<[DecodedArray; 2]> {
    decoded.try_into().map_err(|_| ErrorKind::Internal("expected values and a mask".into()).into())
}

fn tensor(decoded: DecodedArray) -> Result<Tensor> {
    match decoded {
        DecodedArray::Tensor(tensor) => Ok(tensor),
        _ => Err(ErrorKind::Internal("the mask or the codes are not a tensor".into()).into()),
    }
}

/// Returns the names of a table's columns in their order, the index first; `None` if `group` is not a table.
///
/// # Errors
/// [`ErrorKind::Metadata`] if the names are malformed or missing.
pub fn table_columns(group: &Group) -> Result<Option<Vec<String>>> {
    let attributes = group.attributes();
    let columns = attributes.get("column-order").and_then(Value::as_array).and_then(|columns| {
        columns.iter().map(|column| column.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    match attributes.get(ENCODING).and_then(Value::as_str) {
        Some("dataframe") => {}
        Some(_) => return Ok(None),
        None => return Ok(columns),
    }
    let index = attributes.get("_index").and_then(Value::as_str);
    let (Some(index), Some(columns)) = (index, columns) else {
        let reason =
            "a group of type dataframe needs the attributes _index and column-order, which hold names";
        return Err(Error::from(MetadataError::invalid(ENCODING, reason))
            .in_array(group.store().name(), group.path()));
    };
    Ok(Some([vec![index.to_owned()], columns].concat()))
}

//! A column of a table: the arrays that it is read from, and its Arrow type.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Attributes;
use crate::metadata::missing_values::MissingValues;
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::table::anndata::{EncodedArray, check_distinct, masked};
use serde_json::Value;
use std::sync::Arc;
use zarrow_array::export::arrow::{self, ArrowField, ArrowForm};
use zarrow_array::export::arrow_abi::{ArrayNode, SchemaNode};
use zarrow_array::fork::OnceCell;
use zarrow_array::{DataType, DecodedArray, allocation};

/// A named column.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    source: Source,
    /// Values that mark missing elements.
    missing: Option<Arc<MissingValues>>,
}

/// Which metadata name the values that mark missing elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskChoice {
    /// The attributes, by [`MissingValues::cf`].
    Cf,
    /// The fill value, by [`MissingValues::fill`].
    Fill,
}

/// Source of a column's data.
#[derive(Debug, Clone)]
enum Source {
    Array(Array),
    Encoded {
        array: Box<EncodedArray>,
        attributes: Attributes,
        /// Dictionary values once they were read, shared by all batches.
        dictionary: Arc<OnceCell<ArrayNode>>,
    },
}

impl Column {
    /// Creates the column of an array along its first axis.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an array without axes.
    pub fn new(name: &str, array: Array) -> Result<Column> {
        Column { name: name.to_owned(), source: Source::Array(array), missing: None }.checked()
    }

    fn checked(self) -> Result<Column> {
        let text = "a 0-d array cannot be a column: choose arrays with at least one axis";
        let without_axes = self.arrays().find(|array| array.shape().is_empty());
        let refused = without_axes.map(|array| array.place(ErrorKind::Shape(text.into()).into()));
        refused.map_or(Ok(self), Err)
    }

    /// Returns the error for a group that represents no array.
    pub(crate) fn no_array(group: &Group) -> Error {
        let kind = ErrorKind::WrongNode { expected: "an array", found: "a group" };
        Error::from(kind).in_array(group.store().name(), group.path())
    }

    /// Returns the column of the array that a group represents.
    pub(crate) fn encoded(name: &str, group: &Group, array: EncodedArray) -> Result<Column> {
        let (array, attributes, dictionary) = (Box::new(array), group.attributes().clone(), Arc::default());
        Column {
            name: name.to_owned(),
            source: Source::Encoded { array, attributes, dictionary },
            missing: None,
        }
        .checked()
    }

    /// Returns the column with missing values chosen by `choice`. A group that represents an array already has a mask.
    ///
    /// # Errors
    /// As [`MissingValues::cf`].
    pub fn masked(self, choice: MaskChoice) -> Result<Column> {
        let Source::Array(array) = &self.source else { return Ok(self) };
        let missing = match choice {
            MaskChoice::Cf => MissingValues::cf(array.metadata())?,
            MaskChoice::Fill => MissingValues::fill(array.metadata())?,
        };
        Ok(Column { missing: Some(Arc::new(missing)), ..self })
    }

    /// Returns the values that mark missing elements of its arrays.
    pub(super) fn missing(&self) -> Option<&MissingValues> {
        self.missing.as_deref()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.arrays().next().and_then(|array| array.shape().first().copied()).unwrap_or(0)
    }

    /// Returns the arrays to read for a batch, all of the column's length.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array> {
        match &self.source {
            Source::Array(array) => vec![array],
            Source::Encoded { array, .. } => array.arrays(),
        }
        .into_iter()
    }

    /// Returns the Arrow type.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if Arrow has no such type.
    pub(super) fn schema(&self, form: ArrowForm) -> Result<SchemaNode> {
        let of_array = |array: &Array, form, attributes| {
            array_schema(array, form, attributes).map_err(|error| array.place(error))
        };
        let schema = match &self.source {
            Source::Array(array) => of_array(array, form, &array.metadata().attributes)?,
            Source::Encoded { array, attributes, .. } => match &**array {
                EncodedArray::Nullable { values, .. } => of_array(values, form, attributes)?,
                EncodedArray::Categorical { codes, categories, ordered } => {
                    let values = of_array(categories, ArrowForm::default(), &Attributes::default())?;
                    let mut schema = arrow::dictionary_schema(codes.data_type(), values, *ordered)
                        .map_err(|error| codes.place(ErrorKind::Array(error).into()))?;
                    schema.metadata = metadata(attributes)?;
                    schema
                }
            },
        };
        Ok(schema.named(&self.name))
    }

    /// Builds the memory of a batch from its decoded arrays.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if memory is short, text is invalid, or a code has no category; errors of reading the
    /// categories.
    pub(super) fn batch(
        &self,
        decoded: Vec<DecodedArray>,
        form: ArrowForm,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<ArrayNode> {
        let whole = |decoded: Vec<DecodedArray>| {
            decoded.into_iter().next().ok_or_else(|| ErrorKind::Internal("a batch has no values".into()))
        };
        let place = |error: zarrow_array::Error| match self.arrays().next() {
            Some(array) => array.place(ErrorKind::Array(error).into()),
            None => ErrorKind::Array(error).into(),
        };
        let (array, dictionary) = match &self.source {
            Source::Array(_) => return arrow::decoded_memory(whole(decoded)?, form).map_err(place),
            Source::Encoded { array, dictionary, .. } => (array, dictionary),
        };
        let EncodedArray::Categorical { categories, .. } = &**array else {
            return arrow::decoded_memory(masked(decoded)?, form).map_err(place);
        };
        let values = match dictionary.get() {
            Some(values) => values.clone(),
            None => {
                let read = categories.request(..)?.cancel(interrupted).read()?;
                check_distinct(&read).map_err(|error| categories.place(error))?;
                let values = arrow::decoded_memory(read, ArrowForm::default()).map_err(place)?;
                dictionary.get_or_make(|| values).clone()
            }
        };
        let DecodedArray::Tensor(codes) = whole(decoded)? else {
            return Err(ErrorKind::Internal("the codes are not a tensor".into()).into());
        };
        arrow::dictionary_memory(&codes.into_shared().map_err(place)?, values).map_err(place)
    }
}

/// Returns the Arrow type of an array's rows, with the attributes as metadata.
fn array_schema(array: &Array, form: ArrowForm, attributes: &Attributes) -> Result<SchemaNode> {
    let shape: Vec<i64> =
        array.shape().iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
    let names = array.metadata().dimension_names.as_deref();
    let dtype: &DataType = array.data_type().without_optional();
    let field = ArrowField { dtype, shape: &shape, order: None, dimension_names: names, form };
    let mut schema = field.schema().map_err(ErrorKind::Array)?;
    schema.metadata.extend(metadata(attributes)?);
    if let Some(names) = names {
        schema.metadata.push(("zarr:dimension_names".into(), serde_json::json!(names).to_string()));
    }
    Ok(schema)
}

/// Converts attributes to Arrow's metadata, which are text: strings stay strings, and all other values become JSON.
/// Keys reserved by Arrow are left out.
///
/// # Errors
/// [`ErrorKind::Array`] if there is no memory for their copies, here and in Arrow. As a check, that much memory is
/// allocated and freed again.
pub(super) fn metadata(attributes: &Attributes) -> Result<Vec<(String, String)>> {
    /// Slots of the keys, the texts of values, their copy for Arrow, and Arrow's final form, each with room to grow.
    const COPIES: usize = 8;
    let nbytes = attributes.text().len().saturating_mul(COPIES);
    drop(std::hint::black_box(allocation::with_capacity::<u8>(nbytes)?));
    let members = attributes.members().filter(|(key, ..)| !key.starts_with("ARROW:"));
    Ok(members
        .map(|(key, value, json)| match value {
            Value::String(text) => (key.to_owned(), text.clone()),
            _ => (key.to_owned(), json),
        })
        .collect())
}

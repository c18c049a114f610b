//! A column of a table: the arrays that it is read from, and the Arrow type that they make.

use crate::anndata::{EncodedArray, masked};
use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Attributes;
use crate::missing::MissingValues;
use crate::open::Node;
use crate::selection::Selection;
use serde_json::Value;
use std::sync::Arc;
use zarrow_array::export::arrow::{self, ArrowField, ArrowForm};
use zarrow_array::export::arrow_abi::{ArrayNode, SchemaNode};
use zarrow_array::fork::OnceCell;
use zarrow_array::{DataType, DecodedArray, allocation};

/// A name and what it stands for.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    source: Source,
    /// Which values of an array mean that one is missing, where some do.
    missing: Option<Arc<MissingValues>>,
}

/// Which values mean that an element is missing, by what each array says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskChoice {
    /// Those of [`MissingValues::cf`].
    Cf,
    /// That of [`MissingValues::fill`].
    Fill,
}

/// What a column is read from.
#[derive(Debug, Clone)]
enum Source {
    Array(Array),
    Encoded {
        array: Box<EncodedArray>,
        attributes: Attributes,
        /// The values of a dictionary, once they were read: all batches share them.
        dictionary: Arc<OnceCell<ArrayNode>>,
    },
}

impl Column {
    /// The column of an array along its first axis.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an array of no axes.
    pub fn new(name: &str, array: Array) -> Result<Column> {
        Column { name: name.to_owned(), source: Source::Array(array), missing: None }.checked()
    }

    fn checked(self) -> Result<Column> {
        let text = "a 0-d array has no rows, and is no column: choose arrays of one axis or more";
        let without_axes = self.arrays().find(|array| array.shape().is_empty());
        let refused = without_axes.map(|array| array.place(ErrorKind::Shape(text.into()).into()));
        refused.map_or(Ok(self), Err)
    }

    /// The column of a node: an array, or a group that stands for one.
    ///
    /// # Errors
    /// [`ErrorKind::WrongNode`] for another group, as [`EncodedArray::of_group`], and as [`new`](Column::new).
    pub fn of_node(name: &str, node: Node) -> Result<Column> {
        let group = match node {
            Node::Array(array) => return Column::new(name, array),
            Node::Group(group) => group,
        };
        let Some(array) = EncodedArray::of_group(&group)? else {
            let kind = ErrorKind::WrongNode { expected: "an array", found: "a group" };
            return Err(Error::from(kind).in_array(group.store().name(), group.path()));
        };
        let (array, attributes, dictionary) = (Box::new(array), group.attributes().clone(), Arc::default());
        Column {
            name: name.to_owned(),
            source: Source::Encoded { array, attributes, dictionary },
            missing: None,
        }
        .checked()
    }

    /// The column, of which some values mean that one is missing. A group that stands for an array says itself which are.
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

    /// Which values of its arrays mean that one is missing.
    pub(super) fn missing(&self) -> Option<&MissingValues> {
        self.missing.as_deref()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows there are.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.arrays().next().and_then(|array| array.shape().first().copied()).unwrap_or(0)
    }

    /// The arrays that a batch is read from, all of them as long as the column.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array> {
        match &self.source {
            Source::Array(array) => vec![array],
            Source::Encoded { array, .. } => array.arrays(),
        }
        .into_iter()
    }

    /// The Arrow type.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where Arrow has no such type.
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

    /// The memory of a batch, from what its arrays gave.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where memory is short, text is none, or a code has no category; what reading the categories
    /// gives.
    pub(super) fn batch(
        &self,
        decoded: Vec<DecodedArray>,
        form: ArrowForm,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<ArrayNode> {
        let whole = |decoded: Vec<DecodedArray>| {
            decoded.into_iter().next().ok_or_else(|| ErrorKind::Internal("a batch without its values".into()))
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
                let all = Selection::new(categories.shape(), &[])?;
                let read = categories.read_with(&all, &interrupted.into())?;
                let values = arrow::decoded_memory(read, ArrowForm::default()).map_err(place)?;
                dictionary.get_or_make(|| values).clone()
            }
        };
        let DecodedArray::Tensor(codes) = whole(decoded)? else {
            return Err(ErrorKind::Internal("codes that are no tensor".into()).into());
        };
        arrow::dictionary_memory(&codes.into_shared().map_err(place)?, values).map_err(place)
    }
}

/// The Arrow type of an array's rows, with its attributes beside it.
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

/// Attributes as Arrow's metadata, which are text: strings as they are, all else as JSON. Keys that have a meaning to
/// Arrow are its own.
///
/// # Errors
/// [`ErrorKind::Array`] where there is no memory for the copies that are made of them, here and for Arrow. That is asked
/// for at once, and given back: a check.
pub(super) fn metadata(attributes: &Attributes) -> Result<Vec<(String, String)>> {
    /// The places of keys, the texts of values, these as they are handed on, and Arrow's own form, as each grows.
    const COPIES: usize = 8;
    let asked = attributes.text().len().saturating_mul(COPIES);
    drop(std::hint::black_box(allocation::with_capacity::<u8>(asked)?));
    let members = attributes.members().filter(|(key, ..)| !key.starts_with("ARROW:"));
    Ok(members
        .map(|(key, value, json)| match value {
            Value::String(text) => (key.to_owned(), text.clone()),
            _ => (key.to_owned(), json),
        })
        .collect())
}

//! A column of a table: the arrays that it is read from, and the Arrow type that they make.

use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::open::Node;
use serde_json::{Map, Value};
use zarrow_array::export::arrow::{self, ArrowField, ArrowForm};
use zarrow_array::export::arrow_abi::{ArrayNode, SchemaNode};
use zarrow_array::{DataType, DecodedArray};

/// A name and what it stands for.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    array: Array,
}

impl Column {
    /// The column of an array along its first axis.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an array of no axes.
    pub fn new(name: &str, array: Array) -> Result<Column> {
        if array.shape().is_empty() {
            let text = "an array of no axes has no rows, and is no column";
            return Err(array.place(ErrorKind::Shape(text.into()).into()));
        }
        Ok(Column { name: name.to_owned(), array })
    }

    /// The column of a node.
    ///
    /// # Errors
    /// [`ErrorKind::WrongNode`] for a group, and as [`new`](Column::new).
    pub fn of_node(name: &str, node: Node) -> Result<Column> {
        match node {
            Node::Array(array) => Column::new(name, array),
            Node::Group(group) => {
                let kind = ErrorKind::WrongNode { expected: "an array", found: "a group" };
                Err(Error::from(kind).in_array(group.store().name(), group.path()))
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows there are.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.array.shape().first().copied().unwrap_or(0)
    }

    /// The arrays that a batch is read from, all of them as long as the column.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &Array> {
        std::iter::once(&self.array)
    }

    /// The Arrow type.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where Arrow has no such type.
    pub(super) fn schema(&self, form: ArrowForm) -> Result<SchemaNode> {
        let schema = array_schema(&self.array, form).map_err(|error| self.array.place(error))?;
        Ok(schema.named(&self.name))
    }

    /// The memory of a batch, from what its arrays gave.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where memory is short or text is none.
    pub(super) fn batch(
        &self,
        mut decoded: impl Iterator<Item = DecodedArray>,
        form: ArrowForm,
    ) -> Result<ArrayNode> {
        let Some(values) = decoded.next() else {
            return Err(ErrorKind::Internal("a batch without its values".into()).into());
        };
        arrow::decoded_memory(values, form).map_err(|error| self.array.place(ErrorKind::Array(error).into()))
    }
}

/// The Arrow type of an array's rows, with its attributes beside it.
fn array_schema(array: &Array, form: ArrowForm) -> Result<SchemaNode> {
    let shape: Vec<i64> =
        array.shape().iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
    let names = dimension_names(array);
    let dtype: &DataType = array.data_type().without_optional();
    let field = ArrowField { dtype, shape: &shape, order: None, dimension_names: names.as_deref(), form };
    let mut schema = field.schema().map_err(ErrorKind::Array)?;
    schema.metadata.extend(metadata(&array.metadata().attributes));
    if let Some(names) = names {
        schema.metadata.push(("zarr:dimension_names".into(), Value::from(names).to_string()));
    }
    Ok(schema)
}

/// The names of an array's axes; in version 2, those that xarray writes among the attributes.
fn dimension_names(array: &Array) -> Option<Vec<Option<String>>> {
    let metadata = array.metadata();
    if let Some(names) = &metadata.dimension_names {
        return Some(names.clone());
    }
    let names = metadata.attributes.get("_ARRAY_DIMENSIONS")?.as_array()?;
    let names: Option<Vec<_>> = names.iter().map(|name| Some(Some(name.as_str()?.to_owned()))).collect();
    names.filter(|names| names.len() == metadata.shape.len())
}

/// Attributes as Arrow's metadata, which are text: strings as they are, all else as JSON. Keys that have a meaning to
/// Arrow are its own.
pub(super) fn metadata(attributes: &Map<String, Value>) -> impl Iterator<Item = (String, String)> {
    attributes.iter().filter(|(key, _)| !key.starts_with("ARROW:")).map(|(key, value)| match value {
        Value::String(text) => (key.clone(), text.clone()),
        other => (key.clone(), other.to_string()),
    })
}

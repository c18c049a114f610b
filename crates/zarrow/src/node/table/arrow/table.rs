//! Columns of equal length.

use crate::error::{ErrorKind, Result};
use crate::metadata::Attributes;
use crate::node::array::Array;
use crate::node::table::arrow::column::{Column, MaskChoice, metadata};
use std::num::NonZeroU64;
use std::ops::Range;
use zarrow_array::allocation;
use zarrow_array::export::arrow::{ArrowForm, BoolForm};
use zarrow_array::export::arrow_abi::{ArrowSchema, SchemaNode};

/// Options for reading a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableOptions {
    /// Choice between several Arrow types for a column. By default bools have Arrow's own bool type: filters of a
    /// table accept no other, and the rows are decoded for it anyway.
    pub form: ArrowForm,
    /// Choice of the values that mark missing elements, which become null. With `None`, only elements that are missing
    /// by their type are null.
    pub mask: Option<MaskChoice>,
    /// Range of rows, clipped to the table; `None` for all.
    pub rows: Option<Range<u64>>,
    /// Rows per batch; with `None`, a number that suits the columns' chunks and sizes.
    pub batch_rows: Option<NonZeroU64>,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        let form = ArrowForm { bools: BoolForm::Bits, ..ArrowForm::default() };
        TableOptions { form, mask: None, rows: None, batch_rows: None }
    }
}

impl TableOptions {
    /// Sets the choice between several Arrow types for a column.
    #[must_use]
    pub fn form(self, form: ArrowForm) -> Self {
        TableOptions { form, ..self }
    }

    /// Sets the choice of the values that mark missing elements.
    #[must_use]
    pub fn mask(self, mask: Option<MaskChoice>) -> Self {
        TableOptions { mask, ..self }
    }

    /// Sets the range of rows.
    #[must_use]
    pub fn rows(self, rows: Range<u64>) -> Self {
        TableOptions { rows: Some(rows), ..self }
    }

    /// Sets the rows per batch.
    #[must_use]
    pub fn batch_rows(self, batch_rows: Option<NonZeroU64>) -> Self {
        TableOptions { batch_rows, ..self }
    }
}

/// Columns of equal length.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::arrow::{Column, Table, TableOptions};
/// use zarrow::store::MemoryStore;
/// let metadata = br#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
///   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
///   "chunk_key_encoding": {"name": "default"}, "fill_value": 7,
///   "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}"#;
/// let store = Arc::new(MemoryStore::new([("zarr.json", metadata.to_vec())])?);
/// let zarrow::Node::Array(array) = zarrow::open(store, "")? else { panic!() };
/// let table = Table::new(vec![Column::new("depth", array)?], TableOptions::default())?;
/// assert_eq!(table.rows(), 0..4);
/// assert_eq!(table.schema()?.into_c().child(0).unwrap().format(), c"s");
/// let stream = Arc::new(table).stream(Box::new(|| false));
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(Column, ArrowForm)>,
    /// Whether a batch is a struct of the columns; otherwise it is the only column itself.
    is_struct: bool,
    attributes: Attributes,
    rows: Range<u64>,
    batch_rows: NonZeroU64,
}

impl Table {
    /// Creates a table of these columns.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if their lengths differ, or there are no columns.
    pub fn new(columns: Vec<Column>, options: TableOptions) -> Result<Table> {
        let Some(first) = columns.first() else {
            return Err(
                ErrorKind::Shape("a table needs at least one array with one or more axes".into()).into()
            );
        };
        let length = first.length();
        if let Some(other) = columns.iter().find(|column| column.length() != length) {
            let (name, other_name) = (first.name(), other.name());
            let text = format!(
                "columns differ in length: {name:?} has {length} rows, {other_name:?} has {}; select \
                 columns of the same length",
                other.length()
            );
            return Err(ErrorKind::Shape(text).into());
        }
        let batch_rows = options.batch_rows.unwrap_or_else(|| sensible_rows(&columns));
        let masked = |column: Column| -> Result<(Column, ArrowForm)> {
            match options.mask {
                Some(choice) => Ok((column.masked(choice)?, options.form)),
                None => Ok((column, options.form)),
            }
        };
        let columns = allocation::try_collected(columns.into_iter().map(masked))?;
        let table = Table {
            columns,
            is_struct: true,
            attributes: Attributes::default(),
            rows: 0..length,
            batch_rows,
        };
        Ok(match options.rows {
            Some(rows) => table.with_rows(rows),
            None => table,
        })
    }

    /// Creates a table with the rows of one array, without a struct.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an array without axes.
    pub fn from_array(array: Array, options: TableOptions) -> Result<Table> {
        Ok(Table { is_struct: false, ..Table::new(vec![Column::new("", array)?], options)? })
    }

    /// Returns the table with other rows of its arrays, clipped to their length.
    #[must_use]
    pub fn with_rows(self, rows: Range<u64>) -> Table {
        let length = self.columns.first().map_or(0, |(column, _)| column.length());
        Table { rows: rows.start.min(length)..rows.end.min(length), ..self }
    }

    /// Returns the table with attributes, which become the metadata of its schema.
    #[must_use]
    pub fn with_attributes(self, attributes: Attributes) -> Table {
        Table { attributes, ..self }
    }

    /// Returns the table in the form of a consumer's schema, as far as possible.
    #[must_use]
    pub fn requested(mut self, schema: &ArrowSchema) -> Table {
        for (column, form) in &mut self.columns {
            let wanted = match self.is_struct {
                true => schema.children().find(|child| child.name().to_bytes() == column.name().as_bytes()),
                false => Some(schema),
            };
            *form = wanted.map_or(*form, |schema| form.requested(schema));
        }
        self
    }

    /// Returns the table's range of rows in the arrays.
    #[must_use]
    pub fn rows(&self) -> Range<u64> {
        self.rows.start..self.rows.end.max(self.rows.start)
    }

    /// Returns the number of rows per batch. Batches start at multiples of it; the first and the last may be shorter.
    #[must_use]
    pub fn batch_rows(&self) -> NonZeroU64 {
        self.batch_rows
    }

    /// Whether a batch is a struct of named columns.
    #[must_use]
    pub fn is_struct(&self) -> bool {
        self.is_struct
    }

    /// Returns the columns, each with its form.
    pub fn columns(&self) -> impl Iterator<Item = &(Column, ArrowForm)> {
        self.columns.iter()
    }

    /// Returns the Arrow type of a batch.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if Arrow has no type for a column.
    pub fn schema(&self) -> Result<SchemaNode> {
        let children = self.columns.iter().map(|(column, form)| column.schema(*form));
        let mut children = allocation::try_collected(children)?;
        if !self.is_struct {
            return Ok(children.pop().unwrap_or_default());
        }
        let metadata = metadata(&self.attributes)?;
        Ok(SchemaNode { children, metadata, ..SchemaNode::plain(c"+s") })
    }
}

/// Returns the default rows per batch, large enough to be worth the calls and bounded: whole chunks of all columns if
/// that is not too much; else whole chunks of the columns with the longest ones.
fn sensible_rows(columns: &[Column]) -> NonZeroU64 {
    /// Minimum decoded bytes of a batch.
    const BATCH_NBYTES: u64 = 32 << 20;
    /// Maximum decoded bytes of a batch enlarged to decode each chunk only once.
    const MOST_NBYTES: u64 = 256 << 20;
    /// Assumed size of an element without a fixed size.
    const VARIABLE_NBYTES: u64 = 32;
    let arrays = || columns.iter().flat_map(Column::arrays);
    let row_nbytes = arrays().fold(0u64, |sum, array| {
        let item_size = array.data_type().item_size().map_or(VARIABLE_NBYTES, |size| size as u64);
        let row =
            array.shape().iter().skip(1).fold(item_size, |product, extent| product.saturating_mul(*extent));
        sum.saturating_add(row)
    });
    let row_nbytes = row_nbytes.max(1);
    let lengths =
        || arrays().map(|array| array.chunk_shape().and_then(|shape| shape.first().copied()).unwrap_or(1));
    let common =
        lengths().try_fold(1u64, |common, length| (common / gcd(common, length)).checked_mul(length));
    let longest = lengths().fold(1, u64::max);
    let step = common.filter(|common| common.saturating_mul(row_nbytes) <= MOST_NBYTES).unwrap_or(longest);
    let times = (BATCH_NBYTES / step.saturating_mul(row_nbytes)).max(1);
    NonZeroU64::new(step.saturating_mul(times)).unwrap_or(NonZeroU64::MIN)
}

fn gcd(left: u64, right: u64) -> u64 {
    if right == 0 { left.max(1) } else { gcd(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::open;
    use crate::store::MemoryStore;
    use std::sync::Arc;

    fn column(rows: u64, chunk: u64, row: u64) -> Column {
        let metadata = format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [{rows}, {row}], "data_type": "float64",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{chunk}, {row}]}}}},
            "chunk_key_encoding": {{"name": "default"}}, "fill_value": 0,
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}"#
        );
        let store = MemoryStore::new([("zarr.json", metadata.into_bytes())]).unwrap();
        let Node::Array(array) = open(Arc::new(store), "").unwrap() else { panic!() };
        Column::new("x", array).unwrap()
    }

    #[test]
    fn batches_are_whole_chunks_of_all_columns_or_of_the_longest() {
        let rows = |columns: &[(u64, u64)]| {
            let columns: Vec<Column> =
                columns.iter().map(|(chunk, row)| column(1 << 32, *chunk, *row)).collect();
            sensible_rows(&columns).get()
        };
        // 32 MiB of float64 are 4,194,304 rows: as many whole chunks as fit.
        assert_eq!(rows(&[(1000, 1)]), 4_194_000);
        assert_eq!(rows(&[(1000, 1), (1024, 1)]), 2_048_000);
        // One chunk is more than a batch should be.
        assert_eq!(rows(&[(1 << 24, 1)]), 1 << 24);
        // A common multiple of 2²⁰ × (2²⁰ - 1) rows is too much.
        assert_eq!(rows(&[(1 << 20, 1), ((1 << 20) - 1, 1)]), 2 << 20);
        assert_eq!(rows(&[(16, 1 << 20)]), 16);
    }

    #[test]
    fn columns_have_one_length() {
        let error = Table::new(vec![column(4, 2, 1), column(5, 2, 1)], TableOptions::default()).unwrap_err();
        assert_eq!(error.kind().code(), "shape");
        assert!(error.to_string().contains("has 4 rows"), "{error}");
        assert!(Table::new(Vec::new(), TableOptions::default()).is_err());
        let rows = |rows| {
            Table::new(vec![column(4, 2, 1)], TableOptions { rows: Some(rows), ..Default::default() })
                .unwrap()
                .rows()
        };
        assert_eq!((rows(1..9), rows(7..9), rows(0..2)), (1..4, 4..4, 0..2));
    }
}

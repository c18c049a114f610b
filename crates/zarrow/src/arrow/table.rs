//! Columns of one length, and their stream.

use crate::array::Array;
use crate::arrow::batches::Batches;
use crate::arrow::column::{Column, MaskChoice, metadata};
use crate::error::{ErrorKind, Result};
use crate::metadata::Attributes;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::allocation;
use zarrow_array::export::arrow::{ArrowForm, BoolForm};
use zarrow_array::export::arrow_abi::{ArrowSchema, SchemaNode};
use zarrow_array::export::arrow_stream::{ArrowArrayStream, BatchSource};

/// How a table is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableOptions {
    /// Which of several Arrow types columns have. Bools are Arrow's own where nothing is said: what filters a table takes
    /// no other, and the rows are decoded for it anyway.
    pub form: ArrowForm,
    /// Which values mean that an element is missing, and so is null: none but those that are missing already, where it is
    /// `None`.
    pub mask: Option<MaskChoice>,
    /// Which rows: all, where it is `None`. Clipped to those that there are.
    pub rows: Option<Range<u64>>,
    /// Rows of a batch: as the columns' chunks and sizes make it sensible, where it is `None`.
    pub batch_rows: Option<NonZeroU64>,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        let form = ArrowForm { bools: BoolForm::Bits, ..ArrowForm::default() };
        TableOptions { form, mask: None, rows: None, batch_rows: None }
    }
}

impl TableOptions {
    /// Which of several Arrow types columns have.
    #[must_use]
    pub fn form(self, form: ArrowForm) -> Self {
        TableOptions { form, ..self }
    }

    /// Which values mean that an element is missing.
    #[must_use]
    pub fn mask(self, mask: Option<MaskChoice>) -> Self {
        TableOptions { mask, ..self }
    }

    /// Which rows.
    #[must_use]
    pub fn rows(self, rows: Range<u64>) -> Self {
        TableOptions { rows: Some(rows), ..self }
    }

    /// Rows of a batch.
    #[must_use]
    pub fn batch_rows(self, batch_rows: Option<NonZeroU64>) -> Self {
        TableOptions { batch_rows, ..self }
    }
}

/// Columns of one length.
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
    /// Whether a batch is a struct of the columns, and not the one column itself.
    is_struct: bool,
    attributes: Attributes,
    rows: Range<u64>,
    batch_rows: NonZeroU64,
}

impl Table {
    /// The table of these columns.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they differ in length, or there is none.
    pub fn new(columns: Vec<Column>, options: TableOptions) -> Result<Table> {
        let Some(first) = columns.first() else {
            return Err(ErrorKind::Shape(
                "there are no arrays of one or more axes to make a table of".into(),
            )
            .into());
        };
        let length = first.length();
        if let Some(other) = columns.iter().find(|column| column.length() != length) {
            let (name, other_name) = (first.name(), other.name());
            let text = format!(
                "columns of a table need one length: {name:?} has {length} rows, {other_name:?} has {}; name those of one length",
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

    /// The rows of one array, which is no struct.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an array of no axes.
    pub fn of_array(array: Array, options: TableOptions) -> Result<Table> {
        Ok(Table { is_struct: false, ..Table::new(vec![Column::new("", array)?], options)? })
    }

    /// The table with other rows of its arrays, clipped to those that there are.
    #[must_use]
    pub fn with_rows(self, rows: Range<u64>) -> Table {
        let length = self.columns.first().map_or(0, |(column, _)| column.length());
        Table { rows: rows.start.min(length)..rows.end.min(length), ..self }
    }

    /// The table with attributes, which become the metadata of its schema.
    #[must_use]
    pub fn with_attributes(self, attributes: Attributes) -> Table {
        Table { attributes, ..self }
    }

    /// The table in the form that a consumer's schema asks for, as far as that can be had.
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

    /// Which rows of the arrays it has.
    #[must_use]
    pub fn rows(&self) -> Range<u64> {
        self.rows.start..self.rows.end.max(self.rows.start)
    }

    /// How many rows a batch has, but for the first and the last: batches begin at multiples of it.
    #[must_use]
    pub fn batch_rows(&self) -> NonZeroU64 {
        self.batch_rows
    }

    /// Whether a batch is a struct of named columns.
    #[must_use]
    pub fn is_struct(&self) -> bool {
        self.is_struct
    }

    /// The columns, each with the form that it is handed over in.
    pub fn columns(&self) -> impl Iterator<Item = &(Column, ArrowForm)> {
        self.columns.iter()
    }

    /// The Arrow type of a batch.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where Arrow has no type for a column.
    pub fn schema(&self) -> Result<SchemaNode> {
        let children = self.columns.iter().map(|(column, form)| column.schema(*form));
        let mut children = allocation::try_collected(children)?;
        if !self.is_struct {
            return Ok(children.pop().unwrap_or_default());
        }
        let metadata = metadata(&self.attributes)?;
        Ok(SchemaNode { children, metadata, ..SchemaNode::plain(c"+s") })
    }

    /// The batches, each read when it is asked for. `interrupted` is asked now and then meanwhile, on the thread of
    /// the consumer; where it says true the stream ends in an error.
    #[must_use]
    pub fn stream(self: Arc<Self>, interrupted: Box<dyn Fn() -> bool + Send>) -> ArrowArrayStream {
        ArrowArrayStream::new(Box::new(self.batches(interrupted)))
    }

    /// As [`stream`](Table::stream), for a caller that has something to do around each batch.
    #[must_use]
    pub fn batches(self: Arc<Self>, interrupted: Box<dyn Fn() -> bool + Send>) -> impl BatchSource + use<> {
        Batches::new(self, interrupted)
    }
}

/// Rows of a batch that is worth its calls and bounded: whole chunks of all columns, where that is not too much; else
/// whole chunks of those that have the longest.
fn sensible_rows(columns: &[Column]) -> NonZeroU64 {
    /// What a batch should decode to, at least, in bytes.
    const BATCH_NBYTES: u64 = 32 << 20;
    /// What it may decode to so that no chunk is decoded twice.
    const MOST_NBYTES: u64 = 256 << 20;
    /// What an element of no fixed size is taken for.
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
    use crate::store::MemoryStore;
    use crate::{Node, open};

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
        // 32 MiB of float64 are 4,194,304 rows: as many whole chunks as fit in.
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

//! The references of one array, in columns.
//!
//! 1. A row is a chunk: its coordinates in the grid, and a part of an object. Rows are sorted by coordinates.
//! 2. An object is a name in a target, or bytes in memory. Rows name an object by its number.
//! 3. Rows come in batches, in any order. A chunk without a row has no reference so far, unless the columns are
//!    complete: then it is missing.

use crate::python_store::references::target::{ReferenceTarget, Target};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// A part of an object.
#[derive(Debug, Clone, Copy)]
struct Row {
    object: u32,
    offset: u64,
    nbytes: u64,
}

/// Where the bytes of rows are (step 2).
enum Object {
    /// Number of a target, and the place of the name in `Table::names`.
    Named {
        target: u32,
        nbytes: u32,
        start: usize,
    },
    Bytes(Arc<[u8]>),
}

#[derive(Default)]
struct Table {
    /// `ndim` numbers for each row.
    coordinates: Vec<u32>,
    rows: Vec<Row>,
    objects: Vec<Object>,
    names: String,
    targets: Vec<Arc<Target>>,
    is_complete: bool,
}

/// What the columns say of a chunk.
pub enum Found {
    /// A part of the object with this name in this target.
    ObjectPart {
        target: Arc<Target>,
        name: String,
        offset: u64,
        nbytes: u64,
    },
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    Missing,
    /// There is no row so far.
    Unknown,
}

/// References of the chunks of one array.
#[pyclass(frozen, name = "_ChunkReferences", module = "zarrow")]
pub struct ChunkReferences(pub(super) Arc<Columns>);

/// The columns, as requests use them.
pub struct Columns {
    /// Beginning of a chunk's key, before the numbers.
    prefix: String,
    separator: String,
    ndim: usize,
    table: Mutex<Table>,
}

#[pymethods]
impl ChunkReferences {
    #[new]
    fn new(prefix: String, separator: String, ndim: usize) -> ChunkReferences {
        ChunkReferences(Arc::new(Columns { prefix, separator, ndim, table: Mutex::default() }))
    }

    /// Add objects of a target, and return the number of the first.
    fn add_objects(&self, target: &ReferenceTarget, names: Vec<String>) -> PyResult<u32> {
        let mut table = self.0.table.lock();
        let first = table.next_object(names.len())?;
        let target = table.target(&target.0)?;
        for name in names {
            let nbytes = u32::try_from(name.len()).map_err(too_large)?;
            let start = table.names.len();
            table.names.try_reserve(name.len()).map_err(too_large)?;
            table.names.push_str(&name);
            table.objects.push(Object::Named { target, nbytes, start });
        }
        Ok(first)
    }

    /// Add values in memory, and return the number of the first.
    fn add_bytes(&self, values: Vec<Vec<u8>>) -> PyResult<u32> {
        let mut table = self.0.table.lock();
        let first = table.next_object(values.len())?;
        for value in values {
            table.objects.push(Object::Bytes(value.into()));
        }
        Ok(first)
    }

    /// Add rows: coordinates (n × ndim, 32 bits), objects (n, 32 bits), offsets and sizes (n, 64 bits).
    fn add_chunks(
        &self,
        py: Python<'_>,
        coordinates: PyBuffer<u32>,
        objects: PyBuffer<u32>,
        offsets: PyBuffer<u64>,
        sizes: PyBuffer<u64>,
    ) -> PyResult<()> {
        let (coordinates, objects) = (numbers(py, &coordinates)?, numbers(py, &objects)?);
        let (offsets, sizes) = (numbers(py, &offsets)?, numbers(py, &sizes)?);
        let count = objects.len();
        if offsets.len() != count
            || sizes.len() != count
            || count.checked_mul(self.0.ndim) != Some(coordinates.len())
        {
            return Err(PyValueError::new_err("the columns of references differ in length"));
        }
        py.detach(|| {
            let mut table = self.0.table.lock();
            let known = table.objects.len();
            let mut rows = Vec::new();
            rows.try_reserve_exact(count).map_err(too_large)?;
            for ((&object, &offset), &nbytes) in objects.iter().zip(&offsets).zip(&sizes) {
                if object as usize >= known {
                    return Err(PyValueError::new_err("a reference has an unknown object"));
                }
                rows.push(Row { object, offset, nbytes });
            }
            table.append(self.0.ndim, &coordinates, &rows)
        })
    }

    /// Declare that chunks without a reference are missing.
    fn complete(&self) {
        self.0.table.lock().is_complete = true;
    }

    /// The number of references.
    fn __len__(&self) -> usize {
        self.0.table.lock().rows.len()
    }
}

impl Columns {
    /// Finds the chunk with this key, relative to the array.
    pub fn find(&self, key: &str) -> Found {
        // Documents of the array are not chunks.
        let Some(wanted) = self.coordinates(key) else { return Found::Unknown };
        let table = self.table.lock();
        match table.position(self.ndim, &wanted) {
            Some(row) => table.found(row),
            None if table.is_complete => Found::Missing,
            None => Found::Unknown,
        }
    }

    /// Returns the coordinates in a key; `None` if it is not a chunk's key.
    fn coordinates(&self, key: &str) -> Option<Vec<u32>> {
        if self.ndim == 0 {
            let scalar = if self.prefix.is_empty() { "0" } else { self.prefix.as_str() };
            return (key == scalar).then(Vec::new);
        }
        let numbers = match self.prefix.is_empty() {
            true => key,
            false => key.strip_prefix(&self.prefix)?.strip_prefix(&self.separator)?,
        };
        let found: Option<Vec<u32>> = numbers.split(self.separator.as_str()).map(number).collect();
        found.filter(|found| found.len() == self.ndim)
    }
}

impl Table {
    /// Returns the number of the next object, with memory for `count` of them.
    fn next_object(&mut self, count: usize) -> PyResult<u32> {
        let first = u32::try_from(self.objects.len());
        let end = self.objects.len().checked_add(count).map(u32::try_from);
        self.objects.try_reserve(count).map_err(too_large)?;
        match (first, end) {
            (Ok(first), Some(Ok(_))) => Ok(first),
            _ => Err(PyValueError::new_err("an array has too many objects")),
        }
    }

    /// Returns the number of a target.
    fn target(&mut self, target: &Arc<Target>) -> PyResult<u32> {
        let known = self.targets.iter().rposition(|known| Arc::ptr_eq(known, target));
        let number = known.unwrap_or(self.targets.len());
        if known.is_none() {
            self.targets.push(Arc::clone(target));
        }
        u32::try_from(number).map_err(too_large)
    }

    fn append(&mut self, ndim: usize, coordinates: &[u32], rows: &[Row]) -> PyResult<()> {
        let start = self.rows.len().saturating_sub(1);
        self.coordinates.try_append(coordinates).map_err(too_large)?;
        self.rows.try_append(rows).map_err(too_large)?;
        let count = self.rows.len();
        let is_sorted = (start + 1..count).all(|row| self.key(ndim, row - 1) < self.key(ndim, row));
        if is_sorted {
            return Ok(());
        }
        let mut order = Vec::new();
        order.try_reserve_exact(count).map_err(too_large)?;
        order.extend(0..count);
        // The sort is stable: of two rows with equal coordinates, the later one counts.
        order.sort_by(|&one, &other| self.key(ndim, one).cmp(self.key(ndim, other)));
        let (mut sorted_coordinates, mut sorted_rows) = (Vec::new(), Vec::new());
        sorted_coordinates.try_reserve_exact(self.coordinates.len()).map_err(too_large)?;
        sorted_rows.try_reserve_exact(count).map_err(too_large)?;
        for (place, &row) in order.iter().enumerate() {
            let is_replaced =
                order.get(place + 1).is_some_and(|&next| self.key(ndim, next) == self.key(ndim, row));
            if !is_replaced {
                sorted_coordinates.extend_from_slice(self.key(ndim, row));
                sorted_rows.push(self.rows[row]);
            }
        }
        (self.coordinates, self.rows) = (sorted_coordinates, sorted_rows);
        Ok(())
    }

    /// Returns the coordinates of a row.
    fn key(&self, ndim: usize, row: usize) -> &[u32] {
        &self.coordinates[row * ndim..][..ndim]
    }

    fn position(&self, ndim: usize, wanted: &[u32]) -> Option<usize> {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(ndim, middle).cmp(wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    fn found(&self, row: usize) -> Found {
        let Row { object, offset, nbytes } = self.rows[row];
        match &self.objects[object as usize] {
            Object::Bytes(bytes) => Found::Bytes(Arc::clone(bytes)),
            Object::Named { target, nbytes: length, start } => {
                let name = self.names[*start..][..*length as usize].to_owned();
                Found::ObjectPart {
                    target: Arc::clone(&self.targets[*target as usize]),
                    name,
                    offset,
                    nbytes,
                }
            }
        }
    }
}

/// Parses a number as chunk keys have it: without a sign or leading zeros.
fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

fn numbers<T: Element>(py: Python<'_>, buffer: &PyBuffer<T>) -> PyResult<Vec<T>> {
    buffer.to_vec(py)
}

fn too_large(_: impl std::fmt::Debug) -> PyErr {
    pyo3::exceptions::PyMemoryError::new_err("no memory for the references of an array")
}

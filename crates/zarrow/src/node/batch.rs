//! Reads many selections of one or several arrays as one batch.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::missing::MissingValues;
use crate::node::array::Array;
use crate::place::sink::Sink;
use crate::place::strided::Strided;
use crate::read::batch;
use crate::read::batch::Batch;
use crate::read::chunk_list::Item;
use crate::read::options::ReadOptions;
use crate::selection::Selection;
use zarrow_array::DecodedArray;
use zarrow_array::allocation::{self, Grow};

/// Reads all items. Every chunk is fetched and decoded once for all the items that need it, so they see the same
/// version.
///
/// Items of the same type and shape are returned as one array with a new first axis, others as one array each.
///
/// # Errors
/// As [`Array::read`]; the first error stops all.
///
/// ```no_run
/// # fn example(array: &zarrow::Array, crops: &[zarrow::Selection]) -> zarrow::Result<()> {
/// let items: Vec<_> = crops.iter().map(|crop| (array, crop)).collect();
/// match zarrow::read_many(&items)? {
///     zarrow::Batch::Stacked(batch) => assert_eq!(batch.shape()[0], crops.len() as u64),
///     zarrow::Batch::Ragged(arrays) => assert_eq!(arrays.len(), crops.len()),
/// }
/// # Ok(())
/// # }
/// ```
pub fn read_many(items: &[(&Array, &Selection)]) -> Result<Batch> {
    read_many_with(items, &ReadOptions::default())
}

/// As [`read_many`], with options. If values that mark missing elements are given, each item is an array by itself.
///
/// # Errors
/// As [`Array::read_with`]; the first error stops all.
pub fn read_many_with(items: &[(&Array, &Selection)], options: &ReadOptions<'_>) -> Result<Batch> {
    let mut checked = checked(items)?;
    for item in &mut checked {
        item.reader.missing = options.missing;
    }
    batch::read_many(&checked, options.interrupted()).map_err(|error| place(items, error))
}

/// As [`read_many`], with separate memory for each item, of any type and shape.
///
/// # Errors
/// As [`read_many`].
///
/// ```no_run
/// # fn example(arrays: &[zarrow::Array]) -> zarrow::Result<()> {
/// let all: Vec<_> = arrays.iter().map(|array| zarrow::Selection::all(array.shape())).collect();
/// let items: Vec<_> = arrays.iter().zip(&all).collect();
/// let decoded = zarrow::read_each(&items, &zarrow::ReadOptions::default())?;
/// assert_eq!(decoded.len(), arrays.len());
/// # Ok(())
/// # }
/// ```
pub fn read_each(items: &[(&Array, &Selection)], options: &ReadOptions<'_>) -> Result<Vec<DecodedArray>> {
    let missing: Vec<Option<&MissingValues>> = items.iter().map(|_| options.missing).collect();
    read_each_with(items, &missing, options.interrupted())
}

/// Reads each item into separate memory, in a masked layout if values that mark missing elements are given.
///
/// # Errors
/// As [`read_many`].
pub(crate) fn read_each_with(
    items: &[(&Array, &Selection)],
    missing: &[Option<&MissingValues>],
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<DecodedArray>> {
    let mut checked = checked(items)?;
    for (item, missing) in checked.iter_mut().zip(missing) {
        item.reader.missing = *missing;
    }
    batch::read_each(&checked, interrupted).map_err(|error| place(items, error))
}

/// Reads all items into the caller's memory: item `i` to position `i` of the first axis.
///
/// On an error some of the elements may have been written; nothing outside of `out`'s elements ever is.
///
/// # Errors
/// [`ErrorKind::Index`] if the items differ in shape, [`ErrorKind::Unsupported`] if they are not tensors of one type;
/// and as [`read_many`].
///
/// # Safety
/// As [`Array::read_strided`], for strides with the batch's axis before the others.
pub unsafe fn read_many_strided(
    items: &[(&Array, &Selection)],
    out: &Strided,
    options: &ReadOptions<'_>,
) -> Result<()> {
    let checked = checked(items)?;
    let interrupted = options.strided()?;
    let Some((first, selection)) = items.first() else { return Ok(()) };
    for (array, other) in items {
        if other.shape() != selection.shape() {
            return Err(array.place(
                ErrorKind::Index("the selections differ in shape: out= needs selections of one shape".into())
                    .into(),
            ));
        }
        if array.data_type() != first.data_type() {
            return Err(array.place(
                ErrorKind::Unsupported("reading arrays of different data types into one result".into())
                    .into(),
            ));
        }
    }
    let item_size = first.tensor_item_size()?;
    let sinks = items
        .iter()
        .enumerate()
        // SAFETY: the caller's contract, for each item's part of the memory.
        .map(|(number, (_, own))| Sink::Fixed(unsafe { out.item(number).destination(own, item_size) }));
    let sinks: Vec<Sink<'_>> = allocation::collected(sinks)?;
    batch::read_into(&checked, &sinks, interrupted).map_err(|error| place(items, error))
}

fn checked<'a>(items: &[(&'a Array, &'a Selection)]) -> Result<Vec<Item<'a>>> {
    let mut arrays: Vec<&Array> = Vec::new();
    allocation::try_collected(items.iter().map(|(array, selection)| {
        array.check(selection)?;
        let number = match arrays.iter().position(|known| known.is(array)) {
            Some(known) => known,
            None => {
                arrays.try_push(array)?;
                arrays.len() - 1
            }
        };
        Ok(Item { array: number, reader: array.reader(), selection })
    }))
}

/// Adds store and path if all items are from the same array.
fn place(items: &[(&Array, &Selection)], error: Error) -> Error {
    match items.first() {
        Some((first, _)) if items.iter().all(|(array, _)| array.is(first)) => first.place(error),
        _ => error,
    }
}

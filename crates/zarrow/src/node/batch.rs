//! Reads several requests, of one or several arrays, as one batch.

use crate::error::{Error, ErrorKind, Result};
use crate::node::array::Array;
use crate::node::array::request::ReadRequest;
use crate::place::caller_memory::Strided;
use crate::read::item::Item;
use crate::read::output_memory::ReadTarget;
use crate::read::{self, Batch};
use zarrow_array::allocation::{self, Grow};

/// Reads all requests. Every chunk is fetched and decoded once for all the requests that need it, so they see the same
/// version.
///
/// If all results have the same type and shape, and no mask of chosen values, they are returned as one array with a new
/// first axis, else as one array each.
///
/// # Errors
/// As [`ReadRequest::read`]; the first error stops all.
///
/// ```no_run
/// # fn example(array: &zarrow::Array, crops: &[zarrow::Selection]) -> zarrow::Result<()> {
/// let requests = crops.iter().map(|crop| array.request(crop)).collect::<zarrow::Result<Vec<_>>>()?;
/// match zarrow::read_many(&requests)? {
///     zarrow::Batch::Stacked(batch) => assert_eq!(batch.shape()[0], crops.len() as u64),
///     zarrow::Batch::Ragged(arrays) => assert_eq!(arrays.len(), crops.len()),
/// }
/// # Ok(())
/// # }
/// ```
pub fn read_many(requests: &[ReadRequest<'_>]) -> Result<Batch> {
    let items = items(requests)?;
    let stacked = read::read_stacked(&items, &|| is_cancelled(requests));
    match stacked.map_err(|error| place(requests, error))? {
        Some(batch) => Ok(Batch::Stacked(batch)),
        None => read_items(&items, requests).map(Batch::Ragged),
    }
}

/// Reads all requests, each to its own target.
///
/// # Errors
/// As [`read_many`].
///
/// ```no_run
/// # fn example(arrays: &[zarrow::Array]) -> zarrow::Result<()> {
/// let requests = arrays.iter().map(|array| array.request(..)).collect::<zarrow::Result<Vec<_>>>()?;
/// let decoded = zarrow::read_each(&requests)?;
/// assert_eq!(decoded.len(), arrays.len());
/// # Ok(())
/// # }
/// ```
pub fn read_each<T: ReadTarget>(requests: &[ReadRequest<'_, T>]) -> Result<Vec<T::Output>> {
    read_items(&items(requests)?, requests)
}

/// Returns the requests with `out` as their target: request `i` at position `i` of the first axis.
///
/// # Errors
/// [`ErrorKind::Index`] if the requests differ in shape, [`ErrorKind::Unsupported`] if they differ in type.
///
/// # Safety
/// As [`ReadRequest::out`], for strides with the batch's axis before the others.
pub unsafe fn stacked_out<'r>(
    requests: &'r [ReadRequest<'_>],
    out: &Strided,
) -> Result<Vec<ReadRequest<'r, Strided>>> {
    if let Some((first, others)) = requests.split_first() {
        let shape = first.selection().shape();
        for other in others {
            if other.selection().shape() != shape {
                let text = "the selections differ in shape: out= needs selections of one shape";
                return Err(other.array().place(ErrorKind::Index(text.into()).into()));
            }
            if other.data_type() != first.data_type() {
                let text = "reading arrays of different data types into one result";
                return Err(other.array().place(ErrorKind::Unsupported(text.into()).into()));
            }
        }
    }
    let own = requests.iter().enumerate();
    // SAFETY: the caller's contract, for each request's part of the memory.
    let own = own.map(|(number, request)| unsafe { request.by_ref().out(out.item(number)) });
    Ok(allocation::collected(own)?)
}

fn read_items<'r, T: ReadTarget>(
    items: &[Item<'r>],
    requests: &'r [ReadRequest<'_, T>],
) -> Result<Vec<T::Output>> {
    let targets = requests.iter().map(ReadRequest::target);
    read::read_each(items, targets, &|| is_cancelled(requests)).map_err(|error| place(requests, error))
}

/// Returns the items of the engine, numbered by array and field.
fn items<'r, T>(requests: &'r [ReadRequest<'_, T>]) -> Result<Vec<Item<'r>>> {
    let mut numbered: Vec<&ReadRequest<'_, T>> = Vec::new();
    allocation::try_collected(requests.iter().map(|request| {
        let item = request.item().map_err(|error| request.array().place(error))?;
        let is_same = |known: &&ReadRequest<'_, T>| {
            known.array().is(request.array())
                && match (known.selected_field(), request.selected_field()) {
                    (None, None) => true,
                    (Some(known), Some(field)) => std::ptr::eq(known, field),
                    _ => false,
                }
        };
        let array = match numbered.iter().position(is_same) {
            Some(known) => known,
            None => {
                numbered.try_push(request)?;
                numbered.len() - 1
            }
        };
        Ok(Item { array, ..item })
    }))
}

/// Whether some request's function says to stop. A function that is shared with the first request is called once.
fn is_cancelled<T>(requests: &[ReadRequest<'_, T>]) -> bool {
    let address = |request: &ReadRequest<'_, T>| {
        request.cancel_function().map(|cancel| std::ptr::from_ref::<dyn Fn() -> bool>(cancel).cast::<()>())
    };
    let Some((first, others)) = requests.split_first() else { return false };
    let shared = address(first);
    first.is_cancelled() || others.iter().any(|other| address(other) != shared && other.is_cancelled())
}

/// Adds store and path if all requests are of the same array.
fn place<T>(requests: &[ReadRequest<'_, T>], error: Error) -> Error {
    let first = requests.first().map(ReadRequest::array);
    match first {
        Some(first) if requests.iter().all(|request| Array::is(request.array(), first)) => first.place(error),
        _ => error,
    }
}

//! Resizing arrays, and appending to them.
//!
//! 1. One process at a time changes the shape, under a separate lock: two appends never get the same place.
//! 2. The starting point is the shape in the store at that time, rather than the shape in the caller's handle. The new
//!    shape is set only if the stored shape of the same array has not changed by the end.
//! 3. Growing first clears everything stored beyond the shape: chunks outside the grid, and the rest of the chunks at a
//!    moving edge. A killed writer may have left values there, and so may a writer during a concurrent shrink. So every
//!    element that appears was written to the present array.
//! 4. Shrinking sets the new shape, erases the chunks outside it, and fills the rest of the chunks that it cuts,
//!    because other programs do not clear it when they grow the array. If that fails, the new shape remains.
//! 5. Appending writes the elements first, outside the shape, and then sets the shape: a reader sees either all or none
//!    of the new elements, even if this process is killed. The elements cover the whole new region, so that nothing has
//!    to be cleared before. If appending fails, the written elements are cleared as far as possible.
//! 6. A store with optimistic locks has no lock for step 1: appending sets the shape first there, on the condition that
//!    the document has not changed since it was read, and then fills its own place. Until then, others may see it
//!    empty. If that fails, the array keeps its new shape: another writer may have appended behind it, and a chunk may
//!    still arrive there. The error says which elements may be missing.

use super::ahead;
use super::append_parts::{Parts, within};
use super::attributes::StoredNode;
use super::chunks_outside::{Below, erase_outside, folder, stored_at};
use super::document_names::node_at;
use super::revision;
use crate::error::warnings::warn;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{ArrayMetadata, NodeMetadata};
use crate::node::array::Array;
use crate::selection::{Index, Selection};
use crate::store::remote::AheadStore;
use crate::store::{Lock, MemoryStore, Store, Version, join, until_no_conflict, writer_of};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use zarrow_array::{DecodedArray, allocation};

/// Name of the lock of step 1, below the array's path; it is never a value.
const SHAPE: &str = "shape";

/// Returns the hint after an append that reserved its place but could not fill it.
fn half_appended(axis: usize, start: u64, end: u64) -> String {
    format!(
        "the array has grown, and elements {start} to {end} along axis {axis} may be missing: write them there, or resize the \
         array to {start} before you append them again"
    )
}

/// Reason for an error when the shape has changed since it was read.
const WAS_RESIZED: &str = "was resized";

fn resized() -> Error {
    ErrorKind::Stale(WAS_RESIZED).into()
}

/// Takes the lock of step 1 for the array at `path`.
pub(super) fn shape_lock<'a>(
    store: &'a dyn Store,
    path: &str,
    interrupted: &dyn Fn() -> bool,
) -> Result<Box<dyn Lock + 'a>> {
    let (writer, key) = (writer_of(store)?, join(path, SHAPE));
    let pass = || if interrupted() { Err(ErrorKind::Interrupted.into()) } else { Ok(()) };
    // Step 6: an optimistic lock needs no request.
    if writer.is_optimistic() { writer.lock_to_replace(&key, &pass) } else { writer.lock(&key, &pass) }
}

/// Runs `run` under the locks of step 1 for the arrays at `paths`. Other writers that append to these arrays, or resize
/// them, wait; `run` must not do either. Stores with optimistic locks have no such locks.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path without a node, [`ErrorKind::ReadOnly`], [`ErrorKind::Interrupted`], and errors of
/// the locks.
pub fn with_fixed_shapes<T>(
    store: &dyn Store,
    paths: &[String],
    interrupted: &dyn Fn() -> bool,
    run: impl FnOnce() -> T,
) -> Result<T> {
    // Everybody takes them in this order.
    let sorted: BTreeSet<&String> = paths.iter().collect();
    let lock = |path: &String| match node_at(store, path)? {
        Some(_) => shape_lock(store, path, interrupted),
        // A lock creates a folder, which an erased array does not need.
        None => Err(Error::from(ErrorKind::NotFound).in_array(store.name(), path)),
    };
    let locks: Vec<Box<dyn Lock + '_>> = allocation::try_collected(sorted.into_iter().map(lock))?;
    let result = run();
    drop(locks);
    Ok(result)
}

impl Array {
    /// Sets the shape of the array, with the same number of axes. New elements have the fill value; elements outside
    /// are deleted.
    ///
    /// This handle has the new shape afterwards; other handles get it when they are opened again or refreshed. Growing
    /// lists the stored chunks, and reads those at a moving edge; [`append`](Array::append) does neither, so prefer it
    /// if the new elements are available.
    ///
    /// # Errors
    /// [`ErrorKind::Metadata`] for a shape with another number of axes, or too large; [`ErrorKind::Unsupported`] for a
    /// shape beyond the edges of a rectilinear grid; [`ErrorKind::ReadOnly`], [`ErrorKind::Write`],
    /// [`ErrorKind::NotFound`] if the array has been erased, [`ErrorKind::Stale`] if it has been replaced,
    /// [`ErrorKind::Interrupted`], and errors of chunks at the new edge. If shrinking fails, handle and store may
    /// already have the new shape. A chunk at the new edge that cannot be decoded is left unchanged.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([100, 8], zarrow_array::Number::Int16).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let mut array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// array.resize(&[150, 8])?;
    /// assert_eq!(array.shape(), [150, 8]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn resize(&mut self, shape: &[u64]) -> Result<()> {
        self.resize_with(shape, &self.write_options())
    }

    /// Sets the shape as [`resize`](Array::resize) does, with options for writing the chunks at the new edge and for
    /// interruption.
    ///
    /// # Errors
    /// As [`resize`](Array::resize); [`ErrorKind::Interrupted`].
    pub fn resize_with(&mut self, shape: &[u64], options: &WriteOptions<'_>) -> Result<()> {
        // Shrinking lists the chunks only after the shape is set: others may add chunks after an earlier list.
        let grows = shape.iter().zip(self.shape()).any(|(new, old)| new > old);
        let chunks = grows.then(|| folder(self));
        let resized = self.with_documents(false, chunks, |array| array.resize_stored(shape, options));
        resized.map_err(|error| self.place(error))
    }

    /// Extends the array along `axis` by the extent of `values`, and writes them there. Along the other axes `values`
    /// must be as long as the array. Returns the start of the new elements along the axis.
    ///
    /// Concurrent appends, also from other processes, run one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for values of another shape, and for an invalid axis; and the errors of
    /// [`resize`](Array::resize) and [`write`](Array::write). After an error the array has its old shape; in an object
    /// store it may have grown, and the error's hint says so.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([2], zarrow::Number::Int16).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let mut array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// assert_eq!(array.append(&[5i16, 6, 7], 0)?, 2);
    /// assert_eq!(array.read(..)?.into_tensor()?.as_slice::<i16>()?, [0, 0, 5, 6, 7]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn append<'v, V: TryInto<Values<'v>>>(&mut self, values: V, axis: usize) -> Result<u64>
    where
        Error: From<V::Error>,
    {
        let values = values.try_into().map_err(|error| self.place(Error::from(error)))?;
        self.append_with(&values, axis, &self.write_options())
    }

    /// Appends as [`append`](Array::append) does, with options.
    ///
    /// # Errors
    /// As [`append`](Array::append); [`ErrorKind::Interrupted`].
    pub fn append_with(
        &mut self,
        values: &Values<'_>,
        axis: usize,
        options: &WriteOptions<'_>,
    ) -> Result<u64> {
        self.append_stored(values, axis, options, None).map_err(|error| self.place(error))
    }

    /// Appends as [`append_with`](Array::append_with) does, and writes numbers part by part. Readers still see all new
    /// elements or none.
    ///
    /// # Errors
    /// As [`append_with`](Array::append_with); [`ErrorKind::Interrupted`] if a report says so.
    pub fn append_in_parts(
        &mut self,
        values: &Values<'_>,
        axis: usize,
        options: &WriteOptions<'_>,
        parts: &Parts<'_>,
    ) -> Result<u64> {
        self.append_stored(values, axis, options, Some(parts)).map_err(|error| self.place(error))
    }

    /// Reads the metadata again, so that the handle matches the store.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn refresh(&mut self) -> Result<()> {
        let number = revision::present();
        let found = crate::node::node_documents::read_metadata(
            &**self.store(),
            self.path(),
            &self.options().limits.metadata,
        );
        let refreshed = found.and_then(|found| match found {
            NodeMetadata::Array(found) if found.has_layout_of(self.metadata()) => {
                Ok(self.renewed(found, number).with_document())
            }
            NodeMetadata::Array(found) => {
                Array::new(Arc::clone(self.store()), self.path().to_owned(), found, self.options())
                    .map(Array::with_document)
            }
            NodeMetadata::Group(_) => {
                let (expected, found) = ("an array", "a group");
                Err(ErrorKind::WrongNode { expected, found }.into())
            }
        });
        *self = refreshed.map_err(|error| self.place(error))?;
        Ok(())
    }

    /// Removes what a failed writer stored behind the end of the array: whole chunks, and elements of its last chunks as
    /// far as `shape` reaches. Growing does the same. In a store with optimistic locks, no other writer may append.
    ///
    /// # Errors
    /// As [`resize`](Array::resize).
    pub fn clear_behind(&self, shape: &[u64], options: &WriteOptions<'_>) -> Result<()> {
        let cleared = self.with_shape(shape).and_then(|longer| longer.clear_outside(options));
        cleared.map_err(|error| self.place(error))
    }

    /// Removes values written outside an array that has been made smaller: the chunks outside it, and elements of its
    /// last chunks within this handle's shape. The caller excludes changes of the shape.
    pub(super) fn clear_outside(&self, options: &WriteOptions<'_>) -> Result<()> {
        let store = Arc::clone(self.store());
        let _lock = shape_lock(&*store, self.path(), options.interrupted())?;
        let stored = self.stored()?;
        stored.in_its_place()?.clear_beyond(self.shape(), options)
    }

    fn resize_stored(&mut self, shape: &[u64], options: &WriteOptions<'_>) -> Result<()> {
        let ndim = self.shape().len();
        if shape.len() != ndim {
            let text = format!("expected an extent for each of the {ndim} axes to resize to, got {shape:?}");
            return Err(ErrorKind::Shape(text).into());
        }
        // A lock creates a folder, which an erased array does not need.
        self.stored()?;
        let store = Arc::clone(self.store());
        let path = self.path().to_owned();
        let _lock = shape_lock(&*store, &path, options.interrupted())?;
        let before = self.stored()?;
        let (place, version) = before.found_place()?;
        let after = place.with_shape(shape)?;
        let grown = if shape.iter().zip(before.shape()).any(|(new, old)| new > old) {
            place.clear_beyond(shape, options)
        } else {
            Ok(())
        };
        let is_smaller = shape.iter().zip(before.shape()).any(|(new, old)| new < old);
        // A store that needs documents first hides the chunks outside the shape: they are erased before it shrinks.
        let erases_first = is_smaller && writer_of(&*store)?.needs_documents_first();
        *self = grown
            .and_then(|()| if erases_first { erase_outside(&after, &Below::new(&after)) } else { Ok(()) })
            .and_then(|()| before.set_shape(shape, &place))
            .map_err(|error| before.reason(&place, Some(version), error))?;
        if is_smaller {
            erase_outside(&after, &Below::new(&after))
                .and_then(|()| place.fill_cut(shape, options))
                .map_err(|error| before.reason(&place, None, error))?;
        }
        Ok(())
    }

    /// Returns the array as seen through its present folder, and the version of its document there.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if another writer erased it.
    fn found_place(&self) -> Result<(Array, Version)> {
        let place = self.in_its_place()?;
        match place.version()? {
            Version::Missing => Err(ErrorKind::NotFound.into()),
            version => Ok((place, version)),
        }
    }

    /// Does `work` on this array. For a remote store, requests its documents together first (`ahead`), with a list of
    /// all keys below `listed`.
    fn with_documents<T>(
        &mut self,
        may_recall: bool,
        listed: Option<String>,
        work: impl FnOnce(&mut Array) -> Result<T>,
    ) -> Result<T> {
        let (origin, path) = (Arc::clone(self.store()), self.path().to_owned());
        let (zarr_format, limits) = (self.metadata().zarr_format, &self.options().limits.metadata);
        let ahead = ahead::for_change(&*origin, &path, zarr_format, limits, may_recall, listed);
        let Some(ahead) = ahead else { return work(self) };
        let mut array = self.moved(Arc::new(ahead), path.clone());
        let done = work(&mut array);
        *self = array.moved(origin, path);
        done
    }

    /// Step 6: starts again if another writer has changed the shape.
    fn append_stored(
        &mut self,
        values: &Values<'_>,
        axis: usize,
        options: &WriteOptions<'_>,
        parts: Option<&Parts<'_>>,
    ) -> Result<u64> {
        let store = Arc::clone(self.store());
        let is_optimistic = writer_of(&*store)?.is_optimistic();
        let pass = || if (options.interrupted())() { Err(ErrorKind::Interrupted.into()) } else { Ok(()) };
        let has_elements = values.shape().get(axis).is_some_and(|added| *added > 0);
        // A place is reserved only once: the inner result ends the attempts.
        until_no_conflict(&pass, || {
            self.with_documents(has_elements, None, |array| {
                array.append_once(values, axis, options, is_optimistic, parts)
            })
        })?
    }

    fn append_once(
        &mut self,
        values: &Values<'_>,
        axis: usize,
        options: &WriteOptions<'_>,
        is_optimistic: bool,
        parts: Option<&Parts<'_>>,
    ) -> Result<Result<u64>> {
        self.stored()?;
        let store = Arc::clone(self.store());
        let path = self.path().to_owned();
        let _lock = shape_lock(&*store, &path, options.interrupted())?;
        let before = self.stored()?;
        let mut shape = before.shape().to_vec();
        let refused = || {
            let text = format!(
                "values of shape {:?} cannot be appended to shape {:?} along axis {axis}",
                values.shape(),
                shape
            );
            Error::from(ErrorKind::Index(text))
        };
        let fits = values.shape().len() == shape.len()
            && values.shape().iter().zip(&shape).enumerate().all(|(at, (new, old))| at == axis || new == old);
        if !fits && AheadStore::doubt(&*store) {
            return Err(ErrorKind::Conflict.into());
        }
        let added = values.shape().get(axis).filter(|_| fits).ok_or_else(refused)?;
        let start = shape[axis];
        let end = start.checked_add(*added).ok_or_else(refused)?;
        shape[axis] = end;
        let (place, version) = before.found_place()?;
        let after = place.with_shape(&shape)?;
        if *added == 0 {
            *self = before;
            return Ok(Ok(start));
        }
        let write = || after.write_end(values, axis, start, options, parts);
        if is_optimistic {
            // Reserve the place before filling it, so that concurrent appends get separate places.
            let appended = before.set_shape(&shape, &place).map_err(|error| match error.kind() {
                ErrorKind::Stale(_) => ErrorKind::Conflict.into(),
                _ => error,
            })?;
            return Ok(match write() {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Stale(_)) => Err(error),
                written => {
                    *self = appended;
                    let hint = || half_appended(axis, start, end);
                    written.map(|()| start).map_err(|error| error.with_first_hint(hint()))
                }
            });
        }
        let written = write();
        let is_written = written.is_ok();
        match written.and_then(|()| before.set_shape(&shape, &place)) {
            Ok(appended) => *self = appended,
            Err(error) => match place.stored() {
                Ok(stored) if stored.shape() == before.shape() => {
                    let error = before.reason(&place, Some(version), error);
                    let _ = place.clear_beyond(&shape, &options.without_cancel());
                    return Ok(Err(error));
                }
                // Only a step after the new shape failed. An error would make the caller append again.
                Ok(stored) if is_written && stored.shape() == shape => {
                    warn(format!("the elements are appended, but: {}", self.place(error)));
                    *self = before.renewed(stored.metadata().clone(), stored.revision());
                }
                _ => {
                    let error = before.reason(&place, Some(version), error);
                    return Ok(Err(if is_written {
                        error.with_hint(
                            "the elements may have been appended: check the shape before you append again",
                        )
                    } else {
                        error
                    }));
                }
            },
        }
        Ok(Ok(start))
    }

    /// Step 2: returns the stored array, if it is still the array of this handle.
    fn stored(&self) -> Result<Array> {
        let number = revision::present();
        match self.stored_node().read()? {
            NodeMetadata::Array(found) => Ok(self.renewed(found, number)),
            NodeMetadata::Group(_) => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Returns the handle with another shape.
    pub(crate) fn with_shape(&self, shape: &[u64]) -> Result<Array> {
        let metadata = ArrayMetadata { shape: shape.to_vec(), ..self.metadata().clone() };
        metadata.check(&self.options().limits.metadata)?;
        Ok(self.renewed(metadata, self.revision()))
    }

    /// Sets only the shape in the document, if the stored shape is still that of this handle, and the stored array
    /// still the one in `place`.
    fn set_shape(&self, shape: &[u64], place: &Array) -> Result<Array> {
        let node = StoredNode { array: Some(self.metadata()), ..self.stored_node() };
        let (metadata, number) = node.change(|held, found| {
            self.check_place(place)?;
            match found {
                NodeMetadata::Array(found) if found.shape == self.shape() => {
                    node.update_node(held, |document| {
                        // Under optimistic locks, the document may have been replaced by now.
                        let own: Option<Value> = serde_json::from_slice(document.as_bytes()).ok();
                        let own = own.as_ref().and_then(|document| document.get("shape"));
                        if own != Some(&json!(self.shape())) {
                            return Err(resized());
                        }
                        Ok(document.set("shape", &json!(shape))?)
                    })
                }
                _ => Err(resized()),
            }
        })?;
        match metadata {
            NodeMetadata::Array(metadata) => Ok(self.renewed(metadata, number)),
            NodeMetadata::Group(_) => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Step 3, before the array gets the shape `shape`.
    fn clear_beyond(&self, shape: &[u64], options: &WriteOptions<'_>) -> Result<()> {
        let below = Below::new(self);
        erase_outside(self, &below)?;
        let grid = &self.metadata().chunk_grid;
        // `reach` extends to the end of the chunks with the last elements, or to the new shape if that is nearer.
        let (mut edge, mut reach) = (vec![None; shape.len()], self.shape().to_vec());
        for (axis, (new, old)) in shape.iter().zip(self.shape()).enumerate() {
            let Some(last) = old.checked_sub(1) else { continue };
            let index = grid.locate(axis, last);
            let (start, length) = grid.chunk_extent(axis, index);
            let end = start.saturating_add(length).min(*new);
            if end > *old {
                (edge[axis], reach[axis]) = (Some(index), end);
            }
        }
        if edge.iter().all(Option::is_none) {
            return Ok(());
        }
        let reaching = self.with_shape(&reach)?;
        let fill = self.fill_element()?;
        let (values, options) = (Values::decoded(&fill)?, options.write_empty_chunks(false));
        for chunk_index in stored_at(self, &below, &edge)? {
            for (axis, edge) in
                edge.iter().enumerate().filter(|(axis, edge)| **edge == Some(chunk_index[*axis]))
            {
                debug_assert!(edge.is_some());
                let selection = reaching.within_chunk(&chunk_index, axis, self.shape()[axis])?;
                if !reaching.is_filled(&selection, &fill, options.interrupted())? {
                    reaching.clear_elements(&selection, &values, &options)?;
                }
            }
        }
        Ok(())
    }

    /// Selects the elements of the chunk at `chunk_index`, along `axis` only those from `start` on.
    fn within_chunk(&self, chunk_index: &[u64], axis: usize, start: u64) -> Result<Selection> {
        let bound = |extent: u64| i64::try_from(extent).ok();
        let slices = chunk_index.iter().enumerate().map(|(at, index)| {
            let (first, length) = self.metadata().chunk_grid.chunk_extent(at, *index);
            let stop = first.saturating_add(length).min(self.shape()[at]);
            let first = if at == axis { start } else { first };
            Index::Slice { start: bound(first), stop: bound(stop), step: None }
        });
        Selection::new(self.shape(), &slices.collect::<Vec<_>>())
    }

    /// Whether all stored elements of the selection have the fill value, as far as a quick check can show.
    fn is_filled(
        &self,
        selection: &Selection,
        fill: &DecodedArray,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let DecodedArray::Tensor(fill) = fill else { return Ok(false) };
        let found = match self.request(selection).and_then(|request| request.cancel(interrupted).read()) {
            Err(error) if error.is_of_stored_bytes() => return Ok(false),
            found => found?,
        };
        let DecodedArray::Tensor(found) = found else { return Ok(false) };
        let item = fill.bytes();
        Ok(item.is_empty() || found.bytes().chunks_exact(item.len()).all(|found| found == item))
    }

    /// Step 4: fills the part outside of `shape` in the chunks at the new edge.
    fn fill_cut(&self, shape: &[u64], options: &WriteOptions<'_>) -> Result<()> {
        let fill = self.fill_element()?;
        let (values, options) = (Values::decoded(&fill)?, options.write_empty_chunks(false));
        let mut kept = self.shape().to_vec();
        for (axis, extent) in shape.iter().enumerate() {
            let grid = &self.metadata().chunk_grid;
            if extent < &kept[axis] && *extent > 0 {
                let (start, length) = grid.chunk_extent(axis, grid.locate(axis, extent - 1));
                let end = start.saturating_add(length).min(kept[axis]);
                if *extent < end {
                    let mut region = kept.clone();
                    region[axis] = end;
                    let selection = within(self.shape(), &region, axis, *extent)?;
                    self.clear_elements(&selection, &values, &options)?;
                }
            }
            // Elements outside along this axis are now filled or erased.
            kept[axis] = kept[axis].min(*extent);
        }
        Ok(())
    }

    /// Returns one element with the fill value, read from an array without stored chunks.
    fn fill_element(&self) -> Result<DecodedArray> {
        let mut metadata = self.metadata().clone();
        metadata.shape = vec![1; metadata.shape.len()];
        let empty = Arc::new(MemoryStore::default());
        let array = Array::new(empty, String::new(), metadata, self.options())?;
        array.read(..)
    }
}

//! Other shapes of an array: resized, and appended to.
//!
//! 1. One at a time changes the shape, under a lock of its own: two who append do not get the same place.
//! 2. The shape is that which the store has then, and not what the caller's handle knows.
//! 3. Shrinking sets the new shape first, then erases the chunks outside of it and fills the rest of those that it cuts.
//!    A process that is killed in between leaves an array of the new shape whose old elements show only where it is made
//!    larger again.
//! 4. Appending writes the elements first, outside of the shape, and then sets the shape: who reads sees all of them or
//!    none, also where this process is killed.

use super::consolidate;
use super::document::writer;
use super::outside::erase_outside;
use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Values;
use crate::metadata::{ArrayMetadata, NodeMetadata};
use crate::open::read_metadata;
use crate::options::WriteOptions;
use crate::selection::{Index, Selection};
use crate::store::{Lock, MemoryStore, join};

use serde_json::json;
use std::sync::Arc;

/// What the lock of step 1 is named, below the array's path; it is no value.
const SHAPE: &str = "shape";

impl Array {
    /// Makes the array of another shape, of as many axes. New elements have the fill value, those outside are gone.
    ///
    /// This handle has the new shape then; others have it when they are opened anew or refreshed.
    ///
    /// # Errors
    /// [`ErrorKind::Metadata`] for a shape of other axes, or too large; [`ErrorKind::Unsupported`] for one beyond the
    /// edges of a rectilinear grid; [`ErrorKind::ReadOnly`], [`ErrorKind::Write`], [`ErrorKind::NotFound`] where the
    /// array was erased meanwhile, [`ErrorKind::Interrupted`], and what chunks give that are cut.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([100, 8], zarrow_array::Number::Int16).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let mut array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// array.resize(&[150, 8], &|| false)?;
    /// assert_eq!(array.shape(), [150, 8]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn resize(&mut self, shape: &[u64], interrupted: &dyn Fn() -> bool) -> Result<()> {
        let resized = self.resized(shape, interrupted).map_err(|error| self.place(error))?;
        *self = resized;
        Ok(())
    }

    /// Makes the array longer along `axis` by as much as `values` are, and writes them there. Along the other axes they
    /// are as long as the array. Returns where along the axis they begin.
    ///
    /// Two who append at once, in other processes too, append one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for values of another shape, and no such axis; and as [`resize`](Array::resize) and
    /// [`write`](Array::write). The array has its old shape then.
    pub fn append(
        &mut self,
        values: &Values<'_>,
        axis: usize,
        options: &WriteOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let appended = self.appended(values, axis, options, interrupted);
        let (appended, start) = appended.map_err(|error| self.place(error))?;
        *self = appended;
        Ok(start)
    }

    /// Reads the metadata again, so that the array is as the store has it now.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn refresh(&mut self) -> Result<()> {
        let refreshed = self.stored().map_err(|error| self.place(error))?;
        *self = refreshed;
        Ok(())
    }

    fn resized(&self, shape: &[u64], interrupted: &dyn Fn() -> bool) -> Result<Array> {
        let _lock = self.shape_lock(interrupted)?;
        let before = self.stored()?;
        let after = before.with_shape(shape)?;
        after.set_shape()?;
        if shape.iter().zip(before.shape()).any(|(new, old)| new < old) {
            erase_outside(&after)?;
            before.fill_cut(shape, interrupted)?;
        }
        Ok(after)
    }

    fn appended(
        &self,
        values: &Values<'_>,
        axis: usize,
        options: &WriteOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(Array, u64)> {
        let _lock = self.shape_lock(interrupted)?;
        let before = self.stored()?;
        let mut shape = before.shape().to_vec();
        let refused = || {
            let text = format!(
                "values of shape {:?} do not go behind {:?} along axis {axis}",
                values.shape(),
                shape
            );
            Error::from(ErrorKind::Index(text))
        };
        let fits = values.shape().len() == shape.len()
            && values.shape().iter().zip(&shape).enumerate().all(|(at, (new, old))| at == axis || new == old);
        let added = values.shape().get(axis).filter(|_| fits).ok_or_else(refused)?;
        let start = shape[axis];
        let end = start.checked_add(*added).ok_or_else(refused)?;
        shape[axis] = end;
        let after = before.with_shape(&shape)?;
        if *added > 0 {
            let selection = selection(&shape, axis, start, end)?;
            after.write(&selection, values, options, interrupted)?;
            after.set_shape()?;
        }
        Ok((after, start))
    }

    /// Step 1.
    fn shape_lock(&self, interrupted: &dyn Fn() -> bool) -> Result<Box<dyn Lock + '_>> {
        // A lock makes a folder for itself, which an array that is gone does not need.
        self.stored()?;
        writer(&**self.store())?.lock(&join(self.path(), SHAPE), &|| {
            if interrupted() { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
        })
    }

    /// Step 2.
    fn stored(&self) -> Result<Array> {
        match read_metadata(&**self.store(), self.path(), &self.options().limits.metadata)? {
            NodeMetadata::Array(metadata) => self.with_metadata(metadata),
            NodeMetadata::Group(_) => {
                let (expected, found) = ("an array", "a group");
                Err(ErrorKind::WrongNode { expected, found }.into())
            }
        }
    }

    fn with_metadata(&self, metadata: ArrayMetadata) -> Result<Array> {
        Array::new(Arc::clone(self.store()), self.path().to_owned(), metadata, self.options())
    }

    fn with_shape(&self, shape: &[u64]) -> Result<Array> {
        let mut metadata = self.metadata().clone();
        metadata.shape = shape.to_vec();
        metadata.check(&self.options().limits.metadata)?;
        self.with_metadata(metadata)
    }

    /// Sets the shape in the document, and nothing else of it.
    fn set_shape(&self) -> Result<()> {
        self.stored_node().update_node(|document| {
            document.set("shape", &json!(self.shape()))?;
            Ok(())
        })?;
        consolidate::refresh(&**self.store(), self.path(), self.options())
    }

    /// Step 3: fills what is outside of `shape` in the chunks that it cuts.
    fn fill_cut(&self, shape: &[u64], interrupted: &dyn Fn() -> bool) -> Result<()> {
        let fill = self.fill_element(interrupted)?;
        let values = Values::decoded(&fill)?;
        let options = WriteOptions { durability: self.options().durability, ..WriteOptions::default() };
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
                    self.write(&selection, &values, &options, interrupted)?;
                }
            }
            // What is outside along this axis is filled or gone now.
            kept[axis] = kept[axis].min(*extent);
        }
        Ok(())
    }

    /// One element, which has the fill value: one of an array of which nothing is stored.
    fn fill_element(&self, interrupted: &dyn Fn() -> bool) -> Result<zarrow_array::DecodedArray> {
        let mut metadata = self.metadata().clone();
        metadata.shape = vec![1; metadata.shape.len()];
        let empty = Arc::new(MemoryStore::default());
        let array = Array::new(empty, String::new(), metadata, self.options())?;
        array.read(&Selection::all(array.shape()), interrupted)
    }
}

/// All of an array of `shape`, but along `axis` from `start` to `end`.
fn selection(shape: &[u64], axis: usize, start: u64, end: u64) -> Result<Selection> {
    let mut region = shape.to_vec();
    region[axis] = end;
    within(shape, &region, axis, start)
}

/// The elements of an array of `shape` before `end` on each axis, and from `start` on along `axis`.
fn within(shape: &[u64], end: &[u64], axis: usize, start: u64) -> Result<Selection> {
    let bound = |extent: u64| i64::try_from(extent).ok();
    let slices = end.iter().enumerate().map(|(at, end)| {
        let start = if at == axis { start } else { 0 };
        Index::Slice { start: bound(start), stop: bound(*end), step: None }
    });
    Selection::new(shape, &slices.collect::<Vec<_>>())
}

//! Appends that are written part by part, with a report after each.
//!
//! 1. Parts end at edges of chunks or shards, so that none is written twice.
//! 2. All parts are written before the array has its new shape, or after its place is reserved, as without parts.
//! 3. Strings and bytes are one part.

use crate::error::{ErrorKind, Result};
use crate::node::array::Array;
use crate::selection::{Index, Selection};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::fmt;

/// How an append is divided into parts.
pub struct Parts<'a> {
    /// Size of a part in bytes, rounded to whole chunks or shards.
    pub nbytes: u64,
    /// Called after each part but the last, with the number of new rows that are written and of all. If it returns
    /// true, the append ends.
    pub report: &'a dyn Fn(u64, u64) -> bool,
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Parts").field("nbytes", &self.nbytes).finish_non_exhaustive()
    }
}

impl Array {
    /// Writes the last elements along an axis, from `start` on.
    pub(super) fn write_end(
        &self,
        values: &Values<'_>,
        axis: usize,
        start: u64,
        options: &WriteOptions<'_>,
        parts: Option<&Parts<'_>>,
    ) -> Result<()> {
        let end = self.shape()[axis];
        let step = parts.map_or(u64::MAX, |parts| self.rows_of_part(axis, parts.nbytes));
        let mut from = start;
        while from < end {
            let to = from.saturating_add(step);
            let mut to = end.min(to - to % self.unit_along(axis));
            let part = (from, to) != (start, end);
            let part = part.then(|| values.part(axis, from - start, to - start)).flatten();
            to = if part.is_some() { to } else { end };
            let selection = selection(self.shape(), axis, from, to)?;
            self.write_elements(&selection, part.as_ref().unwrap_or(values), None, options)?;
            if to < end && parts.is_some_and(|parts| (parts.report)(to - start, end - start)) {
                return Err(ErrorKind::Interrupted.into());
            }
            from = to;
        }
        Ok(())
    }

    /// Returns the number of rows along an axis in a part of about `nbytes` bytes: whole chunks or shards.
    fn rows_of_part(&self, axis: usize, nbytes: u64) -> u64 {
        let others = self.shape().iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, extent)| *extent);
        let item = self.data_type().item_size().unwrap_or(1) as u64;
        let row = others.fold(item, u64::saturating_mul).max(1);
        let unit = self.unit_along(axis);
        (nbytes / row / unit).max(1).saturating_mul(unit)
    }

    /// Returns the extent of a chunk or shard along an axis; 1 in a rectilinear grid.
    fn unit_along(&self, axis: usize) -> u64 {
        self.write_unit().and_then(|unit| unit.get(axis).copied()).unwrap_or(1).max(1)
    }
}

/// Selects all of an array of `shape`, but along `axis` only from `start` to `end`.
fn selection(shape: &[u64], axis: usize, start: u64, end: u64) -> Result<Selection> {
    let mut region = shape.to_vec();
    region[axis] = end;
    within(shape, &region, axis, start)
}

/// Selects the elements of an array of `shape` before `end` on each axis, and from `start` on along `axis`.
pub(super) fn within(shape: &[u64], end: &[u64], axis: usize, start: u64) -> Result<Selection> {
    let bound = |extent: u64| i64::try_from(extent).ok();
    let slices = end.iter().enumerate().map(|(at, end)| {
        let start = if at == axis { start } else { 0 };
        Index::Slice { start: bound(start), stop: bound(*end), step: None }
    });
    Selection::new(shape, &slices.collect::<Vec<_>>())
}

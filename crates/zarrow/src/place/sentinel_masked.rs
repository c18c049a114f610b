//! Elements with sentinel values that mark missing elements, and the mask derived from them.
//!
//! 1. Elements are placed as usual.
//! 2. When the elements of a chunk, or of an inner one, are in place and still in the processor's caches, each run of
//!    them is compared with the values, and the mask is written. The mask has the same layout as the elements.
//! 3. A missing chunk is one value, and so is its mask.

use crate::error::{ErrorKind, Result};
use crate::metadata::missing_values::MissingValues;
use crate::place::destination::Destination;
use crate::place::read_bitmap::{Bitmap, pack};
use crate::plan::axis_part::AxisPart;

/// The memory of elements and of their mask.
pub struct SentinelMasked<'a> {
    /// The elements.
    pub data: Destination<'a>,
    /// One byte per element, in the same order.
    pub missing: Destination<'a>,
    /// The same mask as an Arrow bitmap.
    pub bitmap: Option<Bitmap<'a>>,
    /// The sentinel values.
    pub values: &'a MissingValues,
}

impl SentinelMasked<'_> {
    /// Computes the mask for the elements of `part` (step 2).
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the mask's layout differs from the elements' layout.
    ///
    /// # Safety
    /// The elements of the part have been written, and during the call no other code writes to them or to their mask.
    pub unsafe fn mark(&self, part: &[AxisPart<'_>]) -> Result<()> {
        let item_size = self.data.item_size();
        if item_size == 0 {
            // SAFETY: the caller's contract.
            return unsafe { self.fill_mask(part, &[]) };
        }
        let mut mark = |at: usize, elements: &[u8]| {
            // SAFETY: the run's places in the mask belong to the part's elements.
            let places = unsafe { self.missing.zeroed(at / item_size, elements.len() / item_size) };
            places.map(|places| self.values.mark(elements, places)).is_some()
        };
        // SAFETY: the caller's contract.
        if !unsafe { self.data.each_run(part, &mut mark) } {
            return Err(ErrorKind::Internal("the mask and the elements differ in layout".into()).into());
        }
        // SAFETY: each element of the part is in one of the runs, and the masks of all runs were written.
        unsafe { pack(&self.bitmap, &self.missing, part) };
        Ok(())
    }

    /// Sets every element of `part` to `item` (step 3).
    ///
    /// # Safety
    /// During the call no other code writes to an element of the part, or to its mask.
    pub unsafe fn fill(&self, part: &[AxisPart<'_>], item: &[u8]) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe {
            self.data.fill(part, item)?;
            self.fill_mask(part, item)
        }
    }

    /// # Safety
    /// As [`fill`](SentinelMasked::fill).
    unsafe fn fill_mask(&self, part: &[AxisPart<'_>], item: &[u8]) -> Result<()> {
        // SAFETY: the caller's contract; the mask is written before it is packed.
        unsafe {
            self.missing.fill(part, &[u8::from(self.values.contain(item))])?;
            pack(&self.bitmap, &self.missing, part);
        }
        Ok(())
    }
}

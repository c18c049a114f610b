//! Numbers of another type than the array's, cast one by one on their way into a chunk.
//!
//! 1. A number is read in the byte order of the caller's memory.
//! 2. It is cast by NumPy's rules: floats are rounded, and overflow to infinity; integers that do not fit keep their
//!    low bits. The caller decides beforehand whether such losses are allowed.
//! 3. It is stored in the chunk's byte order.

use crate::codec::Swap;
use crate::codec::array_to_array::element::{Element, computable, not_computable, with_element};
use crate::error::Result;
use crate::place::axis::Axis;
use crate::place::placement::visit;
use zarrow_array::{DataType, Number};

/// A conversion from one number type to another.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    from: Number,
    to: Number,
    /// Size of the resulting number in bytes.
    pub item_size: usize,
    /// Whether the numbers in memory are in non-native byte order.
    pub is_swapped: bool,
}

impl Cast {
    /// Creates the cast between two types.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if either type is not an integer, a bool or a float of
    /// 16 bits or more.
    pub fn new(from: &DataType, to: &DataType, is_swapped: bool) -> Result<Cast> {
        let (from, to) = (computable(from)?, computable(to)?);
        let item_size = with_element!(to, T => T::SIZE).ok_or_else(not_computable)?;
        Ok(Cast { from, to, item_size, is_swapped })
    }

    /// Casts the numbers at all positions of `axes`, and byte-swaps the results as `stored` says.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal), which [`new`](Cast::new) rules out.
    ///
    /// # Safety
    /// As [`copy`](crate::place::placement::copy), with a separate number size on each side.
    pub unsafe fn copy(
        &self,
        stored: &Swap,
        axes: &[Axis<'_>],
        source: *const u8,
        destination: *mut u8,
    ) -> Result<()> {
        let swaps = (self.is_swapped, *stored != Swap::None);
        let numbers =
            with_element!(self.from, T => with_element!(self.to, U => numbers::<T, U> as CopyNumbers));
        let numbers = numbers.flatten().ok_or_else(not_computable)?;
        // SAFETY: passed on from the caller.
        unsafe { numbers(swaps, axes, source, destination) };
        Ok(())
    }
}

/// [`numbers`] of two types.
type CopyNumbers = unsafe fn((bool, bool), &[Axis<'_>], *const u8, *mut u8);

/// Size of the largest number in bytes.
const LARGEST_NBYTES: usize = 8;

/// # Safety
/// As [`Cast::copy`].
unsafe fn numbers<T: Element, U: Element>(
    (is_swapped, turns): (bool, bool),
    axes: &[Axis<'_>],
    source: *const u8,
    destination: *mut u8,
) {
    let one = |from: *const u8, to: *mut u8| {
        let (mut given, mut made) = ([0; LARGEST_NBYTES], [0; LARGEST_NBYTES]);
        let (given, made) = (&mut given[..T::SIZE], &mut made[..U::SIZE]);
        // SAFETY: a number of this size can be read at each position of the source.
        unsafe { std::ptr::copy_nonoverlapping(from, given.as_mut_ptr(), T::SIZE) };
        if is_swapped {
            given.reverse();
        }
        U::cast(T::read(given).wide()).write(made);
        if turns {
            made.reverse();
        }
        // SAFETY: a number of this size can be written at each position of the destination.
        unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), to, U::SIZE) };
    };
    // SAFETY: passed on from the caller.
    unsafe { visit((T::SIZE, U::SIZE), axes, source, destination, &one) }
}

//! Transposition: moves between a source and a destination that are contiguous along different axes.
//!
//! 1. The two axes are cut into square tiles, with as many elements on a side as fill a cache line. The rows of a tile
//!    are whole lines of the source, its columns whole lines of the destination.
//! 2. The rows are copied next to each other and transposed in registers. Each line is touched once on either side, so
//!    that lines a power of two apart do not evict each other.
//! 3. Tiles go along the axis that is contiguous in the larger memory.
//! 4. Columns that begin at a line are written past the caches, if the result is too large for them.
//! 5. The caller moves the elements outside full tiles.

use crate::place::axis::Axis;
use crate::place::nontemporal_copy;
use crate::place::nontemporal_copy::LINE_NBYTES;
use std::ops::Range;

/// Two axes: one is contiguous in the destination, the other in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    /// Positions on the axis that is contiguous in the destination.
    pub rows: usize,
    /// Bytes from one row to the next in the source.
    pub row_step: isize,
    /// Positions on the axis that is contiguous in the source.
    pub columns: usize,
    /// Bytes from one column to the next in the destination.
    pub column_step: isize,
}

impl Plane {
    /// Takes the plane's two axes out of `axes`, if there are such axes and a tile fits.
    pub fn take<'a>(axes: &[Axis<'a>], item_size: usize) -> Option<(Plane, Vec<Axis<'a>>)> {
        if !item_size.is_power_of_two() || item_size > 16 {
            return None;
        }
        let (step, side) = (item_size as isize, LINE_NBYTES / item_size);
        let row = axes.iter().position(
            |axis| matches!(axis, Axis::Even { count, destination, .. } if *destination == step && *count >= side),
        )?;
        let column = axes.iter().position(
            |axis| matches!(axis, Axis::Even { count, source, .. } if *source == step && *count >= side),
        )?;
        let (
            Axis::Even { count: rows, source: row_step, .. },
            Axis::Even { count: columns, destination, .. },
        ) = (axes[row], axes[column])
        else {
            return None;
        };
        let outer = axes.iter().enumerate().filter(|(at, _)| *at != row && *at != column);
        let plane = Plane { rows, row_step, columns, column_step: destination };
        (row != column).then(|| (plane, outer.map(|(_, axis)| *axis).collect()))
    }

    /// Returns the section of the plane covered by tiles, and whether tiles begin at lines. The first tile begins at a
    /// line of the `destination` (step 4), or at its start if not every column can begin at a line.
    pub fn tiled(&self, item_size: usize, destination: *const u8) -> (Range<usize>, Range<usize>, bool) {
        let side = LINE_NBYTES / item_size;
        let head = destination.align_offset(LINE_NBYTES);
        let on_lines = self.column_step % LINE_NBYTES as isize == 0 && head.is_multiple_of(item_size);
        let first = if on_lines { (head / item_size).min(self.rows) } else { 0 };
        let last = first + (self.rows - first) / side * side;
        (first..last, 0..self.columns / side * side, on_lines)
    }
}

/// Moves the elements of the tiles beginning at `rows` and `columns`, as returned by [`Plane::tiled`], byte-swapped if
/// `SWAPPED`; bypasses the caches if `past_caches`.
///
/// # Safety
/// `SIZE` bytes are readable in the source and writable in the destination at all positions of the plane; the memories do
/// not overlap. Where `past_caches` is set, every column begins at a line for `rows`, and [`nontemporal_copy::finish`] is called
/// before another thread reads the destination.
pub unsafe fn transpose<const SIZE: usize, const SWAPPED: bool>(
    plane: &Plane,
    (rows, columns): (Range<usize>, Range<usize>),
    source: *const u8,
    destination: *mut u8,
    past_caches: bool,
) {
    let side = LINE_NBYTES / SIZE;
    let tile = |row: usize, column: usize| {
        let from = source.wrapping_offset(row as isize * plane.row_step).wrapping_add(column * SIZE);
        let to = destination.wrapping_offset(column as isize * plane.column_step).wrapping_add(row * SIZE);
        // SAFETY: `side` rows and `side` columns from here on are positions of the plane.
        unsafe { move_tile::<SIZE, SWAPPED>(from, plane.row_step, to, plane.column_step, past_caches) }
    };
    // Step 3.
    if plane.row_step.unsigned_abs() > plane.column_step.unsigned_abs() {
        for row in rows.step_by(side) {
            columns.clone().step_by(side).for_each(|column| tile(row, column));
        }
    } else {
        for column in columns.step_by(side) {
            rows.clone().step_by(side).for_each(|row| tile(row, column));
        }
    }
}

/// The maximum number of lines of a tile.
const MOST_LINES: usize = LINE_NBYTES;

/// A tile's rows, one line after the other.
#[repr(C, align(64))]
struct Lines([[u8; LINE_NBYTES]; MOST_LINES]);

/// Step 2.
///
/// # Safety
/// As [`transpose`], for one tile.
#[inline(always)]
unsafe fn move_tile<const SIZE: usize, const SWAPPED: bool>(
    source: *const u8,
    row_step: isize,
    destination: *mut u8,
    column_step: isize,
    past_caches: bool,
) {
    let side = LINE_NBYTES / SIZE;
    let mut lines = std::mem::MaybeUninit::<Lines>::uninit();
    let start = lines.as_mut_ptr().cast::<[u8; LINE_NBYTES]>();
    for row in 0..side {
        // SAFETY: the row is a line's worth of elements of the source, and `side` lines fit.
        unsafe {
            let mut line =
                source.wrapping_offset(row as isize * row_step).cast::<[u8; LINE_NBYTES]>().read_unaligned();
            if SWAPPED {
                line.as_chunks_mut::<SIZE>().0.iter_mut().for_each(|item| item.reverse());
            }
            start.add(row).write(line);
        }
    }
    // SAFETY: the lines that are read were written above, and the columns are the caller's.
    unsafe { registers::columns::<SIZE>(start, destination, column_step, past_caches) }
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use super::LINE_NBYTES;
    use std::arch::x86_64::*;

    /// Size of a register in bytes.
    const WIDTH: usize = 16;

    /// Writes the columns of the tile, one line each.
    ///
    /// # Safety
    /// `LINE_NBYTES / SIZE` lines can be read, and as many written, `column_step` bytes apart; to multiples of 64 where they go
    /// past the caches.
    #[inline(always)]
    pub unsafe fn columns<const SIZE: usize>(
        lines: *const [u8; LINE_NBYTES],
        destination: *mut u8,
        column_step: isize,
        past_caches: bool,
    ) {
        // Squares with one register of elements per side: four squares are as wide as a line.
        let side = WIDTH / SIZE;
        for across in 0..LINE_NBYTES / WIDTH {
            // SAFETY: all registers are read and written within the lines.
            unsafe {
                let mut squares = [[_mm_setzero_si128(); WIDTH]; LINE_NBYTES / WIDTH];
                for (down, square) in squares.iter_mut().enumerate() {
                    for (row, register) in square.iter_mut().take(side).enumerate() {
                        *register =
                            lines.add(down * side + row).cast::<__m128i>().add(across).read_unaligned();
                    }
                    *square = turned::<SIZE>(*square);
                }
                for column in 0..side {
                    let step = (across * side + column) as isize * column_step;
                    let line = destination.wrapping_offset(step).cast::<__m128i>();
                    for (down, square) in squares.iter().enumerate() {
                        match past_caches {
                            true => _mm_stream_si128(line.add(down), square[column]),
                            false => _mm_storeu_si128(line.add(down), square[column]),
                        }
                    }
                }
            }
        }
    }

    /// Transposes a square: as often as its side can be halved, each row of the upper half is interleaved with the
    /// same row of the lower half.
    #[inline(always)]
    fn turned<const SIZE: usize>(square: [__m128i; WIDTH]) -> [__m128i; WIDTH] {
        let side = WIDTH / SIZE;
        let mut square = square;
        for _ in 0..side.ilog2() {
            let mut next = square;
            for row in 0..side / 2 {
                (next[2 * row], next[2 * row + 1]) = interleaved::<SIZE>(square[row], square[row + side / 2]);
            }
            square = next;
        }
        square
    }

    #[inline(always)]
    fn interleaved<const SIZE: usize>(a: __m128i, b: __m128i) -> (__m128i, __m128i) {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe {
            match SIZE {
                1 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
                2 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
                4 => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
                _ => (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod registers {
    use super::LINE_NBYTES;

    /// Writes the columns of the tile, one line each.
    ///
    /// # Safety
    /// `LINE_NBYTES / SIZE` lines can be read, and as many written, `column_step` bytes apart.
    #[inline(always)]
    pub unsafe fn columns<const SIZE: usize>(
        lines: *const [u8; LINE_NBYTES],
        destination: *mut u8,
        column_step: isize,
        _past_caches: bool,
    ) {
        let items = lines.cast::<[u8; SIZE]>();
        let side = LINE_NBYTES / SIZE;
        for column in 0..side {
            let line = destination.wrapping_offset(column as isize * column_step).cast::<[u8; SIZE]>();
            for row in 0..side {
                // SAFETY: the caller's contract.
                unsafe { line.add(row).write_unaligned(*items.add(row * side + column)) }
            }
        }
    }
}

/// Orders the cache-bypassing stores before all later ones.
pub fn finish(past_caches: bool) {
    if past_caches {
        nontemporal_copy::finish();
    }
}

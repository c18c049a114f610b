//! Strings and bytes from many chunks into one pair of buffers.
//!
//! 1. Each decoded chunk is kept with its selected part, because the result's size is unknown until every chunk is
//!    decoded.
//! 2. Usually each chunk gives one run of the result. Then the runs' sizes determine the start of each run, and one
//!    parallel pass over all chunks writes offsets and bytes, and checks the text.
//! 3. Otherwise a first pass writes each element's length to its place among the offsets, a prefix sum turns lengths
//!    into offsets, and a second pass copies the bytes.

use crate::codec::VariableChunk;
use crate::error::{Error, ErrorKind, Result};
use crate::place::destination::Disjoint;
use crate::place::element_offsets::StridedLayout;
use crate::plan::axis_part::{AxisPart, is_whole};
use crate::plan::output_strides::{OutputStrides, c_strides};
use crate::pool;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::allocation::{self, Grow};
use zarrow_array::fork::{Mutex, ProcessMutex};
use zarrow_array::{Buffer, DataType, UninitBuffer, Variable};

/// Size of an offset in bytes.
const OFFSET_NBYTES: usize = size_of::<i64>();

/// Gathers the chunks of a read. The items of a batch share it.
#[derive(Default)]
pub struct VariableSink {
    pieces: Arc<Mutex<Vec<Piece>>>,
    /// Distance in elements between positions of an item on each axis.
    strides: OutputStrides,
    /// The first element of the item.
    base: usize,
}

/// A chunk's selected elements, in the C order of its part.
struct Piece {
    elements: PieceElements,
    /// The elements' positions in the result.
    places: StridedLayout,
    count: usize,
    /// Index of the first element, if they are one run of the result.
    run: Option<usize>,
}

enum PieceElements {
    /// A whole chunk.
    Stored(Arc<VariableChunk>),
    /// Selected elements only; the rest of the chunk is dropped.
    Selected { data: Vec<u8>, lengths: Vec<u32> },
    /// The fill value, for a missing chunk.
    Fill,
    /// Empty values, where all elements are missing.
    Empty,
}

impl VariableSink {
    /// The sink of the item of `shape` that begins with element `base` of the batch.
    pub fn at(&self, base: usize, shape: &[u64]) -> VariableSink {
        VariableSink { pieces: Arc::clone(&self.pieces), strides: c_strides(shape, 1).into(), base }
    }

    /// Keeps the elements of `part` from a chunk of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the elements are out of bounds of chunk or result, which a checked plan rules out.
    pub fn add(&self, chunk: &Arc<VariableChunk>, shape: &[u64], part: &[AxisPart<'_>]) -> Result<()> {
        if is_whole(part, shape) && chunk.is_sequential() {
            return self.push(PieceElements::Stored(Arc::clone(chunk)), part);
        }
        let (mut data, mut lengths) = (Vec::new(), Vec::new());
        let positions = StridedLayout::in_chunk(part, 0, &c_strides(shape, 1))?.ok_or_else(outside)?;
        lengths.make_room(element_count(part))?;
        for position in positions.iter().take(element_count(part)) {
            let element = chunk.element(position.unsigned_abs())?;
            data.try_append(element)?;
            // A chunk has less than 4 GiB.
            lengths.try_push(element.len() as u32)?;
        }
        self.push(PieceElements::Selected { data, lengths }, part)
    }

    /// Keeps the fill value for `part`.
    pub fn add_fill(&self, part: &[AxisPart<'_>]) -> Result<()> {
        self.push(PieceElements::Fill, part)
    }

    /// Keeps elements without bytes.
    pub fn add_empty(&self, part: &[AxisPart<'_>]) -> Result<()> {
        self.push(PieceElements::Empty, part)
    }

    fn push(&self, elements: PieceElements, part: &[AxisPart<'_>]) -> Result<()> {
        let base = isize::try_from(self.base).ok();
        let places =
            StridedLayout::in_output(part, base.ok_or_else(outside)?, &self.strides)?.ok_or_else(outside)?;
        let (count, run) = (element_count(part), places.run(1).map(|_| places.first.unsigned_abs()));
        let piece = Piece { elements, places, count, run };
        Ok(self.pieces.lock().try_push(piece)?)
    }

    /// The array of all pieces of the batch, which cover `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] if memory is short or text is not UTF-8, [`ErrorKind::Interrupted`].
    pub fn finish(
        self,
        shape: Vec<u64>,
        dtype: DataType,
        fill: &[u8],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Variable> {
        let mut pieces = std::mem::take(&mut *self.pieces.lock());
        let count = zarrow_array::shape::nbytes(&shape, 1)?;
        pieces.sort_unstable_by_key(|piece| piece.run);
        let mut next = 0usize;
        let tiled = pieces.iter().all(|piece| {
            let follows = piece.run == Some(next);
            next += piece.count;
            follows
        });
        if tiled && next == count {
            return join(&pieces, (count, shape), dtype, fill, interrupted);
        }
        let (offsets, data) = scatter(&pieces, count, fill, interrupted)?;
        Ok(Variable::new(offsets, data, shape, dtype)?)
    }
}

/// A result's bytes for one piece: its offsets (but the first) and its data.
type Places<'a> = (&'a mut [[MaybeUninit<u8>; OFFSET_NBYTES]], &'a mut [MaybeUninit<u8>]);

/// Step 2.
fn join(
    pieces: &[Piece],
    (count, shape): (usize, Vec<u64>),
    dtype: DataType,
    fill: &[u8],
    interrupted: &dyn Fn() -> bool,
) -> Result<Variable> {
    let too_long = || zarrow_array::Error::OutOfMemory { nbytes: usize::MAX };
    let add = |sum: usize, piece: &Piece| sum.checked_add(piece.payload_nbytes(fill)?);
    let total = pieces.iter().try_fold(0usize, add).ok_or_else(too_long)?;
    let mut offsets = UninitBuffer::new(zarrow_array::shape::nbytes(&[count as u64 + 1], OFFSET_NBYTES)?)?;
    let mut data = UninitBuffer::new(total)?;

    let (first, mut words) = offsets.as_mut_slice().as_chunks_mut::<OFFSET_NBYTES>().0.split_at_mut(1);
    first[0] = 0i64.to_ne_bytes().map(MaybeUninit::new);
    let mut bytes = data.as_mut_slice();
    let mut places: Vec<ProcessMutex<Option<(usize, Places<'_>)>>> = allocation::with_capacity(pieces.len())?;
    let mut base = 0usize;
    for piece in pieces {
        let (piece_words, more_words) = words.split_at_mut(piece.count);
        let (piece_bytes, more_bytes) = bytes.split_at_mut(piece.payload_nbytes(fill).unwrap_or(0));
        (words, bytes) = (more_words, more_bytes);
        let start = base;
        base += piece_bytes.len();
        places.try_push(ProcessMutex::new(Some((start, (piece_words, piece_bytes)))))?;
    }
    pool::run(pieces.len() as u64, pool::num_threads(), interrupted, &|number, _, _| {
        let piece = &pieces[number as usize];
        let taken = places[number as usize].lock()?.take();
        let Some((start, (words, bytes))) = taken else {
            return Err(ErrorKind::Internal("a piece without a place".into()).into());
        };
        let mut at = 0usize;
        piece.unpack(fill, bytes, |end| {
            words[at] = ((start + end) as i64).to_ne_bytes().map(MaybeUninit::new);
            at += 1;
        });
        // SAFETY: unpacking writes the payload, as long as `bytes`, to the last byte, and calls once for each of the
        // piece's elements, as many as `words`.
        let (bytes, words) = unsafe { (bytes.assume_init_ref(), words.as_flattened().assume_init_ref()) };
        let first = piece.run.unwrap_or(0);
        if dtype == DataType::String { check_utf8(bytes, words, start, first) } else { Ok(()) }
    })?;
    drop(places);
    // SAFETY: the pieces' places tile both buffers, and each was filled to the last byte. The offsets are running
    // sums of lengths, which end at the data's length, and `check_utf8` accepted each piece of text.
    Ok(unsafe { Variable::new_unchecked(offsets.assume_init(), data.assume_init(), shape, dtype) })
}

/// Checks that the elements of a piece are UTF-8, each by itself: the whole is, and none starts inside a character.
fn check_utf8(bytes: &[u8], words: &[u8], start: usize, first: usize) -> Result<()> {
    let ends = || {
        words.as_chunks::<OFFSET_NBYTES>().0.iter().map(|word| (i64::from_ne_bytes(*word) as usize) - start)
    };
    let refused = |byte: usize| {
        let index = first + ends().take_while(|end| *end <= byte).count();
        Error::from(zarrow_array::Error::NotUtf8 { index })
    };
    let text = std::str::from_utf8(bytes).map_err(|error| refused(error.valid_up_to()))?;
    if text.is_ascii() {
        return Ok(());
    }
    match ends().find(|end| !text.is_char_boundary(*end)) {
        Some(end) => Err(refused(end.saturating_sub(1))),
        None => Ok(()),
    }
}

/// Step 3.
fn scatter(
    pieces: &[Piece],
    count: usize,
    fill: &[u8],
    interrupted: &dyn Fn() -> bool,
) -> Result<(Buffer, Buffer)> {
    let too_long = || zarrow_array::Error::OutOfMemory { nbytes: usize::MAX };
    let each = |task: &(dyn Fn(&Piece) -> Result<()> + Sync)| {
        pool::run(pieces.len() as u64, pool::num_threads(), interrupted, &|number, _, _| {
            task(&pieces[number as usize])
        })
    };
    let mut offsets = Buffer::zeroed(zarrow_array::shape::nbytes(&[count as u64 + 1], OFFSET_NBYTES)?)?;
    let words = &mut offsets.as_chunks_mut::<OFFSET_NBYTES>().0[1..];
    let places = Disjoint::new(words);
    each(&|piece| {
        piece.for_each(fill, &mut |element, output| {
            let length = (element.len() as i64).to_ne_bytes();
            // SAFETY: each element of the result belongs to one piece, since the claims that gave them had none in
            // common, and each piece is one task.
            unsafe { places.set(output, length) }
        })
    })?;
    let mut sum = 0i64;
    for word in words {
        sum = sum.checked_add(i64::from_ne_bytes(*word)).ok_or_else(too_long)?;
        *word = sum.to_ne_bytes();
    }
    let mut data = UninitBuffer::new(usize::try_from(sum).map_err(|_| too_long())?)?;
    let starts = offsets.as_i64()?;
    let places = Disjoint::new(data.as_mut_slice());
    each(&|piece| {
        piece.for_each(fill, &mut |element, output| {
            // SAFETY: as above, and elements' bytes do not overlap, being running sums of their lengths.
            unsafe { places.copy(starts[output] as usize, element) }
        })
    })?;
    // SAFETY: the pieces cover every element of the result, and the elements' lengths sum up to the buffer's, so
    // that the copies above have written every byte.
    Ok((offsets, unsafe { data.assume_init() }))
}

impl Piece {
    /// Returns the total size in bytes of all elements; `None` on overflow.
    fn payload_nbytes(&self, fill: &[u8]) -> Option<usize> {
        match &self.elements {
            PieceElements::Stored(chunk) => Some(chunk.payload_nbytes()),
            PieceElements::Selected { data, .. } => Some(data.len()),
            PieceElements::Fill => fill.len().checked_mul(self.count),
            PieceElements::Empty => Some(0),
        }
    }

    /// Writes all elements one after the other to `data`, of their exact total length, and calls `end` with the end of
    /// each.
    fn unpack(&self, fill: &[u8], data: &mut [MaybeUninit<u8>], mut end: impl FnMut(usize)) {
        match &self.elements {
            PieceElements::Stored(chunk) => chunk.unpack(data, end),
            PieceElements::Selected { data: selected, lengths } => {
                data.write_copy_of_slice(selected);
                let mut at = 0usize;
                for length in lengths {
                    at += *length as usize;
                    end(at);
                }
            }
            PieceElements::Fill => {
                for number in 0..self.count {
                    let at = number * fill.len();
                    data[at..at + fill.len()].write_copy_of_slice(fill);
                    end(at + fill.len());
                }
            }
            PieceElements::Empty => (0..self.count).for_each(|_| end(0)),
        }
    }

    /// Calls `each` with every element and its number in the result.
    fn for_each(&self, fill: &[u8], each: &mut dyn FnMut(&[u8], usize) -> Result<()>) -> Result<()> {
        let mut places = self.places.iter();
        let mut each = |element: &[u8]| {
            let place = places.next().and_then(|place| usize::try_from(place).ok()).ok_or_else(outside)?;
            each(element, place)
        };
        match &self.elements {
            PieceElements::Stored(chunk) => chunk.for_each(&mut each),
            PieceElements::Selected { data, lengths } => {
                let mut rest = &data[..];
                lengths.iter().try_for_each(|length| {
                    let (element, more) = rest.split_at(*length as usize);
                    rest = more;
                    each(element)
                })
            }
            PieceElements::Fill => (0..self.count).try_for_each(|_| each(fill)),
            PieceElements::Empty => (0..self.count).try_for_each(|_| each(&[])),
        }
    }
}

/// The number of elements of a part; it cannot overflow, since they fit into memory.
fn element_count(part: &[AxisPart<'_>]) -> usize {
    part.iter().map(|axis| axis.count as usize).product()
}

/// Error for a chunk and a result that do not match, which the plan rules out.
fn outside() -> ErrorKind {
    ErrorKind::Internal("a part exceeds its chunk or output".into())
}

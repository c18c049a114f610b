//! Strings and bytes from many chunks into one pair of buffers.
//!
//! 1. While chunks are decoded, each is kept with the part of it that is wanted: how long the result is is not
//!    known before all are there.
//! 2. Mostly, each chunk gives one run of the result. Then the runs' sizes say where each begins, and one pass over
//!    all chunks at once writes offsets and bytes, and checks the text.
//! 3. Otherwise a first pass writes each element's length to its place among the offsets, these are summed up, and
//!    a second pass copies the bytes.

use crate::codec::VariableChunk;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::destination::Disjoint;
use crate::exec::part::AxisPart;
use crate::exec::pool;
use crate::exec::sink::c_strides;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};
use zarrow_array::{Buffer, DataType, UninitBuffer, Variable};

/// Bytes of an offset.
const WORD: usize = size_of::<i64>();

/// Gathers the chunks of a read. The items of a batch share what they gather.
#[derive(Clone)]
pub struct VariableSink {
    pieces: Arc<Mutex<Vec<Piece>>>,
    /// Elements from one position of an item to the next on each axis.
    strides: Arc<[usize]>,
    /// The first element of the item.
    base: usize,
}

/// What one chunk gives.
struct Piece {
    elements: Elements,
    /// Elements from one position to the next on each axis of the chunk.
    strides: Vec<usize>,
    part: Vec<AxisPart>,
    /// The first element of the item.
    base: usize,
    /// The first element and their number, where they are one run of the result and all of the chunk in order.
    run: Option<(usize, usize)>,
}

enum Elements {
    Chunk(Arc<VariableChunk>),
    /// The fill value, for a chunk that is not stored.
    Fill,
    /// Nothing, for elements that are missing.
    Empty,
}

impl VariableSink {
    /// A sink for an item of `shape`, the first of its batch.
    pub fn new(shape: &[u64]) -> VariableSink {
        VariableSink { pieces: Arc::default(), strides: element_strides(shape).into(), base: 0 }
    }

    /// The sink of the item that begins with element `base` of the batch.
    pub fn at(&self, base: usize) -> VariableSink {
        VariableSink { base, ..self.clone() }
    }

    /// Keeps the elements of `part` from a chunk of `shape`.
    pub fn add(&self, chunk: Arc<VariableChunk>, shape: &[u64], part: &[AxisPart]) {
        let whole = part.iter().zip(shape).all(|(axis, extent)| axis.step == 1 && axis.count == *extent);
        let run = if whole && chunk.is_sequential() { self.run(part) } else { None };
        self.push(Elements::Chunk(chunk), element_strides(shape), part, run);
    }

    /// Keeps the fill value for `part`.
    pub fn add_fill(&self, part: &[AxisPart]) {
        self.push(Elements::Fill, vec![0; part.len()], part, None);
    }

    /// Keeps elements without bytes.
    pub fn add_empty(&self, part: &[AxisPart]) {
        self.push(Elements::Empty, vec![0; part.len()], part, None);
    }

    fn push(&self, elements: Elements, strides: Vec<usize>, part: &[AxisPart], run: Option<(usize, usize)>) {
        let piece = Piece { elements, strides, part: part.to_vec(), base: self.base, run };
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }

    /// The first element and the number of those that `part` fills, where they follow one another.
    fn run(&self, part: &[AxisPart]) -> Option<(usize, usize)> {
        let (mut first, mut count) = (self.base, 1usize);
        for axis in part.iter().rev() {
            let stride = axis.output.and_then(|output| self.strides.get(output).copied());
            first += usize::try_from(axis.place).ok()? * stride.unwrap_or(0);
            if axis.count != 1 {
                if axis.reversed || stride != Some(count) {
                    return None;
                }
                count = count.checked_mul(usize::try_from(axis.count).ok()?)?;
            }
        }
        Some((first, count))
    }

    /// The array of all pieces of the batch, which cover `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where memory is short or text is not UTF-8, [`ErrorKind::Interrupted`].
    pub fn finish(
        self,
        shape: Vec<u64>,
        dtype: DataType,
        fill: &[u8],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Variable> {
        let mut pieces = std::mem::take(&mut *self.pieces.lock().unwrap_or_else(PoisonError::into_inner));
        let count = zarrow_array::shape::nbytes(&shape, 1)?;
        pieces.sort_unstable_by_key(|piece| piece.run);
        let mut next = 0usize;
        let tiled = pieces.iter().all(|piece| match piece.run {
            Some((first, length)) if first == next => {
                next += length;
                true
            }
            _ => false,
        });
        if tiled && next == count {
            return join(&pieces, count, shape, dtype, interrupted);
        }
        let (offsets, data) = scatter(&pieces, count, &self.strides, fill, interrupted)?;
        Ok(Variable::new(offsets, data, shape, dtype)?)
    }
}

/// A result's bytes for one piece: its offsets (but the first) and its data.
type Places<'a> = (&'a mut [[MaybeUninit<u8>; WORD]], &'a mut [MaybeUninit<u8>]);

/// Step 2.
fn join(
    pieces: &[Piece],
    count: usize,
    shape: Vec<u64>,
    dtype: DataType,
    interrupted: &dyn Fn() -> bool,
) -> Result<Variable> {
    let payload = |piece: &Piece| match &piece.elements {
        Elements::Chunk(chunk) => chunk.payload_nbytes(),
        Elements::Fill | Elements::Empty => 0,
    };
    let too_long = || zarrow_array::Error::OutOfMemory { nbytes: usize::MAX };
    let total =
        pieces.iter().try_fold(0usize, |sum, piece| sum.checked_add(payload(piece))).ok_or_else(too_long)?;
    let mut offsets = UninitBuffer::new(zarrow_array::shape::nbytes(&[count as u64 + 1], WORD)?)?;
    let mut data = UninitBuffer::new(total)?;

    let (first, mut words) = offsets.as_mut_slice().as_chunks_mut::<WORD>().0.split_at_mut(1);
    first[0] = 0i64.to_ne_bytes().map(MaybeUninit::new);
    let mut bytes = data.as_mut_slice();
    let mut places: Vec<Mutex<Option<(usize, Places<'_>)>>> = Vec::with_capacity(pieces.len());
    let mut base = 0usize;
    for piece in pieces {
        let (piece_words, more_words) = words.split_at_mut(piece.run.map_or(0, |(_, length)| length));
        let (piece_bytes, more_bytes) = bytes.split_at_mut(payload(piece));
        (words, bytes) = (more_words, more_bytes);
        let start = base;
        base += piece_bytes.len();
        places.push(Mutex::new(Some((start, (piece_words, piece_bytes)))));
    }
    pool::run(pieces.len() as u64, pool::num_threads(), interrupted, &|number, _| {
        let number = number as usize;
        let taken = places[number].lock().unwrap_or_else(PoisonError::into_inner).take();
        match (taken, &pieces[number].elements) {
            (Some((start, (words, bytes))), Elements::Chunk(chunk)) => {
                let mut at = 0usize;
                chunk.unpack(bytes, |end| {
                    words[at] = ((start + end) as i64).to_ne_bytes().map(MaybeUninit::new);
                    at += 1;
                });
                // SAFETY: unpacking writes the payload, of which `bytes` has the length, to the last byte, and
                // calls once for each of the chunk's elements, of which `words` has the number.
                let (bytes, words) =
                    unsafe { (bytes.assume_init_ref(), words.as_flattened().assume_init_ref()) };
                let first = pieces[number].run.map_or(0, |(first, _)| first);
                if dtype == DataType::String { check_utf8(bytes, words, start, first) } else { Ok(()) }
            }
            _ => Err(ErrorKind::Internal("a run without a chunk".into()).into()),
        }
    })?;
    drop(places);
    // SAFETY: the pieces' places tile both buffers, and each was filled to the last byte. The offsets are running
    // sums of lengths, which end at the data's length, and `check_utf8` accepted each piece of text.
    Ok(unsafe { Variable::new_unchecked(offsets.assume_init(), data.assume_init(), shape, dtype) })
}

/// Checks that the elements of a piece are UTF-8, each by itself: the whole is, and none starts inside a character.
fn check_utf8(bytes: &[u8], words: &[u8], start: usize, first: usize) -> Result<()> {
    let ends = || words.as_chunks::<WORD>().0.iter().map(|word| (i64::from_ne_bytes(*word) as usize) - start);
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
    strides: &[usize],
    fill: &[u8],
    interrupted: &dyn Fn() -> bool,
) -> Result<(Buffer, Buffer)> {
    let too_long = || zarrow_array::Error::OutOfMemory { nbytes: usize::MAX };
    let each = |task: &(dyn Fn(&Piece) -> Result<()> + Sync)| {
        pool::run(pieces.len() as u64, pool::num_threads(), interrupted, &|number, _| {
            task(&pieces[number as usize])
        })
    };
    let mut offsets = Buffer::zeroed(zarrow_array::shape::nbytes(&[count as u64 + 1], WORD)?)?;
    let words = &mut offsets.as_chunks_mut::<WORD>().0[1..];
    let places = Disjoint::new(words);
    each(&|piece| {
        piece.for_each(strides, &mut |source, output| {
            places.set(output, (piece.element(source, fill).len() as i64).to_ne_bytes())
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
        piece.for_each(strides, &mut |source, output| {
            places.copy(starts[output] as usize, piece.element(source, fill))
        })
    })?;
    // SAFETY: the pieces cover every element of the result, and the elements' lengths sum up to the buffer's, so
    // that the copies above have written every byte.
    Ok((offsets, unsafe { data.assume_init() }))
}

impl Piece {
    fn element<'a>(&'a self, index: usize, fill: &'a [u8]) -> &'a [u8] {
        match &self.elements {
            Elements::Chunk(chunk) => chunk.element(index),
            Elements::Fill => fill,
            Elements::Empty => &[],
        }
    }

    /// Calls `each` with every wanted element's number in the chunk and in the result, in C order.
    fn for_each(
        &self,
        output_strides: &[usize],
        each: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        fn axes(
            part: &[AxisPart],
            strides: &[usize],
            output_strides: &[usize],
            (source, output): (usize, usize),
            each: &mut dyn FnMut(usize, usize) -> Result<()>,
        ) -> Result<()> {
            let (Some((axis, part)), Some((stride, strides))) = (part.split_first(), strides.split_first())
            else {
                return each(source, output);
            };
            let output_stride = match axis.output {
                Some(number) => *output_strides.get(number).ok_or_else(outside)?,
                None => 0,
            };
            for k in 0..axis.count {
                let from = source + (axis.start + k * axis.step) as usize * stride;
                let place = if axis.reversed { axis.place - k } else { axis.place + k };
                axes(part, strides, output_strides, (from, output + place as usize * output_stride), each)?;
            }
            Ok(())
        }
        axes(&self.part, &self.strides, output_strides, (0, self.base), each)
    }
}

fn outside() -> crate::error::Error {
    ErrorKind::Internal("a part lies outside its output".into()).into()
}

/// Elements from one position to the next on each axis of a C-contiguous array in memory.
fn element_strides(shape: &[u64]) -> Vec<usize> {
    c_strides(shape, 1).into_iter().map(isize::unsigned_abs).collect()
}

//! Strings and bytes from many chunks into one pair of buffers.
//!
//! 1. While chunks are decoded, each is kept with the part of it that is wanted: how long the result is is not
//!    known before all are there.
//! 2. Each chunk's lengths go to their places among the offsets, all chunks at once.
//! 3. One pass sums the lengths up to offsets, checked.
//! 4. Each chunk's elements are copied to their places, all chunks at once.

use crate::codec::VariableChunk;
use crate::error::{ErrorKind, Result};
use crate::exec::destination::Disjoint;
use crate::exec::part::AxisPart;
use crate::exec::pool;
use std::sync::{Mutex, PoisonError};
use zarrow_array::{Buffer, UninitBuffer};

/// Gathers the chunks of a read.
#[derive(Default)]
pub struct VariableSink {
    pieces: Mutex<Vec<Piece>>,
}

/// What one chunk gives.
struct Piece {
    elements: Elements,
    /// Elements from one position to the next on each axis of the chunk.
    strides: Vec<usize>,
    part: Vec<AxisPart>,
}

enum Elements {
    Chunk(VariableChunk),
    /// The fill value, for a chunk that is not stored.
    Fill,
    /// Nothing, for elements that are missing.
    Empty,
}

impl VariableSink {
    /// Keeps the elements of `part` from a chunk of `shape`, or the fill value for a chunk that is not stored.
    pub fn add(&self, chunk: Option<VariableChunk>, shape: &[u64], part: &[AxisPart]) {
        let strides = match chunk {
            // A decoded chunk has all its elements in memory, so that their number fits.
            Some(_) => super::sink::c_strides(shape, 1).into_iter().map(isize::unsigned_abs).collect(),
            None => vec![0; part.len()],
        };
        self.push(Piece {
            elements: chunk.map_or(Elements::Fill, Elements::Chunk),
            strides,
            part: part.to_vec(),
        });
    }

    /// Keeps elements without bytes.
    pub fn add_empty(&self, part: &[AxisPart]) {
        self.push(Piece { elements: Elements::Empty, strides: vec![0; part.len()], part: part.to_vec() });
    }

    fn push(&self, piece: Piece) {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }

    /// The offsets and the bytes of a result of `shape`, which the pieces cover.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] where memory is short, [`ErrorKind::Interrupted`].
    pub fn finish(
        self,
        shape: &[u64],
        fill: &[u8],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(Buffer, Buffer)> {
        let pieces = self.pieces.into_inner().unwrap_or_else(PoisonError::into_inner);
        let count = zarrow_array::shape::nbytes(shape, 1)?;
        let nbytes = zarrow_array::shape::nbytes(&[count as u64 + 1], size_of::<i64>())?;
        let mut lengths: Vec<i64> = Vec::new();
        lengths.try_reserve_exact(count).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
        lengths.resize(count, 0);
        let output_strides: Vec<usize> =
            super::sink::c_strides(shape, 1).into_iter().map(isize::unsigned_abs).collect();

        let places = Disjoint::new(&mut lengths);
        pool::run(pieces.len() as u64, interrupted, &|number, _| {
            let piece = &pieces[number as usize];
            piece.for_each(&output_strides, &mut |source, output| {
                let length = piece.element(source, fill).len() as i64;
                places.set(output, length)
            })
        })?;

        let mut offsets = Buffer::zeroed(nbytes)?;
        let mut sum = 0i64;
        for (place, length) in offsets.as_chunks_mut::<8>().0[1..].iter_mut().zip(&lengths) {
            sum = sum.checked_add(*length).ok_or(zarrow_array::Error::OutOfMemory { nbytes: usize::MAX })?;
            *place = sum.to_ne_bytes();
        }
        drop(lengths);

        let total =
            usize::try_from(sum).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes: usize::MAX })?;
        let mut data = UninitBuffer::new(total)?;
        let starts = offsets.as_i64()?;
        let places = Disjoint::new(data.as_mut_slice());
        pool::run(pieces.len() as u64, interrupted, &|number, _| {
            let piece = &pieces[number as usize];
            piece.for_each(&output_strides, &mut |source, output| {
                places.copy(starts[output] as usize, piece.element(source, fill))
            })
        })?;
        // SAFETY: the pieces cover every element of the result, and the elements' lengths sum up to the buffer's,
        // so that the copies above have written every byte.
        Ok((offsets, unsafe { data.assume_init() }))
    }
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
        axes(&self.part, &self.strides, output_strides, (0, 0), each)
    }
}

fn outside() -> crate::error::Error {
    ErrorKind::Internal("a part lies outside its output".into()).into()
}

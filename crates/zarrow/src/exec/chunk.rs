//! Reading the part of one chunk that is wanted.
//!
//! 1. A transposed chunk is the same chunk with its axes in another order: parts and strides follow.
//! 2. Uncompressed elements are read straight to their place where they are one run of bytes there; else only
//!    the range of bytes that is wanted is read, and its elements are moved to their places.
//! 3. Compressed elements are decompressed straight to their place where they are one run; else to the worker's
//!    memory, from where they are moved.
//! 4. A shard's inner chunks are read by its index, each by the same steps, however deep.
//! 5. Other layouts are decoded whole, and handed on.

use crate::codec::{ArrayToBytes, Chain, MAX_VARIABLE_NBYTES, Output, Sharding, decode};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::destination::{Destination, Source};
use crate::exec::input::Input;
use crate::exec::part::{AxisPart, Cells};
use crate::exec::placement::swap_in_place;
use crate::exec::scratch::Worker;
use crate::exec::sink::{Sink, c_strides};
use crate::exec::whole::decode_whole;
use crate::metadata::FillValue;
use zarrow_array::shape;

/// A share of a shard's inner chunks: the `number`th of `count`.
#[derive(Clone, Copy)]
pub struct Share {
    /// Which one.
    pub number: u64,
    /// Of how many.
    pub count: u64,
}

/// Everything.
const WHOLE: Share = Share { number: 0, count: 1 };

impl Share {
    /// The numbers of this share among `total`.
    fn range(self, total: u64) -> std::ops::Range<u64> {
        let bound = |number: u64| {
            let product = u128::from(total) * u128::from(number) / u128::from(self.count);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        bound(self.number)..bound(self.number + 1)
    }
}

/// A part of a chunk, or of an inner chunk, that is to be read.
pub struct Part<'a> {
    /// The chunk's codecs.
    pub chain: &'a Chain,
    /// What an inner chunk that is not stored is filled with.
    pub fill: &'a FillValue,
    /// The chunk's shape.
    pub shape: &'a [u64],
    /// What is wanted of it.
    pub part: &'a [AxisPart],
    /// Where it goes.
    pub sink: &'a Sink<'a>,
}

impl Part<'_> {
    /// Reads it; of an outermost shard, the share of its inner chunks.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read(&self, input: &Input<'_>, share: Share, worker: &mut Worker) -> Result<()> {
        if let Some(order) = &self.chain.order {
            // The stored axes are the chunk's in another order, and so are the strides of the places.
            let shape: Vec<u64> = order.iter().map(|axis| self.shape[*axis]).collect();
            let part: Vec<AxisPart> = order.iter().map(|axis| self.part[*axis]).collect();
            return Part { shape: &shape, part: &part, ..*self }.read_stored(input, share, worker);
        }
        self.read_stored(input, share, worker)
    }

    fn read_stored(&self, input: &Input<'_>, share: Share, worker: &mut Worker) -> Result<()> {
        let Chain { array_to_bytes, bytes_to_bytes, .. } = self.chain;
        match (array_to_bytes, self.sink) {
            (ArrayToBytes::Bytes { swap }, Sink::Fixed(destination)) if bytes_to_bytes.is_empty() => {
                self.read_uncompressed(input, destination, *swap, worker)
            }
            (ArrayToBytes::Bytes { swap }, Sink::Fixed(destination)) => {
                self.read_compressed(input, destination, *swap, worker)
            }
            (ArrayToBytes::Sharding(sharding), _) if bytes_to_bytes.is_empty() => {
                self.read_shard(sharding, input, share, worker)
            }
            (ArrayToBytes::Sharding(sharding), _) => {
                // A shard that was compressed as a whole has to be there as a whole.
                let encoded = input.load(&mut worker.encoded)?;
                let mut shard = Vec::new();
                decode(
                    bytes_to_bytes,
                    encoded,
                    Output::Growing(&mut shard, MAX_VARIABLE_NBYTES),
                    &mut worker.codecs,
                )?;
                self.read_shard(sharding, &Input::of_bytes(&shard), share, worker)
            }
            _ => {
                let encoded = input.load(&mut worker.encoded)?;
                let decoded = decode_whole(self.chain, encoded, self.shape, &mut worker.codecs)?;
                self.sink.place(decoded, self.shape, self.part)
            }
        }
    }

    /// Whether the part is the whole chunk, in its order.
    fn is_whole(&self) -> bool {
        self.part.iter().zip(self.shape).all(|(axis, extent)| axis.step == 1 && axis.count == *extent)
    }

    /// Step 2.
    fn read_uncompressed(
        &self,
        input: &Input<'_>,
        destination: &Destination<'_>,
        swap: usize,
        worker: &mut Worker,
    ) -> Result<()> {
        let expected = shape::nbytes(self.shape, destination.item_size())? as u64;
        let actual = input.nbytes();
        if actual != expected {
            return Err(Error::from(ErrorKind::WrongSize { expected, actual }).in_codec("bytes"));
        }
        let strides = c_strides(self.shape, destination.item_size());
        if let Some(bytes) = input.bytes() {
            return destination.scatter(self.part, &Source { bytes, origin: 0, strides: &strides, swap });
        }
        if self.is_whole()
            && let Some(memory) = destination.contiguous(self.part)
        {
            let filled = input.read(0, memory)?;
            swap_in_place(filled, swap);
            return Ok(());
        }
        let mut part = self.part.to_vec();
        read_range(&mut part, 0, &strides, input, destination, swap, worker)
    }

    /// Step 3.
    fn read_compressed(
        &self,
        input: &Input<'_>,
        destination: &Destination<'_>,
        swap: usize,
        worker: &mut Worker,
    ) -> Result<()> {
        let nbytes = shape::nbytes(self.shape, destination.item_size())?;
        let Worker { codecs, encoded, decoded } = worker;
        let encoded = input.load(encoded)?;
        let in_place = if self.is_whole() { destination.contiguous(self.part) } else { None };
        let direct = in_place.is_some();
        let memory = match in_place {
            Some(memory) => memory,
            None => decoded.take(nbytes)?,
        };
        decode(&self.chain.bytes_to_bytes, encoded, Output::Exact(memory), codecs)?;
        // SAFETY: a decoder that returns without an error has written every byte of `Output::Exact`.
        let memory = unsafe { memory.assume_init_mut() };
        if direct {
            swap_in_place(memory, swap);
            return Ok(());
        }
        let strides = c_strides(self.shape, destination.item_size());
        destination.scatter(self.part, &Source { bytes: memory, origin: 0, strides: &strides, swap })
    }

    /// Step 4.
    fn read_shard(
        &self,
        sharding: &Sharding,
        input: &Input<'_>,
        share: Share,
        worker: &mut Worker,
    ) -> Result<()> {
        let grid = sharding.grid(self.shape)?;
        let (offset, length) = sharding.index_range(&grid, input.nbytes())?;
        let index = input.slice(offset, length as u64)?;
        let index = sharding.parse_index(index.load(&mut worker.encoded)?, input.nbytes())?;
        let axes =
            self.part.iter().zip(&sharding.chunk_shape).map(|(part, extent)| part.cut_regular(*extent));
        let too_many = || ErrorKind::Internal("more inner chunks than can be counted".into());
        let cells = Cells::new(axes.collect()).ok_or_else(too_many)?;
        let (mut cell, mut part) = (Vec::new(), Vec::new());
        for number in share.range(cells.count()) {
            cells.get(number, &mut cell, &mut part);
            // The grid's product fitted the index, which is in memory.
            let at = cell.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index);
            match index.get(at as usize) {
                None => self.sink.fill(&part, self.fill)?,
                Some((offset, length)) => {
                    let inner = input.slice(offset, length)?;
                    let part =
                        Part { chain: &sharding.inner, shape: &sharding.chunk_shape, part: &part, ..*self };
                    part.read(&inner, WHOLE, worker)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the range of bytes that holds the part from `axis` on; where much of it is not wanted, each position of
/// that axis for itself.
fn read_range(
    part: &mut [AxisPart],
    axis: usize,
    strides: &[isize],
    input: &Input<'_>,
    destination: &Destination<'_>,
    swap: usize,
    worker: &mut Worker,
) -> Result<()> {
    /// A range that is read whole, whatever of it is wanted: another read would cost as much.
    const SMALL: u64 = 64 << 10;
    let item_size = destination.item_size() as u64;
    let reach = |position: fn(&AxisPart) -> u64| {
        part.iter()
            .zip(strides)
            .map(|(axis, stride)| position(axis) * stride.unsigned_abs() as u64)
            .sum::<u64>()
    };
    let (low, high) = (reach(|axis| axis.start), reach(AxisPart::last) + item_size);
    let wanted = part.iter().map(|axis| axis.count).product::<u64>() * item_size;
    if axis == part.len() || high - low <= SMALL || wanted >= (high - low) / 2 {
        let memory = worker.decoded.take(usize::try_from(high - low).unwrap_or(usize::MAX))?;
        let bytes = &*input.read(low, memory)?;
        let origin = -isize::try_from(low).unwrap_or(isize::MAX);
        return destination.scatter(part, &Source { bytes, origin, strides, swap });
    }
    let whole = part[axis];
    for k in 0..whole.count {
        let place = if whole.reversed { whole.place - k } else { whole.place + k };
        part[axis] = AxisPart { start: whole.start + k * whole.step, count: 1, place, ..whole };
        read_range(part, axis + 1, strides, input, destination, swap, worker)?;
    }
    part[axis] = whole;
    Ok(())
}

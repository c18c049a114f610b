//! Reading what is wanted of one chunk.
//!
//! 1. A transposed chunk is the same chunk with its axes in another order: parts and strides follow.
//! 2. Uncompressed elements are read straight to their place where they are one run of bytes there; else only
//!    the range of bytes that is wanted is read, and its elements are moved to their places.
//! 3. Compressed elements are decompressed straight to their place where they are one run; else to the worker's
//!    memory, from where they are moved. However many parts are wanted, the chunk is decompressed once.
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
use std::collections::BTreeMap;
use zarrow_array::shape;

/// A share of a shard's inner chunks: the `number`th of `count`.
#[derive(Clone, Copy)]
pub struct Share {
    /// Which one.
    pub number: u64,
    /// Of how many.
    pub count: u64,
}

impl Share {
    /// Everything.
    pub const WHOLE: Share = Share { number: 0, count: 1 };

    /// The numbers of this share among `total`.
    fn range(self, total: u64) -> std::ops::Range<u64> {
        let bound = |number: u64| {
            let product = u128::from(total) * u128::from(number) / u128::from(self.count);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        bound(self.number)..bound(self.number + 1)
    }
}

/// A part of a chunk, and where it goes.
#[derive(Clone, Copy)]
pub struct Want<'a> {
    /// The part.
    pub part: &'a [AxisPart],
    /// Where it goes.
    pub sink: &'a Sink<'a>,
}

impl Want<'_> {
    /// Whether it is a whole chunk of `shape`, in its order.
    fn is_whole(&self, shape: &[u64]) -> bool {
        self.part.iter().zip(shape).all(|(axis, extent)| axis.step == 1 && axis.count == *extent)
    }

    /// The memory for elements of a fixed size.
    fn destination(&self) -> Result<&Destination<'_>> {
        match self.sink {
            Sink::Fixed(destination) => Ok(destination),
            _ => Err(ErrorKind::Internal("a chunk has another layout than its array".into()).into()),
        }
    }
}

/// A chunk, or an inner chunk, and what is wanted of it.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// Its codecs.
    pub chain: &'a Chain,
    /// What an inner chunk that is not stored is filled with.
    pub fill: &'a FillValue,
    /// Its shape.
    pub shape: &'a [u64],
    /// What is wanted, at least one part.
    pub wants: &'a [Want<'a>],
}

impl Chunk<'_> {
    /// Reads it; of an outermost shard, the share of its inner chunks.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read(&self, input: &Input<'_>, share: Share, worker: &mut Worker) -> Result<()> {
        let Some(order) = &self.chain.order else { return self.read_stored(input, share, worker) };
        let shape: Vec<u64> = order.iter().map(|axis| self.shape[*axis]).collect();
        let permuted = |want: &Want<'_>| order.iter().map(|axis| want.part[*axis]).collect();
        let parts: Vec<Vec<AxisPart>> = self.wants.iter().map(permuted).collect();
        let wants: Vec<Want<'_>> =
            parts.iter().zip(self.wants).map(|(part, want)| Want { part, sink: want.sink }).collect();
        Chunk { shape: &shape, wants: &wants, ..*self }.read_stored(input, share, worker)
    }

    fn read_stored(&self, input: &Input<'_>, share: Share, worker: &mut Worker) -> Result<()> {
        let Chain { array_to_bytes, bytes_to_bytes, .. } = self.chain;
        match array_to_bytes {
            ArrayToBytes::Bytes { swap } if bytes_to_bytes.is_empty() => {
                self.read_uncompressed(input, *swap, worker)
            }
            ArrayToBytes::Bytes { swap } => self.read_compressed(input, *swap, worker),
            ArrayToBytes::Sharding(sharding) if bytes_to_bytes.is_empty() => {
                self.read_shard(sharding, input, share, worker)
            }
            ArrayToBytes::Sharding(sharding) => {
                // A shard that was compressed as a whole has to be there as a whole.
                let encoded = input.load(&mut worker.encoded)?;
                let mut shard = Vec::new();
                let output = Output::Growing(&mut shard, MAX_VARIABLE_NBYTES);
                decode(bytes_to_bytes, encoded, output, &mut worker.codecs)?;
                self.read_shard(sharding, &Input::of_bytes(&shard), share, worker)
            }
            _ => {
                let encoded = input.load(&mut worker.encoded)?;
                let decoded = decode_whole(self.chain, encoded, self.shape, &mut worker.codecs)?;
                self.wants.iter().try_for_each(|want| want.sink.place(&decoded, self.shape, want.part))
            }
        }
    }

    /// Bytes of one element; this chunk's elements have a fixed size.
    fn item_size(&self) -> usize {
        self.chain.item_size().unwrap_or(0)
    }

    /// Step 2.
    fn read_uncompressed(&self, input: &Input<'_>, swap: usize, worker: &mut Worker) -> Result<()> {
        let expected = shape::nbytes(self.shape, self.item_size())? as u64;
        let actual = input.nbytes();
        if actual != expected {
            return Err(Error::from(ErrorKind::WrongSize { expected, actual }).in_codec("bytes"));
        }
        let strides = c_strides(self.shape, self.item_size());
        for want in self.wants {
            let destination = want.destination()?;
            if let Some(bytes) = input.bytes() {
                destination.scatter(want.part, &Source { bytes, origin: 0, strides: &strides, swap })?;
            } else if want.is_whole(self.shape)
                && let Some(memory) = destination.contiguous(want.part)
            {
                swap_in_place(input.read(0, memory)?, swap);
            } else {
                read_range(&mut want.part.to_vec(), 0, &strides, input, destination, swap, worker)?;
            }
        }
        Ok(())
    }

    /// Step 3.
    fn read_compressed(&self, input: &Input<'_>, swap: usize, worker: &mut Worker) -> Result<()> {
        let Worker { codecs, encoded, decoded } = worker;
        let encoded = input.load(encoded)?;
        if let [want] = self.wants
            && want.is_whole(self.shape)
            && let Some(memory) = want.destination()?.contiguous(want.part)
        {
            decode(&self.chain.bytes_to_bytes, encoded, Output::Exact(memory), codecs)?;
            // SAFETY: a decoder that returns without an error has written every byte of `Output::Exact`.
            swap_in_place(unsafe { memory.assume_init_mut() }, swap);
            return Ok(());
        }
        let memory = decoded.take(shape::nbytes(self.shape, self.item_size())?)?;
        decode(&self.chain.bytes_to_bytes, encoded, Output::Exact(memory), codecs)?;
        // SAFETY: as above.
        let bytes = unsafe { memory.assume_init_ref() };
        let strides = c_strides(self.shape, self.item_size());
        let source = Source { bytes, origin: 0, strides: &strides, swap };
        self.wants.iter().try_for_each(|want| want.destination()?.scatter(want.part, &source))
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
        let cells = |want: &Want<'_>| {
            let axes =
                want.part.iter().zip(&sharding.chunk_shape).map(|(part, extent)| part.cut_regular(*extent));
            let too_many = || ErrorKind::Internal("more inner chunks than can be counted".into());
            Cells::new(axes.collect()).ok_or_else(too_many)
        };
        // The grid's product fitted the index, which is in memory.
        let number =
            |cell: &[u64]| cell.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index);
        let mut read_inner = |at: u64, wants: &[Want<'_>]| match index.get(at as usize) {
            None => wants.iter().try_for_each(|want| want.sink.fill(want.part, self.fill)),
            Some((offset, length)) => {
                let inner = input.slice(offset, length)?;
                let chunk = Chunk { chain: &sharding.inner, shape: &sharding.chunk_shape, wants, ..*self };
                chunk.read(&inner, Share::WHOLE, worker)
            }
        };
        let (mut cell, mut part) = (Vec::new(), Vec::new());
        if let [want] = self.wants {
            let cells = cells(want)?;
            for at in share.range(cells.count()) {
                cells.get(at, &mut cell, &mut part);
                read_inner(number(&cell), &[Want { part: &part, sink: want.sink }])?;
            }
            return Ok(());
        }
        // Several parts may want the same inner chunk: gather them, so that it is decoded once.
        let mut gathered: BTreeMap<u64, Vec<(&Sink<'_>, Vec<AxisPart>)>> = BTreeMap::new();
        for want in self.wants {
            let cells = cells(want)?;
            for at in 0..cells.count() {
                cells.get(at, &mut cell, &mut part);
                gathered.entry(number(&cell)).or_default().push((want.sink, part.clone()));
            }
        }
        for (at, wanted) in &gathered {
            let wants: Vec<Want<'_>> = wanted.iter().map(|(sink, part)| Want { part, sink }).collect();
            read_inner(*at, &wants)?;
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

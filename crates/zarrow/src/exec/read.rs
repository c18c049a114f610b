//! Reading a selection.
//!
//! 1. The selection is cut along the chunk grid; each chunk that it touches is a task. Where there are few
//!    chunks and they are shards, a task is a share of a shard's inner chunks.
//! 2. A chunk that is not stored gives the fill value.
//! 3. Uncompressed elements are read straight to their place where they are one run of bytes there; else only
//!    the range of bytes that is wanted is read, and its elements are moved to their places.
//! 4. Compressed elements are decompressed straight to their place where they are one run; else to the worker's
//!    memory, from where they are moved.
//! 5. A shard's inner chunks are read by its index, each by the same steps, however deep.

use crate::codec::{
    ArrayToBytes, Chain, MAX_VARIABLE_NBYTES, OptionalCodec, Output, Sharding, VariableChunk, decode,
};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::destination::{Destination, Source};
use crate::exec::input::Input;
use crate::exec::part::{AxisPart, Cells, whole_part};
use crate::exec::pool;
use crate::exec::scratch::{Codecs, Worker};
use crate::exec::sink::{Decoded, Sink, c_strides};
use crate::exec::variable::VariableSink;
use crate::metadata::{ArrayMetadata, ChunkGrid, FillValue};
use crate::selection::Selection;
use crate::store::Store;
use std::mem::MaybeUninit;
use zarrow_array::{
    Buffer, DataType, DecodedArray, Mask, MaskedTensor, MaskedVariable, Tensor, UninitBuffer, Variable, shape,
};

/// Tasks for each thread, at least: so that no thread waits long for the others at the end.
const TASKS_PER_THREAD: u64 = 4;

/// What a read reads from.
pub struct Reader<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The array's path in the store.
    pub path: &'a str,
    /// What the array is.
    pub metadata: &'a ArrayMetadata,
    /// Its codecs.
    pub chain: &'a Chain,
}

/// A share of a shard's inner chunks: the `number`th of `count`.
#[derive(Clone, Copy)]
struct Share {
    number: u64,
    count: u64,
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

/// Reads `selection` into fresh memory.
///
/// # Errors
/// Any [`ErrorKind`], with chunk and codec; nothing of a failed read is visible.
pub fn read(
    reader: &Reader<'_>,
    selection: &Selection,
    interrupted: &dyn Fn() -> bool,
) -> Result<DecodedArray> {
    let shape = selection.shape();
    let data_type = &reader.metadata.data_type;
    let depth = std::iter::successors(Some(data_type), |data_type| match data_type {
        DataType::Optional(inner) => Some(&**inner),
        _ => None,
    })
    .count()
        - 1;
    let element = data_type.without_optional().clone();
    let nbytes = shape::nbytes(&shape, 1)?;
    let mut masks = (0..depth).map(|_| UninitBuffer::new(nbytes)).collect::<Result<Vec<_>, _>>()?;
    let item_size = element.item_size();
    let mut data = UninitBuffer::new(item_size.map_or(Ok(0), |size| shape::nbytes(&shape, size))?)?;

    let mut sink = match item_size {
        Some(item_size) => Sink::Fixed(Destination::new(data.as_mut_slice(), &shape, item_size)),
        None => Sink::Variable(VariableSink::default()),
    };
    for mask in masks.iter_mut().rev() {
        sink = Sink::Optional {
            missing: Destination::new(mask.as_mut_slice(), &shape, 1),
            inner: Box::new(sink),
        };
    }
    if let Some(part) = whole_part(selection) {
        reader.run(&part, &sink, interrupted)?;
    }

    let mut variable = sink;
    let variable = loop {
        match variable {
            Sink::Optional { inner, .. } => variable = *inner,
            Sink::Variable(sink) => break Some(sink),
            Sink::Fixed(_) => break None,
        }
    };
    // SAFETY: the parts of all chunks cover the selection (a property test of `AxisPart::cut` says so), and every
    // part was placed or filled without an error, so that every byte is written. An empty selection has none.
    let masks: Vec<Buffer> = unsafe { masks.into_iter().map(|mask| mask.assume_init()).collect() };
    let mask = if masks.is_empty() { None } else { Some(Mask::new(masks)?) };
    match variable {
        None => {
            // SAFETY: as for the masks.
            let tensor = Tensor::new(unsafe { data.assume_init() }, shape, element)?;
            Ok(match mask {
                Some(mask) => DecodedArray::MaskedTensor(MaskedTensor::new(tensor, mask)?),
                None => DecodedArray::Tensor(tensor),
            })
        }
        Some(sink) => {
            let fill = variable_fill(&reader.metadata.fill_value);
            let (offsets, data) = sink.finish(&shape, fill, interrupted)?;
            let variable = Variable::new(offsets, data, shape, element)
                .map_err(|error| Error::from(error).in_codec("vlen-utf8"))?;
            Ok(match mask {
                Some(mask) => DecodedArray::MaskedVariable(MaskedVariable::new(variable, mask)?),
                None => DecodedArray::Variable(variable),
            })
        }
    }
}

/// The bytes of a variable-length fill value.
fn variable_fill(value: &FillValue) -> &[u8] {
    match value {
        FillValue::Variable(bytes) => bytes,
        FillValue::Present(value) => variable_fill(value),
        _ => &[],
    }
}

impl Reader<'_> {
    /// Steps 1 and 2.
    fn run(&self, part: &[AxisPart], sink: &Sink<'_>, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let grid = &self.metadata.chunk_grid;
        let axes = part.iter().enumerate().map(|(axis, part)| match grid {
            ChunkGrid::Regular { chunk_shape } => part.cut_regular(chunk_shape[axis]),
            grid => part.cut(|position| {
                let cell = grid.locate(axis, position);
                let (origin, extent) = grid.chunk_extent(axis, cell);
                (cell, origin, extent)
            }),
        });
        let too_many = || ErrorKind::Internal("more chunks than can be counted".into());
        let cells = Cells::new(axes.collect()).ok_or_else(too_many)?;
        let shares = self.shares(&cells);
        let tasks = cells.count().checked_mul(shares).ok_or_else(too_many)?;
        pool::run(tasks, interrupted, &|task, worker| {
            let (mut cell, mut part) = (Vec::new(), Vec::new());
            cells.get(task / shares, &mut cell, &mut part);
            let share = Share { number: task % shares, count: shares };
            self.chunk(&cell, &part, sink, share, worker).map_err(|error| error.in_chunk(&cell))
        })
    }

    /// How many tasks a chunk is.
    fn shares(&self, cells: &Cells) -> u64 {
        let sharded = matches!(self.chain.array_to_bytes, ArrayToBytes::Sharding(_))
            && self.chain.bytes_to_bytes.is_empty();
        let wanted = pool::num_threads() as u64 * TASKS_PER_THREAD;
        if !sharded || pool::num_threads() == 1 || cells.count() >= wanted {
            return 1;
        }
        wanted.div_ceil(cells.count().max(1))
    }

    fn chunk(
        &self,
        cell: &[u64],
        part: &[AxisPart],
        sink: &Sink<'_>,
        share: Share,
        worker: &mut Worker,
    ) -> Result<()> {
        let fill = &self.metadata.fill_value;
        let mut key = String::with_capacity(self.path.len() + 32);
        if !self.path.is_empty() {
            key.push_str(self.path);
            key.push('/');
        }
        self.metadata.chunk_key_encoding.encode(cell, &mut key);
        let Some(value) = self.store.open(&key)? else {
            return if share.number == 0 { sink.fill(part, fill) } else { Ok(()) };
        };
        let grid = &self.metadata.chunk_grid;
        let shape: Vec<u64> =
            cell.iter().enumerate().map(|(axis, index)| grid.chunk_extent(axis, *index).1).collect();
        let input = Input::of_value(&*value)?;
        Part { chain: self.chain, fill, shape: &shape, part, sink }.read(&input, share, worker)
    }
}

/// A part of a chunk, or of an inner chunk, that is to be read.
struct Part<'a> {
    chain: &'a Chain,
    fill: &'a FillValue,
    shape: &'a [u64],
    part: &'a [AxisPart],
    sink: &'a Sink<'a>,
}

impl Part<'_> {
    fn read(&self, input: &Input<'_>, share: Share, worker: &mut Worker) -> Result<()> {
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

    /// Step 3.
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
            super::placement::swap_in_place(filled, swap);
            return Ok(());
        }
        let mut part = self.part.to_vec();
        read_range(&mut part, 0, &strides, input, destination, swap, worker)
    }

    /// Step 4.
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
            super::placement::swap_in_place(memory, swap);
            return Ok(());
        }
        let strides = c_strides(self.shape, destination.item_size());
        destination.scatter(self.part, &Source { bytes: memory, origin: 0, strides: &strides, swap })
    }

    /// Step 5.
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

/// Decodes a whole chunk of any layout to memory of its own.
fn decode_whole(chain: &Chain, encoded: &[u8], shape: &[u64], codecs: &mut Codecs) -> Result<Decoded> {
    let count = shape::nbytes(shape, 1)?;
    let growing = |limit: usize, codecs: &mut Codecs| {
        let mut bytes = Vec::new();
        decode(&chain.bytes_to_bytes, encoded, Output::Growing(&mut bytes, limit), codecs)?;
        Ok::<_, Error>(bytes)
    };
    match &chain.array_to_bytes {
        ArrayToBytes::Bytes { swap } => {
            let nbytes = shape::nbytes(shape, chain.item_size().unwrap_or(0))?;
            let bytes = filled(nbytes, |memory| {
                decode(&chain.bytes_to_bytes, encoded, Output::Exact(memory), codecs)
                    .map_err(|error| error.in_codec("bytes"))
            })?;
            Ok(Decoded::Fixed { bytes, swap: *swap })
        }
        ArrayToBytes::PackBits(packing) => {
            let packed = growing(packing.encoded_nbytes(count), codecs)?;
            let bytes = filled(count, |memory| packing.unpack(&packed, memory))?;
            Ok(Decoded::Fixed { bytes, swap: 1 })
        }
        ArrayToBytes::Vlen => {
            let name = if chain.data_type == DataType::String { "vlen-utf8" } else { "vlen-bytes" };
            let bytes = growing(MAX_VARIABLE_NBYTES, codecs)?;
            Ok(Decoded::Variable(VariableChunk::parse(bytes, count).map_err(|error| error.in_codec(name))?))
        }
        ArrayToBytes::Optional(optional) => {
            let bytes = growing(MAX_VARIABLE_NBYTES, codecs)?;
            decode_optional(optional, &bytes, count, codecs).map_err(|error| error.in_codec("zarrs.optional"))
        }
        ArrayToBytes::Fallback(fallback) => {
            // Filters before a compressor may widen an element, a few times at most.
            let nbytes = shape::nbytes(shape, chain.item_size().unwrap_or(0))?;
            let bytes = growing(nbytes.saturating_mul(8).saturating_add(64 << 10), codecs)?;
            let bytes = fallback.decode(&bytes, shape)?;
            if bytes.len() != nbytes {
                let (expected, actual) = (nbytes as u64, bytes.len() as u64);
                return Err(ErrorKind::WrongSize { expected, actual }.into());
            }
            Ok(Decoded::Fixed { bytes, swap: 1 })
        }
        ArrayToBytes::Sharding(_) => {
            Err(Error::from(ErrorKind::BadCodec("shards inside a mask".into())).in_codec("sharding_indexed"))
        }
    }
}

fn decode_optional(
    optional: &OptionalCodec,
    bytes: &[u8],
    count: usize,
    codecs: &mut Codecs,
) -> Result<Decoded> {
    let (mask, data) = optional.parts(bytes)?;
    let Decoded::Fixed { bytes: mut missing, .. } =
        decode_whole(&optional.mask, mask, &[count as u64], codecs)?
    else {
        return Err(ErrorKind::Corrupt("the mask is no array of bools".into()).into());
    };
    // Stored as 1 where an element is there.
    missing.iter_mut().for_each(|byte| *byte = u8::from(*byte == 0));
    let given = missing.iter().filter(|missing| **missing == 0).count();
    let item_size = optional.data.item_size().unwrap_or(0);
    let data = if given == 0 && data.is_empty() {
        nothing(&optional.data.data_type)?
    } else {
        decode_whole(&optional.data, data, &[given as u64], codecs)?
    };
    let data = Box::new(data.spread(&missing, item_size)?);
    Ok(Decoded::Optional { missing, data })
}

/// No elements, in the layout of a type.
fn nothing(data_type: &DataType) -> Result<Decoded> {
    Ok(match data_type {
        DataType::Optional(inner) => {
            Decoded::Optional { missing: Vec::new(), data: Box::new(nothing(inner)?) }
        }
        other if other.is_variable() => Decoded::Variable(VariableChunk::parse(vec![0; 4], 0)?),
        _ => Decoded::Fixed { bytes: Vec::new(), swap: 1 },
    })
}

/// A vector of `nbytes` bytes that `fill` writes, every one where it returns without an error.
fn filled(nbytes: usize, fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<()>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
    fill(&mut bytes.spare_capacity_mut()[..nbytes])?;
    // SAFETY: `Output::Exact` and `PackBits::unpack`, which fill here, write every byte or return an error.
    unsafe { bytes.set_len(nbytes) };
    Ok(bytes)
}

//! Reading a selection.
//!
//! 1. Memory for the result is allocated, one piece for each part of its layout, and not filled.
//! 2. The selection is cut along the chunk grid; each chunk that it touches is a task. Where there are few
//!    chunks and they are shards, a task is a share of a shard's inner chunks.
//! 3. A chunk that is not stored gives the fill value; any other is read as [`chunk`](super::chunk) says.
//! 4. When all tasks have succeeded the memory is filled, and becomes the result.

use crate::codec::{ArrayToBytes, Chain};
use crate::error::{ErrorKind, Result};
use crate::exec::chunk::{Part, Share};
use crate::exec::destination::Destination;
use crate::exec::input::Input;
use crate::exec::part::{AxisPart, Cells, whole_part};
use crate::exec::pool;
use crate::exec::scratch::Worker;
use crate::exec::sink::Sink;
use crate::exec::variable::VariableSink;
use crate::metadata::{ArrayMetadata, ChunkGrid, FillValue};
use crate::selection::Selection;
use crate::store::Store;
use zarrow_array::{
    Buffer, DataType, DecodedArray, Mask, MaskedTensor, MaskedVariable, Tensor, UninitBuffer, shape,
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
        None => Sink::Variable(VariableSink::new(&shape)),
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
            let variable = sink
                .finish(shape, element, fill, interrupted)
                .map_err(|error| error.in_codec("vlen-utf8"))?;
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
    /// Step 2.
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
        let threads = self.threads(part);
        let shares = self.shares(&cells, threads);
        let tasks = cells.count().checked_mul(shares).ok_or_else(too_many)?;
        pool::run(tasks, threads, interrupted, &|task, worker| {
            let (mut cell, mut part) = (Vec::new(), Vec::new());
            cells.get(task / shares, &mut cell, &mut part);
            let share = Share { number: task % shares, count: shares };
            self.chunk(&cell, &part, sink, share, worker).map_err(|error| error.in_chunk(&cell))
        })
    }

    /// How many threads the elements of `part` are worth: waking one costs as much as decoding some of them.
    fn threads(&self, part: &[AxisPart]) -> usize {
        /// Bytes that a thread should have to do.
        const WORTH: u64 = 128 << 10;
        /// What an element of no fixed size is taken for, in bytes.
        const VARIABLE: u64 = 16;
        let item_size = self.metadata.data_type.item_size().map_or(VARIABLE, |size| size as u64);
        let elements = part.iter().fold(1u64, |product, axis| product.saturating_mul(axis.count));
        let worth = elements.saturating_mul(item_size) / WORTH + 1;
        usize::try_from(worth).unwrap_or(usize::MAX).min(pool::num_threads())
    }

    /// How many tasks a chunk is: one, unless there are few and each is a shard of many.
    fn shares(&self, cells: &Cells, threads: usize) -> u64 {
        let sharded = matches!(self.chain.array_to_bytes, ArrayToBytes::Sharding(_))
            && self.chain.bytes_to_bytes.is_empty();
        let wanted = threads as u64 * TASKS_PER_THREAD;
        if !sharded || threads == 1 || cells.count() >= wanted {
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

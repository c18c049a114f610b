//! Reading what is wanted of one chunk.
//!
//! 1. A transposed chunk is the same chunk with its axes in another order: parts and strides follow.
//! 2. Uncompressed elements are read straight to their place where they are one run of bytes there; else only
//!    the range of bytes that is wanted is read, and its elements are moved to their places.
//! 3. Compressed elements are decompressed straight to their place where they are one run; else to the worker's
//!    memory, from where they are moved. However many parts are wanted, the chunk is decompressed once.
//! 4. A shard's inner chunks are read by its index, each by the same steps, however deep.
//! 5. Other layouts are decoded whole, and handed on.

use crate::codec::{ArrayToBytes, Chain, Output, ShardIndex, Sharding, between_limit, decode, decode_range};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::cache::{Cache, Key};
use crate::exec::destination::Source;
use crate::exec::input::Input;
use crate::exec::job::Checkpoint;
use crate::exec::part::{AxisPart, Cells, PerAxis, run_of};
use crate::exec::placement::swap_in_place;
use crate::exec::range::{read_range, small_span};
use crate::exec::scratch::Worker;
use crate::exec::sink::{Sink, c_strides};
use crate::exec::want::Want;
use crate::exec::whole::decode_whole;
use crate::metadata::FillValue;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::{Buffer, UninitBuffer, shape};

/// A share of a shard's inner chunks: the `number`th of `count`, by an index that all shares have in common.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// Which one.
    pub number: u64,
    /// Of how many.
    pub count: u64,
    /// The shard's index.
    pub index: &'a ShardIndex,
}

impl Share<'_> {
    /// The numbers of this share among `total`.
    fn range(self, total: u64) -> std::ops::Range<u64> {
        let bound = |number: u64| {
            let product = u128::from(total) * u128::from(number) / u128::from(self.count);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        bound(self.number)..bound(self.number + 1)
    }
}

/// A chunk, or an inner chunk.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// Its codecs.
    pub chain: &'a Chain,
    /// What an inner chunk that is not stored is filled with.
    pub fill: &'a FillValue,
    /// Its shape.
    pub shape: &'a [u64],
    /// Where its decoded elements are kept, if they are.
    pub slot: Option<&'a Slot<'a>>,
    /// Where a long read stops.
    pub checkpoint: &'a Checkpoint<'a>,
}

/// The place of one decoded chunk in a cache.
pub struct Slot<'a> {
    /// The cache.
    pub cache: &'a Cache<Buffer>,
    /// Where the chunk is, and which version of it.
    pub key: Key,
}

impl Slot<'_> {
    fn get(&self) -> Option<Arc<Buffer>> {
        self.cache.get(&self.key)
    }

    fn keep(&self, buffer: Buffer) -> Arc<Buffer> {
        let (nbytes, buffer) = (buffer.len(), Arc::new(buffer));
        self.cache.insert(self.key.clone(), Arc::clone(&buffer), nbytes);
        buffer
    }

    /// The slot of the inner chunk `number`.
    fn inner(&self, number: u64) -> Slot<'_> {
        Slot { cache: self.cache, key: [&self.key[..], &[number]].concat() }
    }
}

impl Chunk<'_> {
    /// Reads what is wanted, at least one part; of a shard, a share where one is given.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read(
        &self,
        input: &Input<'_>,
        wants: &mut [Want<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let Some(order) = &self.chain.order else { return self.read_stored(input, wants, share, worker) };
        let shape = self.stored_shape();
        let permuted = |want: &Want<'_>| order.iter().map(|axis| want.part()[*axis]).collect();
        let parts: Vec<Vec<AxisPart>> = wants.iter().map(permuted).collect();
        // SAFETY: each has the places of the want that it stands for, which is not used meanwhile.
        let wants = parts.iter().zip(&*wants).map(|(part, want)| unsafe { Want::new(part, want.sink()) });
        let mut wants: Vec<Want<'_>> = wants.collect();
        Chunk { shape: &shape, ..*self }.read_stored(input, &mut wants, share, worker)
    }

    /// The shape in the order in which the axes are stored.
    fn stored_shape(&self) -> Vec<u64> {
        match &self.chain.order {
            Some(order) => order.iter().map(|axis| self.shape[*axis]).collect(),
            None => self.shape.to_vec(),
        }
    }

    fn read_stored(
        &self,
        input: &Input<'_>,
        wants: &mut [Want<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let Chain { array_to_bytes, bytes_to_bytes, .. } = self.chain;
        match array_to_bytes {
            ArrayToBytes::Bytes { swap } if bytes_to_bytes.is_empty() => {
                self.read_uncompressed(input, wants, *swap, worker)
            }
            ArrayToBytes::Bytes { swap } => self.read_compressed(input, wants, *swap, worker),
            ArrayToBytes::Sharding(sharding) if bytes_to_bytes.is_empty() => {
                self.read_shard(sharding, input, wants, share, worker)
            }
            ArrayToBytes::Sharding(sharding) => {
                // A shard that was compressed as a whole has to be there as a whole.
                let limit = self.encoded_limit()?;
                let encoded = input.load(limit, &mut worker.encoded)?;
                let mut shard = Vec::new();
                decode(bytes_to_bytes, encoded, Output::Growing(&mut shard, limit), &mut worker.codecs)?;
                self.read_shard(sharding, &Input::of_bytes(&shard), wants, None, worker)
            }
            _ => {
                let encoded = input.load(self.encoded_limit()?, &mut worker.encoded)?;
                let decoded = decode_whole(self.chain, encoded, self.shape, &mut worker.codecs)?;
                wants.iter_mut().try_for_each(|want| want.place(&decoded, self.shape))
            }
        }
    }

    /// Bytes of one element; 0 where they have no fixed size.
    fn item_size(&self) -> usize {
        self.chain.item_size().unwrap_or(0)
    }

    /// The most bytes that this chunk can honestly be encoded to.
    fn encoded_limit(&self) -> Result<usize> {
        /// An index entry, a mask and what headers an inner chunk has, for each element at most.
        const BESIDE: usize = 32;
        if self.chain.data_type.is_variable() {
            return Ok(self.chain.limits.max_variable_nbytes);
        }
        let beside = match self.chain.array_to_bytes {
            ArrayToBytes::Bytes { .. } | ArrayToBytes::PackBits(_) => 0,
            _ => BESIDE,
        };
        let nbytes = shape::nbytes(self.shape, self.item_size().saturating_add(beside))?;
        Ok(between_limit(nbytes).saturating_mul(2).saturating_add(1 << 20))
    }

    /// Step 2.
    fn read_uncompressed(
        &self,
        input: &Input<'_>,
        wants: &mut [Want<'_>],
        swap: usize,
        worker: &mut Worker,
    ) -> Result<()> {
        let expected = shape::nbytes(self.shape, self.item_size())? as u64;
        let wrong_size =
            |actual: u64| Error::from(ErrorKind::WrongSize { expected, actual }).in_codec("bytes");
        if let [want] = wants
            && want.is_whole(self.shape)
            && let Some(memory) = want.contiguous()
        {
            let Some(filled) = input.read_whole(memory)? else { return Err(wrong_size(input.nbytes()?)) };
            swap_in_place(filled, swap);
            return Ok(());
        }
        let input = input.measured()?;
        if input.nbytes()? != expected {
            return Err(wrong_size(input.nbytes()?));
        }
        if let [want] = wants
            && let Some((first, _)) = run_of(want.part(), self.shape)
            && let Some(memory) = want.contiguous()
        {
            swap_in_place(input.read(first * self.item_size() as u64, memory)?, swap);
            return Ok(());
        }
        let strides = c_strides(self.shape, self.item_size());
        for want in wants {
            match input.bytes() {
                Some(bytes) => want.scatter(&Source { bytes, origin: 0, strides: &strides, swap })?,
                None => {
                    read_range(want, &input, &strides, (self.item_size(), swap), worker, self.checkpoint)?
                }
            }
        }
        Ok(())
    }

    /// Step 3.
    fn read_compressed(
        &self,
        input: &Input<'_>,
        wants: &mut [Want<'_>],
        swap: usize,
        worker: &mut Worker,
    ) -> Result<()> {
        let Worker { codecs, encoded, decoded } = worker;
        let (chain, limit) = (&self.chain.bytes_to_bytes, self.encoded_limit()?);
        let nbytes = shape::nbytes(self.shape, self.item_size())?;
        let strides = c_strides(self.shape, self.item_size());
        let mut decode_elements = |encoded: &[u8], memory: &mut [MaybeUninit<u8>]| {
            let limit = self.chain.ratio_limit(encoded.len());
            if nbytes > limit {
                let (what, actual) = ("the size of a chunk that so few bytes decode to", nbytes as u64);
                return Err(ErrorKind::Limit { what, actual, limit: limit as u64 }.into());
            }
            // A fault of no compressor is one of the elements.
            decode(chain, encoded, Output::Exact(memory), codecs).map_err(|error| error.in_codec("bytes"))
        };
        if let Some(slot) = self.slot {
            let buffer = match slot.get() {
                Some(buffer) => buffer,
                None => {
                    let mut memory = UninitBuffer::new(nbytes)?;
                    decode_elements(input.load(limit, encoded)?, memory.as_mut_slice())?;
                    // SAFETY: a decoder that returns without an error has written every byte of `Output::Exact`.
                    slot.keep(unsafe { memory.assume_init() })
                }
            };
            let source = Source { bytes: &buffer, origin: 0, strides: &strides, swap };
            return wants.iter_mut().try_for_each(|want| want.scatter(&source));
        }
        let encoded = input.load(limit, encoded)?;
        if let [want] = wants
            && want.is_whole(self.shape)
            && let Some(memory) = want.contiguous()
        {
            decode_elements(encoded, memory)?;
            // SAFETY: as above.
            swap_in_place(unsafe { memory.assume_init_mut() }, swap);
            return Ok(());
        }
        if let [want] = wants
            && let Some((low, length)) = small_span(want.part(), &strides, self.item_size(), nbytes)
            && let Some(range) = decode_range(chain, encoded, nbytes, low, decoded.take(length)?)
        {
            range?;
            // SAFETY: `decode_range` has written every byte of the same memory.
            let bytes = unsafe { decoded.take(length)?.assume_init_ref() };
            let origin = -isize::try_from(low).unwrap_or(isize::MAX);
            return want.scatter(&Source { bytes, origin, strides: &strides, swap });
        }
        let memory = decoded.take(nbytes)?;
        decode_elements(encoded, memory)?;
        // SAFETY: as above.
        let bytes = unsafe { memory.assume_init_ref() };
        let source = Source { bytes, origin: 0, strides: &strides, swap };
        wants.iter_mut().try_for_each(|want| want.scatter(&source))
    }

    /// The index of this chunk, where it is a shard that was not compressed as a whole.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that an index can give.
    pub fn shard_index(&self, input: &Input<'_>, worker: &mut Worker) -> Result<ShardIndex> {
        match &self.chain.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => read_index(sharding, &self.stored_shape(), input, worker),
            _ => Err(ErrorKind::Internal("an index of what is no shard".into()).into()),
        }
    }

    /// Step 4.
    fn read_shard(
        &self,
        sharding: &Sharding,
        input: &Input<'_>,
        wants: &mut [Want<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let input = input.measured()?;
        let grid = sharding.grid(self.shape)?;
        let own_index;
        let index = match share {
            Some(share) => share.index,
            None => {
                own_index = read_index(sharding, self.shape, &input, worker)?;
                &own_index
            }
        };
        // The grid's product fitted the index, which is in memory.
        let number =
            |cell: &[u64]| cell.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index);
        let mut read_inner = |at: u64, wants: &mut [Want<'_>]| {
            self.checkpoint.pass()?;
            match index.get(at as usize) {
                None => wants.iter_mut().try_for_each(|want| want.fill(self.fill)),
                Some((offset, length)) => {
                    let inner = input.slice(offset, length)?;
                    let slot = self.slot.map(|slot| slot.inner(at));
                    let slot = slot.as_ref();
                    let chunk = Chunk { chain: &sharding.inner, shape: &sharding.chunk_shape, slot, ..*self };
                    chunk.read(&inner, wants, None, worker)
                }
            }
        };
        let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
        if let [want] = wants {
            let cells = inner_cells(sharding, want.part())?;
            for at in share.map_or(0..cells.count(), |share| share.range(cells.count())) {
                cells.get(at, &mut cell, &mut part);
                // SAFETY: the part has places of `want` only, which is not used meanwhile; other shares of the
                // shard have other numbers, and so other places.
                read_inner(number(&cell), &mut [unsafe { Want::new(&part, want.sink()) }])?;
            }
            return Ok(());
        }
        // Several parts may want the same inner chunk: gather them, so that it is decoded once.
        let mut gathered: BTreeMap<u64, Vec<(&Sink<'_>, Vec<AxisPart>)>> = BTreeMap::new();
        for want in &*wants {
            let cells = inner_cells(sharding, want.part())?;
            for at in 0..cells.count() {
                cells.get(at, &mut cell, &mut part);
                gathered.entry(number(&cell)).or_default().push((want.sink(), part.to_vec()));
            }
        }
        let all = 0..gathered.len() as u64;
        let own = share.map_or(all.clone(), |share| share.range(all.end));
        for (at, wanted) in gathered.iter().skip(own.start as usize).take((own.end - own.start) as usize) {
            // SAFETY: as above; the wants themselves have no place in common.
            let wants = wanted.iter().map(|(sink, part)| unsafe { Want::new(part, sink) });
            read_inner(*at, &mut wants.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// How many inner chunks `part` of a chunk touches; 1 where it is no shard.
pub fn inner_count(chain: &Chain, part: &[AxisPart]) -> u64 {
    let ArrayToBytes::Sharding(sharding) = &chain.array_to_bytes else { return 1 };
    let stored: Vec<AxisPart> = match &chain.order {
        Some(order) => order.iter().map(|axis| part[*axis]).collect(),
        None => part.to_vec(),
    };
    inner_cells(sharding, &stored).map_or(u64::MAX, |cells| cells.count())
}

/// The inner chunks that a part of a shard touches.
fn inner_cells(sharding: &Sharding, part: &[AxisPart]) -> Result<Cells> {
    let axes = part.iter().zip(&sharding.chunk_shape).map(|(part, extent)| part.cut_regular(*extent));
    Ok(Cells::new(axes.collect())
        .ok_or_else(|| ErrorKind::Internal("more inner chunks than can be counted".into()))?)
}

/// Reads the index of a shard of `shape`.
///
/// # Errors
/// Any [`ErrorKind`] that an index can give.
pub fn read_index(
    sharding: &Sharding,
    shape: &[u64],
    input: &Input<'_>,
    worker: &mut Worker,
) -> Result<ShardIndex> {
    let input = input.measured()?;
    let nbytes = input.nbytes()?;
    let (offset, length) = sharding.index_range(&sharding.grid(shape)?, nbytes)?;
    let index = input.slice(offset, length as u64)?;
    sharding.parse_index(index.load(length, &mut worker.encoded)?, nbytes)
}

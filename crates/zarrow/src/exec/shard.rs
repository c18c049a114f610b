//! Reading what is wanted of a shard: its index, and inner chunks by it.
//!
//! 1. The inner chunks that a part touches are those of its cells; where there are several parts they are gathered, so
//!    that each is decoded once. One that is not stored gives the fill value.
//! 2. Each inner chunk is read from its range of the shard, as a chunk is.
//! 3. Where the store is slow the ranges are sorted first, since inner chunks often lie in another order than C; each
//!    share takes its part of the sorted ones, and fetches those with few bytes between them at once.

use crate::codec::{ArrayToBytes, Chain, ShardIndex, Sharding};
use crate::error::{ErrorKind, Result};
use crate::exec::cells::{AxisGrid, Cells};
use crate::exec::chunk::{Chunk, stored_part};
use crate::exec::input::Input;
use crate::exec::part::{AxisPart, PerAxis};
use crate::exec::scratch::Worker;
use crate::exec::sink::Sink;
use crate::exec::want::Want;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Bytes between two ranges that are fetched along, where the store is slow.
const GAP: u64 = 512 << 10;

/// Bytes that are fetched at once at most, unless one inner chunk has more.
pub const GROUP: u64 = 8 << 20;

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

/// What is wanted of an inner chunk, and where it goes.
#[derive(Clone)]
struct Piece<'a> {
    sink: &'a Sink<'a>,
    part: PerAxis<AxisPart<'a>>,
}

/// Where each of a chunk's wants goes, and the inner chunks that it touches.
type Plans<'a> = SmallVec<[(&'a Sink<'a>, Cells<'a>); 1]>;

/// # Safety
/// As [`Want::new`]; the wants that the pieces were made from are not used meanwhile.
unsafe fn claim<'a>(pieces: &'a [Piece<'_>]) -> SmallVec<[Want<'a>; 1]> {
    // SAFETY: the caller's contract.
    pieces.iter().map(|piece| unsafe { Want::new(&piece.part, piece.sink) }).collect()
}

/// An inner chunk that is stored.
struct Stored<'a> {
    offset: u64,
    length: u64,
    number: u64,
    pieces: Vec<Piece<'a>>,
}

impl Stored<'_> {
    fn end(&self) -> u64 {
        // An index that was parsed has no range that wraps.
        self.offset + self.length
    }
}

impl Chunk<'_> {
    /// Reads what is wanted of this chunk, which is a shard.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read_shard(
        &self,
        sharding: &Sharding,
        input: &Input<'_>,
        wants: &[Want<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let input = input.measured()?;
        let own_index;
        let index = match share {
            Some(share) => share.index,
            None => {
                own_index = read_index(sharding, self.shape, &input, worker)?;
                &own_index
            }
        };
        let plans = wants.iter().map(|want| Ok((want.sink(), inner_cells(sharding, want.part())?)));
        let plans: Plans<'_> = plans.collect::<Result<_>>()?;
        if input.bytes().is_none() && self.checkpoint.store_is_slow() {
            return self.read_grouped(sharding, &input, index, &plans, share, worker);
        }
        self.each_inner(sharding, &plans, share, |number, pieces| {
            self.checkpoint.pass()?;
            // SAFETY: no two pieces of the wants, which are not used meanwhile, have a place in common.
            let mut wants = unsafe { claim(pieces) };
            match index.get(number as usize) {
                None => wants.iter_mut().try_for_each(|want| want.fill(self.fill)),
                Some((offset, length)) => {
                    self.read_inner(sharding, number, &input.slice(offset, length)?, &mut wants, worker)
                }
            }
        })
    }

    /// Reads what is wanted of the inner chunk `number`.
    fn read_inner(
        &self,
        sharding: &Sharding,
        number: u64,
        input: &Input<'_>,
        wants: &mut [Want<'_>],
        worker: &mut Worker,
    ) -> Result<()> {
        let slot = self.slot.map(|slot| slot.inner(number));
        let slot = slot.as_ref();
        let chunk = Chunk { chain: &sharding.inner, shape: &sharding.chunk_shape, slot, ..*self };
        chunk.read(input, wants, None, worker)
    }

    /// Calls `read` with the number of each inner chunk and what is wanted of it (step 1).
    ///
    /// No two of the pieces have a place in common, nor have those of different shares: their inner chunks differ, or
    /// the wants do.
    fn each_inner<'w>(
        &self,
        sharding: &Sharding,
        plans: &'w Plans<'_>,
        share: Option<Share<'_>>,
        mut read: impl FnMut(u64, &[Piece<'w>]) -> Result<()>,
    ) -> Result<()> {
        let grid = sharding.grid(self.shape)?;
        // The grid's product fitted the index, which is in memory.
        let number =
            |cell: &[u64]| cell.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index);
        let mut cell = PerAxis::new();
        if let [(sink, cells)] = &plans[..] {
            let mut piece = [Piece { sink, part: PerAxis::new() }];
            for at in share.map_or(0..cells.count(), |share| share.range(cells.count())) {
                cells.get(at, &mut cell, &mut piece[0].part);
                read(number(&cell), &piece)?;
            }
            return Ok(());
        }
        let mut gathered: BTreeMap<u64, Vec<Piece<'w>>> = BTreeMap::new();
        for (sink, cells) in plans {
            for at in 0..cells.count() {
                let mut part = PerAxis::new();
                cells.get(at, &mut cell, &mut part);
                gathered.entry(number(&cell)).or_default().push(Piece { sink, part });
            }
        }
        let all = 0..gathered.len() as u64;
        let own = share.map_or(all.clone(), |share| share.range(all.end));
        let mut own = gathered.iter().skip(own.start as usize).take((own.end - own.start) as usize);
        own.try_for_each(|(at, pieces)| read(*at, pieces))
    }

    /// Step 3.
    fn read_grouped(
        &self,
        sharding: &Sharding,
        input: &Input<'_>,
        index: &ShardIndex,
        plans: &Plans<'_>,
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let mut stored: Vec<Stored<'_>> = Vec::new();
        self.each_inner(sharding, plans, None, |number, pieces| {
            if let Some((offset, length)) = index.get(number as usize) {
                stored.push(Stored { offset, length, number, pieces: pieces.to_vec() });
            } else if share.is_none_or(|share| number % share.count == share.number) {
                // SAFETY: as in `read_shard`; each number is of one share.
                unsafe { claim(pieces) }.iter_mut().try_for_each(|want| want.fill(self.fill))?;
            }
            Ok(())
        })?;
        // Every share sorts all of them, and to the same order, so that each is of one share.
        stored.sort_unstable_by_key(|stored| (stored.offset, stored.number));
        let own = share.map_or(0..stored.len() as u64, |share| share.range(stored.len() as u64));
        let own = &stored[own.start as usize..own.end as usize];
        let (kept, own): (Vec<_>, Vec<_>) =
            own.iter().partition(|inner| self.slot.is_some_and(|slot| slot.inner(inner.number).has()));
        for inner in kept {
            let input = input.slice(inner.offset, inner.length)?;
            // SAFETY: as above.
            let mut wants = unsafe { claim(&inner.pieces) };
            self.read_inner(sharding, inner.number, &input, &mut wants, worker)?;
        }
        let mut rest = &own[..];
        while let Some(first) = rest.first() {
            let (count, end) = group(rest);
            let (group, more) = rest.split_at(count);
            rest = more;
            let range = input.slice(first.offset, end - first.offset)?;
            // Out of the worker's hands, which the inner chunks work with.
            let mut scratch = std::mem::take(&mut worker.encoded);
            let read = range.load(usize::MAX, &mut scratch).and_then(|bytes| {
                group.iter().try_for_each(|inner| {
                    self.checkpoint.pass()?;
                    let input = Input::of_bytes(bytes).slice(inner.offset - first.offset, inner.length)?;
                    // SAFETY: as above.
                    let mut wants = unsafe { claim(&inner.pieces) };
                    self.read_inner(sharding, inner.number, &input, &mut wants, worker)
                })
            });
            worker.encoded = scratch;
            read?;
        }
        Ok(())
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
}

/// How many of these, which are sorted, are fetched at once, and where the last of their bytes ends.
fn group(stored: &[&Stored<'_>]) -> (usize, u64) {
    let mut end = stored[0].end();
    let mut count = 1;
    for next in &stored[1..] {
        let further = end.max(next.end());
        if next.offset > end.saturating_add(GAP) || further - stored[0].offset > GROUP {
            break;
        }
        (count, end) = (count + 1, further);
    }
    (count, end)
}

/// How many inner chunks `part` of a chunk touches; 1 where it is no shard.
pub fn inner_count(chain: &Chain, part: &[AxisPart<'_>]) -> u64 {
    let ArrayToBytes::Sharding(sharding) = &chain.array_to_bytes else { return 1 };
    inner_cells(sharding, &stored_part(chain, part)).map_or(u64::MAX, |cells| cells.count())
}

/// The inner chunks that a part of a shard touches.
///
/// # Errors
/// As [`Cells::new`].
pub fn inner_cells<'a>(sharding: &'a Sharding, part: &[AxisPart<'a>]) -> Result<Cells<'a>> {
    Cells::new(part, |axis| AxisGrid::Equal(sharding.chunk_shape[axis]))
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
    let grid = sharding.grid(shape)?;
    let (offset, length) = sharding.index_range(&grid, nbytes)?;
    let index = input.slice(offset, length as u64)?;
    sharding.parse_index(index.load(length, &mut worker.encoded)?, &grid, nbytes)
}

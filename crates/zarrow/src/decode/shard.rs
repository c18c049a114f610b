//! Reads the selected parts of a shard: first its index, then inner chunks.
//!
//! 1. The inner chunks touched by a part are computed in the same way as the chunks of an array. Several parts are
//!    gathered, so that each inner chunk is decoded once. A missing inner chunk gives the fill value.
//! 2. Each inner chunk is read from its range of the shard, like a chunk.

use crate::codec::{Chain, InnerChunks, Input, Layout, ShardIndex, Worker};
use crate::decode::chunk::{Chunk, stored_part};
use crate::decode::missing_chunk;
use crate::decode::shard_share::Share;
use crate::error::{ErrorKind, Result};
use crate::place::output_claim::OutputClaim;
use crate::place::sink::Sink;
use crate::plan::axis_grid::AxisGrid;
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::plan::chunk_parts::ChunkParts;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use zarrow_array::allocation::Grow;

/// One selected part of an inner chunk, and its place in the output.
#[derive(Clone)]
struct Piece<'a> {
    sink: &'a Sink<'a>,
    part: PerAxis<AxisPart<'a>>,
}

/// For each claim on the chunk, its destination and the inner chunks that it touches.
type Plans<'a> = SmallVec<[(&'a Sink<'a>, ChunkParts<'a>); 1]>;

/// # Safety
/// As [`OutputClaim::new`]; the claims that the pieces were made from are not used meanwhile.
unsafe fn claims_of<'a>(pieces: &'a [Piece<'_>]) -> SmallVec<[OutputClaim<'a>; 1]> {
    // SAFETY: the caller's contract.
    pieces.iter().map(|piece| unsafe { OutputClaim::new(&piece.part, piece.sink) }).collect()
}

impl Chunk<'_> {
    /// Reads the selected parts of this chunk, which must be a shard.
    ///
    /// # Errors
    /// Any [`ErrorKind`] that bytes can give, with the codec.
    pub fn read_shard(
        &self,
        inner_chunks: &InnerChunks,
        input: &Input<'_>,
        claims: &[OutputClaim<'_>],
        share: Option<Share<'_>>,
        worker: &mut Worker,
    ) -> Result<()> {
        let input = input.measured()?;
        let own_index;
        let index = match share {
            Some(share) => share.index,
            None => {
                own_index = read_index(inner_chunks, self.shape, &input, worker)?;
                &own_index
            }
        };
        let plans =
            claims.iter().map(|claim| Ok((claim.sink(), inner_chunk_parts(inner_chunks, claim.part())?)));
        let plans: Plans<'_> = plans.collect::<Result<_>>()?;
        self.each_inner(inner_chunks, &plans, share, |number, pieces| {
            self.checkpoint.pass()?;
            // SAFETY: no two pieces of the claims, which are not used meanwhile, have a place in common.
            let mut claims = unsafe { claims_of(pieces) };
            match index.get(number as usize) {
                None => missing_chunk::fill(&mut claims, self.fill),
                Some((offset, length)) => {
                    self.read_inner(inner_chunks, number, &input.slice(offset, length)?, &mut claims, worker)
                }
            }
        })
    }

    /// Reads the selected parts of the inner chunk `number`.
    fn read_inner(
        &self,
        inner_chunks: &InnerChunks,
        number: u64,
        input: &Input<'_>,
        claims: &mut [OutputClaim<'_>],
        worker: &mut Worker,
    ) -> Result<()> {
        let slot = self.slot.map(|slot| slot.inner(number));
        let slot = slot.as_ref();
        let chunk = Chunk { chain: &inner_chunks.chain, shape: &inner_chunks.chunk_shape, slot, ..*self };
        chunk.read(input, claims, None, worker)
    }

    /// Calls `read` with the number of each inner chunk and the parts selected from it (step 1).
    ///
    /// No two pieces have a place in common, nor do the pieces of different shares: their inner chunks differ, or the
    /// claims do.
    fn each_inner<'w>(
        &self,
        inner_chunks: &InnerChunks,
        plans: &'w Plans<'_>,
        share: Option<Share<'_>>,
        mut read: impl FnMut(u64, &[Piece<'w>]) -> Result<()>,
    ) -> Result<()> {
        let grid = inner_chunks.grid(self.shape)?;
        // The grid's product fits, since the index is in memory.
        let number = |chunk_index: &[u64]| {
            chunk_index.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index)
        };
        let mut chunk_index = PerAxis::new();
        if let [(sink, chunk_parts)] = &plans[..] {
            let mut piece = [Piece { sink, part: PerAxis::new() }];
            for at in share.map_or(0..chunk_parts.count(), |share| share.range(chunk_parts.count())) {
                chunk_parts.get(at, &mut chunk_index, &mut piece[0].part);
                read(number(&chunk_index), &piece)?;
            }
            return Ok(());
        }
        let mut gathered: BTreeMap<u64, Vec<Piece<'w>>> = BTreeMap::new();
        for (sink, chunk_parts) in plans {
            for at in 0..chunk_parts.count() {
                let mut part = PerAxis::new();
                chunk_parts.get(at, &mut chunk_index, &mut part);
                gathered.entry(number(&chunk_index)).or_default().try_push(Piece { sink, part })?;
            }
        }
        let all = 0..gathered.len() as u64;
        let own = share.map_or(all.clone(), |share| share.range(all.end));
        let mut own = gathered.iter().skip(own.start as usize).take((own.end - own.start) as usize);
        own.try_for_each(|(at, pieces)| read(*at, pieces))
    }

    /// Returns the index of this chunk, if it is a shard that was not compressed as a whole.
    pub fn shard_index(&self, input: &Input<'_>, worker: &mut Worker) -> Result<ShardIndex> {
        match self.chain.layout() {
            Layout::InnerChunks(inner_chunks) => {
                read_index(inner_chunks, &self.stored_shape(), input, worker)
            }
            _ => Err(ErrorKind::Internal("only shards have an index".into()).into()),
        }
    }
}

/// Returns the number of inner chunks touched by `part` of a chunk; 1 if the chunk is not a shard.
pub fn inner_count(chain: &Chain, part: &[AxisPart<'_>]) -> u64 {
    let Layout::InnerChunks(inner_chunks) = chain.layout() else { return 1 };
    inner_chunk_parts(inner_chunks, &stored_part(chain, part))
        .map_or(u64::MAX, |chunk_parts| chunk_parts.count())
}

/// Returns the inner chunks touched by a part of a shard.
pub fn inner_chunk_parts<'a>(inner_chunks: &'a InnerChunks, part: &[AxisPart<'a>]) -> Result<ChunkParts<'a>> {
    ChunkParts::new(part, |axis| AxisGrid::Equal(inner_chunks.chunk_shape[axis]))
}

/// Reads the index of a shard of `shape`.
///
/// # Errors
/// Any [`ErrorKind`] that an index can give.
pub fn read_index(
    inner_chunks: &InnerChunks,
    shape: &[u64],
    input: &Input<'_>,
    worker: &mut Worker,
) -> Result<ShardIndex> {
    let input = input.measured()?;
    let nbytes = input.nbytes()?;
    let grid = inner_chunks.grid(shape)?;
    let (offset, length) = inner_chunks.index_range(&grid, nbytes)?;
    let index = input.slice(offset, length as u64)?;
    inner_chunks.parse_index(index.load(length, &mut worker.encoded)?, &grid, nbytes)
}

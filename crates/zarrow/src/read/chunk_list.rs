//! The chunks touched by a batch of selections, each listed once with all the parts selected from it.
//!
//! 1. Each item's selection is cut along its array's chunk grid.
//! 2. The pieces are numbered by chunk and sorted by that number, so that the pieces of one chunk are adjacent. A
//!    single item needs no sorting: its pieces belong to different chunks and are computed on request.

use crate::error::{ErrorKind, Result};
use crate::plan::axis_part::{AxisPart, PerAxis, whole_part};
use crate::plan::chunk_parts::ChunkParts;
use crate::read::item::Item;
use smallvec::SmallVec;
use zarrow_array::allocation::{self, Grow};

/// The parts selected from a chunk: for each item that selects from it, the item's number and the part.
pub type Pieces<'a> = SmallVec<[(usize, PerAxis<AxisPart<'a>>); 1]>;

/// The chunks of a batch.
pub struct ChunkList<'p> {
    plans: SmallVec<[Option<ChunkParts<'p>>; 1]>,
    /// The sorted pieces, and the index of each chunk's first piece; `None` for a single item.
    wanted: Option<(Vec<ItemPiece>, Vec<usize>)>,
}

/// An item's piece of a chunk. After sorting, the pieces of one chunk are adjacent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ItemPiece {
    /// The array's number, and the chunk's in the C order of its grid.
    chunk: (usize, u64),
    item: usize,
    /// The chunk's number within the item.
    at: u64,
}

impl<'p> ChunkList<'p> {
    /// Lists the chunks touched by `items`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a grid of 2⁶⁴ chunks and more, [`zarrow_array::Error::OutOfMemory`].
    pub fn new<T>(items: &[(Item<'p>, T)]) -> Result<ChunkList<'p>> {
        let mut plans = SmallVec::new();
        room(&mut plans, items.len())?;
        for (item, _) in items {
            let part = whole_part(item.selection);
            plans.push(part.as_ref().map(|part| item.reader.chunk_parts(part)).transpose()?);
        }
        if items.len() == 1 {
            return Ok(ChunkList { plans, wanted: None });
        }
        let mut wanted: Vec<ItemPiece> = Vec::new();
        for (number, (item, _)) in items.iter().enumerate() {
            if let Some(chunk_parts) = &plans[number] {
                gather(number, item, chunk_parts, &mut wanted)?;
            }
        }
        wanted.sort_unstable();
        let is_first = |at: &usize| *at == 0 || wanted[at - 1].chunk != wanted[*at].chunk;
        let starts = allocation::collected((0..wanted.len()).filter(is_first))?;
        Ok(ChunkList { plans, wanted: Some((wanted, starts)) })
    }

    /// The number of chunks.
    pub fn count(&self) -> u64 {
        match &self.wanted {
            Some((_, starts)) => starts.len() as u64,
            None => self.plans.iter().flatten().map(ChunkParts::count).sum(),
        }
    }

    /// Writes the index of chunk `number` in the grid, and adds the parts selected from it to `pieces`. Parts are made in
    /// place, since reads of small chunks would spend much of their time on copies.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`], if many items select from the chunk.
    pub fn get<'l>(
        &'l self,
        number: u64,
        chunk_index: &mut PerAxis<u64>,
        pieces: &mut Pieces<'l>,
    ) -> Result<()> {
        let single = [ItemPiece { chunk: (0, number), item: 0, at: number }];
        let wanted = match &self.wanted {
            None => &single[..],
            Some((wanted, starts)) => {
                let at = usize::try_from(number).unwrap_or(usize::MAX);
                let end = starts.get(at.saturating_add(1)).copied().unwrap_or(wanted.len());
                starts.get(at).and_then(|start| wanted.get(*start..end)).unwrap_or(&[])
            }
        };
        room(pieces, wanted.len())?;
        for one in wanted {
            if let Some(chunk_parts) = &self.plans[one.item] {
                pieces.push((one.item, PerAxis::new()));
                if let Some((_, part)) = pieces.last_mut() {
                    chunk_parts.get(one.at, chunk_index, part);
                }
            }
        }
        Ok(())
    }
}

/// Makes room for `count` elements, on the heap if there is more than one.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`].
pub fn room<T>(elements: &mut SmallVec<[T; 1]>, count: usize) -> Result<()> {
    elements.try_reserve(count).map_err(|_| allocation::no_memory::<T>(count))?;
    Ok(())
}

/// Adds the pieces of one item, given its `chunk_parts`.
///
/// # Errors
/// As [`ChunkList::new`].
fn gather(
    number: usize,
    item: &Item<'_>,
    chunk_parts: &ChunkParts<'_>,
    wanted: &mut Vec<ItemPiece>,
) -> Result<()> {
    let metadata = item.reader.metadata;
    let grid = metadata.chunk_grid.grid_shape(&metadata.shape);
    let too_many = || ErrorKind::Unsupported("a batch over more chunks than can be counted".into());
    grid.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent)).ok_or_else(too_many)?;
    let count = usize::try_from(chunk_parts.count()).unwrap_or(usize::MAX);
    wanted.make_room(count)?;
    let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
    for at in 0..chunk_parts.count() {
        chunk_parts.get(at, &mut chunk_index, &mut part);
        let chunk = chunk_index.iter().zip(&grid).fold(0, |number, (index, extent)| number * extent + index);
        wanted.try_push(ItemPiece { chunk: (item.array, chunk), item: number, at })?;
    }
    Ok(())
}

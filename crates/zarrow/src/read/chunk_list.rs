//! The chunks touched by a batch of selections, each listed once with all the parts selected from it.
//!
//! 1. Each item's selection is cut along its array's chunk grid.
//! 2. The pieces are numbered by chunk and sorted by that number, so that the pieces of one chunk are adjacent. A
//!    single item needs no sorting: its pieces belong to different chunks and are computed on request.

use crate::decode::reader::Reader;
use crate::error::{ErrorKind, Result};
use crate::metadata::FillValue;
use crate::plan::chunk_parts::ChunkParts;
use crate::plan::part::{AxisPart, PerAxis, whole_part};
use crate::selection::Selection;
use smallvec::SmallVec;
use zarrow_array::DataType;
use zarrow_array::allocation::{self, Grow};

/// One selection of one array.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// The array's number: items with the same number read the same array.
    pub array: usize,
    /// The array reader.
    pub reader: Reader<'a>,
    /// The selection to read.
    pub selection: &'a Selection,
}

impl<'a> Item<'a> {
    /// Whether the store's answers come by completion.
    pub fn is_remote(&self) -> bool {
        self.reader.store.remote().is_some()
    }

    /// The element type and the fill value for missing chunks.
    pub fn element(&self) -> (&'a DataType, &'a FillValue) {
        (&self.reader.metadata.data_type, &self.reader.metadata.fill_value)
    }
}

/// The parts selected from a chunk: for each item that selects from it, the item's number and the part.
pub type Pieces<'a> = SmallVec<[(usize, PerAxis<AxisPart<'a>>); 1]>;

/// The chunks of a batch.
pub struct ChunkList<'p> {
    plans: Vec<Option<ChunkParts<'p>>>,
    /// The sorted pieces, and the index of each chunk's first piece; `None` for a single item.
    wanted: Option<(Vec<Wanted>, Vec<usize>)>,
}

/// An item's piece of a chunk. After sorting, the pieces of one chunk are adjacent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
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
    pub fn new(items: &[Item<'p>]) -> Result<ChunkList<'p>> {
        let mut plans: Vec<Option<ChunkParts<'p>>> = allocation::with_capacity(items.len())?;
        for item in items {
            let part = whole_part(item.selection);
            plans.try_push(part.as_ref().map(|part| item.reader.chunk_parts(part)).transpose()?)?;
        }
        if items.len() == 1 {
            return Ok(ChunkList { plans, wanted: None });
        }
        let mut wanted: Vec<Wanted> = Vec::new();
        for (number, item) in items.iter().enumerate() {
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

    /// Returns chunk `number`: its index in the grid, and the parts selected from it.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`], if many items select from the chunk.
    pub fn get(&self, number: u64) -> Result<(PerAxis<u64>, Pieces<'_>)> {
        let single = [Wanted { chunk: (0, number), item: 0, at: number }];
        let wanted = match &self.wanted {
            None => &single[..],
            Some((wanted, starts)) => {
                let at = usize::try_from(number).unwrap_or(usize::MAX);
                let end = starts.get(at.saturating_add(1)).copied().unwrap_or(wanted.len());
                starts.get(at).and_then(|start| wanted.get(*start..end)).unwrap_or(&[])
            }
        };
        let (mut chunk_index, mut pieces) = (PerAxis::new(), Pieces::new());
        let out_of_memory = |_| allocation::no_memory::<Pieces<'_>>(wanted.len());
        pieces.try_reserve(wanted.len()).map_err(out_of_memory)?;
        for one in wanted {
            let mut part = PerAxis::new();
            if let Some(chunk_parts) = &self.plans[one.item] {
                chunk_parts.get(one.at, &mut chunk_index, &mut part);
                pieces.push((one.item, part));
            }
        }
        Ok((chunk_index, pieces))
    }
}

/// Adds the pieces of one item, given its `chunk_parts`.
///
/// # Errors
/// As [`ChunkList::new`].
fn gather(
    number: usize,
    item: &Item<'_>,
    chunk_parts: &ChunkParts<'_>,
    wanted: &mut Vec<Wanted>,
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
        wanted.try_push(Wanted { chunk: (item.array, chunk), item: number, at })?;
    }
    Ok(())
}

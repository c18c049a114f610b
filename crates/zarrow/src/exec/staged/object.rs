//! One value of a staged read: the chunk that it is, the leaves that it is decoded by, and the requests that these wait for.

use crate::codec::ShardIndex;
use crate::error::Result;
use crate::exec::chunk::{Chunk, stored_part};
use crate::exec::chunk_list::{ChunkList, Pieces};
use crate::exec::chunk_parts::ChunkParts;
use crate::exec::part::{AxisPart, PerAxis};
use crate::exec::read::Reader;
use crate::exec::shard::inner_chunk_parts;
use crate::exec::staged::bodies::{Bodies, Landed};
use crate::exec::staged::coalesce::{Merged, Wanted, coalesce};
use crate::exec::staged::need::Need;
use crate::store::remote::{FetchPolicy, ObjectVersion, RequestClass, Span};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::Buffer;
use zarrow_array::allocation::{self, Grow};

/// What is planned for an object, and does not change while it is read.
pub struct ObjectPlan<'p> {
    /// Where it is in its array's grid.
    pub chunk_index: PerAxis<u64>,
    /// Its key.
    pub key: String,
    /// What it is read by.
    pub reader: Reader<'p>,
    /// Its shape.
    pub shape: PerAxis<u64>,
    /// What is wanted of it by which item, axes in the order in which they are stored.
    pub pieces: Pieces<'p>,
    /// Of a shard, the inner chunks that each piece touches.
    pub inner: Vec<ChunkParts<'p>>,
}

/// A unit of decoding: a chunk, or an inner chunk of a shard. It is decoded when all that it waits for has landed.
#[derive(Debug, Default)]
pub struct Leaf {
    /// The inner chunk; `None` for all of the object.
    pub inner: Option<InnerLeaf>,
    /// The requests that have not landed.
    pub waits: u32,
    /// What has.
    pub bodies: Bodies,
}

/// An inner chunk that is stored.
#[derive(Debug)]
pub struct InnerLeaf {
    /// Its number in the shard.
    pub number: u64,
    /// Its bytes in the shard.
    pub range: Range<u64>,
    /// What is wanted of it: the number of a piece of the plan, and the number in that piece's chunk_parts.
    pub wanted: WantedOfInner,
    /// Its elements, where they were kept from an earlier read.
    pub kept: Option<Arc<Buffer>>,
}

/// By the number of a piece, the number among its chunk_parts.
pub type WantedOfInner = SmallVec<[(usize, u64); 1]>;

/// Bytes that are to be fetched, and the leaves that wait for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Which.
    pub span: Span,
    /// How many bytes that are at most.
    pub limit: u64,
    /// How many it is likely to be.
    pub expected: u64,
    /// What for.
    pub class: RequestClass,
    /// Who waits.
    pub leaves: SmallVec<[u32; 2]>,
    /// Whether one of these waits for a request before it too: then both are in flight at once, whatever else is.
    pub continues: bool,
}

impl Fetch {
    /// The index of a shard, in this range.
    pub fn index(range: Range<u64>) -> Fetch {
        let nbytes = range.end - range.start;
        Fetch { span: Span::Range(range), limit: nbytes, expected: nbytes, ..Fetch::nothing() }
    }

    /// The size and the version of a value, without its bytes.
    pub fn nothing() -> Fetch {
        let (span, leaves) = (Span::Range(0..0), SmallVec::new());
        Fetch { span, limit: 0, expected: 0, class: RequestClass::Metadata, leaves, continues: false }
    }
}

/// What an object needs, at first or once its index is known.
#[derive(Debug, Default)]
pub struct Split {
    /// The leaves.
    pub leaves: Vec<Leaf>,
    /// What to fetch for them.
    pub fetches: Vec<Fetch>,
    /// The inner chunks that are not stored.
    pub absent: Vec<WantedOfInner>,
}

/// How an object begins.
pub enum Beginning {
    /// With its index: so many bytes at its end, or from its start on.
    Index(Fetch),
    /// With what its one leaf needs.
    Leaf(Split),
}

impl<'p> ObjectPlan<'p> {
    /// The plan of chunk `number` of a list.
    ///
    /// # Errors
    /// As [`ChunkParts::new`].
    pub fn new(
        list: &'p ChunkList<'_>,
        number: u64,
        reader: impl Fn(usize) -> Reader<'p>,
    ) -> Result<ObjectPlan<'p>> {
        let (chunk_index, pieces) = list.get(number)?;
        let reader = reader(pieces.first().map_or(0, |(item, _)| *item));
        let (key, shape) = (reader.key(&chunk_index), reader.chunk_shape(&chunk_index));
        let pieces: Pieces<'p> =
            pieces.into_iter().map(|(item, part)| (item, stored_part(reader.chain, &part))).collect();
        let inner = match reader.sharding() {
            Some(sharding) => {
                allocation::try_collected(pieces.iter().map(|(_, part)| inner_chunk_parts(sharding, part)))?
            }
            None => Vec::new(),
        };
        Ok(ObjectPlan { chunk_index, key, reader, shape, pieces, inner })
    }

    /// How it begins: a shard with its index.
    ///
    /// # Errors
    /// As [`Chunk::need`].
    pub fn begin(&self, chunk: &Chunk<'_>, policy: &FetchPolicy) -> Result<Beginning> {
        let shape = chunk.stored_shape();
        let parts: SmallVec<[&[AxisPart<'_>]; 1]> = self.pieces.iter().map(|(_, part)| &part[..]).collect();
        let (ranges, nbytes) = match chunk.need(&parts, &shape)? {
            Need::Index(sharding) => {
                let (span, limit) = sharding.index_span(&shape)?;
                if matches!(span, Span::Suffix(_)) && !policy.has_suffix {
                    // Where the index lies is known with the size.
                    return Ok(Beginning::Index(Fetch::nothing()));
                }
                let class = RequestClass::Metadata;
                return Ok(Beginning::Index(Fetch {
                    span,
                    limit,
                    expected: limit,
                    class,
                    ..Fetch::nothing()
                }));
            }
            Need::Whole(limit) => {
                let fetch = Fetch {
                    span: Span::Whole,
                    limit,
                    expected: self.reader.likely_nbytes(&self.shape).min(limit),
                    class: RequestClass::Chunk,
                    leaves: SmallVec::from_slice(&[0]),
                    continues: false,
                };
                let leaf = Leaf { waits: 1, ..Leaf::default() };
                let (leaves, fetches) = (one(leaf)?, one(fetch)?);
                return Ok(Beginning::Leaf(Split { leaves, fetches, absent: Vec::new() }));
            }
            Need::Ranges(ranges, nbytes) => (ranges, nbytes),
        };
        let wanted = allocation::collected(ranges.into_iter().map(|range| (range, 0)))?;
        let fetches = fetches(wanted, Some(nbytes), policy)?;
        let leaf = Leaf { waits: fetches.len() as u32, ..Leaf::default() };
        Ok(Beginning::Leaf(Split { leaves: one(leaf)?, fetches, absent: Vec::new() }))
    }

    /// What the inner chunks need that are wanted of this shard, which has so many bytes; `kept` gives those that are decoded
    /// already.
    ///
    /// # Errors
    /// As [`begin`](ObjectPlan::begin), and what an index gives that does not fit.
    pub fn split(
        &self,
        chunk: &Chunk<'_>,
        index: &ShardIndex,
        nbytes: Option<u64>,
        policy: &FetchPolicy,
        kept: &dyn Fn(u64) -> Option<Arc<Buffer>>,
    ) -> Result<Split> {
        let mut split = Split::default();
        let mut wanted: Vec<Wanted> = Vec::new();
        self.each_inner(chunk, &mut |number, of_inner| {
            let Some((offset, length)) = index.get(usize::try_from(number).unwrap_or(usize::MAX)) else {
                return Ok(split.absent.try_push(of_inner)?);
            };
            let range = offset..offset.saturating_add(length);
            let (leaf, kept) = (split.leaves.len() as u32, kept(number));
            if kept.is_none() {
                self.inner_ranges(chunk, &range, &of_inner, &mut |part| Ok(wanted.try_push((part, leaf))?))?;
            }
            let inner = Some(InnerLeaf { number, range, wanted: of_inner, kept });
            Ok(split.leaves.try_push(Leaf { inner, ..Leaf::default() })?)
        })?;
        split.fetches = fetches(wanted, nbytes, policy)?;
        for leaf in split.fetches.iter().flat_map(|fetch| &fetch.leaves) {
            split.leaves[*leaf as usize].waits += 1;
        }
        Ok(split)
    }

    /// Calls `each` with each inner chunk that is wanted, in the order of their numbers where several items want some.
    ///
    /// # Errors
    /// What `each` gives, and as [`begin`](ObjectPlan::begin).
    pub fn each_inner(
        &self,
        chunk: &Chunk<'_>,
        each: &mut dyn FnMut(u64, WantedOfInner) -> Result<()>,
    ) -> Result<()> {
        let Some(sharding) = self.reader.sharding() else { return Ok(()) };
        let grid = sharding.grid(&chunk.stored_shape())?;
        let number_of = |chunk_parts: &ChunkParts<'_>, at: u64| {
            let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
            chunk_parts.get(at, &mut chunk_index, &mut part);
            // The product of the grid fitted its index, which is in memory.
            chunk_index.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index)
        };
        if let [chunk_parts] = &self.inner[..] {
            return (0..chunk_parts.count())
                .try_for_each(|at| each(number_of(chunk_parts, at), SmallVec::from_slice(&[(0, at)])));
        }
        let mut gathered: BTreeMap<u64, WantedOfInner> = BTreeMap::new();
        for (piece, chunk_parts) in self.inner.iter().enumerate() {
            for at in 0..chunk_parts.count() {
                gathered.entry(number_of(chunk_parts, at)).or_default().push((piece, at));
            }
        }
        gathered.into_iter().try_for_each(|(number, wanted)| each(number, wanted))
    }

    /// The ranges of the shard that an inner chunk in `range` needs.
    fn inner_ranges(
        &self,
        chunk: &Chunk<'_>,
        range: &Range<u64>,
        wanted: &WantedOfInner,
        add: &mut dyn FnMut(Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let Some(sharding) = self.reader.sharding() else { return Ok(()) };
        let inner = Chunk { chain: &sharding.inner, shape: &sharding.chunk_shape, slot: None, ..*chunk };
        let shape = inner.stored_shape();
        let (mut chunk_index, mut parts) = (PerAxis::new(), SmallVec::<[PerAxis<AxisPart<'_>>; 1]>::new());
        for (piece, at) in wanted {
            let mut part = PerAxis::new();
            self.inner[*piece].get(*at, &mut chunk_index, &mut part);
            parts.push(stored_part(&sharding.inner, &part));
        }
        let parts: SmallVec<[&[AxisPart<'_>]; 1]> = parts.iter().map(|part| &part[..]).collect();
        match inner.need(&parts, &shape)? {
            Need::Ranges(ranges, nbytes) if nbytes == range.end - range.start => {
                ranges.into_iter().try_for_each(|own| add(range.start + own.start..range.start + own.end))
            }
            // A nested shard is fetched whole, and so is what has another size than it should, which decoding tells.
            _ => add(range.clone()),
        }
    }
}

/// The requests for these ranges.
fn fetches(wanted: Vec<Wanted>, nbytes: Option<u64>, policy: &FetchPolicy) -> Result<Vec<Fetch>> {
    let merged = coalesce(wanted, nbytes, policy)?;
    let mut before: Option<u32> = None;
    let fetch = |Merged { range, leaves }| {
        let nbytes = range.end - range.start;
        let continues = before.is_some_and(|before| leaves.contains(&before));
        before = leaves.last().copied();
        let class = RequestClass::Chunk;
        Fetch { span: Span::Range(range), limit: nbytes, expected: nbytes, class, leaves, continues }
    };
    Ok(allocation::collected(merged.into_iter().map(fetch))?)
}

fn one<T>(item: T) -> Result<Vec<T>> {
    let mut items = allocation::with_capacity(1)?;
    items.push(item);
    Ok(items)
}

/// What of an object has come, and what is still to come.
pub struct Object<'p> {
    /// Its plan.
    pub plan: Arc<ObjectPlan<'p>>,
    /// How often it was begun: what belongs to an earlier attempt is void.
    pub attempt: u32,
    /// The version that all of its bytes are of.
    pub version: Option<ObjectVersion>,
    /// How many bytes it has.
    pub nbytes: Option<u64>,
    /// Whether its size was asked for, by which it is known where its index lies.
    pub is_measured: bool,
    /// Whether it is not stored, which each of its first requests tells.
    pub is_missing: bool,
    /// Whether its leaves are known.
    pub is_split: bool,
    /// What is to be fetched, in the order of the value.
    pub queue: VecDeque<Fetch>,
    /// Its leaves, until they are decoded.
    pub leaves: Vec<Option<Leaf>>,
    /// Leaves that are not decoded.
    pub left: usize,
    /// Work on it that has begun.
    pub at_work: usize,
    /// Whether it is to begin anew when no work on it is left.
    pub restarts: bool,
}

impl<'p> Object<'p> {
    /// An object of which nothing has come.
    pub fn new(plan: Arc<ObjectPlan<'p>>) -> Object<'p> {
        Object {
            plan,
            attempt: 0,
            version: None,
            nbytes: None,
            is_measured: false,
            is_missing: false,
            is_split: false,
            queue: VecDeque::new(),
            leaves: Vec::new(),
            left: 0,
            at_work: 0,
            restarts: false,
        }
    }

    /// The leaves that have all they need now that `landed` has come for these.
    pub fn land(&mut self, landed: &Arc<Landed>, leaves: &[u32]) -> SmallVec<[Leaf; 2]> {
        let mut ready = SmallVec::new();
        for number in leaves {
            let Some(slot) = self.leaves.get_mut(*number as usize) else { continue };
            let Some(leaf) = slot else { continue };
            leaf.bodies.add(Arc::clone(landed));
            leaf.waits = leaf.waits.saturating_sub(1);
            if leaf.waits == 0 {
                ready.extend(slot.take());
            }
        }
        ready
    }
}

//! One value of a staged read: its chunk, the leaves for decoding it, and the requests that the leaves wait for.

use crate::codec::{FEW_NBYTES, ShardIndex, wrong_elements_size};
use crate::decode::chunk::{Chunk, stored_part};
use crate::decode::reader::Reader;
use crate::decode::shard::inner_chunk_parts;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::plan::chunk_parts::ChunkParts;
use crate::read::chunk_list::{ChunkList, Pieces};
use crate::read::staged::coalesce::{LeafRange, MergedRequest, coalesce};
use crate::read::staged::direct_copy::{Place, are_apart};
use crate::read::staged::needed_bytes::Need;
use crate::store::remote::bodies::{Bodies, InFlightBody};
use crate::store::remote::{ByteRange, FetchPolicy, ObjectVersion, RequestClass};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::Buffer;
use zarrow_array::allocation::{self, Grow};
use zarrow_array::shape;

/// The immutable plan of an object.
pub struct ObjectPlan<'p> {
    /// The object's index in its array's grid.
    pub chunk_index: PerAxis<u64>,
    /// Its key.
    pub key: String,
    /// The reader of the object's array.
    pub reader: Reader<'p>,
    /// Its shape.
    pub shape: PerAxis<u64>,
    /// The parts selected by each item, in stored axis order.
    pub pieces: Pieces<'p>,
    /// For a shard, the inner chunks touched by each piece.
    pub inner: Vec<ChunkParts<'p>>,
    /// Whether chunks are handed over in encoded form, and therefore fetched whole.
    pub is_handed_over: bool,
}

/// A unit of decoding: a chunk, or an inner chunk of a shard. It is decoded when all its requests are complete.
#[derive(Debug, Default)]
pub struct Leaf {
    /// The inner chunk; `None` for all of the object.
    pub inner: Option<InnerLeaf>,
    /// The number of outstanding requests.
    pub waits: u32,
    /// The landed bytes.
    pub bodies: Bodies,
    /// The place in the result where bytes land directly; such a leaf needs no decoding.
    pub place: Option<Place>,
    /// The elements, if cached by an earlier read.
    pub kept: Option<Arc<Buffer>>,
}

/// A stored inner chunk.
#[derive(Debug)]
pub struct InnerLeaf {
    /// Its number in the shard.
    pub number: u64,
    /// Its bytes in the shard.
    pub range: Range<u64>,
    /// The selected parts: the number of a piece of the plan, and the number in that piece's `chunk_parts`.
    pub wanted: InnerPieces,
}

/// The number of a piece, and the number within its `chunk_parts`.
pub type InnerPieces = SmallVec<[(usize, u64); 1]>;

/// A range to be fetched, and the leaves that wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeFetch {
    /// The bytes to fetch.
    pub range: ByteRange,
    /// Maximum size in bytes.
    pub limit: u64,
    /// Expected size in bytes.
    pub expected: u64,
    /// The class of the request.
    pub class: RequestClass,
    /// The waiting leaves.
    pub leaves: SmallVec<[u32; 2]>,
    /// Whether a waiting leaf has landed bytes, or also waits for an earlier request: then the fetch is sent at once,
    /// regardless of the memory in flight.
    pub continues: bool,
}

impl RangeFetch {
    /// The index of a shard, in this range.
    pub fn index(range: Range<u64>) -> RangeFetch {
        let nbytes = range.end - range.start;
        RangeFetch {
            range: ByteRange::Range(range),
            limit: nbytes,
            expected: nbytes,
            ..RangeFetch::nothing()
        }
    }

    /// A fetch of the value's size and version, without its bytes.
    pub fn nothing() -> RangeFetch {
        let (range, leaves) = (ByteRange::Range(0..0), SmallVec::new());
        RangeFetch { range, limit: 0, expected: 0, class: RequestClass::Metadata, leaves, continues: false }
    }

    /// Returns the size of a value if it ends within the range; its last received byte is before `end`.
    pub fn cut_at(&self, end: u64) -> Option<u64> {
        let ByteRange::Range(range) = &self.range else { return None };
        (end < range.end).then_some(end)
    }

    /// Whether the value's size in bytes is unknown.
    pub fn is_guessed(&self) -> bool {
        self.range == ByteRange::Whole || self.class == RequestClass::Chunk && self.leaves.is_empty()
    }
}

/// The needs of an object, at first or once its index is known.
#[derive(Debug, Default)]
pub struct Split {
    /// The leaves.
    pub leaves: Vec<Leaf>,
    /// The fetches of the leaves.
    pub fetches: Vec<RangeFetch>,
    /// The missing inner chunks.
    pub absent: Vec<InnerPieces>,
    /// Whether the whole object is missing.
    pub is_missing: bool,
}

impl Split {
    /// The split of a missing object.
    pub fn missing() -> Split {
        Split { is_missing: true, ..Split::default() }
    }
}

/// The first step of reading an object.
pub enum Beginning {
    /// With its index: a number of bytes at its end or at its start, or the whole value.
    Index(RangeFetch),
    /// With the needs of its single leaf.
    Leaf(Split),
}

impl<'p> ObjectPlan<'p> {
    /// Plans chunk `number` of a list.
    ///
    /// # Errors
    /// As [`ChunkParts::new`].
    pub fn new(
        list: &'p ChunkList<'_>,
        number: u64,
        reader: impl Fn(usize) -> Reader<'p>,
        is_handed_over: bool,
    ) -> Result<ObjectPlan<'p>> {
        let (mut chunk_index, mut pieces) = (PerAxis::new(), Pieces::new());
        list.get(number, &mut chunk_index, &mut pieces)?;
        let reader = reader(pieces.first().map_or(0, |(item, _)| *item));
        let (key, shape) = (reader.key(&chunk_index), reader.chunk_shape(&chunk_index));
        let pieces: Pieces<'p> =
            pieces.into_iter().map(|(item, part)| (item, stored_part(reader.chain, &part))).collect();
        let inner = match reader.inner_chunks() {
            Some(inner_chunks) => allocation::try_collected(
                pieces.iter().map(|(_, part)| inner_chunk_parts(inner_chunks, part)),
            )?,
            None => Vec::new(),
        };
        Ok(ObjectPlan { chunk_index, key, reader, shape, pieces, inner, is_handed_over })
    }

    /// Returns the object's first step: a shard begins with its index.
    ///
    /// # Errors
    /// As [`Chunk::need`].
    pub fn begin(&self, chunk: &Chunk<'_>, policy: &FetchPolicy) -> Result<Beginning> {
        let shape = chunk.stored_shape();
        let parts: SmallVec<[&[AxisPart<'_>]; 1]> = self.pieces.iter().map(|(_, part)| &part[..]).collect();
        let (ranges, nbytes) = match chunk.need(&parts, &shape)? {
            Need::Index(inner_chunks) => {
                if let Some(fetch) = self.whole_shard(chunk, inner_chunks, policy)? {
                    return Ok(Beginning::Index(fetch));
                }
                let (range, limit) = inner_chunks.index_span(&shape)?;
                if matches!(range, ByteRange::Suffix(_)) && !policy.has_suffix {
                    // The size determines the position of the index.
                    return Ok(Beginning::Index(RangeFetch::nothing()));
                }
                let class = RequestClass::Metadata;
                return Ok(Beginning::Index(RangeFetch {
                    range,
                    limit,
                    expected: limit,
                    class,
                    ..RangeFetch::nothing()
                }));
            }
            // Only a request of the whole value shows that it has another length.
            Need::Ranges(ranges, nbytes)
                if !policy.tells_size
                    && (nbytes <= FEW_NBYTES || matches!(&ranges[..], [all] if *all == (0..nbytes))) =>
            {
                return self.whole(chunk.encoded_limit()? as u64);
            }
            Need::Whole(limit) => return self.whole(limit),
            Need::Ranges(_, nbytes) if self.is_handed_over => (one(0..nbytes)?, nbytes),
            Need::Ranges(ranges, nbytes) => (ranges, nbytes),
        };
        let wanted = allocation::collected(ranges.into_iter().map(|range| (range, 0)))?;
        let fetches = fetches(wanted, Some(nbytes), policy)?;
        let leaf = Leaf { waits: fetches.len() as u32, ..Leaf::default() };
        Ok(Beginning::Leaf(Split { leaves: one(leaf)?, fetches, ..Split::default() }))
    }

    /// The step of fetching the whole value.
    fn whole(&self, limit: u64) -> Result<Beginning> {
        let fetch = RangeFetch {
            range: ByteRange::Whole,
            limit,
            expected: self.reader.likely_nbytes(&self.shape).min(limit),
            class: RequestClass::Chunk,
            leaves: SmallVec::from_slice(&[0]),
            continues: false,
        };
        let leaf = Leaf { waits: 1, ..Leaf::default() };
        let (leaves, fetches) = (one(leaf)?, one(fetch)?);
        Ok(Beginning::Leaf(Split { leaves, fetches, ..Split::default() }))
    }

    /// Splits this shard of `nbytes` bytes into the needs of its selected inner chunks; `kept` returns the inner chunks
    /// that are already decoded, and `start` is the landed beginning of the shard, from the first byte on.
    ///
    /// # Errors
    /// As [`begin`](ObjectPlan::begin), and any error of an invalid index.
    pub fn split(
        &self,
        chunk: &Chunk<'_>,
        index: &ShardIndex,
        nbytes: Option<u64>,
        policy: &FetchPolicy,
        kept: &dyn Fn(u64) -> Option<Arc<Buffer>>,
        start: Option<&Arc<InFlightBody>>,
    ) -> Result<Split> {
        let landed_nbytes = start.map_or(0, |start| start.body().bytes.len() as u64);
        let mut split = Split::default();
        let mut wanted: Vec<LeafRange> = Vec::new();
        self.each_inner(chunk, &mut |number, of_inner| {
            let Some((offset, length)) = index.get(usize::try_from(number).unwrap_or(usize::MAX)) else {
                return Ok(split.absent.try_push(of_inner)?);
            };
            let range = offset..offset.saturating_add(length);
            let (leaf, kept, mut begins) = (split.leaves.len() as u32, kept(number), false);
            if kept.is_none() {
                self.inner_ranges(chunk, &range, &of_inner, &mut |part| {
                    begins |= part.start < landed_nbytes;
                    if part.end <= landed_nbytes {
                        return Ok(());
                    }
                    Ok(wanted.try_push((part.start.max(landed_nbytes)..part.end, leaf))?)
                })?;
            }
            let inner = Some(InnerLeaf { number, range, wanted: of_inner });
            let mut leaf = Leaf { inner, kept, ..Leaf::default() };
            start.filter(|_| begins).into_iter().for_each(|start| leaf.bodies.add(Arc::clone(start)));
            Ok(split.leaves.try_push(leaf)?)
        })?;
        split.fetches = fetches(wanted, nbytes, policy)?;
        let (leaves, fetches) = (&split.leaves, &mut split.fetches);
        for fetch in fetches {
            fetch.continues |= fetch.leaves.iter().any(|leaf| !leaves[*leaf as usize].bodies.is_empty());
        }
        for leaf in split.fetches.iter().flat_map(|fetch| &fetch.leaves) {
            split.leaves[*leaf as usize].waits += 1;
        }
        Ok(split)
    }

    /// Whether the elements have no fixed size.
    pub fn is_variable(&self) -> bool {
        self.reader.chain.data_type.without_optional().is_variable()
    }

    /// Returns the parts selected from an inner chunk, by item.
    pub fn inner_pieces(&self, wanted: &[(usize, u64)]) -> Pieces<'_> {
        let piece = |(piece, at): &(usize, u64)| {
            let (mut chunk_index, mut part) = (PerAxis::new(), PerAxis::new());
            self.inner[*piece].get(*at, &mut chunk_index, &mut part);
            (self.pieces[*piece].0, part)
        };
        wanted.iter().map(piece).collect()
    }

    /// Returns the error for a value of the wrong size, after a request has landed up to `end`, complete or not.
    pub fn wrong_size(&self, nbytes: Option<u64>, end: u64, is_complete: bool) -> Option<Error> {
        let of_chunk = self.reader.inner_chunks().is_none();
        let item_size = self.reader.chain.item_size().unwrap_or(0);
        let expected = shape::nbytes(&self.shape, item_size).unwrap_or(usize::MAX) as u64;
        let actual = nbytes.unwrap_or(end);
        if is_complete && (!of_chunk || nbytes.is_none_or(|nbytes| nbytes == expected)) {
            return None;
        }
        Some(wrong_elements_size(expected, actual))
    }

    /// Calls `each` with each selected inner chunk; in the order of their numbers if several items select inner chunks.
    ///
    /// # Errors
    /// What `each` gives, and as [`begin`](ObjectPlan::begin).
    pub fn each_inner(
        &self,
        chunk: &Chunk<'_>,
        each: &mut dyn FnMut(u64, InnerPieces) -> Result<()>,
    ) -> Result<()> {
        let Some(inner_chunks) = self.reader.inner_chunks() else { return Ok(()) };
        let grid = inner_chunks.grid(&chunk.stored_shape())?;
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
        let mut gathered: BTreeMap<u64, InnerPieces> = BTreeMap::new();
        for (piece, chunk_parts) in self.inner.iter().enumerate() {
            for at in 0..chunk_parts.count() {
                gathered.entry(number_of(chunk_parts, at)).or_default().push((piece, at));
            }
        }
        gathered.into_iter().try_for_each(|(number, wanted)| each(number, wanted))
    }

    /// The ranges of the shard that an inner chunk in `range` needs.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`], [`ErrorKind::Limit`].
    fn inner_ranges(
        &self,
        chunk: &Chunk<'_>,
        range: &Range<u64>,
        wanted: &InnerPieces,
        add: &mut dyn FnMut(Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let Some(inner_chunks) = self.reader.inner_chunks() else { return Ok(()) };
        let inner =
            Chunk { chain: &inner_chunks.chain, shape: &inner_chunks.chunk_shape, slot: None, ..*chunk };
        let shape = inner.stored_shape();
        let (mut chunk_index, mut parts) = (PerAxis::new(), SmallVec::<[PerAxis<AxisPart<'_>>; 1]>::new());
        for (piece, at) in wanted {
            let mut part = PerAxis::new();
            self.inner[*piece].get(*at, &mut chunk_index, &mut part);
            parts.push(stored_part(&inner_chunks.chain, &part));
        }
        let parts: SmallVec<[&[AxisPart<'_>]; 1]> = parts.iter().map(|part| &part[..]).collect();
        // An index may claim any range: refuse before fetching whatever decoding would refuse.
        let actual = range.end - range.start;
        match inner.need(&parts, &shape)? {
            Need::Ranges(_, expected) if expected == actual && self.is_handed_over => add(range.clone()),
            Need::Ranges(ranges, expected) if expected == actual => {
                ranges.into_iter().try_for_each(|own| add(range.start + own.start..range.start + own.end))
            }
            Need::Ranges(_, expected) => Err(wrong_elements_size(expected, actual)),
            // A nested shard is fetched whole.
            Need::Index(_) | Need::Whole(_) => {
                let limit = inner.encoded_limit()? as u64;
                if actual > limit {
                    return Err(
                        ErrorKind::Limit { what: "the size of an encoded chunk", actual, limit }.into()
                    );
                }
                add(range.clone())
            }
        }
    }
}

/// The requests for these ranges.
fn fetches(wanted: Vec<LeafRange>, nbytes: Option<u64>, policy: &FetchPolicy) -> Result<Vec<RangeFetch>> {
    let merged = coalesce(wanted, nbytes, policy)?;
    let mut before: Option<u32> = None;
    let fetch = |MergedRequest { range, leaves }| {
        let nbytes = range.end - range.start;
        let continues = before.is_some_and(|before| leaves.contains(&before));
        before = leaves.last().copied();
        let class = RequestClass::Chunk;
        RangeFetch {
            range: ByteRange::Range(range),
            limit: nbytes,
            expected: nbytes,
            class,
            leaves,
            continues,
        }
    };
    Ok(allocation::collected(merged.into_iter().map(fetch))?)
}

/// Returns a vector of one item.
pub fn one<T>(item: T) -> Result<Vec<T>> {
    let mut items = allocation::with_capacity(1)?;
    items.push(item);
    Ok(items)
}

/// The state of an object: landed bytes, and pending ones.
pub struct Object<'p> {
    /// Its plan.
    pub plan: Arc<ObjectPlan<'p>>,
    /// Number of restarts: data of an earlier attempt are void.
    pub attempt: u32,
    /// The version of all its bytes.
    pub version: Option<ObjectVersion>,
    /// Size in bytes.
    pub nbytes: Option<u64>,
    /// The number of requests for its index, after the first one.
    pub index_requests: u32,
    /// The landed bytes of a shard without its index, from the first byte on.
    pub start: Option<Arc<InFlightBody>>,
    /// Whether its leaves are known.
    pub is_split: bool,
    /// The pending fetches, in the order of the value.
    pub queue: VecDeque<RangeFetch>,
    /// Its leaves, until they are decoded.
    pub leaves: Vec<Option<Leaf>>,
    /// The number of undecoded leaves and pending fills.
    pub left: usize,
    /// The number of unfinished work items on it.
    pub at_work: usize,
    /// Whether to restart once no work on it is left.
    pub restarts: bool,
    /// Whether some of its bytes were received.
    pub has_landed: bool,
    /// Whether some of its data may already be in the result.
    pub has_placed: bool,
}

impl<'p> Object<'p> {
    /// An object without received bytes.
    pub fn new(plan: Arc<ObjectPlan<'p>>) -> Object<'p> {
        Object {
            plan,
            attempt: 0,
            version: None,
            nbytes: None,
            index_requests: 0,
            start: None,
            is_split: false,
            queue: VecDeque::new(),
            leaves: Vec::new(),
            left: 0,
            at_work: 0,
            restarts: false,
            has_landed: false,
            has_placed: false,
        }
    }

    /// Returns the places for a request's bytes, in the order of the value; `None` if they go to a body.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`]; [`ErrorKind::Internal`] if only some of the bytes have a place.
    pub fn places(&self, fetch: &RangeFetch) -> Result<Option<Vec<Place>>> {
        let ByteRange::Range(range) = &fetch.range else { return Ok(None) };
        let (mut places, mut placed) = (allocation::with_capacity(fetch.leaves.len())?, 0);
        for number in &fetch.leaves {
            let leaf = self.leaves.get(*number as usize).and_then(Option::as_ref);
            if let Some(place) = leaf.and_then(|leaf| leaf.place.as_ref()) {
                placed += 1;
                places.extend(place.part(range));
            }
        }
        if placed == 0 {
            return Ok(None);
        }
        places.sort_unstable_by_key(|place: &Place| place.range.start);
        if placed < fetch.leaves.len() || !are_apart(&places) {
            return Err(
                ErrorKind::Internal("parts of a request overlap or have no destination".into()).into()
            );
        }
        Ok(Some(places))
    }

    /// Records that `landed` has arrived for these leaves, and returns the leaves that are now complete.
    pub fn land(&mut self, landed: &Arc<InFlightBody>, leaves: &[u32]) -> SmallVec<[Leaf; 2]> {
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

//! Chunks passed to a sink without decoding: each stored byte is received once into the sink's memory, and the sink's
//! result equals the result of a read.

use crate::arrays::{SHAPE, dump, kinds, written};
use crate::simulated::{Manner, SimulatedStore};
use crate::{local, manner, open, selections, single};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use zarrow::store::remote::{FetchPolicy, RemoteAdapter};
use zarrow::store::{MemoryStore, Store, Value};
use zarrow::{Array, BodyAlloc, BodyMemory, ChunkAxis, ChunkSink, Result, Selection, StoredChunk};

/// Provides memory for bodies, and records its addresses.
#[derive(Default)]
struct Lender {
    borrowed: Mutex<Vec<Range<usize>>>,
    /// One in this many bodies gets no memory; 0 for none.
    fails: usize,
    asked: AtomicUsize,
}

struct Owner(#[allow(dead_code, reason = "it keeps the memory")] Vec<u8>);

impl BodyAlloc for Lender {
    fn body(&self, nbytes: usize) -> Option<BodyMemory> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        if self.fails > 0 && number.is_multiple_of(self.fails) {
            return None;
        }
        let mut memory = vec![0u8; nbytes];
        let pointer = NonNull::new(memory.as_mut_ptr())?;
        self.borrowed.lock().unwrap().push(pointer.addr().get()..pointer.addr().get() + nbytes);
        // SAFETY: the owner keeps the memory, and holds the only reference.
        Some(unsafe { BodyMemory::new(pointer, nbytes, Arc::new(Owner(memory))) })
    }
}

/// A result assembled from chunks.
struct Assembled {
    lender: Arc<Lender>,
    strides: Vec<usize>,
    elements: Mutex<Vec<u32>>,
    loaded: Mutex<Vec<Range<usize>>>,
    /// Number of chunks received into sink memory, and of all chunks.
    landed: AtomicUsize,
    taken: AtomicUsize,
    is_replaced: AtomicBool,
}

impl Assembled {
    fn new(selection: &Selection, fails: usize) -> Assembled {
        let shape = selection.shape();
        let stride = |axis: usize| shape[axis + 1..].iter().product::<u64>() as usize;
        Assembled {
            lender: Arc::new(Lender { fails, ..Lender::default() }),
            strides: (0..shape.len()).map(stride).collect(),
            elements: Mutex::new(vec![u32::MAX; shape.iter().product::<u64>() as usize]),
            loaded: Mutex::default(),
            landed: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            is_replaced: AtomicBool::new(false),
        }
    }

    /// Calls `each` with the result index of each selected element of a chunk, and its position in the chunk.
    fn each(&self, axes: &[ChunkAxis], each: &mut dyn FnMut(usize, &[u64])) {
        let mut numbers = vec![0u64; axes.len()];
        loop {
            let mut place = 0;
            let position: Vec<u64> = axes
                .iter()
                .zip(&numbers)
                .map(|(axis, number)| {
                    if let Some(output) = axis.output {
                        let at = if axis.reversed { axis.place - number } else { axis.place + number };
                        place += at as usize * self.strides[output];
                    }
                    axis.start + axis.step * number
                })
                .collect();
            each(place, &position);
            let Some(axis) = (0..axes.len()).rev().find(|axis| numbers[*axis] + 1 < axes[*axis].count) else {
                return;
            };
            numbers[axis] += 1;
            numbers[axis + 1..].fill(0);
        }
    }
}

impl ChunkSink for Assembled {
    fn take(&self, chunk: &mut StoredChunk<'_>) -> Result<()> {
        let mut elements = vec![MaybeUninit::new(0u8); chunk.decoded_nbytes];
        match (self.taken.fetch_add(1, Ordering::Relaxed) % 3, chunk.landed()?) {
            (_, Some(landed)) => {
                assert!(landed.owner.is::<Owner>());
                let start = landed.bytes.as_ptr().addr() - landed.offset;
                assert!(self.lender.borrowed.lock().unwrap().iter().any(|range| range.start == start));
                self.landed.fetch_add(1, Ordering::Relaxed);
                chunk.decode(Some(landed.bytes), &mut elements)?;
            }
            (0, None) => chunk.decode(None, &mut elements)?,
            (_, None) => {
                let mut memory = vec![MaybeUninit::new(0u8); chunk.stored_nbytes];
                let start = memory.as_ptr().addr();
                self.loaded.lock().unwrap().push(start..start + memory.len());
                let (offset, bytes) = chunk.load(&mut memory)?;
                assert_eq!(bytes.as_ptr().addr(), start + offset);
                chunk.decode(Some(bytes), &mut elements)?;
                // Not freed, so that its address stays unique during the test.
                std::mem::forget(memory);
            }
        }
        let strides: Vec<u64> =
            (0..chunk.shape.len()).map(|axis| chunk.shape[axis + 1..].iter().product()).collect();
        let mut result = self.elements.lock().unwrap();
        self.each(chunk.axes, &mut |place, position| {
            let at = position.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<u64>() as usize * 4;
            // SAFETY: every byte was initialised at the start.
            let word = elements[at..at + 4].iter().map(|byte| unsafe { byte.assume_init() });
            result[place] = u32::from_le_bytes(word.collect::<Vec<u8>>().try_into().unwrap());
        });
        Ok(())
    }

    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> Result<()> {
        let mut result = self.elements.lock().unwrap();
        let value = u32::from_ne_bytes(value.try_into().unwrap());
        self.each(axes, &mut |place, _| result[place] = value);
        Ok(())
    }

    fn bodies(&self) -> Option<Arc<dyn BodyAlloc>> {
        Some(Arc::clone(&self.lender) as _)
    }

    fn is_replaced(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
    }
}

/// Returns the elements of a selection, by a read.
fn expected(array: &Array, selection: &Selection) -> Vec<u32> {
    let tensor = array.read(selection).unwrap().into_tensor().unwrap();
    tensor.as_slice::<u32>().unwrap().to_vec()
}

fn read(array: &Array, selection: &Selection, fails: usize) -> (Result<()>, Assembled) {
    let assembled = Assembled::new(selection, fails);
    let outcome = array.request(selection).unwrap().stored(&assembled).read();
    (outcome, assembled)
}

#[test]
fn passed_on_chunks_equal_a_read() {
    let mut seed = 0;
    let mut count = 0;
    for kind in kinds() {
        let values = written(&kind, 0);
        let direct = local(&values);
        for selection in selections().iter().filter(|selection| direct.hands_over(selection)) {
            let expected = expected(&direct, selection);
            let found = |array: &Array, fails| {
                let (outcome, assembled) = read(array, selection, fails);
                outcome.unwrap();
                assembled.elements.into_inner().unwrap()
            };
            assert_eq!(found(&direct, 0), expected, "{}", kind.name);
            for cache_nbytes in [0, 1 << 20] {
                (seed, count) = (seed + 1, count + 1);
                let manner = Manner { restarts: 11 * (seed % 2), has_versions: seed % 5 > 0, ..manner(seed) };
                let store = SimulatedStore::new(single(&values), manner);
                let staged = open(Arc::new(RemoteAdapter::new(store.clone())), cache_nbytes);
                // The second read finds the cache entries of the first, and of a decoding read.
                for fails in [0, 3] {
                    assert_eq!(found(&staged, fails), expected, "{}, seed {seed}", kind.name);
                    assert_eq!(
                        dump(&staged.read(selection).unwrap()),
                        dump(&direct.read(selection).unwrap())
                    );
                }
                store.settle();
            }
        }
    }
    assert!(count > 50, "{count} cases");
}

#[test]
fn bodies_are_written_where_the_sink_says() {
    for name in ["zstd", "raw", "rows", "sharded", "index first", "sharded raw"] {
        let kind = kinds().into_iter().find(|kind| kind.name == name).unwrap();
        let policy = FetchPolicy::default();
        let store = SimulatedStore::new(single(&written(&kind, 0)), Manner { policy, ..manner(5) });
        let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
        let (outcome, assembled) = read(&staged, &Selection::all(&SHAPE), 0);
        outcome.unwrap();
        let (landed, taken) = (assembled.landed.into_inner(), assembled.taken.into_inner());
        assert!(landed == taken && taken >= 4, "{name}: {landed} of {taken}");
        store.settle();
        // No copies remain after the read.
        assert_eq!(Arc::strong_count(&assembled.lender), 1, "{name}");
    }
}

/// All bytes of a chunk are of one version, or the sink is notified.
#[test]
fn a_replaced_value_is_not_passed_on_twice() {
    let (mut dump, mut whole) = (0, 0);
    for name in ["zstd", "sharded", "sharded raw", "index first"] {
        let kind = kinds().into_iter().find(|kind| kind.name == name).unwrap();
        let (old, new) = (written(&kind, 0), written(&kind, 1));
        for seed in 0..60 {
            let versions =
                old.iter().map(|(key, value)| (key.clone(), vec![value.clone(), new[key].clone()])).collect();
            let store = SimulatedStore::new(versions, Manner { changes: 20, ..manner(seed) });
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let (outcome, assembled) = read(&staged, &Selection::all(&SHAPE), 0);
            store.settle();
            if let Err(error) = outcome {
                assert!(error.to_string().contains("was replaced while it was read"), "{error}");
                dump += usize::from(assembled.is_replaced.into_inner());
                continue;
            }
            assert!(!assembled.is_replaced.into_inner());
            whole += 1;
            let mut versions: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            for (at, element) in assembled.elements.into_inner().unwrap().into_iter().enumerate() {
                let (row, column) = (at as u64 / SHAPE[1], at as u64 % SHAPE[1]);
                assert!(element != u32::MAX);
                // The fill value; all other values identify their version.
                if element != 7 {
                    let chunk = (row / kind.chunks[0], column / kind.chunks[1]);
                    let version = *versions.entry(chunk).or_insert(element % 2);
                    assert_eq!(version, element % 2, "{name}, seed {seed}, chunk {chunk:?}");
                }
            }
        }
    }
    assert!(dump > 10 && whole > 10, "{dump} dump, {whole} whole");
}

/// Values in memory that are read like files, with a record of the destinations.
#[derive(Debug)]
struct Recorded {
    inner: MemoryStore,
    reads: Mutex<Vec<Range<usize>>>,
}

struct RecordedValue<'a> {
    bytes: Vec<u8>,
    reads: &'a Mutex<Vec<Range<usize>>>,
}

impl Value for RecordedValue<'_> {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let rest = &self.bytes[offset as usize..];
        let length = rest.len().min(destination.len());
        let start = destination.as_ptr().addr();
        self.reads.lock().unwrap().push(start..start + length);
        Ok(destination[..length].write_copy_of_slice(&rest[..length]))
    }
}

impl Store for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        let bytes = self.inner.get(key, u64::MAX)?;
        Ok(bytes.map(|bytes| Box::new(RecordedValue { bytes, reads: &self.reads }) as Box<dyn Value + '_>))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        self.inner.nbytes(prefix)
    }
}

#[test]
fn local_chunks_are_read_where_the_sink_says() {
    for name in ["zstd", "raw", "sharded"] {
        let kind = kinds().into_iter().find(|kind| kind.name == name).unwrap();
        let inner = MemoryStore::new(written(&kind, 0)).unwrap();
        let store = Arc::new(Recorded { inner, reads: Mutex::default() });
        let array = open(Arc::clone(&store) as _, 0);
        let all = Selection::all(&SHAPE);
        let (outcome, assembled) = read(&array, &all, 0);
        outcome.unwrap();
        let reads = store.reads.lock().unwrap();
        let loaded = assembled.loaded.into_inner().unwrap();
        assert!(loaded.len() > 5, "{name}");
        for memory in &loaded {
            assert!(reads.contains(memory), "{name}: a chunk came from elsewhere");
        }
    }
}

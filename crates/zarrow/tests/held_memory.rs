//! Memory held between reads, counted by the allocator: caches stay within their limits, including the overhead of
//! entries, and idle threads hold nothing that cannot be freed.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use zarrow::metadata::CodecMetadata;
use zarrow::store::{MemoryStore, Store};
use zarrow::{Array, ArrayBuilder, Existing, Index, Node, OpenOptions, Selection, Values};
use zarrow_array::Number;

/// The system's allocator, which counts used bytes, including the C library's overhead of each block.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Returns the size of a block with its header: a multiple of 16 bytes, and more if it is aligned within a page. Pages
/// before a block that begins at a huge page are never touched.
fn piece(layout: Layout) -> usize {
    let unused = if (17..=4096).contains(&layout.align()) { layout.align() } else { 0 };
    (layout.size() + 8).next_multiple_of(16).max(32) + unused
}

// SAFETY: all memory is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(piece(layout), Ordering::SeqCst);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(piece(layout), Ordering::SeqCst);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// One count for all tests of the process, so they run one at a time.
fn one() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn filled(builder: ArrayBuilder, cache_nbytes: usize) -> Array {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let metadata = builder.build().unwrap();
    let created =
        zarrow::create_array(Arc::clone(&store), "", metadata, Existing::Refuse, &OpenOptions::default())
            .unwrap();
    let value = [1u8; 8];
    let values = Values::contiguous(&value, Number::Int64.into(), &[]).unwrap();
    created.write(&Selection::all(created.shape()), &values).unwrap();
    let options = OpenOptions::default().cache_nbytes(cache_nbytes);
    let Node::Array(array) = zarrow::open_with(store, "", &options).unwrap() else { panic!("a group") };
    array
}

/// Elements that are not a run of a chunk, so that it is decoded into the thread's buffer.
fn every_other(array: &Array) -> Selection {
    Selection::new(array.shape(), &[Index::Slice { start: None, stop: None, step: Some(2) }]).unwrap()
}

/// Returns the bytes in use, after caches were released.
fn live() -> usize {
    zarrow_array::release_recycled();
    zarrow::release_idle();
    LIVE.load(Ordering::SeqCst)
}

/// Returns the additional bytes in use after a read of the whole array.
fn grown_by_reading(array: &Array) -> usize {
    let before = live();
    drop(array.read(Selection::all(array.shape())).unwrap());
    live().saturating_sub(before)
}

#[test]
fn a_cache_of_small_chunks_keeps_to_its_limit() {
    let _one = one();
    let limit = 1 << 20;
    let zstd = CodecMetadata::new("zstd", Default::default());
    let array =
        filled(ArrayBuilder::new([20_000], Number::Int64).chunk_shape([1]).compressors([zstd]), limit);
    let held = grown_by_reading(&array);
    assert!(held <= limit, "{held} bytes are held by a cache of {limit}");
    assert!(held > limit / 3, "{held} bytes are held by a cache of {limit}");
}

/// Chunks below, at and above the sizes that are cut from slabs.
#[test]
fn a_cache_of_large_chunks_keeps_to_its_limit() {
    let _one = one();
    for chunk in [1_000, 2_100, 40_000, 200_000, 262_143, 262_144, 500_000] {
        for limit in [64 << 10, 9 << 20, 20 << 20] {
            let zstd = CodecMetadata::new("zstd", Default::default());
            let count = (30 << 20) / (8 * chunk) + 3;
            let builder = ArrayBuilder::new([chunk * count], Number::Int64).chunk_shape([chunk]);
            let array = filled(builder.compressors([zstd]), limit);
            let held = grown_by_reading(&array);
            assert!(held <= limit, "{held} bytes are held by a cache of {limit}, of chunks of {chunk}");
            let fits = 8 * chunk as usize + 1_000 < limit;
            assert!(!fits || held > limit / 3, "{held} bytes are held by a cache of {limit}");
            let again = grown_by_reading(&array);
            assert!(again < 1 << 20, "{again} bytes more are held after a second read");
            // The chunk that was read last is there, however many were read before.
            for number in (0..count).filter(|_| fits) {
                let part = Index::Slice {
                    start: Some((number * chunk) as i64),
                    stop: Some((number * chunk) as i64 + 5),
                    step: None,
                };
                let part = Selection::new(array.shape(), &[part]).unwrap();
                let hits = || array.cache_counts().unwrap().hits;
                drop(array.read(&part).unwrap());
                let before = hits();
                drop(array.read(&part).unwrap());
                assert_eq!(hits(), before + 1, "chunk {number} of {chunk} elements, limit {limit}");
            }
        }
    }
}

#[test]
fn the_indexes_of_many_shards_keep_to_their_limit() {
    let _one = one();
    let limit = 16 << 20;
    let builder = ArrayBuilder::new([120_000], Number::Int64).chunk_shape([1]).shard_shape([2]);
    let array = filled(builder.compressors([]), 0);
    let held = grown_by_reading(&array);
    assert!(held <= limit, "{held} bytes are held by indexes of {limit}");
    assert!(held > limit / 3, "{held} bytes are held by indexes of {limit}");
}

#[test]
fn idle_threads_hold_nothing_that_cannot_be_freed() {
    let _one = one();
    const THREADS: usize = 6;
    const CHUNK: u64 = 4 << 20;
    let zstd = CodecMetadata::new("zstd", Default::default());
    let builder =
        ArrayBuilder::new([CHUNK / 8 * 4], Number::Int64).chunk_shape([CHUNK / 8]).compressors([zstd]);
    let array = filled(builder.big_endian(true), 0);
    let before = live();
    let (read, done) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let (mut found, mut held) = ((0, 0, 0), 0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                drop(array.read(every_other(&array)).unwrap());
                read.wait();
                // The thread stays alive, idle.
                done.wait();
            });
        }
        read.wait();
        zarrow_array::release_recycled();
        found = (zarrow::idle_nbytes(), zarrow::release_idle(), zarrow::idle_nbytes());
        held = LIVE.load(Ordering::SeqCst).saturating_sub(before);
        done.wait();
    });
    let (kept, released, left) = found;
    assert!(
        kept >= CHUNK as usize && released >= CHUNK as usize,
        "the memory of a chunk is kept: {kept} bytes"
    );
    assert_eq!(left, 0);
    assert!(held < 1 << 20, "{held} bytes are held by idle threads");
}

#[test]
fn memory_of_idle_threads_is_bounded() {
    let _one = one();
    let limit = zarrow_array::recycled_limit();
    let zstd = CodecMetadata::new("zstd", Default::default());
    let builder = ArrayBuilder::new([1 << 19], Number::Int64).chunk_shape([1 << 19]).compressors([zstd]);
    let array = filled(builder.big_endian(true), 0);
    live();
    zarrow_array::set_recycled_limit(1 << 20);
    drop(array.read(every_other(&array)).unwrap());
    let kept = zarrow::idle_nbytes();
    zarrow_array::set_recycled_limit(limit);
    assert!(kept < 2 << 20, "{kept} bytes are kept");
}

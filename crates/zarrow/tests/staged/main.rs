//! Staged reads from a simulated store equal reads of the same values in memory: every layout and selection, with answers
//! in any order, in pieces, restarted, of replaced values, or cancelled at any event.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod archive;
mod arrays;
mod detached;
mod handed_over;
mod simulated;
mod whole_shards;

use arrays::{SHAPE, kinds, told, written};
use serde_json::json;
use simulated::{Manner, SimulatedStore, Versions};
use std::collections::BTreeMap;
use std::sync::Arc;
use zarrow::store::remote::{ByteRange, FetchPolicy, RemoteAdapter};
use zarrow::store::{MemoryStore, RemoteZip, Store, ZipStore};
use zarrow::{Array, ErrorKind, Index, OpenOptions, Selection};
use zarrow_array::DecodedArray;

fn open(store: Arc<dyn Store>, cache_nbytes: usize) -> Array {
    let options = OpenOptions::default().cache_nbytes(cache_nbytes);
    zarrow::open_with(store, "", &options).unwrap().into_array().unwrap()
}

fn local(values: &BTreeMap<String, Vec<u8>>) -> Array {
    open(Arc::new(MemoryStore::new(values.clone()).unwrap()), 0)
}

fn manner(seed: u64) -> Manner {
    let policy = FetchPolicy {
        requests: 1 + (seed % 9) as usize,
        gap_nbytes: [0, 40, 1 << 20][(seed / 9 % 3) as usize],
        gaps_nbytes: [0, 200, 1 << 20][(seed / 3 % 3) as usize],
        merged_nbytes: [300, 1 << 20][(seed / 27 % 2) as usize],
        split_nbytes: [100, 1 << 20][(seed / 54 % 2) as usize],
        has_suffix: !seed.is_multiple_of(4),
        cuts_ranges: true,
        tells_size: !seed.is_multiple_of(5),
    };
    Manner {
        seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        changes: 0,
        restarts: 0,
        has_versions: true,
        has_sizes: true,
        lies: false,
        policy,
    }
}

fn slice(start: i64, stop: i64, step: i64) -> Index {
    Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) }
}

fn selections() -> Vec<Selection> {
    use zarrow::AxisIndex;
    let basic = |indices: &[Index]| Selection::new(&SHAPE, indices).unwrap();
    let list = |positions: &'static [i64]| AxisIndex::List(positions);
    vec![
        Selection::all(&SHAPE),
        basic(&[slice(3, 47, 1), slice(5, 40, 1)]),
        basic(&[slice(0, 60, 13), slice(0, 44, 7)]),
        basic(&[Index::At(17)]),
        basic(&[Index::Ellipsis, Index::At(-3)]),
        basic(&[slice(55, 4, -9)]),
        basic(&[slice(5, 5, 1)]),
        Selection::orthogonal(&SHAPE, &[list(&[50, 3, 3, 21]), list(&[0, 43, 12])]).unwrap(),
        Selection::points(&SHAPE, &[list(&[50, 3, 3, 21, 59]), list(&[0, 43, 12, 1, 30])], &[5]).unwrap(),
    ]
}

fn single(values: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Versions> {
    values.iter().map(|(key, value)| (key.clone(), vec![value.clone()])).collect()
}

/// Every kind of chunk, by every selection, with answers in any order.
#[test]
fn staged_reads_equal_direct_ones() {
    let mut seed = 1;
    for kind in kinds() {
        let values = written(&kind, 0);
        let direct = local(&values);
        for selection in selections() {
            let expected = told(&direct.read(&selection).unwrap());
            for cache_nbytes in [0, 1 << 20] {
                seed += 1;
                let manner = Manner { restarts: 11 * (seed % 2), has_versions: seed % 5 > 0, ..manner(seed) };
                let store = SimulatedStore::new(single(&values), manner);
                let staged = open(Arc::new(RemoteAdapter::new(store.clone())), cache_nbytes);
                for again in 0..2 {
                    let found = staged.read(&selection).map(|found| told(&found));
                    assert_eq!(found.unwrap(), expected, "{}, seed {seed}, read {again}", kind.name);
                }
                store.settle();
            }
        }
    }
}

/// Inner chunks with equal byte ranges in the index: each gets the bytes.
#[test]
fn inner_chunks_that_share_bytes() {
    const ENTRIES_NBYTES: usize = 4 * 16;
    let kind = kinds().into_iter().find(|kind| kind.name == "sharded rows").unwrap();
    for offset in [0u64, 352, 1000] {
        let mut values = written(&kind, 0);
        let shard = values.get_mut("c/0/0").unwrap();
        let index = shard.len() - ENTRIES_NBYTES - 4;
        // Offset of the second one.
        shard[index + 16..index + 24].copy_from_slice(&offset.to_le_bytes());
        let sum = crc32c::crc32c(&shard[index..index + ENTRIES_NBYTES]).to_le_bytes();
        shard[index + ENTRIES_NBYTES..].copy_from_slice(&sum);
        let all = Selection::all(&SHAPE);
        let expected = told(&local(&values).read(&all).unwrap());
        for seed in 0..108 {
            let store = SimulatedStore::new(single(&values), manner(seed));
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            assert_eq!(told(&staged.read(&all).unwrap()), expected, "{offset}, seed {seed}");
            store.settle();
        }
    }
}

/// Frames after a not-found answer do not overwrite the fill value; contradictory sizes are errors.
#[test]
fn a_chunk_placed_in_the_result_may_be_missing_or_of_another_size() {
    let kind = kinds().into_iter().find(|kind| kind.name == "rows").unwrap();
    let all = Selection::all(&SHAPE);
    for seed in 0..108 {
        let mut values = written(&kind, 0);
        values.remove("c/1/0").unwrap();
        let expected = told(&local(&values).read(&all).unwrap());
        let store = SimulatedStore::new(single(&values), manner(seed));
        let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
        assert_eq!(told(&staged.read(&all).unwrap()), expected, "seed {seed}");
        store.settle();
        for nbytes in [0, 100, 16 * 44 * 4 - 1, 16 * 44 * 4 + 1] {
            values.get_mut("c/0/0").unwrap().resize(nbytes, 0);
            let store = SimulatedStore::new(single(&values), manner(seed));
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let error = staged.read(&all).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::WrongSize { .. }), "{error}, {nbytes}, seed {seed}");
            store.settle();
        }
    }
}

/// Several items of a batch share chunks, which are fetched once.
#[test]
fn a_batch_fetches_each_chunk_once() {
    for kind in kinds() {
        let values = written(&kind, 0);
        let store =
            SimulatedStore::new(single(&values), Manner { policy: FetchPolicy::default(), ..manner(3) });
        let (direct, staged) = (local(&values), open(Arc::new(RemoteAdapter::new(store.clone())), 0));
        let crops: Vec<Selection> = [0, 4, 30, 41]
            .iter()
            .map(|start| {
                Selection::new(&SHAPE, &[slice(*start, start + 15, 1), slice(start % 7, 44, 2)]).unwrap()
            })
            .collect();
        store.seen();
        let batch = |array: &Array| {
            let items: Vec<_> = crops.iter().map(|crop| array.request(crop).unwrap()).collect();
            match zarrow::read_many(&items).unwrap() {
                zarrow::Batch::Stacked(decoded) => told(&decoded),
                zarrow::Batch::Ragged(arrays) => arrays.iter().map(told).collect(),
            }
        };
        assert_eq!(batch(&staged), batch(&direct), "{}", kind.name);
        let (requests, _) = store.seen();
        let mut whole: Vec<_> =
            requests.iter().filter(|request| request.span == ByteRange::Whole).map(|one| &one.key).collect();
        let count = whole.len();
        whole.sort_unstable();
        whole.dedup();
        assert_eq!(whole.len(), count, "{}: {requests:?}", kind.name);
    }
}

/// A second read of a shard skips the index; if the index's version is outdated, the read restarts.
#[test]
fn an_index_is_cached_until_the_shard_is_replaced() {
    let kind = kinds().into_iter().find(|kind| kind.name == "sharded").unwrap();
    let (old, new) = (written(&kind, 0), written(&kind, 1));
    let versions =
        old.iter().map(|(key, value)| (key.clone(), vec![value.clone(), new[key].clone()])).collect();
    let policy = FetchPolicy::default();
    let store = SimulatedStore::new(versions, Manner { policy, ..manner(5) });
    let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
    let crop = Selection::new(&SHAPE, &[slice(0, 8, 1), slice(0, 6, 1)]).unwrap();
    store.seen();
    let first = told(&staged.read(&crop).unwrap());
    assert_eq!(store.seen().0.len(), 2, "an index and a chunk");
    assert_eq!(told(&staged.read(&crop).unwrap()), first);
    let (requests, _) = store.seen();
    assert!(requests.len() == 1 && requests[0].if_version.is_some(), "{requests:?}");
    store.replace_all();
    let expected = told(&local(&new).read(&crop).unwrap());
    assert_eq!(told(&staged.read(&crop).unwrap()), expected);
    assert_eq!(store.seen().0.len(), 3, "the chunk of the version that is gone, then an index and a chunk");
    // A cached decoded chunk needs a request for its version, and none for its bytes.
    let kept = open(Arc::new(RemoteAdapter::new(store.clone())), 1 << 20);
    assert_eq!(told(&kept.read(&crop).unwrap()), expected);
    store.seen();
    assert_eq!(told(&kept.read(&crop).unwrap()), expected);
    let (requests, _) = store.seen();
    assert!(requests.len() == 1 && requests[0].span == ByteRange::Range(0..0), "{requests:?}");
}

/// An index may give any size for an inner chunk in a value of any size: no request follows it.
#[test]
fn an_index_that_claims_too_much_is_refused_before_it_is_followed() {
    let raw = json!([arrays::bytes()]);
    let nested = arrays::sharded([8, 6], &raw, "end");
    for inner in [raw.clone(), json!([arrays::bytes(), arrays::zstd()]), nested] {
        let codecs = arrays::sharded_by([16, 12], &inner, "start", &raw);
        let kind = arrays::Kind { name: "claims", data_type: "uint32", chunks: [32, 24], codecs };
        let mut values = written(&kind, 0);
        values.get_mut("c/0/0").unwrap()[8..16].copy_from_slice(&(1u64 << 60).to_le_bytes());
        let store = SimulatedStore::new(single(&values), Manner { lies: true, ..manner(3) });
        let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
        // Opening cancels requests whose answers it does not need, and does not wait for their ends.
        store.settle();
        store.seen();
        let error = staged.read((..16, ..12)).unwrap_err();
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::WrongSize { .. } | ErrorKind::Limit { .. }), "{error}");
        let (requests, _) = store.seen();
        assert!(requests.len() <= 2, "{requests:?}");
    }
}

/// Inner chunks may share bytes of their shard: each gets the bytes.
#[test]
fn inner_chunks_that_share_their_bytes() {
    let raw = json!([arrays::bytes()]);
    let codecs = arrays::sharded_by([8, 6], &raw, "start", &raw);
    let kind = arrays::Kind { name: "shared", data_type: "uint32", chunks: [32, 24], codecs };
    let mut values = written(&kind, 0);
    let shard = values.get_mut("c/0/0").unwrap();
    let first: [u8; 16] = shard[..16].try_into().unwrap();
    shard[16..32].copy_from_slice(&first);
    // And one that begins inside another.
    let amid = u64::from_le_bytes(first[..8].try_into().unwrap()) + 40;
    shard[32..40].copy_from_slice(&amid.to_le_bytes());
    let direct = local(&values);
    for seed in 0..200 {
        let store = SimulatedStore::new(single(&values), manner(seed));
        let staged = open(Arc::new(RemoteAdapter::new(store)), 0);
        for selection in selections() {
            let expected = told(&direct.read(&selection).unwrap());
            assert_eq!(told(&staged.read(&selection).unwrap()), expected, "seed {seed}");
        }
    }
}

/// Values are replaced at any event: every chunk, and every shard, is old or new, and never a mixture.
#[test]
fn every_chunk_is_read_from_one_version() {
    for kind in kinds().into_iter().filter(|kind| kind.data_type == "uint32") {
        let (old, new) = (written(&kind, 0), written(&kind, 1));
        assert_eq!(old.keys().collect::<Vec<_>>(), new.keys().collect::<Vec<_>>(), "{}", kind.name);
        let versions: BTreeMap<String, Versions> = old
            .iter()
            .map(|(key, value)| {
                (
                    key.clone(),
                    (0..9).map(|turn| if turn % 2 == 0 { value.clone() } else { new[key].clone() }).collect(),
                )
            })
            .collect();
        for seed in 0..12 {
            let store =
                SimulatedStore::new(versions.clone(), Manner { changes: 9, restarts: 13, ..manner(seed) });
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let found = match staged.read(..) {
                Ok(found) => found.into_tensor().unwrap(),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{}: {error}", kind.name);
                    continue;
                }
            };
            let found = found.as_slice::<u32>().unwrap();
            let mut versions_of: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            for (at, element) in found.iter().enumerate() {
                let (row, column) = (at as u64 / SHAPE[1], at as u64 % SHAPE[1]);
                if *element != 7 {
                    let chunk = (row / kind.chunks[0], column / kind.chunks[1]);
                    let of_chunk = *versions_of.entry(chunk).or_insert(element % 2);
                    assert_eq!(of_chunk, element % 2, "{}, seed {seed}, chunk {chunk:?}", kind.name);
                }
            }
        }
    }
}

/// A caller can stop at any event, and every request ends.
#[test]
fn a_read_is_cancelled_at_any_event() {
    for kind in kinds() {
        let values = written(&kind, 0);
        let expected = told(&local(&values).read(..).unwrap());
        for (turn, stop) in (0..40).step_by(3).enumerate() {
            let store = SimulatedStore::new(single(&values), manner(turn as u64 * 7));
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let begun = store.events();
            let cancel = || store.events() >= begun + stop;
            match staged.request(..).unwrap().cancel(&cancel).read() {
                Ok(found) => assert_eq!(told(&found), expected),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Interrupted), "{}: {error}", kind.name)
                }
            }
            store.settle();
        }
    }
}

/// As many requests at once as the policy allows, and never more.
#[test]
fn requests_respect_the_policy() {
    let kind = kinds().into_iter().find(|kind| kind.name == "zstd").unwrap();
    let values = written(&kind, 0);
    for requests in [1, 3, 64] {
        let policy = FetchPolicy { requests, ..FetchPolicy::default() };
        let store = SimulatedStore::new(single(&values), Manner { policy, ..manner(2) });
        let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
        store.seen();
        staged.read(..).unwrap();
        let (all, most) = store.seen();
        assert!(most <= requests as u64, "{most} of {requests}");
        assert_eq!(all.len(), 16);
    }
}

/// The documents of a node are requested at once, and so are all children's documents of a group.
#[test]
fn a_group_is_opened_in_few_round_trips() {
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}}).to_string().into_bytes();
    let mut values = BTreeMap::from([("zarr.json".to_owned(), group)]);
    let kind = kinds().into_iter().next().unwrap();
    for number in 0..12 {
        values.extend(written(&kind, 0).into_iter().map(|(key, value)| (format!("x{number}/{key}"), value)));
    }
    values.insert("old/.zgroup".to_owned(), br#"{"zarr_format": 2}"#.to_vec());
    values.insert("notes/read.me".to_owned(), Vec::new());
    let store = SimulatedStore::new(single(&values), Manner { policy: FetchPolicy::default(), ..manner(6) });
    let adapter: Arc<dyn Store> = Arc::new(RemoteAdapter::new(store.clone()));
    // With fewer requests at once the store would stay silent.
    store.wait_for(5);
    let group = zarrow::open(Arc::clone(&adapter), "").unwrap().into_group().unwrap();
    assert_eq!(store.seen().1, 5, "the documents that a node may have");
    store.wait_for(14);
    let children = group.children().unwrap();
    assert_eq!(children.len(), 13);
    assert!(children.iter().all(|(_, child)| child.is_ok()));
    let (requests, most) = store.seen();
    assert_eq!(
        (requests.len(), most),
        (14 + 2 * 4, 14),
        "zarr.json of all children, and the other documents of the two without it"
    );
    let (node, members) = zarrow::open_members(Arc::clone(&adapter), "", &OpenOptions::default()).unwrap();
    assert!(node.into_group().is_ok() && members.len() == 13);
    let error = zarrow::open(adapter, "nothing").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotFound), "{error}");
}

/// Missing chunks are filled, in memory with old contents.
#[test]
fn missing_chunks_are_filled() {
    for kind in kinds().into_iter().filter(|kind| kind.data_type == "uint32") {
        let mut values = written(&kind, 0);
        values.retain(|key, _| key == "zarr.json");
        let store =
            SimulatedStore::new(single(&values), Manner { policy: FetchPolicy::default(), ..manner(1) });
        let staged = open(Arc::new(RemoteAdapter::new(store)), 0);
        for _ in 0..20 {
            let mut elements = vec![1u32; SHAPE.iter().product::<u64>() as usize];
            staged.request(..).unwrap().read_into(&mut elements).unwrap();
            assert!(elements.iter().all(|element| *element == 7), "{}", kind.name);
        }
    }
}

/// A handle with an old index rereads strings of a rewritten shard.
#[test]
fn strings_of_a_shard_that_was_replaced() {
    let kind = kinds().into_iter().find(|kind| kind.name == "sharded strings").unwrap();
    let (old, new) = (written(&kind, 0), written(&kind, 1));
    let versions =
        old.iter().map(|(key, value)| (key.clone(), vec![value.clone(), new[key].clone()])).collect();
    let store = SimulatedStore::new(versions, Manner { policy: FetchPolicy::default(), ..manner(5) });
    let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
    assert_eq!(told(&staged.read(..).unwrap()), told(&local(&old).read(..).unwrap()));
    store.replace_all();
    assert_eq!(told(&staged.read(..).unwrap()), told(&local(&new).read(..).unwrap()));
}

/// A listing counts the chunks of an array, without requests for chunks.
#[test]
fn chunks_are_counted_by_a_listing() {
    let kind = kinds().into_iter().next().unwrap();
    let mut values = written(&kind, 0);
    values.remove("c/1/2");
    let store = SimulatedStore::new(single(&values), manner(3));
    let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
    store.seen();
    let chunks = staged.stored_chunks(1000).unwrap();
    assert_eq!(chunks, local(&values).stored_chunks(1000).unwrap());
    assert!(chunks.stored.is_some_and(|stored| stored > 1 && stored < chunks.count), "{chunks:?}");
    assert!(store.seen().0.is_empty());
}

/// Strings are replaced during reads: every read has old or new strings, or raises an error that says so.
#[test]
fn strings_are_read_from_one_version() {
    for kind in kinds().into_iter().filter(|kind| kind.data_type == "string") {
        let (old, new) = (written(&kind, 0), written(&kind, 1));
        let versions = |key: &String, value: &Vec<u8>| {
            (0..9)
                .map(|turn| if turn % 2 == 0 { value.clone() } else { new[key].clone() })
                .collect::<Versions>()
        };
        let versions: BTreeMap<_, _> =
            old.iter().map(|(key, value)| (key.clone(), versions(key, value))).collect();
        let both = [&old, &new].map(|values| local(values).read(..).unwrap());
        let words = |decoded: &DecodedArray, at: usize| match decoded {
            DecodedArray::Variable(variable) => variable.element(at).unwrap().to_vec(),
            _ => panic!("strings"),
        };
        for seed in 0..20 {
            let store = SimulatedStore::new(versions.clone(), Manner { changes: 25, ..manner(seed) });
            let staged = open(Arc::new(RemoteAdapter::new(store)), 0);
            let found = match staged.read(..) {
                Ok(found) => found,
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{}: {error}", kind.name);
                    continue;
                }
            };
            let mut version_of: BTreeMap<(u64, u64), usize> = BTreeMap::new();
            for at in 0..SHAPE.iter().product::<u64>() as usize {
                let (row, column) = (at as u64 / SHAPE[1], at as u64 % SHAPE[1]);
                let word = words(&found, at);
                let is_of = [0, 1].map(|version| words(&both[version], at) == word);
                if is_of[0] != is_of[1] {
                    let chunk = (row / kind.chunks[0], column / kind.chunks[1]);
                    let version = usize::from(is_of[1]);
                    assert_eq!(
                        *version_of.entry(chunk).or_insert(version),
                        version,
                        "{}, seed {seed}",
                        kind.name
                    );
                } else {
                    assert!(is_of[0], "{}, seed {seed}: neither old nor new", kind.name);
                }
            }
        }
    }
}

/// Returns an archive of these values, with local headers that are `extra` bytes longer than the directory's entries.
fn zipped(values: &BTreeMap<String, Vec<u8>>, extra: usize, manner: Manner) -> Arc<SimulatedStore> {
    let archive = archive::archive(values, extra);
    SimulatedStore::new(BTreeMap::from([("data.zip".to_owned(), vec![archive.clone(), archive])]), manner)
}

/// Members of a remote archive, stored and deflated, with headers of the expected length and longer ones.
#[test]
fn a_remote_archive_equals_its_members() {
    let mut seed = 400;
    for kind in kinds() {
        let values = written(&kind, 0);
        let direct = local(&values);
        for selection in selections() {
            let expected = told(&direct.read(&selection).unwrap());
            for extra in [0, 300] {
                seed += 1;
                let manner = Manner { restarts: 11 * (seed % 2), has_versions: seed % 5 > 0, ..manner(seed) };
                let store = zipped(&values, extra, manner);
                let zip = RemoteZip::open(Arc::clone(&store) as Arc<_>, "data.zip").unwrap();
                let staged = open(Arc::new(RemoteAdapter::new(Arc::new(zip))), 1 << 20);
                for again in 0..2 {
                    let found = staged.read(&selection).map(|found| told(&found));
                    assert_eq!(found.unwrap(), expected, "{}, seed {seed}, read {again}", kind.name);
                }
                store.settle();
            }
        }
    }
}

/// One request opens an archive, and one more reads a chunk; longer headers than expected take two.
#[test]
fn a_chunk_of_a_remote_archive_is_one_request() {
    let kind = kinds().into_iter().find(|kind| kind.name == "raw").unwrap();
    let values = written(&kind, 0);
    let chunk = Selection::new(&SHAPE, &[slice(0, 16, 1), slice(0, 12, 1)]).unwrap();
    for (extra, expected) in [(0, 1), (300, 2)] {
        let store = zipped(&values, extra, Manner { policy: FetchPolicy::default(), ..manner(9) });
        let zip = RemoteZip::open(Arc::clone(&store) as Arc<_>, "data.zip").unwrap();
        let (requests, _) = store.seen();
        assert!(
            matches!(requests[..], [ref one] if matches!(one.span, ByteRange::Suffix(_))),
            "{requests:?}"
        );
        let adapter = RemoteAdapter::new(Arc::new(zip));
        let keys = values.keys().filter(|key| key.as_str() != "zarr.json").count();
        assert_eq!(adapter.list("").unwrap(), ["c", "zarr.json"]);
        assert_eq!(adapter.nbytes("c").unwrap(), keys as u64 * 16 * 12 * 4);
        assert!(store.seen().0.is_empty(), "the directory lists the members");
        let array = open(Arc::new(adapter), 0);
        store.seen();
        let read = told(&array.read(&chunk).unwrap());
        assert_eq!(read, told(&local(&values).read(&chunk).unwrap()));
        let (requests, _) = store.seen();
        assert_eq!(requests.len(), expected, "{requests:?}");
        assert!(requests.iter().all(|request| request.if_version.is_some()), "{requests:?}");
        // If an archive is replaced, reads are errors, and never use the old directory.
        store.replace_all();
        let error = array.read(&chunk).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Stale(_)), "{error}");
    }
}

/// Cancelled at any event, a read of an archive ends with all its requests.
#[test]
fn reads_of_an_archive_that_are_cancelled_end() {
    for kind in kinds().into_iter().step_by(4) {
        let values = written(&kind, 0);
        for limit in (1..80).step_by(7) {
            let store = zipped(&values, (limit as usize % 2) * 300, manner(limit));
            let zip = RemoteZip::open(Arc::clone(&store) as Arc<_>, "data.zip").unwrap();
            let array = open(Arc::new(RemoteAdapter::new(Arc::new(zip))), 0);
            let before = store.events();
            let cancel = || store.events() > before + limit;
            match array.request(..).unwrap().cancel(&cancel).read() {
                Ok(found) => {
                    assert_eq!(told(&found), told(&local(&values).read(Selection::all(&SHAPE)).unwrap()))
                }
                Err(error) => assert!(matches!(error.kind(), ErrorKind::Interrupted), "{error}"),
            }
            store.settle();
        }
    }
}

/// Flipped bits and truncation: the stored elements, or an error; the same for a local archive.
#[test]
fn a_damaged_archive_is_an_error_or_right() {
    let kind = kinds().into_iter().find(|kind| kind.name == "raw").unwrap();
    let mut values = written(&kind, 0);
    values.retain(|key, _| ["zarr.json", "c/0/0", "c/0/1"].contains(&key.as_str()));
    let expected = told(&local(&values).read(Selection::all(&SHAPE)).unwrap());
    let whole = archive::archive(&values, 4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.zip");
    // Checksums cover whole members: reads in several requests are not checked.
    let whole_requests = Manner { policy: FetchPolicy::default(), ..manner(1) };
    let (mut right, mut refused) = (0, 0);
    let mut look = |archive: Vec<u8>, what: String| {
        std::fs::write(&path, &archive).unwrap();
        let store = SimulatedStore::new(BTreeMap::from([("z".to_owned(), vec![archive])]), whole_requests);
        let remote = || -> zarrow::Result<Arc<dyn Store>> {
            Ok(Arc::new(RemoteAdapter::new(Arc::new(RemoteZip::open(store.clone(), "z")?))))
        };
        let file = || -> zarrow::Result<Arc<dyn Store>> { Ok(Arc::new(ZipStore::open(&path)?)) };
        for open in [&remote as &dyn Fn() -> zarrow::Result<Arc<dyn Store>>, &file] {
            let read = || zarrow::open(open()?, "")?.into_array()?.read(Selection::all(&SHAPE));
            match read() {
                // A member with a changed name does not belong to the array, and its chunk is filled.
                Ok(found) if told(&found) == expected => right += 1,
                Ok(_) => assert!(what.ends_with("name"), "{what}"),
                Err(_) => refused += 1,
            }
        }
    };
    let names: Vec<std::ops::Range<usize>> = (0..whole.len())
        .flat_map(|at| values.keys().map(move |key| (at, key)))
        .filter(|(at, key)| whole[*at..].starts_with(key.as_bytes()))
        .map(|(at, key)| at..at + key.len())
        .collect();
    for at in (0..whole.len()).filter(|at| *at < 200 || *at > whole.len() - 340 || at % 37 == 0) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let is_name = names.iter().any(|name| name.contains(&at));
        look(damaged, format!("byte {at}{}", if is_name { " of a name" } else { "" }));
    }
    for length in (0..whole.len()).step_by(53) {
        look(whole[..length].to_vec(), format!("cut at {length}"));
    }
    assert!(right > 50 && refused > 200, "{right} {refused}");
}

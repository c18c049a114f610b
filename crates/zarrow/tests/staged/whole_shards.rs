//! Reads of most of a shard with an unknown index.

use crate::arrays::{self, Kind, SHAPE, dump, kinds, written};
use crate::simulated::{Manner, SimulatedStore};
use crate::{local, manner, open, selections, single, slice};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use zarrow::store::remote::{ByteRange, FetchPolicy, RemoteAdapter, Request};
use zarrow::{ErrorKind, Selection};

/// Inner chunks of a shard of the kinds here.
const COUNT: usize = 16;
const INDEX_NBYTES: usize = COUNT * 16 + 4;

fn kind(name: &str) -> Kind {
    kinds().into_iter().find(|kind| kind.name == name).unwrap()
}

/// Returns the same shard with `extra` unused bytes before its second half.
fn padded(shard: &[u8], at_end: bool, nbytes: usize) -> Vec<u8> {
    let at = if at_end { shard.len() - INDEX_NBYTES } else { 0 };
    let (mut index, mut rest) = (shard[at..at + INDEX_NBYTES].to_vec(), shard.to_vec());
    rest.drain(at..at + INDEX_NBYTES);
    let start = if at_end { 0 } else { INDEX_NBYTES };
    let offset = |entry: &[u8]| u64::from_le_bytes(entry[..8].try_into().unwrap());
    let mut offsets: Vec<u64> =
        index[..COUNT * 16].chunks(16).map(offset).filter(|at| *at < u64::MAX).collect();
    offsets.sort_unstable();
    let middle = offsets[offsets.len() / 2];
    for entry in index[..COUNT * 16].chunks_mut(16) {
        let old = offset(entry);
        if (middle..u64::MAX).contains(&old) {
            entry[..8].copy_from_slice(&(old + nbytes as u64).to_le_bytes());
        }
    }
    let sum = crc32c::crc32c(&index[..COUNT * 16]).to_le_bytes();
    index[COUNT * 16..].copy_from_slice(&sum);
    let place = middle as usize - start;
    rest.splice(place..place, std::iter::repeat_n(0xa5, nbytes));
    if at_end { [rest, index].concat() } else { [index, rest].concat() }
}

/// Returns the chunks of an array of this kind, each padded by this many bytes.
fn padded_values(kind: &Kind, salt: u64, nbytes: usize) -> BTreeMap<String, Vec<u8>> {
    let pad = |(key, value): (String, Vec<u8>)| {
        let value =
            if key == "zarr.json" { value } else { padded(&value, kind.name != "index first", nbytes) };
        (key, value)
    };
    written(kind, salt).into_iter().map(pad).collect()
}

fn ranges_of(requests: &[Request], values: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<Range<u64>>> {
    let mut ranges: BTreeMap<String, Vec<Range<u64>>> = BTreeMap::new();
    for request in requests {
        let nbytes = values[&request.key].len() as u64;
        let range = match &request.range {
            ByteRange::Whole => 0..nbytes,
            ByteRange::Range(range) => range.start.min(nbytes)..range.end.min(nbytes),
            ByteRange::Suffix(count) => nbytes - count.min(&nbytes)..nbytes,
        };
        ranges.entry(request.key.clone()).or_default().push(range);
    }
    ranges
}

/// A read of the whole array takes one request per shard, also at its edge; a crop takes an index and chunks.
#[test]
fn most_of_a_shard_is_one_request() {
    for name in
        ["sharded rows", "sharded raw", "sharded", "index first", "sharded, transposed", "sharded strings"]
    {
        for has_suffix in [true, false] {
            let values = written(&kind(name), 0);
            let policy = FetchPolicy { has_suffix, ..FetchPolicy::default() };
            let store = SimulatedStore::new(single(&values), Manner { policy, ..manner(3) });
            let cold = || open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let staged = cold();
            store.seen();
            assert_eq!(dump(&staged.read(..).unwrap()), dump(&local(&values).read(..).unwrap()), "{name}");
            let (requests, _) = store.seen();
            assert_eq!(requests.len(), values.len() - 1, "{name}: {requests:?}");
            // Now the indexes are known.
            assert_eq!(dump(&staged.read(..).unwrap()), dump(&local(&values).read(..).unwrap()), "{name}");
            store.seen();
            let staged = cold();
            store.seen();
            let crop = Selection::new(&SHAPE, &[slice(0, 9, 1), slice(0, 7, 1)]).unwrap();
            staged.read(&crop).unwrap();
            let (requests, _) = store.seen();
            let found: u64 =
                ranges_of(&requests, &values).values().flatten().map(|range| range.end - range.start).sum();
            assert!(
                found < values["c/0/0"].len() as u64 * 3 / 4 && requests.len() > 1,
                "{name}: {requests:?}"
            );
        }
    }
}

/// A read of a few elements in every uncompressed inner chunk fetches only these.
#[test]
fn a_line_through_raw_inner_chunks_does_not_fetch_the_shard() {
    let codecs = arrays::sharded([8, 6], &json!([arrays::bytes()]), "end");
    let values = written(&Kind { name: "raw", data_type: "uint32", chunks: [64, 48], codecs }, 0);
    let policy = FetchPolicy { gap_nbytes: 0, ..FetchPolicy::default() };
    let store = SimulatedStore::new(single(&values), Manner { policy, ..manner(3) });
    let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
    let lines = Selection::new(&SHAPE, &[slice(0, 60, 8), slice(0, 44, 1)]).unwrap();
    store.seen();
    assert_eq!(dump(&staged.read(&lines).unwrap()), dump(&local(&values).read(&lines).unwrap()));
    let found: u64 =
        ranges_of(&store.seen().0, &values).values().flatten().map(|range| range.end - range.start).sum();
    assert!(found < values["c/0/0"].len() as u64 / 2, "{found}");
}

/// A shard larger than expected: only the missing bytes are fetched then, except for a truncated index.
#[test]
fn implausibly_large_shards() {
    for name in ["sharded raw", "sharded", "index first"] {
        let kind = kind(name);
        let expected = dump(&local(&written(&kind, 0)).read(..).unwrap());
        for (turn, nbytes) in (0..3000).step_by(61).chain([10_000, 100_000]).enumerate() {
            let values = padded_values(&kind, 0, nbytes);
            // The end of a shard with its index at the start is unknown.
            for has_sizes in [true, name == "index first"] {
                let own = manner(turn as u64 * 13 + 54 * 2 + 27);
                let has_suffix = own.policy.has_suffix || !has_sizes;
                let policy =
                    FetchPolicy { merged_nbytes: 1 << 20, split_nbytes: 1 << 20, has_suffix, ..own.policy };
                let manner = Manner { has_sizes, restarts: 11 * (turn as u64 % 2), policy, ..own };
                let store = SimulatedStore::new(single(&values), manner);
                let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
                store.seen();
                assert_eq!(dump(&staged.read(..).unwrap()), expected, "{name}, {nbytes} more, {manner:?}");
                store.settle();
                for (key, mut ranges) in ranges_of(&store.seen().0, &values) {
                    ranges.sort_unstable_by_key(|range| range.start);
                    let twice =
                        ranges.windows(2).map(|two| two[0].end.saturating_sub(two[1].start)).sum::<u64>();
                    assert!(twice < INDEX_NBYTES as u64, "{name}, {nbytes} more, {key}: {ranges:?}");
                }
            }
        }
    }
}

/// The same while shards are replaced at any event: each is old or new.
#[test]
fn large_shards_are_read_from_one_version() {
    for name in ["sharded raw", "index first"] {
        let kind = kind(name);
        for nbytes in [0, 800, 1500, 20_000] {
            let (old, new) = (padded_values(&kind, 0, nbytes), padded_values(&kind, 1, nbytes));
            let versions: BTreeMap<_, _> = old
                .iter()
                .map(|(key, value)| {
                    let turn = |turn| if turn % 2 == 0 { value.clone() } else { new[key].clone() };
                    (key.clone(), (0..9).map(turn).collect())
                })
                .collect();
            for seed in 0..30 {
                let policy = FetchPolicy { merged_nbytes: 1 << 20, ..manner(seed).policy };
                let manner = Manner { changes: 9, restarts: 13, policy, ..manner(seed) };
                let store = SimulatedStore::new(versions.clone(), manner);
                let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
                let found = match staged.read(..) {
                    Ok(found) => found.into_tensor().unwrap(),
                    Err(error) => {
                        assert!(matches!(error.kind(), ErrorKind::Io(_)), "{name}: {error}");
                        continue;
                    }
                };
                let mut of_shards: BTreeMap<(u64, u64), u32> = BTreeMap::new();
                for (at, element) in found.as_slice::<u32>().unwrap().iter().enumerate() {
                    let (row, column) = (at as u64 / SHAPE[1], at as u64 % SHAPE[1]);
                    if *element != 7 {
                        let shard = (row / kind.chunks[0], column / kind.chunks[1]);
                        assert_eq!(
                            *of_shards.entry(shard).or_insert(element % 2),
                            element % 2,
                            "{name}, seed {seed}"
                        );
                    }
                }
            }
        }
    }
}

/// If a store does not report sizes, the index is requested at its location, also at the start.
#[test]
fn shards_of_unknown_size() {
    for name in ["sharded raw", "sharded", "index first"] {
        let values = written(&kind(name), 0);
        for (seed, selection) in selections().into_iter().enumerate() {
            let policy = FetchPolicy::default();
            let manner = Manner { has_sizes: false, policy, ..manner(seed as u64) };
            let store = SimulatedStore::new(single(&values), manner);
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let found = staged.read(&selection);
            let is_measured = name != "index first" || selection == Selection::all(&SHAPE);
            match found {
                Ok(found) => {
                    assert_eq!(dump(&found), dump(&local(&values).read(&selection).unwrap()), "{name}")
                }
                // The end of such a shard is unknown.
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::Unsupported(_)) && !is_measured,
                    "{name}: {error}"
                ),
            }
        }
    }
}

/// Indexes that refer to missing bytes, in a shard received whole or in part.
#[test]
fn a_hostile_index_of_a_whole_shard() {
    let raw = json!([arrays::bytes()]);
    let nested = arrays::sharded([4, 3], &raw, "end");
    for inner in [raw.clone(), json!([arrays::bytes(), arrays::zstd()]), nested] {
        for location in ["start", "end"] {
            let codecs = arrays::sharded_by([8, 6], &inner, location, &raw);
            let values = written(&Kind { name: "hostile", data_type: "uint32", chunks: [32, 24], codecs }, 0);
            for (turn, claim) in [0, 1, 200, 3000, 1 << 20, 1 << 60, u64::MAX].into_iter().enumerate() {
                for word in [0, 1, 14, 31] {
                    let mut hostile = values.clone();
                    let shard = hostile.get_mut("c/0/0").unwrap();
                    let at = if location == "end" { shard.len() - COUNT * 16 } else { 0 } + word * 8;
                    shard[at..at + 8].copy_from_slice(&claim.to_le_bytes());
                    let expected = local(&hostile).read(..).map(|found| dump(&found));
                    for lies in [false, true] {
                        let store = SimulatedStore::new(
                            single(&hostile),
                            Manner { lies, ..manner(turn as u64 + 54) },
                        );
                        let found = open(Arc::new(RemoteAdapter::new(store.clone())), 0).read(..);
                        store.settle();
                        match found {
                            Ok(found) => {
                                assert_eq!(Ok(dump(&found)), expected.as_ref().map_err(|_| ()).cloned())
                            }
                            Err(_) => assert!(expected.is_err() || lies),
                        }
                    }
                }
            }
        }
    }
}

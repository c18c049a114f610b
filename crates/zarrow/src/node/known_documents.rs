//! Documents found in the nodes of remote stores, so that the next open requests those first.
//!
//! 1. An entry is a guess: another program may have replaced the node since. The fetched documents confirm it; if they
//!    do not, all documents are requested, as for an unknown node.
//! 2. The table has a fixed size and no lock. New entries evict the oldest in their set. A race between two threads
//!    only loses an entry.

use crate::metadata::{NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat};
use crate::store::{Store, join};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// The documents that a node may have.
pub(crate) const DOCUMENTS: [&str; 5] = [ZARR_JSON, ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// The documents that a node is likely to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likely {
    /// Documents of a node of version 3.
    V3,
    /// Documents of an array of version 2.
    V2Array,
    /// Any.
    Any,
    /// As `V3`, until the first answer: no document has arrived yet.
    Assumed,
}

impl Likely {
    fn new(metadata: &NodeMetadata) -> Likely {
        match metadata {
            NodeMetadata::Array(array) => Likely::array(array.zarr_format),
            NodeMetadata::Group(group) if group.zarr_format == ZarrFormat::V3 => Likely::V3,
            NodeMetadata::Group(_) => Likely::Any,
        }
    }

    fn array(zarr_format: ZarrFormat) -> Likely {
        match zarr_format {
            ZarrFormat::V3 => Likely::V3,
            ZarrFormat::V2 => Likely::V2Array,
        }
    }

    /// The names of the documents. `zarr.json` is always among them, because it comes before all others.
    pub fn documents(self) -> &'static [&'static str] {
        match self {
            Likely::V3 | Likely::Assumed => &[ZARR_JSON],
            Likely::V2Array => &[ZARR_JSON, ZARRAY, ZATTRS],
            Likely::Any => &DOCUMENTS,
        }
    }

    fn number(self) -> u64 {
        match self {
            Likely::V3 => 1,
            Likely::V2Array => 2,
            Likely::Any => 3,
            Likely::Assumed => 0,
        }
    }

    /// Combines the documents of two siblings.
    ///
    /// A wrong guess takes one more round trip, a guess of too many documents only more requests. So siblings of
    /// several kinds may have any document.
    fn or(self, other: Likely) -> Likely {
        if self == other || self == Likely::Assumed { other } else { Likely::Any }
    }
}

/// Returns the likely documents of the node at `path`: as it had before; else as its siblings have; else as the groups
/// above it have, up to the store's root.
///
/// Siblings of an unknown node are assumed to be version 3 until its documents have arrived: if many nodes are opened
/// concurrently, only the first requests all documents. The roots of stores in one bucket or folder are siblings too.
pub(crate) fn likely(store: &dyn Store, path: &str) -> Likely {
    let (root, full) = (location(store, ""), location(store, path));
    let mut location = full.as_str();
    loop {
        let above = parent(location);
        let known = look_up(own(location)).or_else(|| look_up(below(above?)));
        match (known, above) {
            (Some(known), _) => return known,
            (None, Some(above)) if location.len() > root.len() => location = above,
            _ => break,
        }
    }
    if let Some(above) = parent(&full) {
        record(below(above), Likely::Assumed);
    }
    Likely::Any
}

/// Remembers which documents the node at `path` has.
pub(crate) fn remember(store: &dyn Store, path: &str, metadata: &NodeMetadata) {
    let likely = Likely::new(metadata);
    let location = location(store, path);
    record(own(&location), likely);
    if let Some(above) = parent(&location).map(below) {
        record(above, look_up(above).map_or(likely, |siblings| siblings.or(likely)));
    }
    if likely == Likely::V3 {
        return;
    }
    // The nodes above are groups, even beside arrays.
    let root = location.len() - path.len();
    let mut above = parent(&location).filter(|above| above.len() + 1 >= root);
    while let Some(group) = above {
        if look_up(own(group)).is_none() {
            record(own(group), Likely::Any);
        }
        above = parent(group).filter(|above| above.len() + 1 >= root);
    }
}

/// Notes that the node at `path` is likely of this version, unless more is known.
pub(crate) fn expect(store: &dyn Store, path: &str, zarr_format: ZarrFormat) {
    let place = own(&location(store, path));
    if look_up(place).is_none() {
        record(place, Likely::array(zarr_format));
    }
}

/// Whether the keys below `path` did not fit one response to a list request.
pub(crate) fn is_large(store: &dyn Store, path: &str) -> bool {
    look_up(all_below(&location(store, path))).is_some()
}

/// Remembers that the keys below `path` do not fit one response to a list request.
pub(crate) fn remember_large(store: &dyn Store, path: &str) {
    record(all_below(&location(store, path)), Likely::Any);
}

/// Returns the URL of the node at `path`; of the store itself for its root.
fn location(store: &dyn Store, path: &str) -> String {
    let name = store.name().trim_end_matches('/');
    if path.is_empty() { name.to_owned() } else { join(name, path) }
}

/// Returns the location one level up; `None` for a bucket or a host.
fn parent(location: &str) -> Option<&str> {
    let (above, _) = location.rsplit_once('/')?;
    (!above.ends_with('/')).then_some(above)
}

fn own(location: &str) -> u64 {
    place("own", location)
}

fn below(location: &str) -> u64 {
    place("below", location)
}

fn all_below(location: &str) -> u64 {
    place("all below", location)
}

fn place(kind: &str, location: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, location).hash(&mut hasher);
    hasher.finish()
}

const SETS: usize = 512;
const ENTRIES: usize = 8;

/// Bits of an entry for [`Likely::number`]. The other bits identify its location; 0 is an empty entry.
const NUMBER: u64 = 3;

type Set = [AtomicU64; ENTRIES];

static TABLE: [Set; SETS] = [const { [const { AtomicU64::new(0) }; ENTRIES] }; SETS];

fn set(place: u64) -> &'static Set {
    &TABLE[(place >> 32) as usize % SETS]
}

fn look_up(place: u64) -> Option<Likely> {
    let entries = set(place).iter().map(|entry| entry.load(Ordering::Relaxed));
    let entry = entries.into_iter().find(|entry| *entry != 0 && entry & !NUMBER == place & !NUMBER)?;
    match entry & NUMBER {
        0 => Some(Likely::Assumed),
        1 => Some(Likely::V3),
        2 => Some(Likely::V2Array),
        _ => Some(Likely::Any),
    }
}

fn record(place: u64, likely: Likely) {
    let mut next = place & !NUMBER | likely.number();
    // The new entry is put first; the others move down, up to the old entry of the same location or the end.
    for entry in set(place) {
        next = entry.swap(next, Ordering::Relaxed);
        if next & !NUMBER == place & !NUMBER || next == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_entry_counts() {
        let at = |location: &str| look_up(own(location));
        record(own("s3://a/b"), Likely::V3);
        record(own("s3://a/b"), Likely::V2Array);
        assert_eq!(at("s3://a/b"), Some(Likely::V2Array));
        assert_eq!((at("s3://a/c"), look_up(below("s3://a/b"))), (None, None));
        assert_eq!(parent("s3://bucket/a/b"), Some("s3://bucket/a"));
        assert_eq!(parent("s3://bucket"), None);
    }

    #[test]
    fn siblings_of_several_kinds_may_have_any_document() {
        let after = |found: &[Likely]| found.iter().copied().reduce(Likely::or).unwrap();
        assert_eq!(after(&[Likely::Assumed, Likely::V2Array, Likely::V2Array]), Likely::V2Array);
        assert_eq!(after(&[Likely::Assumed, Likely::V3, Likely::V2Array, Likely::V2Array]), Likely::Any);
    }

    #[test]
    fn a_full_set_drops_its_oldest_entry() {
        let places: Vec<u64> = (1..=ENTRIES as u64 + 1).map(|number| 77 << 32 | number << 8).collect();
        places.iter().for_each(|place| record(*place, Likely::V3));
        let known: Vec<bool> = places.iter().map(|place| look_up(*place).is_some()).collect();
        assert!(!known[0]);
        assert!(known[1..].iter().all(|known| *known));
    }
}

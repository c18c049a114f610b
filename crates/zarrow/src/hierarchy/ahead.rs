//! Which requests a change of a remote hierarchy begins with: all at once, so that looking takes one round trip.
//!
//! 1. A change of a node reads its documents, and those of the groups above, which may have consolidated copies.
//! 2. Creating lists what is at the path, which also says which documents are missing, and reads the groups above. The
//!    node's own documents are fetched only if they may be replaced.
//! 3. Erasing lists all that is below, and reads the groups above.
//!
//! A document is put on the condition that it is unchanged: see `store/remote/ahead.rs`.

use super::document::DOCUMENTS;
use super::node_path::ancestors;
use crate::metadata::{MetadataLimits, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat};
use crate::store::remote::{AheadStore, Asked};
use crate::store::{Store, join};

/// Documents that a node of version 3 does not need.
const OF_V2: [&str; 4] = [ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

fn keys(path: &str, names: &[&str], limits: &MetadataLimits) -> Vec<(String, u64)> {
    let limit = |name: &str| match name {
        ZARR_JSON | ZMETADATA => limits.max_consolidated_nbytes,
        _ => limits.max_metadata_nbytes,
    };
    names.iter().map(|name| (join(path, name), limit(name))).collect()
}

/// The documents of the groups above `path` that a change below them needs.
fn above(path: &str, zarr_format: ZarrFormat, limits: &MetadataLimits) -> Vec<(String, u64)> {
    let names: &[&str] = match zarr_format {
        ZarrFormat::V3 => &[ZARR_JSON, ZMETADATA],
        ZarrFormat::V2 => &DOCUMENTS,
    };
    ancestors(path).flat_map(|group| keys(group, names, limits)).collect()
}

/// Takes documents of version 2 for missing in groups above that have one of version 3, which comes first.
fn settle_above(ahead: &AheadStore, path: &str) {
    for group in ancestors(path).filter(|group| ahead.has(&join(group, ZARR_JSON))) {
        ahead.assume_missing(group, &[ZARRAY, ZGROUP, ZATTRS]);
    }
}

/// The store for a change of the node at `path` (step 1); `None` if it is local.
pub(super) fn for_change(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
) -> Option<AheadStore> {
    let ahead = AheadStore::new(store)?;
    let own: &[&str] = match zarr_format {
        ZarrFormat::V3 => &[ZARR_JSON],
        ZarrFormat::V2 => &DOCUMENTS,
    };
    let asked = ahead.ask([keys(path, own, limits), above(path, zarr_format, limits)].concat());
    ahead.take(asked);
    if zarr_format == ZarrFormat::V3 && ahead.has(&join(path, ZARR_JSON)) {
        ahead.assume_missing(path, &OF_V2);
    }
    settle_above(&ahead, path);
    Some(ahead)
}

/// The store for creating a node at `path` (step 2); `None` if it is local.
pub(super) fn for_creation(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    may_replace: bool,
    limits: &MetadataLimits,
) -> Option<AheadStore> {
    let ahead = AheadStore::new(store)?;
    let own: &[&str] = match (may_replace, zarr_format) {
        (false, _) => &[],
        (true, ZarrFormat::V3) => &[ZARR_JSON],
        (true, ZarrFormat::V2) => &DOCUMENTS,
    };
    let keys = [keys(path, own, limits), above(path, zarr_format, limits)].concat();
    let asked = ahead.ask(keys).and_names(&ahead, path);
    ahead.take(asked);
    if ahead.names(path).is_some() {
        ahead.assume_missing(path, &DOCUMENTS);
    }
    settle_above(&ahead, path);
    Some(ahead)
}

/// Asks for the groups above `path` anew.
pub(super) fn again<'a>(
    ahead: &'a AheadStore,
    path: &str,
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
) -> Asked<'a> {
    ahead.ask(above(path, zarr_format, limits))
}

/// The store for erasing the node at `path` (step 3); `None` if it is local.
pub(super) fn for_erasing(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Option<AheadStore> {
    let ahead = AheadStore::new(store)?;
    let keys = [keys(path, &DOCUMENTS, limits), above(path, ZarrFormat::V3, limits)].concat();
    let asked = ahead.ask(keys).and_all_below(&ahead, path);
    ahead.take(asked);
    Some(ahead)
}

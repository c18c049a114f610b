//! First requests of a change in a remote hierarchy: all at once, so that reading takes one round trip.
//!
//! 1. A change of a node reads its documents, and the documents of the groups above, which may have consolidated
//!    copies. A document that the store object put last is not read again; the groups above are read during its put.
//! 2. Creating lists the path, which also shows the missing documents, and reads the groups above. The node's own
//!    documents are fetched only if they may be replaced. Nothing is read before a node is created in a group that this
//!    store object has just created.
//! 3. Erasing lists everything below, and reads the groups above.
//!
//! A document is put on the condition that it is unchanged: see `store/remote/ahead.rs`.

use super::document_names::DOCUMENTS;
use super::node_path::ancestors;
use crate::metadata::{MetadataLimits, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat};
use crate::store::remote::{AheadStore, PendingRequests};
use crate::store::{Store, join};

/// Documents that a node of version 3 does not need.
const OF_V2: [&str; 4] = [ZARRAY, ZGROUP, ZATTRS, ZMETADATA];

/// Returns the keys of documents, each with its maximum size in bytes.
pub(super) fn keys(path: &str, names: &[&str], limits: &MetadataLimits) -> Vec<(String, u64)> {
    let limit = |name: &str| match name {
        ZARR_JSON | ZMETADATA => limits.max_consolidated_nbytes,
        _ => limits.max_metadata_nbytes,
    };
    names.iter().map(|name| (join(path, name), limit(name))).collect()
}

/// Returns the documents of the groups above `path` that a change below them needs.
pub(super) fn above(path: &str, zarr_format: ZarrFormat, limits: &MetadataLimits) -> Vec<(String, u64)> {
    let names: &[&str] = match zarr_format {
        ZarrFormat::V3 => &[ZARR_JSON, ZMETADATA],
        ZarrFormat::V2 => &DOCUMENTS,
    };
    ancestors(path).flat_map(|group| keys(group, names, limits)).collect()
}

/// Returns the store for a change of the node at `path` (step 1); `None` if it is local. `may_recall` means that the
/// change tolerates an old document, because its put then fails; all keys below `listed` are requested too.
pub(super) fn for_change(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
    may_recall: bool,
    listed: Option<String>,
) -> Option<AheadStore> {
    let ahead = AheadStore::new(store)?;
    if may_recall && zarr_format == ZarrFormat::V3 && ahead.recall(&join(path, ZARR_JSON)) {
        ahead.assume_missing(path, &OF_V2);
        ahead.ask_meanwhile(above(path, zarr_format, limits), ancestors(path).map(str::to_owned).collect());
        return Some(ahead);
    }
    let own: &[&str] = match zarr_format {
        ZarrFormat::V3 => &[ZARR_JSON],
        ZarrFormat::V2 => &DOCUMENTS,
    };
    let requests = ahead.ask([keys(path, own, limits), above(path, zarr_format, limits)].concat());
    let requests = match listed {
        Some(prefix) => requests.and_all_below(&ahead, &prefix),
        None => requests,
    };
    ahead.take(requests);
    if zarr_format == ZarrFormat::V3 && ahead.has(&join(path, ZARR_JSON)) {
        ahead.assume_missing(path, &OF_V2);
    }
    ahead.settle(ancestors(path));
    Some(ahead)
}

/// Assumptions that save requests before a node is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assumed {
    /// No assumption.
    Nothing,
    /// A group that this store object has just created is empty.
    Fresh,
    /// The path is free.
    Absent,
}

/// Returns the store for creating a node at `path` (step 2), and the assumption, if any; `None` if it is local.
pub(super) fn for_creation(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    may_replace: bool,
    assumed: Assumed,
    limits: &MetadataLimits,
) -> Option<(AheadStore, bool)> {
    let ahead = AheadStore::new(store)?;
    let group = path.rsplit_once('/').map_or("", |(group, _)| group);
    let is_fresh = assumed == Assumed::Fresh
        && zarr_format == ZarrFormat::V3
        && !path.is_empty()
        && ahead.is_fresh(group, &join(path, ZARR_JSON))
        && ancestors(path).all(|group| ahead.recall(&join(group, ZARR_JSON)));
    if is_fresh {
        ancestors(path).for_each(|group| ahead.assume_missing(group, &OF_V2));
        ahead.assume_absent(path, &DOCUMENTS);
        ahead.ask_meanwhile(above(path, zarr_format, limits), ancestors(path).map(str::to_owned).collect());
        return Some((ahead, true));
    }
    if assumed == Assumed::Absent {
        ahead.assume_absent(path, &DOCUMENTS);
        ahead.list_meanwhile(path);
        ahead.take(ahead.ask(above(path, zarr_format, limits)));
        ahead.settle(ancestors(path));
        return Some((ahead, true));
    }
    let own: &[&str] = match (may_replace, zarr_format) {
        (false, _) => &[],
        (true, ZarrFormat::V3) => &[ZARR_JSON],
        (true, ZarrFormat::V2) => &DOCUMENTS,
    };
    let keys = [keys(path, own, limits), above(path, zarr_format, limits)].concat();
    let requests = ahead.ask(keys).and_names(&ahead, path);
    ahead.take(requests);
    if ahead.names(path).is_some() {
        ahead.assume_missing(path, &DOCUMENTS);
    }
    ahead.settle(ancestors(path));
    Some((ahead, false))
}

/// Requests the groups above `path` again.
pub(super) fn again<'a>(
    ahead: &'a AheadStore,
    path: &str,
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
) -> PendingRequests<'a> {
    ahead.ask(above(path, zarr_format, limits))
}

/// Returns the store for erasing the node at `path` (step 3); `None` if it is local.
pub(super) fn for_erasing(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Option<AheadStore> {
    let ahead = AheadStore::new(store)?;
    let keys = [keys(path, &DOCUMENTS, limits), above(path, ZarrFormat::V3, limits)].concat();
    let requests = ahead.ask(keys).and_all_below(&ahead, path);
    ahead.take(requests);
    Some(ahead)
}

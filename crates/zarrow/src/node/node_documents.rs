//! The documents of a node: requests for them, and the metadata in them.
//!
//! 1. A local store reads one document after the other, as far as needed.
//! 2. A remote store requests the node's likely documents together (`known_documents`), or its listed documents. If
//!    these do not settle the node, it requests the others together.
//! 3. `zarr.json` takes precedence: once it has arrived, the other answers are not awaited.
//! 4. If the node may be missing, the first round also requests the documents that show this.

use crate::codec::{parse_v2_array, parse_v3};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{
    MetadataLimits, NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat, parse_v2_group,
};
use crate::node::hierarchy::unfinished_mark::{is_unfinished, not_found};
use crate::node::known_documents;
use crate::node::known_documents::{DOCUMENTS, Likely};
use crate::store::remote::{AheadStore, documents, wait};
use crate::store::{Got, Store, join};

/// The documents that make a node.
pub(crate) const OF_NODES: [&str; 3] = [ZARR_JSON, ZARRAY, ZGROUP];

/// Reads the metadata of the node at `path`.
pub(crate) fn read_metadata(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Result<NodeMetadata> {
    search(store, limits, path, || Search::new(store, path, limits))
}

/// As [`read_metadata`], for a node that may be missing (step 4).
pub(crate) fn find_metadata(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Result<NodeMetadata> {
    search(store, limits, path, || Search::new(store, path, limits).with_nodes())
}

fn search(
    store: &dyn Store,
    limits: &MetadataLimits,
    path: &str,
    begin: impl FnOnce() -> Search,
) -> Result<NodeMetadata> {
    // Prefetched documents are in memory.
    let Some(remote) = store.remote().filter(|_| !AheadStore::is(store)) else {
        return metadata(limits, &mut |name, limit| store.get(&join(path, name), limit));
    };
    let mut search = begin();
    loop {
        let keys = search.keys();
        let found = wait(|done| documents(remote, &keys, done), &|| Ok(()))?;
        if let Some(metadata) = search.answered(store, found) {
            return metadata;
        }
    }
}

/// Search for the metadata of one node of a remote store.
pub(crate) struct Search {
    path: String,
    limits: MetadataLimits,
    /// Documents to request now.
    requested: Vec<&'static str>,
    /// Whether a list has shown that the node has no other documents.
    is_listed: bool,
    found: Vec<(&'static str, Got)>,
}

impl Search {
    pub(crate) fn new(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Search {
        Search::for_documents(path, limits, known_documents::likely(store, path).documents().to_vec())
    }

    /// Starts a search for a node with these documents, known from a list.
    fn listed(path: &str, limits: &MetadataLimits, shown: Vec<&'static str>) -> Search {
        Search { is_listed: true, ..Search::for_documents(path, limits, shown) }
    }

    fn for_documents(path: &str, limits: &MetadataLimits, requested: Vec<&'static str>) -> Search {
        Search { path: path.to_owned(), limits: *limits, requested, is_listed: false, found: Vec::new() }
    }

    /// Also requests all documents that make a node.
    fn with_nodes(mut self) -> Search {
        let more = OF_NODES.into_iter().filter(|name| !self.requested.contains(name));
        self.requested.extend(more.collect::<Vec<_>>());
        self
    }

    /// Returns the keys of the documents to request now, each with its maximum length in bytes.
    pub(crate) fn keys(&self) -> Vec<(String, u64)> {
        self.requested.iter().map(|name| (join(&self.path, name), limit_of(name, &self.limits))).collect()
    }

    /// Returns the metadata, given the documents of [`keys`](Search::keys); `None` if others have to be requested.
    pub(crate) fn answered(&mut self, store: &dyn Store, found: Vec<Got>) -> Option<Result<NodeMetadata>> {
        self.found.extend(std::mem::take(&mut self.requested).into_iter().zip(found));
        let missing: Vec<&'static str> =
            DOCUMENTS.into_iter().filter(|name| self.found.iter().all(|(found, _)| found != name)).collect();
        if !missing.is_empty() && !self.is_settled(&missing) {
            self.requested = missing;
            self.is_listed = false;
            return None;
        }
        let found = &mut self.found;
        let metadata = metadata(&self.limits, &mut |name, _| {
            let found = found.iter_mut().find(|(found, _)| *found == name);
            found.map_or(Ok(None), |(_, got)| std::mem::replace(got, Ok(None)))
        });
        if let Ok(metadata) = &metadata {
            known_documents::remember(store, &self.path, metadata);
        }
        Some(metadata)
    }

    /// Whether the answers settle the node, or its absence, without the documents `missing`.
    fn is_settled(&self, missing: &[&str]) -> bool {
        let exists =
            |name: &&str| self.found.iter().any(|(own, got)| own == name && !matches!(got, Ok(None)));
        let is_known = |name: &&str| self.is_listed || !missing.contains(name);
        match OF_NODES.iter().find(|name| exists(name)) {
            Some(&ZARR_JSON) => true,
            Some(&ZARRAY) => [ZARR_JSON, ZATTRS].iter().all(is_known),
            Some(_) => DOCUMENTS.iter().all(is_known),
            None => !OF_NODES.iter().any(|name| missing.contains(name)),
        }
    }
}

/// Returns the maximum length of a document in bytes.
fn limit_of(name: &str, limits: &MetadataLimits) -> u64 {
    match name {
        ZARR_JSON | ZMETADATA => limits.max_consolidated_nbytes,
        _ => limits.max_metadata_nbytes,
    }
}

/// Reads the metadata of the nodes at `paths`, below a group of this version, with one round of requests.
///
/// Below a group of version 3, one document is requested per node: a path without `zarr.json` is likely not a node,
/// and rarely one of version 2. Below a group of version 2 most nodes are arrays.
pub(crate) fn read_each(
    store: &dyn Store,
    paths: &[String],
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
) -> Vec<Result<NodeMetadata>> {
    let first = match zarr_format {
        ZarrFormat::V3 => Likely::V3,
        ZarrFormat::V2 => Likely::V2Array,
    };
    searched(
        store,
        paths.iter().map(|path| Search::for_documents(path, limits, first.documents().to_vec())).collect(),
    )
}

/// As [`read_each`], for nodes with the documents known from a list.
pub(crate) fn read_listed<'a>(
    store: &dyn Store,
    nodes: impl Iterator<Item = (&'a str, Vec<&'static str>)>,
    limits: &MetadataLimits,
) -> Vec<Result<NodeMetadata>> {
    searched(store, nodes.map(|(path, shown)| Search::listed(path, limits, shown)).collect())
}

fn searched(store: &dyn Store, mut searches: Vec<Search>) -> Vec<Result<NodeMetadata>> {
    let mut metadata: Vec<Option<Result<NodeMetadata>>> = searches.iter().map(|_| None).collect();
    // A second round for the nodes without the likely documents.
    for _ in 0..2 {
        let mut open: Vec<_> =
            searches.iter_mut().zip(&mut metadata).filter(|(_, metadata)| metadata.is_none()).collect();
        let keys: Vec<(String, u64)> = open.iter().flat_map(|(search, _)| search.keys()).collect();
        let mut found = store.get_each(&keys).into_iter();
        for (search, metadata) in &mut open {
            let own = found.by_ref().take(search.requested.len()).collect();
            **metadata = search.answered(store, own);
        }
    }
    metadata.into_iter().map(|metadata| metadata.unwrap_or_else(|| Err(ErrorKind::NotFound.into()))).collect()
}

/// Parses the metadata of a node; `document` fetches a document by name.
fn metadata(limits: &MetadataLimits, document: &mut dyn FnMut(&str, u64) -> Got) -> Result<NodeMetadata> {
    let mut get = |name: &str| document(name, limit_of(name, limits));
    if let Some(bytes) = get(ZARR_JSON)? {
        let metadata = parse_v3(&bytes, limits)?;
        return if is_unfinished(&metadata) { Err(not_found()) } else { Ok(metadata) };
    }
    if let Some(zarray) = get(ZARRAY)? {
        return Ok(NodeMetadata::Array(parse_v2_array(&zarray, get(ZATTRS)?.as_deref(), limits)?));
    }
    if let Some(zgroup) = get(ZGROUP)? {
        let zmetadata = get(ZMETADATA)?;
        let zattrs = get(ZATTRS)?;
        return Ok(NodeMetadata::Group(parse_v2_group(
            &zgroup,
            zattrs.as_deref(),
            zmetadata.as_deref(),
            limits,
        )?));
    }
    Err(Error::from(ErrorKind::NotFound))
}

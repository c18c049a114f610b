//! The documents of a node: their requests, and the metadata in them.
//!
//! 1. A local store reads one document after the other, as far as needed.
//! 2. A remote store requests the node's likely documents together (`known_documents`). If these give no node, it requests
//!    all documents together.
//! 3. `zarr.json` takes precedence: once it has arrived, the other answers are not awaited.

use crate::error::{Error, ErrorKind, Result};
use crate::hierarchy::unfinished::{is_unfinished, not_found};
use crate::known_documents::{self, Likely};
use crate::metadata::{
    MetadataLimits, NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat, parse_v2_array,
    parse_v2_group, parse_v3,
};
use crate::store::remote::{AheadStore, documents, wait};
use crate::store::{Got, Store, join};

/// Reads the metadata of the node at `path`.
pub(crate) fn read_metadata(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Result<NodeMetadata> {
    // Documents fetched ahead are in memory.
    let Some(remote) = store.remote().filter(|_| !AheadStore::is(store)) else {
        return metadata(limits, &mut |name, limit| store.get(&join(path, name), limit));
    };
    let mut search = Search::new(store, path, limits);
    loop {
        let keys = search.keys();
        let found = wait(|done| documents(remote, &keys, done), &|| Ok(()))?;
        if let Some(metadata) = search.answered(store, found) {
            return metadata;
        }
    }
}

/// The search for the metadata of one node of a remote store.
pub(crate) struct Search {
    path: String,
    limits: MetadataLimits,
    likely: Likely,
}

impl Search {
    pub(crate) fn new(store: &dyn Store, path: &str, limits: &MetadataLimits) -> Search {
        let likely = known_documents::likely(store, path);
        Search { path: path.to_owned(), limits: *limits, likely }
    }

    /// The keys of the documents to request now, each with the bytes that it may have.
    pub(crate) fn keys(&self) -> Vec<(String, u64)> {
        keys(&self.path, self.likely.documents(), &self.limits)
    }

    /// Returns the metadata by the documents of [`keys`](Search::keys); `None` where others have to be requested.
    pub(crate) fn answered(&mut self, store: &dyn Store, found: Vec<Got>) -> Option<Result<NodeMetadata>> {
        let asked = self.likely.documents();
        let has_node =
            |(name, got): (&&str, &Got)| matches!(*name, ZARR_JSON | ZARRAY) && !matches!(got, Ok(None));
        if self.likely != Likely::Any && !asked.iter().zip(&found).any(has_node) {
            self.likely = Likely::Any;
            return None;
        }
        let metadata = metadata_of_found(asked, found, &self.limits);
        if let Ok(metadata) = &metadata {
            known_documents::remember(store, &self.path, metadata);
        }
        Some(metadata)
    }
}

fn keys(path: &str, names: &[&str], limits: &MetadataLimits) -> Vec<(String, u64)> {
    names.iter().map(|name| (join(path, name), limit_of(name, limits))).collect()
}

/// Returns the metadata in the fetched documents `names` of a node.
fn metadata_of_found(names: &[&str], mut found: Vec<Got>, limits: &MetadataLimits) -> Result<NodeMetadata> {
    metadata(limits, &mut |name, _| {
        let at = names.iter().position(|asked| *asked == name);
        at.and_then(|at| found.get_mut(at)).map_or(Ok(None), |got| std::mem::replace(got, Ok(None)))
    })
}

/// How many bytes a document may have.
fn limit_of(name: &str, limits: &MetadataLimits) -> u64 {
    match name {
        ZARR_JSON | ZMETADATA => limits.max_consolidated_nbytes,
        _ => limits.max_metadata_nbytes,
    }
}

/// Reads the metadata of the nodes at `paths`, directly below a group of this version, with one round of requests.
///
/// Below a group of version 3 that is one for each node. A path without `zarr.json` is likely no node, and rarely one of
/// version 2.
pub(crate) fn read_each(
    store: &dyn Store,
    paths: &[String],
    zarr_format: ZarrFormat,
    limits: &MetadataLimits,
) -> Vec<Result<NodeMetadata>> {
    let first = match (zarr_format, paths.first()) {
        (ZarrFormat::V3, _) => Likely::V3,
        (ZarrFormat::V2, Some(path)) => known_documents::likely(store, path),
        (ZarrFormat::V2, None) => Likely::Any,
    };
    let mut searches: Vec<Search> =
        paths.iter().map(|path| Search { path: path.clone(), limits: *limits, likely: first }).collect();
    let mut metadata: Vec<Option<Result<NodeMetadata>>> = paths.iter().map(|_| None).collect();
    // A second round for the nodes without the likely documents.
    for _ in 0..2 {
        let mut open: Vec<_> =
            searches.iter_mut().zip(&mut metadata).filter(|(_, metadata)| metadata.is_none()).collect();
        let keys: Vec<(String, u64)> = open.iter().flat_map(|(search, _)| search.keys()).collect();
        let mut found = store.get_each(&keys).into_iter();
        for (search, metadata) in &mut open {
            let own = found.by_ref().take(search.likely.documents().len()).collect();
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

//! Consolidated metadata: made for a group, and updated when a node below it changes.
//!
//! 1. The documents of all nodes below are copied unchanged, so that a reader of the copies sees the stored documents:
//!    into `consolidated_metadata` of the group's `zarr.json`, or into its `.zmetadata`.
//! 2. A change of a node through this crate renews the copies in every group above it, up to the store's root, from the
//!    documents stored at that time, under the locks of the change. That costs one check of each group above. A
//!    consolidated group's document is rewritten each time, so consolidate a hierarchy of many nodes when it is
//!    complete.
//! 3. Before a node is erased or replaced, its copies are removed, so that they never describe other chunks. If the
//!    node cannot be erased or replaced, they are restored. If the copies cannot be removed first, on a full disk
//!    for example, replacing fails. Erasing continues, since it frees space; the copies are removed afterwards.
//! 4. Consolidating holds the lock of the group: a node created below at the same time is either seen, or adds itself
//!    afterwards.
//! 5. A stored change remains if its copies cannot be written (a full disk, a document of another owner). The caller
//!    gets a warning: after an error it would repeat a change that is already stored.
//!
//! Programs that do not do this leave stale copies. A process killed between a change and its copies leaves the old
//! description. Consolidating again repairs both.

use super::ahead::keys;
use super::document::update;
use super::document_names::DOCUMENTS;
use super::node_lock::NodeLock;
use super::node_path::ancestors;
use super::revision;
use super::unfinished_mark::ATTRIBUTE;
use crate::error::warnings::warn;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{JsonText, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, ZarrFormat};
use crate::node::link_loops::FoldersAbove;
use crate::node::open_options::OpenOptions;
use crate::store::remote::pass_now_and_then;
use crate::store::{Store, join, writer_of};
use serde_json::json;
use std::collections::BTreeSet;
use zarrow_array::allocation::{self, Grow};

/// Key of the copies in a `zarr.json`.
pub(super) const KEY: &str = "consolidated_metadata";
const METADATA: &str = "metadata";

/// Number of nodes to request the documents of at once.
const AT_ONCE: usize = 64;

/// Deeper than any hierarchy.
const MAX_DEPTH: usize = 64;

/// Step 1, for the group at `path`.
pub(crate) fn consolidate(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
) -> Result<()> {
    writer_of(store)?;
    // Step 4.
    let held = NodeLock::new(store, path)?;
    let mut entries = Vec::new();
    collect(store, path, "", zarr_format, options, 0, &mut entries)?;
    let limit = options.limits.metadata.max_consolidated_nbytes;
    match zarr_format {
        ZarrFormat::V3 => {
            let inline = json!({ "kind": "inline", "must_understand": false });
            let entries = JsonText::new(entries)?;
            update(store, &held, &join(path, ZARR_JSON), limit, options.durability, |document| {
                let mut document = document.ok_or(ErrorKind::NotFound)?;
                document.set(KEY, &inline)?;
                let mut inline = document.object(KEY)?;
                inline.set_object(METADATA, &entries)?;
                document.set_object(KEY, &inline)?;
                Ok(Some(document))
            })?;
        }
        ZarrFormat::V2 => {
            let own = copies(store, path, "", zarr_format, options)?;
            let entries = JsonText::new(own.into_iter().chain(entries))?;
            let document = JsonText::new([
                (METADATA.to_owned(), entries),
                ("zarr_consolidated_format".to_owned(), JsonText::from_value(&json!(1))?),
            ])?;
            update(store, &held, &join(path, ZMETADATA), limit, options.durability, |_| {
                Ok(Some(JsonText::parse(allocation::copied(document.as_bytes())?, u64::MAX)?))
            })?;
        }
    }
    revision::count();
    Ok(())
}

/// Collects the documents of the nodes below `path`, each with its key relative to the consolidated group.
///
/// # Errors
/// [`ErrorKind::LinkLoop`], [`ErrorKind::Unsupported`] for a node of another version, and errors of the store.
fn collect(
    store: &dyn Store,
    path: &str,
    relative: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
    depth: usize,
    entries: &mut Vec<(String, JsonText)>,
) -> Result<()> {
    if depth > MAX_DEPTH {
        let (what, actual, limit) = ("the depth of the hierarchy", depth as u64, MAX_DEPTH as u64);
        return Err(ErrorKind::Limit { what, actual, limit }.into());
    }
    let mut above = FoldersAbove::new(store, path);
    let names = store.list(path)?.into_iter().filter(|name| !DOCUMENTS.contains(&name.as_str()));
    let names: Vec<String> = allocation::collected(names)?;
    let (documents, limits) = (documents_of(zarr_format), &options.limits.metadata);
    for names in names.chunks(if store.remote().is_some() { AT_ONCE } else { 1 }) {
        let wanted = names.iter().flat_map(|name| keys(&join(path, name), documents, limits));
        let mut stored = store.get_each(&wanted.collect::<Vec<_>>()).into_iter();
        for name in names {
            pass_now_and_then()?;
            allocation::check_spare()?;
            let (path, relative) = (join(path, name), join(relative, name));
            let found = copied(stored.by_ref().take(documents.len()), &relative, zarr_format, options)
                .map_err(|error| error.in_array(store.name(), &path))?;
            let is_group = found.iter().any(|(key, document)| match zarr_format {
                ZarrFormat::V2 => key.ends_with(ZGROUP),
                ZarrFormat::V3 => document.values().is_ok_and(|values| {
                    values.get("node_type").is_some_and(|node_type| node_type == "group")
                }),
            });
            if found.is_empty() {
                refuse_other_version(store, &path, zarr_format, options)
                    .map_err(|error| error.in_array(store.name(), &path))?;
            }
            entries.try_extend(found)?;
            if is_group {
                above.check(&path)?;
                collect(store, &path, &relative, zarr_format, options, depth + 1, entries)?;
            }
        }
    }
    Ok(())
}

/// Returns an error if the node at `path`, which has none of the documents to be copied, has another version's: readers
/// of the copies would not find it.
fn refuse_other_version(
    store: &dyn Store,
    path: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
) -> Result<()> {
    let (other, group, own) = match zarr_format {
        ZarrFormat::V2 => (ZarrFormat::V3, 2, 3),
        ZarrFormat::V3 => (ZarrFormat::V2, 3, 2),
    };
    if copies(store, path, "", other, options)?.is_empty() {
        return Ok(());
    }
    let text = format!(
        "a node of Zarr version {own} below the consolidated group, of version {group}: copy the node with \
         zarr_format={group}, or erase it"
    );
    Err(ErrorKind::Unsupported(text).into())
}

/// Returns the documents of a node that are copied.
fn documents_of(zarr_format: ZarrFormat) -> &'static [&'static str] {
    match zarr_format {
        ZarrFormat::V3 => &[ZARR_JSON],
        ZarrFormat::V2 => &[ZARRAY, ZGROUP, ZATTRS],
    }
}

/// Returns the copies of the node at `path` for consolidated metadata, from the stored documents; empty without a node.
fn copies(
    store: &dyn Store,
    path: &str,
    relative: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
) -> Result<Vec<(String, JsonText)>> {
    let wanted = keys(path, documents_of(zarr_format), &options.limits.metadata);
    copied(store.get_each(&wanted).into_iter(), relative, zarr_format, options)
}

/// Returns the copies of a node; its documents were read in the order of [`documents_of`].
fn copied(
    stored: impl Iterator<Item = Result<Option<Vec<u8>>>>,
    relative: &str,
    zarr_format: ZarrFormat,
    options: &OpenOptions,
) -> Result<Vec<(String, JsonText)>> {
    let limits = &options.limits.metadata;
    let mut copies = Vec::new();
    for (name, stored) in documents_of(zarr_format).iter().zip(stored) {
        let Some(stored) = stored? else { continue };
        match zarr_format {
            ZarrFormat::V3 => {
                let mut found = JsonText::parse(stored, limits.max_consolidated_nbytes)?;
                let attributes = found.object("attributes");
                if attributes.is_ok_and(|attributes| attributes.keys().any(|key| key == ATTRIBUTE)) {
                    return Ok(Vec::new());
                }
                found.remove(KEY);
                copies.push((relative.to_owned(), found));
            }
            ZarrFormat::V2 => {
                copies.push((join(relative, name), JsonText::parse(stored, limits.max_metadata_nbytes)?));
            }
        }
    }
    // In version 3 a key is the path of a node, which may end in any name.
    let is_node = zarr_format == ZarrFormat::V3 || copies.iter().any(|(key, _)| !key.ends_with(ZATTRS));
    Ok(if is_node { copies } else { Vec::new() })
}

/// Step 2, for the nodes at `paths`: each group above is written once.
pub(super) fn refresh(
    store: &dyn Store,
    held: &NodeLock<'_>,
    paths: &[&str],
    options: &OpenOptions,
) -> Result<()> {
    let set = |path: &str, relative: &str, zarr_format, entries: &mut JsonText| {
        let found = copies(store, path, relative, zarr_format, options)?;
        match zarr_format {
            ZarrFormat::V3 => set_inline(entries, relative, found.first().map(|(_, document)| document))?,
            ZarrFormat::V2 => {
                for name in [ZARRAY, ZGROUP, ZATTRS] {
                    let key = join(relative, name);
                    match found.iter().find(|(found, _)| *found == key) {
                        Some((_, document)) => entries.set_object(&key, document)?,
                        None => {
                            entries.remove(&key);
                        }
                    }
                }
            }
        }
        Ok(())
    };
    // If one group cannot be written, the others are still renewed.
    let mut refreshed = Ok(());
    for group in groups_with(paths) {
        refreshed = refreshed.and(change_in(store, held, group, paths, options, &set, None));
    }
    refreshed
}

/// Returns the nodes at `paths` and the groups above them, from the root down.
fn groups_with<'p>(paths: &[&'p str]) -> BTreeSet<&'p str> {
    paths.iter().flat_map(|path| ancestors(path).chain([*path])).collect()
}

/// Renews the copies of the nodes at `paths`, after they were changed (steps 2 and 5).
pub(super) fn renew(store: &dyn Store, held: &NodeLock<'_>, paths: &[&str], options: &OpenOptions) {
    if let Err(error) = refresh(store, held, paths, options) {
        warn_of_stale_copies(&error.in_array(store.name(), paths.last().copied().unwrap_or_default()));
    }
}

/// Copies the documents below the new group at `path` into the groups above.
pub(super) fn renew_members(store: &dyn Store, held: &NodeLock<'_>, path: &str, options: &OpenOptions) {
    let add = |_: &str, relative: &str, zarr_format, entries: &mut JsonText| {
        let mut found = Vec::new();
        collect(store, path, relative, zarr_format, options, 0, &mut found)?;
        for (key, document) in &found {
            match zarr_format {
                ZarrFormat::V3 => set_inline(entries, key, Some(document))?,
                ZarrFormat::V2 => entries.set_object(key, document)?,
            }
        }
        Ok(())
    };
    for group in ancestors(path) {
        if let Err(error) = change_in(store, held, group, &[path], options, &add, None) {
            warn_of_stale_copies(&error.in_array(store.name(), path));
        }
    }
}

fn warn_of_stale_copies(error: &Error) {
    let text = "the change is stored, but the consolidated metadata are out of date";
    warn(format!("{text} ({error}): call consolidate_metadata()"));
}

/// Removes the copies of the nodes at `paths` and of the nodes below them, and does `work`, which erases or replaces
/// them (step 3). Returns the result of `work`, and whether the copies were removed. With `may_stay`, failing to remove
/// them is not an error.
///
/// # Errors
/// Errors of the store and of `work`. The copies are then restored; if that fails too, the hint of the error says so.
pub(super) fn without_copies<T>(
    store: &dyn Store,
    held: &NodeLock<'_>,
    paths: &[&str],
    options: &OpenOptions,
    may_stay: bool,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Result<()>)> {
    let documents = || -> Vec<_> {
        let names = paths.iter().flat_map(|path| DOCUMENTS.map(|name| join(path, name)));
        names.map(|key| store.version_of(&key).ok()).collect()
    };
    // Without locks they may change at any time.
    let before = (!writer_of(store)?.is_optimistic()).then(documents);
    let mut forgotten = Vec::new();
    let removed = forget(store, held, paths, options, may_stay, &mut forgotten);
    let (allowed, removed) = match removed {
        Err(error) if may_stay && matches!(error.kind(), ErrorKind::Write(_)) => (Ok(()), Err(error)),
        removed => (removed, Ok(())),
    };
    allowed.and_then(|()| work()).map(|done| (done, removed)).map_err(|error| {
        // Work may fail after it replaced the node: then the old copies must not return.
        let restored = if before.is_some_and(|before| before == documents()) {
            restore(store, held, forgotten, options)
        } else {
            refresh(store, held, paths, options)
        };
        match restored {
            Ok(()) => error,
            Err(_) => error
                .with_hint("the consolidated metadata may lack this node now: call consolidate_metadata()"),
        }
    })
}

/// Removes the copies of the node at `path` and of those below it, after it was erased.
pub(super) fn forget_late(store: &dyn Store, held: &NodeLock<'_>, path: &str, options: &OpenOptions) {
    if let Err(error) = forget(store, held, &[path], options, true, &mut Vec::new()) {
        warn_of_stale_copies(&error.in_array(store.name(), path));
    }
}

/// Removes the copies of the nodes at `paths` and of the nodes below them, from every writable group or only until the
/// first that cannot be written.
fn forget(
    store: &dyn Store,
    held: &NodeLock<'_>,
    paths: &[&str],
    options: &OpenOptions,
    from_every: bool,
    forgotten: &mut Vec<Edited>,
) -> Result<()> {
    if paths == [""] {
        return Ok(());
    }
    let remove = |_: &str, relative: &str, zarr_format, entries: &mut JsonText| {
        let inside = format!("{relative}/");
        for key in allocation::collected(entries.keys().filter(|key| key.starts_with(&inside)))? {
            entries.remove(&key);
        }
        if zarr_format == ZarrFormat::V3 {
            set_inline(entries, relative, None)?;
        }
        Ok(())
    };
    let mut removed = Ok(());
    for group in groups_with(paths) {
        let changed = change_in(store, held, group, paths, options, &remove, Some(forgotten));
        removed = removed.and(changed);
        if removed.is_err() && !from_every {
            break;
        }
    }
    removed
}

/// Restores documents, unless another writer has changed them since.
fn restore(store: &dyn Store, held: &NodeLock<'_>, edited: Vec<Edited>, options: &OpenOptions) -> Result<()> {
    let limit = options.limits.metadata.max_consolidated_nbytes;
    edited.into_iter().try_for_each(|Edited { key, before, after }| {
        update(store, held, &key, limit, options.durability, |found| match found {
            Some(found) if found.as_bytes() == after => {
                Ok(Some(JsonText::parse(allocation::copied(&before)?, limit)?))
            }
            _ => Ok(None),
        })
    })
}

/// A change of one group's consolidated metadata. It takes a node's path, and its path relative to the group.
type Change<'a> = dyn Fn(&str, &str, ZarrFormat, &mut JsonText) -> Result<()> + 'a;

/// A document before and after a change.
struct Edited {
    key: String,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Changes the consolidated metadata of `group`, if it has any, for the nodes at `paths` below it, or in version
/// 2 for the group itself. Each changed document is added to `edited`, if given.
fn change_in(
    store: &dyn Store,
    held: &NodeLock<'_>,
    group: &str,
    paths: &[&str],
    options: &OpenOptions,
    change: &Change<'_>,
    mut edited: Option<&mut Vec<Edited>>,
) -> Result<()> {
    let limit = options.limits.metadata.max_consolidated_nbytes;
    let relative = |path: &'_ str| -> Option<usize> {
        let rest = if group.is_empty() { path } else { path.strip_prefix(group)? };
        let is_in_it = group.is_empty() || rest.is_empty() || rest.starts_with('/');
        is_in_it.then(|| path.len() - rest.trim_start_matches('/').len())
    };
    let inside = || paths.iter().filter_map(|path| Some((*path, &path[relative(path)?..])));
    let mut edit = |key: String, edit: &dyn Fn(&mut JsonText) -> Result<()>| {
        let mut last = None;
        let updated = update(store, held, &key, limit, options.durability, |document| {
            let Some(mut document) = document else { return Ok(None) };
            let bytes =
                |document: &JsonText| edited.is_some().then(|| allocation::copied(document.as_bytes()));
            let before = bytes(&document).transpose()?;
            edit(&mut document)?;
            last = before.zip(bytes(&document).transpose()?);
            Ok(Some(document))
        });
        if let (Some((before, after)), Some(edited)) = (last, edited.as_deref_mut()) {
            edited.try_push(Edited { key, before, after })?;
        }
        updated
    };
    let zmetadata = join(group, ZMETADATA);
    if store.open(&zmetadata)?.is_some() {
        edit(zmetadata, &|document| {
            let mut entries = document.object(METADATA)?;
            inside().try_for_each(|(path, below)| change(path, below, ZarrFormat::V2, &mut entries))?;
            Ok(document.set_object(METADATA, &entries)?)
        })?;
    }
    let zarr_json = join(group, ZARR_JSON);
    let has_nodes = inside().any(|(_, below)| !below.is_empty());
    if !has_nodes || !mentions_key(store.get(&zarr_json, limit)?) {
        return Ok(());
    }
    edit(zarr_json, &|document| {
        let mut inline = document.object(KEY)?;
        if inline.keys().all(|key| key != METADATA) {
            return Ok(());
        }
        let mut entries = inline.object(METADATA)?;
        let mut below = inside().filter(|(_, below)| !below.is_empty());
        below.try_for_each(|(path, below)| change(path, below, ZarrFormat::V3, &mut entries))?;
        inline.set_object(METADATA, &entries)?;
        Ok(document.set_object(KEY, &inline)?)
    })
}

/// Whether the document is worth parsing.
fn mentions_key(document: Option<Vec<u8>>) -> bool {
    document.is_some_and(|bytes| bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()))
}

/// Makes `document` the entry at `path`, or removes the entry; also in the entries of groups on the way, where some
/// writers repeat the metadata below the group.
fn set_inline(entries: &mut JsonText, path: &str, document: Option<&JsonText>) -> Result<()> {
    match document {
        Some(document) => {
            let mut document = document.clone();
            let below = entries.object(path)?.object(KEY)?;
            if !below.is_empty() {
                document.set_object(KEY, &below)?;
            }
            entries.set_object(path, &document)?;
        }
        None => {
            entries.remove(path);
        }
    }
    for group in ancestors(path).filter(|group| !group.is_empty()) {
        let mut entry = entries.object(group)?;
        let mut inline = entry.object(KEY)?;
        let mut inner = inline.object(METADATA)?;
        if !inner.is_empty() {
            set_inline(&mut inner, &path[group.len() + 1..], document)?;
            inline.set_object(METADATA, &inner)?;
            entry.set_object(KEY, &inline)?;
            entries.set_object(group, &entry)?;
        }
    }
    Ok(())
}

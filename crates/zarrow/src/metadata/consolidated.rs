//! The metadata of a whole hierarchy in one document.
//!
//! 1. Every node is kept as the text that it has in the document, under its path from the root, in one sorted list: a
//!    tree of all of them would take many times the memory.
//! 2. A subgroup is the same list seen from another prefix, so that it has all of its descendants whatever
//!    its own entry says: zarr-python writes an empty map into it.
//! 3. A node is parsed when it is asked for, so that one bad node does not spoil its neighbours, and the limit for the
//!    document of one node holds for its entry.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::json::{self, Document};
use super::members::{Spans, members};
use super::{MetadataError, MetadataLimits, NodeMetadata, v2, v3};
use zarrow_array::allocation::{self, Grow};

pub(super) const KEY: &str = "consolidated_metadata";

/// Bytes of the text of the shortest node; the number of nodes is bounded by it.
const SHORTEST_NODE: u64 = 16;

/// The metadata of everything below one group. A clone shares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidated {
    nodes: Arc<Nodes>,
    /// Empty, or the path of the group from the root with a `/` after it.
    prefix: String,
    limits: MetadataLimits,
}

#[derive(Debug, PartialEq)]
struct Nodes {
    /// The document.
    text: Vec<u8>,
    /// The nodes by their paths, sorted, each path once.
    entries: Vec<(String, Entry)>,
}

/// Where the text of one node is.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    V3(Range<usize>),
    V2Array { zarray: Range<usize>, zattrs: Option<Range<usize>> },
    V2Group { zgroup: Range<usize>, zattrs: Option<Range<usize>> },
}

impl Consolidated {
    /// Reads the text of `consolidated_metadata` of a version 3 group, `None` where it may be ignored.
    pub(super) fn from_v3(text: &[u8], limits: MetadataLimits) -> Result<Option<Self>, MetadataError> {
        if !text.starts_with(b"{") {
            return Err(MetadataError::invalid(KEY, "expected an object"));
        }
        json::check_object(text, limits.max_consolidated_nbytes)?;
        if last(text, "kind") != Some(br#""inline""#) {
            return match last(text, "must_understand") {
                Some(b"false") => Ok(None),
                _ => Err(MetadataError::invalid(KEY, "expected an object of the kind \"inline\"")),
            };
        }
        let text =
            copy(inline(text).ok_or_else(|| MetadataError::invalid(KEY, "it has no \"metadata\" object"))?)?;
        let mut entries = Vec::new();
        collect("", &text, 0..text.len(), &mut entries, &limits)?;
        // The last of one path is it.
        entries.sort_unstable_by(|(one, a), (other, b)| one.cmp(other).then(b.start().cmp(&a.start())));
        Ok(Some(Consolidated::new(text, entries, limits)))
    }

    /// Reads a `.zmetadata`. The keys of the root itself are those that the caller has read already.
    pub(super) fn from_v2(text: &[u8], limits: MetadataLimits) -> Result<Self, MetadataError> {
        json::check_object(text, limits.max_consolidated_nbytes)?;
        const FORMAT: &str = "zarr_consolidated_format";
        match last(text, FORMAT) {
            Some(b"1") => {}
            Some(_) => return Err(MetadataError::invalid(FORMAT, "expected 1")),
            None => return Err(MetadataError::MissingKey { key: FORMAT }),
        }
        let text = match last(text, "metadata") {
            None | Some(b"null") => Vec::new(),
            Some(text) if text.starts_with(b"{") => copy(text)?,
            Some(_) => return Err(MetadataError::invalid("metadata", "expected an object")),
        };
        let (mut entries, mut attributes) = (Vec::new(), Vec::new());
        for Spans { key, value } in members(&text) {
            let key = json::string(&text[key])?;
            let Some((path, name)) = key.rsplit_once('/') else { continue };
            match name {
                ".zattrs" => push(&mut attributes, path.to_owned(), value, &limits)?,
                ".zarray" => {
                    let entry = Entry::V2Array { zarray: value, zattrs: None };
                    push(&mut entries, checked_path(path)?.to_owned(), entry, &limits)?;
                }
                ".zgroup" => {
                    let entry = Entry::V2Group { zgroup: value, zattrs: None };
                    push(&mut entries, checked_path(path)?.to_owned(), entry, &limits)?;
                }
                _ => {}
            }
        }
        // The last of one key is it.
        attributes.sort_unstable_by(|(one, a): &(String, Range<usize>), (other, b)| {
            one.cmp(other).then(b.start.cmp(&a.start))
        });
        for (path, entry) in &mut entries {
            let (Entry::V2Array { zattrs, .. } | Entry::V2Group { zattrs, .. }) = entry else { continue };
            let at = attributes.partition_point(|(other, _)| other < path);
            *zattrs = attributes.get(at).filter(|(other, _)| other == path).map(|(_, span)| span.clone());
        }
        entries.sort_unstable_by(|(one, a), (other, b)| one.cmp(other).then(a.start().cmp(&b.start())));
        Ok(Consolidated::new(text, entries, limits))
    }

    /// Of sorted entries with one path the first is it.
    fn new(text: Vec<u8>, mut entries: Vec<(String, Entry)>, limits: MetadataLimits) -> Self {
        entries.dedup_by(|(later, _), (first, _)| later == first);
        Consolidated { nodes: Arc::new(Nodes { text, entries }), prefix: String::new(), limits }
    }

    /// The node at `path` below the group, such as `sub/array`; `None` where it is not there. A group comes
    /// with the consolidated metadata of what is below it.
    ///
    /// The inner [`MetadataError`] says what is wrong with the metadata of that one node.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Result<NodeMetadata, MetadataError>> {
        let path = format!("{}{path}", self.prefix);
        let entries = &self.nodes.entries;
        let at = entries.binary_search_by(|(other, _)| other.as_str().cmp(&path)).ok()?;
        let node = entries[at].1.parse(&self.nodes.text, &self.limits);
        let path = &path[self.prefix.len()..];
        Some(node.map(|node| match node {
            NodeMetadata::Group(mut group) => {
                group.consolidated = Some(self.subgroup(path));
                NodeMetadata::Group(group)
            }
            array => array,
        }))
    }

    /// The names of the nodes directly below the group at `path`, in order. The path is empty for the group
    /// itself.
    ///
    /// ```
    /// use zarrow::metadata::{MetadataLimits, parse_v2_group};
    /// let zmetadata = br#"{"zarr_consolidated_format": 1, "metadata": {
    ///     ".zgroup": {"zarr_format": 2},
    ///     "sub/.zgroup": {"zarr_format": 2}, "sub/deep/.zgroup": {"zarr_format": 2}}}"#;
    /// let limits = MetadataLimits::default();
    /// let root = parse_v2_group(br#"{"zarr_format": 2}"#, None, Some(zmetadata), &limits)?;
    /// let consolidated = root.consolidated.unwrap_or_else(|| unreachable!());
    /// assert_eq!(consolidated.children("")?, ["sub"]);
    /// assert_eq!(consolidated.subgroup("sub").children("")?, ["deep"]);
    /// # Ok::<(), zarrow::metadata::MetadataError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetadataError::OutOfMemory`].
    pub fn children(&self, path: &str) -> Result<Vec<String>, MetadataError> {
        let prefix = self.subgroup(path).prefix;
        let entries = &self.nodes.entries;
        let after = &entries[entries.partition_point(|(path, _)| *path <= prefix)..];
        let below = after.iter().map_while(|(path, _)| path.strip_prefix(&prefix));
        Ok(allocation::collected(below.filter(|path| !path.contains('/')).map(str::to_owned))?)
    }

    /// The same metadata, seen from the group at `path`.
    #[must_use]
    pub fn subgroup(&self, path: &str) -> Consolidated {
        let mut subgroup = self.clone();
        if !path.is_empty() {
            subgroup.prefix.push_str(path);
            subgroup.prefix.push('/');
        }
        subgroup
    }
}

impl Entry {
    fn start(&self) -> usize {
        match self {
            Entry::V3(span) | Entry::V2Array { zarray: span, .. } | Entry::V2Group { zgroup: span, .. } => {
                span.start
            }
        }
    }

    fn parse(&self, text: &[u8], limits: &MetadataLimits) -> Result<NodeMetadata, MetadataError> {
        let document = |span: &Range<usize>| Document::parse(&text[span.clone()], limits.max_metadata_nbytes);
        let attributes = |zattrs: &Option<Range<usize>>| match zattrs {
            Some(zattrs) => document(zattrs).map(Document::into_map),
            None => Ok(Map::new()),
        };
        match self {
            Entry::V3(span) => Ok(v3::split(&text[span.clone()], limits)?.0),
            Entry::V2Array { zarray, zattrs } => {
                v2::array(document(zarray)?, attributes(zattrs)?, limits).map(NodeMetadata::Array)
            }
            Entry::V2Group { zgroup, zattrs } => {
                v2::group(document(zgroup)?, attributes(zattrs)?, None).map(NodeMetadata::Group)
            }
        }
    }
}

/// The text of the member `key`, the last where there are several; `None` where the text is no object.
pub(super) fn last<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let text = text.trim_ascii_start();
    if !text.starts_with(b"{") {
        return None;
    }
    let found = members(text).filter(|spans| json::is_string(&text[spans.key.clone()], key)).last()?;
    text.get(found.value)
}

/// The text of the `metadata` of a `consolidated_metadata`.
fn inline(text: &[u8]) -> Option<&[u8]> {
    last(text, "metadata").filter(|text| text.starts_with(b"{"))
}

fn copy(text: &[u8]) -> Result<Vec<u8>, MetadataError> {
    Ok(allocation::copied(text)?)
}

/// Adds an entry, as long as there may be so many.
fn push<T>(
    entries: &mut Vec<(String, T)>,
    path: String,
    entry: T,
    limits: &MetadataLimits,
) -> Result<(), MetadataError> {
    let limit = limits.max_consolidated_nbytes / SHORTEST_NODE;
    if entries.len() as u64 >= limit {
        return Err(MetadataError::TooLarge { what: "the number of consolidated nodes", limit });
    }
    Ok(entries.try_push((path, entry))?)
}

/// Adds the entries of one inline map, whose text lies at `span`, and of those that its own entries carry, below `prefix`.
///
/// The recursion is as deep as the JSON, which was bounded.
fn collect(
    prefix: &str,
    text: &[u8],
    span: Range<usize>,
    entries: &mut Vec<(String, Entry)>,
    limits: &MetadataLimits,
) -> Result<(), MetadataError> {
    let start = span.start;
    for Spans { key, value } in members(&text[span.clone()]) {
        let (key, value) = (start + key.start..start + key.end, start + value.start..start + value.end);
        let path = format!("{prefix}{}", checked_path(&json::string(&text[key])?)?);
        let node = &text[value.clone()];
        if let Some(inner) = last(node, KEY).and_then(inline) {
            let at = inner.as_ptr().addr() - text.as_ptr().addr();
            collect(&format!("{path}/"), text, at..at + inner.len(), entries, limits)?;
        }
        push(entries, path, Entry::V3(value), limits)?;
    }
    Ok(())
}

/// A relative path whose every part is a name, and not a way up (Zarr core 3.1, node names).
fn checked_path(path: &str) -> Result<&str, MetadataError> {
    let is_name = |part: &str| part.bytes().any(|byte| byte != b'.');
    if path.split('/').all(is_name) {
        return Ok(path);
    }
    Err(MetadataError::expected(KEY, "relative paths of nodes", &Value::from(path)))
}

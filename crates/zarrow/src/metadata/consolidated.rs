//! Consolidated metadata: a whole hierarchy's metadata in one document.
//!
//! 1. Every entry is kept as JSON text under its path from the root, in one sorted map: text takes far less memory
//!    than parsed values, and keeps the attributes exactly.
//! 2. A subgroup is the same map with another prefix, so that it has all of its descendants even if its own entry is
//!    empty: zarr-python writes an empty map into it.
//! 3. An entry is parsed on access, so that one bad node does not affect its neighbours.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;
use zarrow_array::allocation;

use super::codec_names::CodecNames;
use super::json::{self, Document};
use super::member_spans::{key_text, member, members};
use super::read_v3::CONSOLIDATED as KEY;
use super::{Attributes, JsonText, MetadataError, MetadataLimits, NodeMetadata, read_v2, read_v3};

const METADATA: &str = "metadata";

/// Length of the shortest node's text in bytes, which bounds the number of nodes.
const SHORTEST_NODE: u64 = 16;

/// Metadata of everything below one group. Clones share them.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidated {
    entries: Arc<BTreeMap<String, Entry>>,
    /// Empty, or the path of the group from the root with a final `/`.
    prefix: String,
    limits: MetadataLimits,
}

/// JSON of one node, which was parsed once.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    V3(Vec<u8>),
    V2Array { zarray: Vec<u8>, zattrs: Option<Vec<u8>> },
    V2Group { zgroup: Vec<u8>, zattrs: Option<Vec<u8>> },
}

impl Consolidated {
    /// Reads the text of `consolidated_metadata` of a version 3 group; returns `None` if it may be ignored.
    pub(super) fn from_v3(text: &[u8], limits: MetadataLimits) -> Result<Option<Self>, MetadataError> {
        if !text.starts_with(b"{") {
            return Err(MetadataError::invalid(KEY, "expected an object"));
        }
        if member(text, b"kind") != Some(br#""inline""#) {
            return match member(text, b"must_understand") {
                Some(b"false") => Ok(None),
                _ => Err(MetadataError::invalid(KEY, "expected an object of the kind \"inline\"")),
            };
        }
        let metadata =
            inline(text).ok_or_else(|| MetadataError::invalid(KEY, "it has no \"metadata\" object"))?;
        let mut entries = BTreeMap::new();
        collect("", metadata, &mut entries, &limits)?;
        Ok(Some(Consolidated::new(entries, limits)))
    }

    /// Reads a `.zmetadata`. The caller has read the keys of the root itself already.
    pub(super) fn from_v2(text: &[u8], limits: MetadataLimits) -> Result<Self, MetadataError> {
        json::check_object(text, limits.max_consolidated_nbytes)?;
        const FORMAT: &str = "zarr_consolidated_format";
        match member(text, FORMAT.as_bytes()) {
            Some(b"1") => {}
            Some(_) => return Err(MetadataError::invalid(FORMAT, "expected 1")),
            // Some writers omit the version; there is no other format.
            None if member(text, METADATA.as_bytes()).is_some() => {}
            None => return Err(MetadataError::MissingKey { key: FORMAT }),
        }
        let text = match member(text, METADATA.as_bytes()) {
            None | Some(b"null") => &[],
            Some(text) if text.starts_with(b"{") => text,
            Some(_) => return Err(MetadataError::invalid(METADATA, "expected an object")),
        };
        // The last of equal keys wins, as in parsers.
        let (mut attributes, mut nodes) = (HashMap::new(), HashMap::new());
        for found in members(text) {
            let key = key_text(found.key);
            let value = allocation::copied(text.get(found.value).unwrap_or_default())?;
            let map = if key.ends_with("/.zattrs") { &mut attributes } else { &mut nodes };
            admit(map.len(), &limits)?;
            map.insert(key, value);
        }
        let mut entries = BTreeMap::new();
        for (key, value) in nodes {
            let Some((path, name)) = key.rsplit_once('/') else { continue };
            let path = checked_path(path)?;
            let zattrs = attributes.remove(&format!("{path}/.zattrs"));
            let entry = match name {
                ".zarray" => Entry::V2Array { zarray: value, zattrs },
                ".zgroup" => Entry::V2Group { zgroup: value, zattrs },
                _ => continue,
            };
            entries.entry(path.to_owned()).or_insert(entry);
        }
        Ok(Consolidated::new(entries, limits))
    }

    fn new(entries: BTreeMap<String, Entry>, limits: MetadataLimits) -> Self {
        Consolidated { entries: Arc::new(entries), prefix: String::new(), limits }
    }

    /// Returns the node at `path` below the group, with the codecs of `names`.
    pub(crate) fn node(
        &self,
        path: &str,
        names: &dyn CodecNames,
    ) -> Option<Result<NodeMetadata, MetadataError>> {
        let entry = self.entries.get(&format!("{}{path}", self.prefix))?;
        Some(entry.parse(&self.limits, names).map(|node| match node {
            NodeMetadata::Group(mut group) => {
                group.consolidated = Some(self.subgroup(path));
                NodeMetadata::Group(group)
            }
            array => array,
        }))
    }

    /// Returns the names of the nodes directly below the group at `path`, in order. The path is empty for the group
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
        let after = self.entries.range::<str, _>((Bound::Excluded(prefix.as_str()), Bound::Unbounded));
        let below = after.map_while(|(path, _)| path.strip_prefix(&prefix));
        allocation::try_collected(
            below.filter(|path| !path.contains('/')).map(|path| Ok(allocation::text(path)?)),
        )
    }

    /// Returns the same metadata for the group at `path`.
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
    fn parse(&self, limits: &MetadataLimits, names: &dyn CodecNames) -> Result<NodeMetadata, MetadataError> {
        let most = limits.max_metadata_nbytes;
        let attributes = |zattrs: &Option<Vec<u8>>| match zattrs {
            Some(zattrs) => Document::parse(zattrs, most).and_then(Document::into_attributes),
            None => Ok(Attributes::default()),
        };
        match self {
            Entry::V3(text) => Ok(read_v3::split(text, limits, names)?.0),
            Entry::V2Array { zarray, zattrs } => {
                let zarray = Document::parse(zarray, most)?;
                read_v2::array(zarray, attributes(zattrs)?, limits, names).map(NodeMetadata::Array)
            }
            Entry::V2Group { zgroup, zattrs } => {
                let zgroup = Document::parse(zgroup, most)?;
                read_v2::group(zgroup, attributes(zattrs)?).map(NodeMetadata::Group)
            }
        }
    }
}

/// Returns the text of the `metadata` of a `consolidated_metadata`.
fn inline(text: &[u8]) -> Option<&[u8]> {
    member(text, METADATA.as_bytes()).filter(|text| text.starts_with(b"{"))
}

/// Refuses one more entry if there are as many as a document of the maximum size could have.
fn admit(entries: usize, limits: &MetadataLimits) -> Result<(), MetadataError> {
    let limit = limits.max_consolidated_nbytes / SHORTEST_NODE;
    match entries as u64 >= limit {
        true => Err(MetadataError::TooLarge { what: "the number of consolidated nodes", limit }),
        false => Ok(()),
    }
}

/// Adds the entries of an inline map with this `text` below `prefix`, and of the maps inside those entries.
///
/// The recursion is as deep as the JSON, which is bounded.
fn collect(
    prefix: &str,
    text: &[u8],
    entries: &mut BTreeMap<String, Entry>,
    limits: &MetadataLimits,
) -> Result<(), MetadataError> {
    for found in members(text) {
        let path = format!("{prefix}{}", checked_path(&key_text(found.key))?);
        let node = text.get(found.value).unwrap_or_default();
        let nested = if node.starts_with(b"{") { member(node, KEY.as_bytes()) } else { None };
        let own = match nested {
            None => allocation::copied(node)?,
            Some(_) => {
                let mut own = JsonText::from_object(node)?;
                own.remove(KEY);
                // Exact size, since the entry does not grow.
                allocation::copied(own.as_bytes())?
            }
        };
        admit(entries.len(), limits)?;
        entries.insert(path.clone(), Entry::V3(own));
        if let Some(inner) = nested.filter(|nested| nested.starts_with(b"{")).and_then(inline) {
            collect(&format!("{path}/"), inner, entries, limits)?;
        }
    }
    Ok(())
}

/// Checks a relative path: each part is a name, never `..` (Zarr core 3.1, node names).
fn checked_path(path: &str) -> Result<&str, MetadataError> {
    let is_name = |part: &str| part.bytes().any(|byte| byte != b'.');
    if path.split('/').all(is_name) {
        return Ok(path);
    }
    Err(MetadataError::expected(KEY, "relative paths of nodes", &Value::from(path)))
}

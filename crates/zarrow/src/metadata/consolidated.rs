//! The metadata of a whole hierarchy in one document.
//!
//! 1. Every entry is kept as its JSON text under its path from the root, in one sorted map: a text takes far less memory
//!    than its values, and says all of the attributes.
//! 2. A subgroup is the same map seen from another prefix, so that it has all of its descendants whatever
//!    its own entry says: zarr-python writes an empty map into it.
//! 3. An entry is parsed when it is asked for, so that one bad node does not spoil its neighbours.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::json::Document;
use super::members::{key_text, member, members};
use super::{Attributes, JsonText, MetadataError, MetadataLimits, NodeMetadata, v2, v3};

const KEY: &str = "consolidated_metadata";
const METADATA: &str = "metadata";

/// The metadata of everything below one group. A clone shares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidated {
    entries: Arc<BTreeMap<String, Entry>>,
    /// Empty, or the path of the group from the root with a `/` after it.
    prefix: String,
    limits: MetadataLimits,
}

/// The JSON of one node, which was parsed once.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    V3(Vec<u8>),
    V2Array { zarray: Vec<u8>, zattrs: Option<Vec<u8>> },
    V2Group { zgroup: Vec<u8>, zattrs: Option<Vec<u8>> },
}

impl Consolidated {
    /// Reads `consolidated_metadata` of a version 3 group, a value and its text; `None` where it may be ignored.
    pub(super) fn from_v3(
        value: &Value,
        text: &[u8],
        limits: MetadataLimits,
    ) -> Result<Option<Self>, MetadataError> {
        match value.get("kind").and_then(Value::as_str) {
            Some("inline") => {}
            _ if value.get("must_understand") == Some(&Value::Bool(false)) => return Ok(None),
            _ => return Err(MetadataError::expected(KEY, "an object of the kind \"inline\"", value)),
        }
        let metadata =
            inline(value).ok_or_else(|| MetadataError::invalid(KEY, "it has no \"metadata\" object"))?;
        let mut entries = BTreeMap::new();
        collect("", metadata, member(text, METADATA.as_bytes()).unwrap_or_default(), &mut entries)?;
        Ok(Some(Consolidated::new(entries, limits)))
    }

    /// Reads a `.zmetadata`. The keys of the root itself are those that the caller has read already.
    pub(super) fn from_v2(mut document: Document<'_>, limits: MetadataLimits) -> Result<Self, MetadataError> {
        let format = document.required("zarr_consolidated_format")?;
        if format.as_u64() != Some(1) {
            return Err(MetadataError::expected("zarr_consolidated_format", "1", &format));
        }
        document.object(METADATA)?;
        let text = document.text_of(METADATA).unwrap_or_default();
        let values = members(text).into_iter().map(|member| {
            let value = text.get(member.value).unwrap_or_default();
            (key_text(member.key), value.to_vec())
        });
        let (mut attributes, nodes): (HashMap<_, _>, HashMap<_, _>) =
            values.partition(|(key, _)| key.ends_with("/.zattrs"));
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

    /// The node at `path` below the group, such as `sub/array`; `None` where it is not there. A group comes
    /// with the consolidated metadata of what is below it.
    ///
    /// The inner [`MetadataError`] says what is wrong with the metadata of that one node.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Result<NodeMetadata, MetadataError>> {
        let entry = self.entries.get(&format!("{}{path}", self.prefix))?;
        Some(entry.parse(&self.limits).map(|node| match node {
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
    /// assert_eq!(consolidated.children(""), ["sub"]);
    /// assert_eq!(consolidated.subgroup("sub").children(""), ["deep"]);
    /// # Ok::<(), zarrow::metadata::MetadataError>(())
    /// ```
    #[must_use]
    pub fn children(&self, path: &str) -> Vec<String> {
        let prefix = self.subgroup(path).prefix;
        let after = self.entries.range::<str, _>((Bound::Excluded(prefix.as_str()), Bound::Unbounded));
        let below = after.map_while(|(path, _)| path.strip_prefix(&prefix));
        below.filter(|path| !path.contains('/')).map(str::to_owned).collect()
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
    fn parse(&self, limits: &MetadataLimits) -> Result<NodeMetadata, MetadataError> {
        // The limit of a whole document held for all of them.
        fn document(text: &[u8]) -> Result<Document<'_>, MetadataError> {
            Document::parse(text, u64::MAX)
        }
        let attributes = |zattrs: &Option<Vec<u8>>| match zattrs {
            Some(zattrs) => document(zattrs).map(Document::into_attributes),
            None => Ok(Attributes::default()),
        };
        match self {
            Entry::V3(text) => v3::node(document(text)?, limits),
            Entry::V2Array { zarray, zattrs } => {
                v2::array(document(zarray)?, attributes(zattrs)?, limits).map(NodeMetadata::Array)
            }
            Entry::V2Group { zgroup, zattrs } => {
                v2::group(document(zgroup)?, attributes(zattrs)?, None).map(NodeMetadata::Group)
            }
        }
    }
}

/// The `metadata` of a `consolidated_metadata`.
fn inline(value: &Value) -> Option<&Map<String, Value>> {
    value.get(METADATA)?.as_object()
}

/// Adds the entries of one inline map, of which `text` is the text, and of those that its own entries carry, below
/// `prefix`.
///
/// The recursion is as deep as the JSON, which its parser bounds.
fn collect(
    prefix: &str,
    metadata: &Map<String, Value>,
    text: &[u8],
    entries: &mut BTreeMap<String, Entry>,
) -> Result<(), MetadataError> {
    for found in members(text) {
        let name = key_text(found.key);
        let path = format!("{prefix}{}", checked_path(&name)?);
        let node = text.get(found.value).unwrap_or_default();
        let nested = metadata.get(&name).and_then(|node| node.get(KEY));
        let own = match nested {
            None => node.to_vec(),
            Some(_) => {
                let mut own = JsonText::of_object(node);
                own.remove(KEY);
                // As large as it is now, since an entry stays.
                own.as_bytes().to_vec()
            }
        };
        entries.insert(path.clone(), Entry::V3(own));
        if let Some(inner) = nested.and_then(inline) {
            let below = member(node, KEY.as_bytes()).and_then(|nested| member(nested, METADATA.as_bytes()));
            collect(&format!("{path}/"), inner, below.unwrap_or_default(), entries)?;
        }
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

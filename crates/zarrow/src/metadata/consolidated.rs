//! The metadata of a whole hierarchy in one document.
//!
//! 1. Every entry is kept as JSON under its path from the root, in one sorted map.
//! 2. A subgroup is the same map seen from another prefix, so that it has all of its descendants whatever
//!    its own entry says: zarr-python writes an empty map into it.
//! 3. An entry is parsed when it is asked for, so that one bad node does not spoil its neighbours.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::json::Document;
use super::{MetadataError, MetadataLimits, NodeMetadata, v2, v3};

const KEY: &str = "consolidated_metadata";

/// The metadata of everything below one group. A clone shares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidated {
    entries: Arc<BTreeMap<String, Entry>>,
    /// Empty, or the path of the group from the root with a `/` after it.
    prefix: String,
    limits: MetadataLimits,
}

/// The JSON of one node.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    V3(Value),
    V2 { array: Option<Value>, group: Option<Value>, attributes: Option<Value> },
}

impl Consolidated {
    /// Reads `consolidated_metadata` of a version 3 group, `None` where it may be ignored.
    pub(super) fn from_v3(value: Value, limits: MetadataLimits) -> Result<Option<Self>, MetadataError> {
        match value.get("kind").and_then(Value::as_str) {
            Some("inline") => {}
            _ if value.get("must_understand") == Some(&Value::Bool(false)) => return Ok(None),
            _ => return Err(MetadataError::expected(KEY, "an object of the kind \"inline\"", &value)),
        }
        let mut entries = BTreeMap::new();
        collect_v3("", value, &mut entries)?;
        Ok(Some(Consolidated::new(entries, limits)))
    }

    /// Reads a `.zmetadata`.
    pub(super) fn from_v2(mut document: Document, limits: MetadataLimits) -> Result<Self, MetadataError> {
        let format = document.required("zarr_consolidated_format")?;
        if format.as_u64() != Some(1) {
            return Err(MetadataError::expected("zarr_consolidated_format", "1", &format));
        }
        document.required("metadata").and_then(|metadata| match metadata {
            Value::Object(metadata) => {
                let mut entries = BTreeMap::new();
                for (key, value) in metadata {
                    insert_v2(&key, value, &mut entries)?;
                }
                Ok(Consolidated::new(entries, limits))
            }
            other => Err(MetadataError::expected("metadata", "an object", &other)),
        })
    }

    fn new(entries: BTreeMap<String, Entry>, limits: MetadataLimits) -> Self {
        Consolidated { entries: Arc::new(entries), prefix: String::new(), limits }
    }

    /// The node at `path` below the group, such as `sub/array`; `None` where it is not there. A group comes
    /// with the consolidated metadata of what is below it.
    ///
    /// # Errors
    /// The inner [`MetadataError`] where the metadata of that node is wrong.
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

    /// The names of the nodes directly below the group at `path` (the group itself where that is empty), in
    /// order.
    #[must_use]
    pub fn children(&self, path: &str) -> Vec<String> {
        let prefix = self.subgroup(path).prefix;
        let after = self.entries.range::<str, _>((Bound::Excluded(prefix.as_str()), Bound::Unbounded));
        let below = after.map_while(|(path, _)| path.strip_prefix(&prefix));
        // A path whose group has no entry of its own makes that group no node.
        let direct: BTreeSet<&str> = below.filter(|path| !path.contains('/')).collect();
        direct.into_iter().map(str::to_owned).collect()
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
        match self {
            Entry::V3(value) => v3::node(Document::from_value(value.clone())?, limits),
            Entry::V2 { array, group, attributes } => {
                let attributes = match attributes {
                    Some(attributes) => Document::from_value(attributes.clone())?.into_map(),
                    None => serde_json::Map::new(),
                };
                match (array, group) {
                    (Some(array), _) => v2::array(Document::from_value(array.clone())?, attributes, limits)
                        .map(NodeMetadata::Array),
                    (None, Some(group)) => v2::group(Document::from_value(group.clone())?, attributes, None)
                        .map(NodeMetadata::Group),
                    (None, None) => Err(MetadataError::MissingKey { key: ".zarray" }),
                }
            }
        }
    }
}

/// Adds the entries of one inline map, and of those that its own entries carry, below `prefix`.
///
/// The recursion is as deep as the JSON, which its parser bounds.
fn collect_v3(prefix: &str, value: Value, entries: &mut BTreeMap<String, Entry>) -> Result<(), MetadataError> {
    let metadata = match value {
        Value::Object(mut inline) => inline.remove("metadata"),
        _ => None,
    };
    let Some(Value::Object(metadata)) = metadata else {
        return Err(MetadataError::invalid(KEY, "it has no \"metadata\" object"));
    };
    for (path, mut node) in metadata {
        let path = format!("{prefix}{}", checked_path(&path)?);
        if let Some(inner @ Value::Object(_)) = node.as_object_mut().and_then(|node| node.remove(KEY)) {
            collect_v3(&format!("{path}/"), inner, entries)?;
        }
        entries.insert(path, Entry::V3(node));
    }
    Ok(())
}

/// Adds one key of a `.zmetadata`. The root's own keys are those that the caller has read already.
fn insert_v2(key: &str, value: Value, entries: &mut BTreeMap<String, Entry>) -> Result<(), MetadataError> {
    let Some((path, name)) = key.rsplit_once('/') else { return Ok(()) };
    if !matches!(name, ".zarray" | ".zgroup" | ".zattrs") {
        return Ok(());
    }
    let empty = Entry::V2 { array: None, group: None, attributes: None };
    let entry = entries.entry(checked_path(path)?.to_owned()).or_insert(empty);
    if let Entry::V2 { array, group, attributes } = entry {
        let slot = match name {
            ".zarray" => array,
            ".zgroup" => group,
            _ => attributes,
        };
        *slot = Some(value);
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


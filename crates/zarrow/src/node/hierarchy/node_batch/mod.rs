//! Creating many nodes of a hierarchy at once.
//!
//! 1. All nodes are checked against each other, and against the store, before anything is written.
//! 2. A local store creates one node after the other, the groups before their members. Attributes that a group gets
//!    last follow.
//! 3. A remote store gets batches of requests: see [`remote`].
//! 4. After an error, what this call created is removed, or named by a warning. Nodes that were replaced do not return.

mod remote;

use super::consolidate::consolidate;
use super::contents::Contents;
use super::create::{create_group, created};
use super::document::check_nbytes;
use super::erase::erase_if_empty;
use super::new_place::Existing;
use super::new_place::NewPlace;
use super::node_path::{ancestors, new_path};
use super::{AttributeChange, erase};
use crate::codec::{parse_v2_array, parse_v3};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{
    ArrayMetadata, Attributes, Document, GroupMetadata, MetadataLimits, NodeMetadata, ZARR_JSON, ZARRAY,
    ZATTRS, ZGROUP, ZarrFormat, parse_v2_group,
};
use crate::node::any::Node;
use crate::node::array::Array;
use crate::node::array::detached_write::ValueSource;
use crate::node::group::Group;
use crate::node::node_documents::read_metadata;
use crate::node::open_options::OpenOptions;
use crate::selection::Selection;
use crate::store::remote::AheadStore;
use crate::store::{Store, join, normalize_path, writer_of};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use zarrow_array::allocation;

/// An array or a group for [`create_all`].
#[derive(Clone)]
#[must_use]
pub struct NewNode {
    path: String,
    metadata: NodeMetadata,
    values: Option<Arc<dyn ValueSource>>,
    existing: Existing,
    keeps_group: bool,
    attributes_last: Attributes,
    write_empty_chunks: bool,
}

impl fmt::Debug for NewNode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NewNode").field("path", &self.path).finish_non_exhaustive()
    }
}

impl NewNode {
    /// Returns an array without elements.
    pub fn array(path: impl Into<String>, metadata: ArrayMetadata) -> NewNode {
        NewNode::new(path.into(), NodeMetadata::Array(metadata))
    }

    /// Returns a group.
    pub fn group(
        path: impl Into<String>,
        zarr_format: ZarrFormat,
        attributes: impl Into<Attributes>,
    ) -> NewNode {
        let attributes = attributes.into();
        let metadata = GroupMetadata { zarr_format, attributes, consolidated: None };
        NewNode::new(path.into(), NodeMetadata::Group(metadata))
    }

    /// Returns the node that these documents describe, each with its name: `zarr.json`, or `.zarray` or `.zgroup`, and
    /// `.zattrs`.
    ///
    /// # Errors
    /// [`ErrorKind::Metadata`], and [`ErrorKind::NotFound`] if none of these documents is given.
    pub fn from_documents(
        path: impl Into<String>,
        documents: &[(String, Vec<u8>)],
        limits: &MetadataLimits,
    ) -> Result<NewNode> {
        let find = |name: &str| {
            documents.iter().find(|(own, _)| own == name).map(|(_, document)| document.as_slice())
        };
        let metadata = match (find(ZARR_JSON), find(ZARRAY), find(ZGROUP)) {
            (Some(document), None, None) => parse_v3(document, limits)?,
            (None, Some(document), None) => {
                NodeMetadata::Array(parse_v2_array(document, find(ZATTRS), limits)?)
            }
            (None, None, Some(document)) => {
                NodeMetadata::Group(parse_v2_group(document, find(ZATTRS), None, limits)?)
            }
            _ => return Err(ErrorKind::NotFound.into()),
        };
        Ok(NewNode::new(path.into(), metadata))
    }

    fn new(path: String, metadata: NodeMetadata) -> NewNode {
        let existing = Existing::Refuse;
        NewNode {
            path,
            metadata,
            values: None,
            existing,
            keeps_group: false,
            attributes_last: Attributes::default(),
            write_empty_chunks: false,
        }
    }

    /// Sets the elements of an array.
    pub fn values(self, values: Arc<dyn ValueSource>) -> NewNode {
        NewNode { values: Some(values), ..self }
    }

    /// Sets what to do with an existing node at the path.
    pub fn existing(self, existing: Existing) -> NewNode {
        NewNode { existing, ..self }
    }

    /// Keeps an existing group, and updates its attributes.
    pub fn keep_group(self) -> NewNode {
        NewNode { keeps_group: true, ..self }
    }

    /// Sets more attributes of a group that the call creates. They are stored when its other nodes are complete, so that
    /// they can describe these.
    pub fn attributes_last(self, attributes: impl Into<Attributes>) -> NewNode {
        NewNode { attributes_last: attributes.into(), ..self }
    }

    /// Sets whether chunks with only fill values are stored.
    pub fn write_empty_chunks(self, write_empty_chunks: bool) -> NewNode {
        NewNode { write_empty_chunks, ..self }
    }

    /// Returns the node for a path relative to `group`.
    pub fn below(self, group: &str) -> NewNode {
        NewNode { path: join(group, self.path.trim_matches('/')), ..self }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the metadata.
    #[must_use]
    pub fn metadata(&self) -> &NodeMetadata {
        &self.metadata
    }
}

/// Creates arrays and groups, and missing groups above them, in a few round trips to a remote store. `consolidated` is
/// the path of a group that gets consolidated metadata of everything below it, at the end.
///
/// Returns the nodes in their order. All checks are made before the first write. Arrays with elements appear with all of
/// their elements.
///
/// # Errors
/// As [`create_array_with`](crate::create_array_with) and [`create_group`](crate::create_group);
/// [`ErrorKind::Exists`] for two nodes at one path, [`ErrorKind::WrongNode`] for a node below an array,
/// [`ErrorKind::Unsupported`] for nodes of both versions; [`ErrorKind::Interrupted`].
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::{MemoryStore, Store};
/// use zarrow::{ArrayBuilder, NewNode, OpenOptions, WriteOptions, ZarrFormat, create_all};
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
/// let rain = ArrayBuilder::new([3], zarrow::Number::UInt8).build()?;
/// let root = NewNode::group("", ZarrFormat::V3, serde_json::Map::new());
/// let nodes = vec![root, NewNode::array("model/rain", rain)];
/// let (options, write) = (OpenOptions::default(), WriteOptions::default());
/// let created = create_all(&store, nodes, Some(""), &options, &write)?;
/// assert_eq!(created.len(), 2);
/// assert_eq!(zarrow::open(store, "")?.into_group()?.array("model/rain")?.shape(), [3]);
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn create_all(
    store: &Arc<dyn Store>,
    nodes: Vec<NewNode>,
    consolidated: Option<&str>,
    options: &OpenOptions,
    write: &WriteOptions<'_>,
) -> Result<Vec<Node>> {
    let Some(first) = nodes.first() else { return Ok(Vec::new()) };
    let zarr_format = first.zarr_format();
    let consolidated = consolidated.map(normalize_path).transpose()?;
    let parts = prepared(store, nodes, options)?;
    let call = Call { store, parts, zarr_format, consolidated, options, write };
    let mut created = match AheadStore::new(&**store) {
        Some(ahead) => remote::create(&call, &ahead)?,
        None => call.create_one_by_one()?,
    };
    created.sort_unstable_by_key(|(number, _)| *number);
    Ok(created.into_iter().map(|(_, node)| node).collect())
}

impl NewNode {
    fn zarr_format(&self) -> ZarrFormat {
        match &self.metadata {
            NodeMetadata::Array(array) => array.zarr_format,
            NodeMetadata::Group(group) => group.zarr_format,
        }
    }
}

/// A checked node of a call.
struct CheckedNode {
    /// Its number in the call.
    number: usize,
    path: String,
    documents: Vec<Document>,
    content: Content,
    existing: Existing,
    keeps_group: bool,
    /// Attributes of a new group, which are stored last.
    attributes_last: Attributes,
    /// Whether a group above it is erased by this call.
    is_sheltered: bool,
    /// Whether no other node of the call is above it.
    is_top: bool,
}

enum Content {
    Group(GroupMetadata),
    Array(Array),
    /// An array with elements, and whether chunks of the fill value are stored.
    Filled(Array, Arc<dyn ValueSource>, bool),
}

impl CheckedNode {
    fn array(&self) -> Option<&Array> {
        match &self.content {
            Content::Group(_) => None,
            Content::Array(array) | Content::Filled(array, ..) => Some(array),
        }
    }
}

/// The nodes of a call, groups before their members.
struct Call<'a> {
    store: &'a Arc<dyn Store>,
    parts: Vec<CheckedNode>,
    zarr_format: ZarrFormat,
    consolidated: Option<String>,
    options: &'a OpenOptions,
    write: &'a WriteOptions<'a>,
}

/// Step 1, as far as it needs no request.
fn prepared(store: &Arc<dyn Store>, nodes: Vec<NewNode>, options: &OpenOptions) -> Result<Vec<CheckedNode>> {
    let mut parts = allocation::with_capacity(nodes.len())?;
    let mut zarr_format = None;
    for (number, node) in nodes.into_iter().enumerate() {
        let own = node.zarr_format();
        if *zarr_format.get_or_insert(own) != own {
            let text = "creating nodes of both Zarr versions in one call";
            return Err(Error::from(ErrorKind::Unsupported(text.into())).in_array(store.name(), &node.path));
        }
        parts.push(part(store, number, node, options)?);
    }
    parts.sort_by(|one, other| one.path.cmp(&other.path));
    let known: HashMap<String, (bool, bool)> = parts
        .iter()
        .map(|part| {
            let erases = part.existing == Existing::Erase && !part.keeps_group;
            (part.path.clone(), (part.array().is_some(), erases))
        })
        .collect();
    if known.len() < parts.len() {
        let twice = parts.windows(2).find(|pair| pair[0].path == pair[1].path);
        let path = twice.map_or("", |pair| &pair[0].path);
        return Err(Error::from(ErrorKind::Exists("another node of this call")).in_array(store.name(), path));
    }
    for part in &mut parts {
        for above in ancestors(&part.path) {
            let Some((is_array, erases)) = known.get(above) else { continue };
            if *is_array {
                let (expected, found) = ("a group, to create a node in it", "an array");
                return Err(
                    Error::from(ErrorKind::WrongNode { expected, found }).in_array(store.name(), above)
                );
            }
            part.is_top = false;
            part.is_sheltered |= *erases;
        }
    }
    Ok(parts)
}

fn part(store: &Arc<dyn Store>, number: usize, node: NewNode, options: &OpenOptions) -> Result<CheckedNode> {
    let NewNode { path, metadata, values, existing, keeps_group, attributes_last, write_empty_chunks } = node;
    let path = new_path(&path).map_err(|error| error.in_array(store.name(), &path))?;
    let place = |error: Error| error.in_array(store.name(), &path);
    let (content, documents) = match metadata {
        NodeMetadata::Group(mut group) => {
            group.consolidated = None;
            let documents = group.documents().map_err(|error| place(error.into()))?;
            (Content::Group(group), documents)
        }
        NodeMetadata::Array(metadata) => {
            // The codecs are compiled before anything is written.
            let array = Array::new(Arc::clone(store), path.clone(), metadata, options)?;
            let checked = array.chain().check_settings(&array.metadata().fill_value);
            checked.map_err(place)?;
            let documents = array.metadata().documents().map_err(|error| place(error.into()))?;
            match values {
                None => (Content::Array(array), documents),
                Some(source) => {
                    let check = || {
                        let values = source.values()?;
                        array.check_values(&values)?;
                        values.broadcast(array.shape()).map(drop)
                    };
                    check().map_err(place)?;
                    (Content::Filled(array, source, write_empty_chunks), documents)
                }
            }
        }
    };
    let limit = options.limits.metadata.max_metadata_nbytes;
    documents.iter().try_for_each(|(_, document)| check_nbytes(document, limit)).map_err(place)?;
    let (is_sheltered, is_top) = (false, true);
    Ok(CheckedNode {
        number,
        path,
        documents,
        content,
        existing,
        keeps_group,
        attributes_last,
        is_sheltered,
        is_top,
    })
}

/// The result of the checks that read the store.
#[derive(Default)]
struct Checked {
    /// The missing groups above.
    implied: Vec<String>,
    /// The parts that replace a node.
    replaced: HashSet<usize>,
    /// The parts that are existing groups.
    kept: HashSet<usize>,
}

impl Call<'_> {
    fn place(&self, part: &CheckedNode, error: Error) -> Error {
        error.in_array(self.store.name(), &part.path)
    }

    /// Checks the places of the nodes in `store`.
    fn check(&self, store: &dyn Store) -> Result<Checked> {
        writer_of(store)?;
        let paths: HashSet<&str> = self.parts.iter().map(|part| part.path.as_str()).collect();
        let (mut checked, mut seen) = (Checked::default(), HashSet::new());
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| !part.is_sheltered) {
            let place = NewPlace {
                store,
                path: &part.path,
                zarr_format: self.zarr_format,
                is_array: part.array().is_some(),
                existing: if part.keeps_group { Existing::Refuse } else { part.existing },
                options: self.options,
            };
            if seen.insert(part.path.rsplit_once('/').map_or("", |(above, _)| above)) {
                let missing = place.missing_groups().map_err(|error| self.place(part, error))?;
                for group in missing.into_iter().filter(|group| !paths.contains(group.as_str())) {
                    if !checked.implied.contains(&group) {
                        checked.implied.push(group);
                    }
                }
            }
            let mut own = || -> Result<()> {
                if part.keeps_group && self.is_kept(store, part)? {
                    checked.kept.insert(at);
                } else if place.replaces()? {
                    checked.replaced.insert(at);
                }
                Ok(())
            };
            own().map_err(|error| self.place(part, error))?;
        }
        checked.implied.sort_unstable();
        Ok(checked)
    }

    /// Whether there is a group to be kept.
    fn is_kept(&self, store: &dyn Store, part: &CheckedNode) -> Result<bool> {
        match read_metadata(store, &part.path, &self.options.limits.metadata) {
            Ok(NodeMetadata::Group(group)) if group.zarr_format == self.zarr_format => Ok(true),
            Ok(NodeMetadata::Group(_)) => {
                let text = "a Zarr version other than that of the group: pass the group's zarr_format";
                Err(ErrorKind::Unsupported(text.into()).into())
            }
            Ok(NodeMetadata::Array(_)) => {
                let (expected, found) = ("a group", "an array");
                Err(ErrorKind::WrongNode { expected, found }.into())
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Updates the attributes of an existing group, and returns it.
    fn keep(&self, part: &CheckedNode, attributes: &Attributes) -> Result<Group> {
        let metadata = read_metadata(&**self.store, &part.path, &self.options.limits.metadata)
            .map_err(|error| self.place(part, error))?;
        let NodeMetadata::Group(metadata) = metadata else {
            return Err(self.place(part, ErrorKind::Exists("an array").into()));
        };
        let mut group = Group::new(Arc::clone(self.store), part.path.clone(), metadata, *self.options);
        if !attributes.is_empty() {
            group.change_attributes(&AttributeChange::Update(attributes.clone()))?;
        }
        Ok(group)
    }

    /// Step 2.
    fn create_one_by_one(&self) -> Result<Vec<(usize, Node)>> {
        let checked = self.check(&**self.store)?;
        let mut nodes = allocation::with_capacity(self.parts.len())?;
        let mut made: Vec<(usize, &CheckedNode)> = Vec::new();
        let mut create = || -> Result<()> {
            for (at, part) in self.parts.iter().enumerate() {
                nodes.push((part.number, self.create_one(part, checked.kept.contains(&at))?));
                if !checked.kept.contains(&at) {
                    made.push((at, part));
                }
            }
            for (at, part) in self.parts.iter().enumerate() {
                if let (Node::Group(group), false) = (&mut nodes[at].1, part.attributes_last.is_empty())
                    && !checked.kept.contains(&at)
                {
                    group.change_attributes(&AttributeChange::Update(part.attributes_last.clone()))?;
                }
            }
            match &self.consolidated {
                Some(path) => consolidate(&**self.store, path, self.zarr_format, self.options)
                    .map_err(|error| error.in_array(self.store.name(), path)),
                None => Ok(()),
            }
        };
        create().map_err(|error| self.take_back(error, &made, &checked))?;
        Ok(nodes)
    }

    fn create_one(&self, part: &CheckedNode, is_kept: bool) -> Result<Node> {
        Ok(match &part.content {
            Content::Group(metadata) if is_kept => Node::Group(self.keep(part, &metadata.attributes)?),
            Content::Group(metadata) => {
                let (store, attributes) = (Arc::clone(self.store), metadata.attributes.clone());
                let (path, version) = (&part.path, self.zarr_format);
                Node::Group(create_group(store, path, version, attributes, part.existing, self.options)?)
            }
            Content::Array(array) => Node::Array(created(array, None, part.existing)?),
            Content::Filled(array, source, write_empty_chunks) => {
                let write = self.write.write_empty_chunks(*write_empty_chunks);
                let all = Selection::all(array.shape());
                let put_all =
                    |put: &mut dyn FnMut(&Selection, &Values<'_>) -> Result<()>| put(&all, &source.values()?);
                Node::Array(created(array, Some(Contents::Elements(&put_all, &write)), part.existing)?)
            }
        })
    }

    /// Step 4 for a local store: erases the nodes in `made`, unless they replaced others.
    fn take_back(&self, error: Error, made: &[(usize, &CheckedNode)], checked: &Checked) -> Error {
        let mut left = Vec::new();
        for (at, part) in made.iter().rev() {
            if checked.replaced.contains(at) {
                left.push(part.path.clone());
                continue;
            }
            let erased = match &part.content {
                Content::Group(_) => erase_if_empty(&**self.store, &part.path, self.options),
                _ => erase(&**self.store, &part.path, false, self.options),
            };
            if erased.is_err() {
                left.push(part.path.clone());
            }
        }
        for group in checked.implied.iter().rev() {
            let _ = erase_if_empty(&**self.store, group, self.options);
        }
        with_rest(error, &left)
    }
}

/// Adds to an error which nodes were created and remain.
fn with_rest(error: Error, paths: &[String]) -> Error {
    if paths.is_empty() {
        return error;
    }
    let paths: Vec<String> = paths.iter().map(|path| format!("\"/{path}\"")).collect();
    error.with_first_hint(format!("some nodes were created before this and remain: {}", paths.join(", ")))
}

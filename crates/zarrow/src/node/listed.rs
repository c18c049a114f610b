//! The nodes directly below a group: names from a list, documents on demand.
//!
//! 1. If one response holds all keys below a group of a remote store, it shows which documents each member has. Then the
//!    names need no further request, and only these documents are requested.
//! 2. Below a larger group, a list has only the names, and each name's documents are requested to decide whether it is
//!    a node. The process remembers such groups, and starts with the short list the next time.
//! 3. A document as long as an unfinished one is read, because an unfinished node is left out.
//! 4. Local stores read all documents; a consolidated group has them already.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{NodeMetadata, ZARR_JSON};
use crate::node::any::{Members, Node, node_with_document};
use crate::node::group::Group;
use crate::node::hierarchy::unfinished_mark;
use crate::node::known_documents;
use crate::node::known_documents::DOCUMENTS;
use crate::node::node_documents::{OF_NODES, read_each, read_listed};
use crate::store::remote::{self, Waiting};
use crate::store::{Listed as Names, Store, join};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use zarrow_array::allocation;

/// Nodes directly below a group, sorted by name; see [`Group::listed`].
#[derive(Debug)]
pub struct ListedMembers {
    group: Group,
    /// Shared by lists with and without documents.
    names: Arc<Vec<String>>,
    members: Known,
}

/// Knowledge about the members.
#[derive(Debug)]
enum Known {
    /// Opened nodes.
    Nodes(Vec<Result<Node>>),
    /// Documents of each, as the bits of [`DOCUMENTS`].
    Documents(Vec<u8>),
    /// Only the names.
    Names,
}

impl ListedMembers {
    /// Creates the list of these members of `group`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn new(group: Group, members: Vec<(String, Node)>) -> Result<ListedMembers> {
        ListedMembers::from_nodes(group, members.into_iter().map(|(name, node)| (name, Ok(node))))
    }

    fn from_nodes(
        group: Group,
        members: impl ExactSizeIterator<Item = (String, Result<Node>)>,
    ) -> Result<ListedMembers> {
        let mut names = allocation::with_capacity(members.len())?;
        let mut nodes = allocation::with_capacity(members.len())?;
        for (name, node) in members {
            names.push(name);
            nodes.push(node);
        }
        Ok(ListedMembers { group, names: Arc::new(names), members: Known::Nodes(nodes) })
    }

    /// Returns the names of the nodes.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the same names without knowledge of their documents.
    #[must_use]
    pub fn without_documents(&self) -> ListedMembers {
        ListedMembers { group: self.group.clone(), names: Arc::clone(&self.names), members: Known::Names }
    }

    /// Opens a range of the nodes with one round of requests; `None` for a node that cannot be opened.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn open(&self, range: Range<usize>) -> Result<Vec<Option<Node>>> {
        Ok(match &self.members {
            Known::Nodes(nodes) => {
                let nodes = nodes.get(range).unwrap_or_default().iter();
                allocation::collected(nodes.map(|node| node.as_ref().ok().cloned()))?
            }
            _ => allocation::collected(self.requested(range)?.into_iter().map(Result::ok))?,
        })
    }

    /// Returns all nodes. A node that cannot be opened is replaced by its error.
    pub(crate) fn into_members(self) -> Result<Members> {
        let nodes = match self.members {
            Known::Nodes(nodes) => nodes,
            _ => self.requested(0..self.names.len())?,
        };
        let is_node =
            |node: &Result<Node>| !matches!(node, Err(error) if matches!(error.kind(), ErrorKind::NotFound));
        let names = Arc::try_unwrap(self.names).unwrap_or_else(|names| names.to_vec());
        let members = names.into_iter().zip(nodes).filter(|(_, node)| is_node(node));
        Ok(allocation::collected(members)?)
    }

    /// Requests the documents of nodes, and opens them.
    fn requested(&self, range: Range<usize>) -> Result<Vec<Result<Node>>> {
        let (group, start) = (&self.group, range.start);
        let names = self.names.get(range).unwrap_or_default().iter();
        let paths: Vec<String> = allocation::collected(names.map(|name| join(group.path(), name)))?;
        let limits = &group.options().limits.metadata;
        let metadata = match &self.members {
            Known::Documents(documents) => {
                let shown = documents.iter().skip(start).map(|bits| shown(*bits));
                read_listed(&**group.store(), paths.iter().map(String::as_str).zip(shown), limits)
            }
            _ => read_each(&**group.store(), &paths, group.zarr_format(), limits),
        };
        let open = |(path, metadata): (String, Result<NodeMetadata>)| {
            let place = |error: Error| error.in_array(group.store().name(), &path);
            node_with_document(group.store(), path.clone(), metadata.map_err(place)?, group.options())
        };
        Ok(allocation::collected(paths.into_iter().zip(metadata).map(open))?)
    }

    /// Drops names without a node, by their documents.
    fn with_nodes(self) -> Result<ListedMembers> {
        let group = self.group.clone();
        ListedMembers::from_nodes(group, self.into_members()?.into_iter())
    }

    /// Drops the names of unfinished arrays, by the sizes of their documents (step 3).
    fn without_unfinished(mut self, nbytes: &[u64]) -> Result<ListedMembers> {
        let Known::Documents(documents) = &mut self.members else { return Ok(self) };
        let like_unfinished = |at: &usize| nbytes.get(*at).copied().is_some_and(unfinished_mark::has_length);
        let places: Vec<usize> = allocation::collected((0..self.names.len()).filter(like_unfinished))?;
        if places.is_empty() {
            return Ok(self);
        }
        let names =
            Arc::new(allocation::try_collected(places.iter().map(|at| allocation::text(&self.names[*at])))?);
        let members = Known::Documents(allocation::filled(1, places.len())?);
        let read = ListedMembers { group: self.group.clone(), names, members }.requested(0..places.len())?;
        let mut is_kept = allocation::filled(true, self.names.len())?;
        for (at, node) in places.into_iter().zip(read) {
            is_kept[at] = !matches!(node, Err(error) if matches!(error.kind(), ErrorKind::NotFound));
        }
        let (mut of_names, mut of_documents) = (is_kept.iter(), is_kept.iter());
        Arc::make_mut(&mut self.names).retain(|_| of_names.next() == Some(&true));
        documents.retain(|_| of_documents.next() == Some(&true));
        Ok(self)
    }
}

/// A list request in progress, for a group that may not be open yet.
pub(crate) struct PendingList<'a> {
    store: &'a dyn Store,
    path: &'a str,
    page: Option<Waiting<Option<remote::Listing>>>,
    names: Option<Names<'a>>,
}

impl<'a> PendingList<'a> {
    /// Begins to list; `is_hurried` sends both kinds of list at once, to save a round trip below a large group.
    pub fn begin(store: &'a dyn Store, path: &'a str, is_hurried: bool) -> PendingList<'a> {
        let remote = store.remote().filter(|_| !known_documents::is_large(store, path));
        let page = remote.map(|remote| Waiting::begin(|done| remote.list_page(path, done)));
        let names = (page.is_none() || is_hurried).then(|| store.list_ahead(path));
        PendingList { store, path, page, names }
    }

    /// Waits for the nodes below `group`.
    pub fn finish(self, group: &Group) -> Result<ListedMembers> {
        if let Some(page) = self.page {
            match page.wait(&|| Ok(())) {
                Ok(Some(listing)) => return members_from(group, &listing),
                // A bucket may allow only lists of names.
                Err(error) if error.kind().code() != "permission" => return Err(error),
                _ => {}
            }
            known_documents::remember_large(self.store, self.path);
        }
        let names = self.names.map_or_else(|| self.store.list(self.path), |names| names())?;
        let names = Arc::new(allocation::collected(names.into_iter().filter(|name| is_member(name)))?);
        ListedMembers { group: group.clone(), names, members: Known::Names }.with_nodes()
    }
}

impl Group {
    /// Lists the nodes directly below. In a remote store this takes one request if one response holds all keys below
    /// the group; documents are requested when nodes are [opened](ListedMembers::open).
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the store cannot be listed.
    pub fn listed(&self) -> Result<ListedMembers> {
        if let Some(changed) = self.changed()? {
            return changed.listed();
        }
        if !self.is_consolidated() && self.store().remote().is_some() {
            let listing = PendingList::begin(&**self.store(), self.path(), false);
            return listing.finish(self).map_err(|error| self.place(error));
        }
        ListedMembers::from_nodes(self.clone(), self.children()?.into_iter())
    }
}

/// Finds the members of a group in a list of all keys below it.
fn members_from(group: &Group, listing: &remote::Listing) -> Result<ListedMembers> {
    let mut members: BTreeMap<&str, (u8, u64)> = BTreeMap::new();
    for (at, value) in listing.values.iter().enumerate() {
        if at % 1000 == 0 {
            allocation::check_spare()?;
        }
        let below = match group.path() {
            "" => Some(value.key.as_str()),
            path => value.key.strip_prefix(path).and_then(|rest| rest.strip_prefix('/')),
        };
        let Some((name, document)) = below.and_then(|below| below.split_once('/')) else { continue };
        let Some(place) = DOCUMENTS.iter().position(|own| *own == document) else { continue };
        let (bits, nbytes) = members.entry(name).or_default();
        *bits |= 1 << place;
        if document == ZARR_JSON {
            *nbytes = value.nbytes;
        }
    }
    members
        .retain(|name, (bits, _)| is_member(name) && shown(*bits).iter().any(|name| OF_NODES.contains(name)));
    let documents = allocation::collected(members.values().map(|(bits, _)| *bits))?;
    let nbytes: Vec<u64> = allocation::collected(members.values().map(|(_, nbytes)| *nbytes))?;
    let names = Arc::new(allocation::try_collected(members.into_keys().map(allocation::text))?);
    ListedMembers { group: group.clone(), names, members: Known::Documents(documents) }
        .without_unfinished(&nbytes)
}

/// Returns the needed documents of a member, by their bits.
fn shown(bits: u8) -> Vec<&'static str> {
    let names = || (0..).zip(DOCUMENTS).filter(|(place, _)| bits & 1 << place != 0).map(|(_, name)| name);
    if names().next() == Some(ZARR_JSON) { vec![ZARR_JSON] } else { names().collect() }
}

pub(crate) fn is_member(name: &str) -> bool {
    !name.starts_with(".z") && name != ZARR_JSON
}

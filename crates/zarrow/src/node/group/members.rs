//! The nodes below a group.

use crate::error::{Error, ErrorKind, Result};
use crate::node::absent::explained;
use crate::node::any::{Members, Node, node, node_with_document};
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::listed::is_member;
use crate::node::node_documents::read_each;
use crate::node::open::{existing, find_node, open_node};
use crate::node::open_options::OpenOptions;
use crate::store::remote::pass_now_and_then;
use crate::store::{Store, join, normalize_path};
use std::sync::Arc;
use zarrow_array::allocation::{self, Grow};

impl Group {
    /// Opens the array or group at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::BadKey`], and errors in the node's metadata.
    pub fn get(&self, path: &str) -> Result<Node> {
        self.opened(path, open_node)
    }

    /// As [`get`](Group::get), for a node that may be missing: then returns `None`, after one round trip to a remote
    /// store.
    ///
    /// # Errors
    /// As [`get`](Group::get), except [`ErrorKind::NotFound`].
    pub fn find(&self, path: &str) -> Result<Option<Node>> {
        existing(self.opened(path, find_node))
    }

    fn opened(
        &self,
        path: &str,
        open: fn(&Arc<dyn Store>, &str, &OpenOptions) -> Result<Node>,
    ) -> Result<Node> {
        let below = normalize_path(path).map_err(|error| error.in_array(self.store.name(), &self.path))?;
        if below.is_empty() {
            return Ok(Node::Group(self.clone()));
        }
        if let Some(changed) = self.changed()? {
            return changed.opened(&below, open);
        }
        let path = join(&self.path, &below);
        match &self.metadata.consolidated {
            None => open(&self.store, &path, &self.options),
            Some(consolidated) => {
                let missing = || Error::from(ErrorKind::NotFound).in_array(self.store.name(), &path);
                let metadata = consolidated.get(&below).ok_or_else(missing)?;
                let metadata =
                    metadata.map_err(|error| Error::from(error).in_array(self.store.name(), &path))?;
                node(&self.store, path, metadata, &self.options)
            }
        }
    }

    /// Opens several nodes, each as [`get`](Group::get) does, and returns them in the order of `paths`. A remote store
    /// gets all requests at once.
    ///
    /// # Errors
    /// As [`get`](Group::get) of the group itself. A node that cannot be opened is an error in its place.
    ///
    /// ```
    /// # use zarrow::{Existing, Group, metadata::Attributes};
    /// # let folder = tempfile::tempdir().unwrap();
    /// let mut group = Group::create(folder.path().join("data.zarr"))?;
    /// group.create_group("a/b", Attributes::default(), Existing::Refuse)?;
    /// let nodes = group.get_each(&["a/b", "c"])?;
    /// assert!(nodes[0].is_ok() && nodes[1].is_err());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn get_each<P: AsRef<str>>(&self, paths: &[P]) -> Result<Vec<Result<Node>>> {
        if let Some(changed) = self.changed()? {
            return changed.get_each(paths);
        }
        if self.is_consolidated() || self.store.remote().is_none() {
            return Ok(allocation::collected(paths.iter().map(|path| self.get(path.as_ref())))?);
        }
        // Documents are requested of the paths that name a node below.
        let mut below = Vec::new();
        for path in paths {
            if let Ok(path) = normalize_path(path.as_ref())
                && !path.is_empty()
            {
                below.try_push(join(&self.path, &path))?;
            }
        }
        let limits = &self.options.limits.metadata;
        let mut found = below.iter().zip(read_each(&*self.store, &below, self.zarr_format(), limits));
        let open = |path: &P| match normalize_path(path.as_ref()) {
            Ok(path) if !path.is_empty() => {
                let Some((path, metadata)) = found.next() else { return self.get(&path) };
                let metadata = metadata.map_err(|error| error.in_array(self.store.name(), path))?;
                node_with_document(&self.store, path.clone(), metadata, &self.options)
            }
            _ => self.get(path.as_ref()),
        };
        Ok(allocation::collected(paths.iter().map(open))?)
    }

    /// As [`get_each`](Group::get_each), for names typed by a person: see [`get_named`](Group::get_named).
    ///
    /// # Errors
    /// As [`get`](Group::get), of the first node that cannot be opened.
    pub fn get_each_named<P: AsRef<str>>(&self, paths: &[P]) -> Result<Vec<Node>> {
        let nodes = paths.iter().zip(self.get_each(paths)?);
        let named = nodes.map(|(path, node)| match node {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => self.get_named(path.as_ref()),
            node => node,
        });
        allocation::try_collected(named)
    }

    /// As [`get`](Group::get), for a name typed by a person: if there is no such node, the error's [hint](Error::hint)
    /// says what the store has there instead, or lists similar names.
    ///
    /// # Errors
    /// As [`get`](Group::get).
    pub fn get_named(&self, path: &str) -> Result<Node> {
        self.get(path).map_err(|error| {
            let group = &self.path;
            let names = self.metadata.consolidated.as_ref().map(|consolidated| consolidated.children(""));
            let names = names.and_then(std::result::Result::ok);
            let listed = names.as_deref().map(|names| (group.as_str(), names));
            let path = join(group, path.trim_matches('/'));
            explained(error, &*self.store, &path, &self.options.limits.metadata, listed)
        })
    }

    /// Opens the array at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// As [`get`](Group::get); [`ErrorKind::WrongNode`] for a group.
    pub fn array(&self, path: &str) -> Result<Array> {
        self.get(path)?.into_array()
    }

    /// Opens the group at `path`, which may have several parts (`"a/b"`).
    ///
    /// # Errors
    /// As [`get`](Group::get); [`ErrorKind::WrongNode`] for an array.
    pub fn group(&self, path: &str) -> Result<Group> {
        self.get(path)?.into_group()
    }

    /// Returns the names and nodes directly below, sorted by name. Folders that are not nodes are left out; a node
    /// that cannot be opened is an error in its place.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the store cannot be listed.
    pub fn children(&self) -> Result<Members> {
        if let Some(changed) = self.changed()? {
            return changed.children();
        }
        let names = match &self.metadata.consolidated {
            Some(consolidated) => consolidated.children("").map_err(|error| self.place(error.into()))?,
            None if self.store.remote().is_some() => return self.listed()?.into_members(),
            None => self.store.list(&self.path).map_err(|error| self.place(error))?,
        };
        let names = names.into_iter().filter(|name| is_member(name));
        let mut found = Vec::new();
        for name in names {
            pass_now_and_then()?;
            match self.get(&name) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {}
                // The rest would need memory too.
                Err(error) if error.is_out_of_memory() => return Err(error),
                node => found.try_push((name, node)).map_err(|error| self.place(error.into()))?,
            }
        }
        Ok(found)
    }
}

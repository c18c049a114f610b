//! Links to a group above, which make a hierarchy endless.
//!
//! With two such links in a group, the number of paths doubles with each level. Walks of a hierarchy refuse these links;
//! opening one by its path works.

use crate::error::{Error, ErrorKind, Result};
use crate::node::group::Group;
use crate::node::hierarchy::node_path::ancestors;
use crate::store::Store;

/// The folders of a group and of the groups above it, to be compared with the folders of its members.
pub(crate) struct FoldersAbove<'a> {
    store: &'a dyn Store,
    path: &'a str,
    /// Numbers of the folders, found when the first member is checked.
    numbers: Option<Vec<[u64; 2]>>,
}

impl<'a> FoldersAbove<'a> {
    pub fn new(store: &'a dyn Store, path: &'a str) -> FoldersAbove<'a> {
        FoldersAbove { store, path, numbers: None }
    }

    /// Checks that the folder `member`, below the group, is neither that of the group nor of a group above it.
    ///
    /// # Errors
    /// [`ErrorKind::LinkLoop`].
    pub fn check(&mut self, member: &str) -> Result<()> {
        let Some(number) = self.store.folder_number(member) else { return Ok(()) };
        let (store, path) = (self.store, self.path);
        let numbers = self.numbers.get_or_insert_with(|| {
            ancestors(path).chain([path]).filter_map(|path| store.folder_number(path)).collect()
        });
        if !numbers.contains(&number) {
            return Ok(());
        }
        let error = Error::from(ErrorKind::LinkLoop).in_array(store.name(), member);
        Err(error.with_hint("remove the link, or open its members by name"))
    }
}

impl Group {
    /// Checks that the group is reached without a link to a group above it, for callers that walk through all groups.
    ///
    /// # Errors
    /// [`ErrorKind::LinkLoop`].
    pub fn check_links(&self) -> Result<()> {
        match self.path().rsplit_once('/') {
            _ if self.path().is_empty() => Ok(()),
            above => {
                FoldersAbove::new(&**self.store(), above.map_or("", |(above, _)| above)).check(self.path())
            }
        }
    }
}

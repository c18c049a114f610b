//! Contents of a new node: elements of an array, or members of a group.

use super::ahead::Assumed;
use super::create::{Existing, created_group};
use crate::error::Result;
use crate::metadata::{Attributes, ZarrFormat};
use crate::node::array::Array;
use crate::node::group::Group;
use crate::node::open::open;
use crate::node::open_options::OpenOptions;
use crate::selection::Selection;
use crate::store::{Store, writer_of};
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::sync::Arc;

/// Function that puts all elements of a new array, part by part, by calling its argument.
pub type Source<'a> = dyn Fn(&mut dyn FnMut(&Selection, &Values<'_>) -> Result<()>) -> Result<()> + 'a;

/// Function that creates the members of a new group.
pub type Members<'a> = dyn Fn(Group) -> Result<()> + 'a;

/// Contents of a new node.
#[derive(Clone, Copy)]
pub enum Contents<'a> {
    /// Elements of an array, and how to write them.
    Elements(&'a Source<'a>, &'a WriteOptions<'a>),
    /// Members of a group.
    Members(&'a Members<'a>),
}

impl<'a> Contents<'a> {
    pub fn write_options(self) -> WriteOptions<'a> {
        match self {
            Contents::Elements(_, write) => *write,
            Contents::Members(_) => WriteOptions::default(),
        }
    }

    /// Puts the contents below the root of a hidden store, which has the documents of the node.
    pub fn stage(self, store: &Arc<dyn Store>, array: Option<&Array>) -> Result<()> {
        match (self, array) {
            (Contents::Members(create), _) => create(open(Arc::clone(store), "")?.into_group()?),
            (_, Some(array)) => self.fill(&array.moved(Arc::clone(store), String::new())),
            (_, None) => Ok(()),
        }
    }

    /// Writes the elements.
    pub fn fill(self, array: &Array) -> Result<()> {
        match self {
            Contents::Elements(source, write) => {
                source(&mut |selection, values| array.write_elements(selection, values, None, write))
            }
            Contents::Members(_) => Ok(()),
        }
    }
}

/// Creates a group as [`create_group`](crate::create_group) does, with the members that `members` creates in the group it gets. Readers see
/// the group with all its members or not at all, except at the root of a folder, and an error leaves the store
/// unchanged. `None`, and nothing is created, if the store cannot hide unfinished nodes.
///
/// # Errors
/// As [`create_array`](crate::create_array), and errors of `members`.
pub fn create_group_with(
    store: Arc<dyn Store>,
    path: &str,
    zarr_format: ZarrFormat,
    attributes: impl Into<Attributes>,
    members: &Members<'_>,
    existing: Existing,
    options: &OpenOptions,
) -> Result<Option<Group>> {
    if writer_of(&*store)?.stage(path, options.durability)?.is_none() {
        return Ok(None);
    }
    let (attributes, members) = (attributes.into(), Some(Contents::Members(members)));
    created_group(store, path, zarr_format, attributes, members, existing, Assumed::Fresh, options).map(Some)
}

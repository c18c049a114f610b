//! Creating a group whole, with its members.

use super::ahead::Assumed;
use super::contents::Contents;
use super::create::created_group;
use super::new_place::Existing;
use crate::error::Result;
use crate::metadata::{Attributes, ZarrFormat};
use crate::node::group::Group;
use crate::node::open::open;
use crate::node::open_options::OpenOptions;
use crate::store::{Store, writer_of};
use std::sync::Arc;

/// Function that creates the members of a new group.
pub type Members<'a> = dyn Fn(Group) -> Result<()> + 'a;

/// Creates a group as [`create_group`](crate::create_group) does, with the members that `members` creates in it. Readers
/// see the group with all its members or not at all, except at the root of a folder, and an error leaves the store
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
    let create = |store: &Arc<dyn Store>| members(open(Arc::clone(store), "")?.into_group()?);
    let (attributes, members) = (attributes.into(), Some(Contents::Members(&create)));
    created_group(store, path, zarr_format, attributes, members, existing, Assumed::Fresh, options).map(Some)
}

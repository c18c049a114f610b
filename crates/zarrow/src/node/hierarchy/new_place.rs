//! Checks of the place of a new node: steps 1 and 2 of [`create`](super::create).

use super::document_names::node_at;
use super::erase::{first, is_of_zarr};
use super::node_path::ancestors;
use super::unfinished_mark;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{NodeMetadata, ZARRAY, ZGROUP, ZarrFormat};
use crate::node::node_documents::read_metadata;
use crate::node::open_options::OpenOptions;
use crate::store::Store;

/// What to do with an existing node at the path of a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// Keep it: creating is an error.
    #[default]
    Refuse,
    /// Erase it, with everything below it. A folder without a node is not touched.
    Erase,
    /// Erase an array; keep a group, and creating is an error.
    EraseArray,
}

/// The place of a new node.
pub(super) struct NewPlace<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) path: &'a str,
    pub(super) zarr_format: ZarrFormat,
    pub(super) is_array: bool,
    pub(super) existing: Existing,
    pub(super) options: &'a OpenOptions,
}

impl NewPlace<'_> {
    /// Step 2: returns whether a node is to be replaced.
    pub(super) fn replaces(&self) -> Result<bool> {
        if let Some(name) = node_at(self.store, self.path)? {
            let is_array = || match name {
                ZARRAY => Ok(true),
                ZGROUP => Ok(false),
                _ => match read_metadata(self.store, self.path, &self.options.limits.metadata) {
                    // An unfinished array.
                    Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(true),
                    found => found.map(|found| matches!(found, NodeMetadata::Array(_))),
                },
            };
            let is_of_zarr = || is_of_zarr(self.store, self.path, name, self.options);
            return match (self.existing, name) {
                (Existing::EraseArray, _) if !is_array()? => Err(ErrorKind::Exists("a group").into()),
                (Existing::Erase | Existing::EraseArray, _) if is_of_zarr()? => Ok(true),
                (Existing::Erase | Existing::EraseArray, name) => {
                    Err(ErrorKind::Foreign(first(&[name.to_owned()])).into())
                }
                (Existing::Refuse, ZARRAY) => Err(ErrorKind::Exists("an array").into()),
                (Existing::Refuse, ZGROUP) => Err(ErrorKind::Exists("a group").into()),
                (Existing::Refuse, _) => {
                    let found = match read_metadata(self.store, self.path, &self.options.limits.metadata) {
                        Ok(NodeMetadata::Array(_)) => "an array",
                        Ok(NodeMetadata::Group(_)) => "a group",
                        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => unfinished_mark::WHAT,
                        Err(_) => "a node",
                    };
                    Err(ErrorKind::Exists(found).into())
                }
            };
        }
        let names = self.store.list(self.path)?;
        if self.existing == Existing::Erase && !names.is_empty() {
            return Err(ErrorKind::Foreign(first(&names)).into());
        }
        // Chunks left without an array would become chunks of the new one.
        let is_chunk = |name: &String| name == "c" || name.starts_with(|first: char| first.is_ascii_digit());
        if self.is_array && names.iter().any(is_chunk) {
            return Err(ErrorKind::Exists(
                "a file or folder with the name of a chunk (\"c\", or beginning with a digit)",
            )
            .into());
        }
        Ok(false)
    }

    /// Step 1: returns the missing groups above, from the root down.
    pub(super) fn missing_groups(&self) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for above in ancestors(self.path) {
            match read_metadata(self.store, above, &self.options.limits.metadata) {
                Ok(NodeMetadata::Group(group)) if group.zarr_format == self.zarr_format => {}
                Ok(NodeMetadata::Group(_)) => {
                    let text = format!(
                        "a Zarr version other than that of the group \"/{above}\" above it: pass the \
                         group's zarr_format"
                    );
                    return Err(ErrorKind::Unsupported(text).into());
                }
                Ok(NodeMetadata::Array(_)) => {
                    let (expected, found) = ("a group, to create a node in it", "an array");
                    return Err(Error::from(ErrorKind::WrongNode { expected, found })
                        .in_array(self.store.name(), above));
                }
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => missing.push(above.to_owned()),
                Err(error) => return Err(error.in_array(self.store.name(), above)),
            }
        }
        Ok(missing)
    }
}

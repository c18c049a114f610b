//! An open group: a node with nodes below it.

mod changes;
mod members;
mod refresh;
mod table;

use crate::error::Error;
use crate::metadata::{Attributes, GroupMetadata, ZarrFormat};
use crate::node::hierarchy::revision;
use crate::node::open_options::OpenOptions;
use crate::store::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A Zarr group.
///
/// ```
/// # use zarrow::{ArrayBuilder, Existing, Number};
/// use zarrow::Group;
/// # let folder = tempfile::tempdir()?;
/// let mut root = Group::create(folder.path())?; // or Group::open, of one that is there
/// let metadata = ArrayBuilder::new([365, 721], Number::Float32).chunk_shape([30, 721]).build()?;
/// let rain = root.create_array("model/rain", metadata, Existing::Refuse)?;
/// rain.write(0, &vec![1.5f32; 721])?;
/// let first = root.array("model/rain")?.read((0, ..3))?.into_tensor()?;
/// assert_eq!(first.as_slice::<f32>()?, [1.5; 3]);
/// assert_eq!(root.group("model")?.array("rain")?.shape(), [365, 721]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If the metadata of everything below it were consolidated, the group takes them from there and lists no folder. It
/// still sees this process's changes below it, by any handle ([`changed`](Group::changed)).
#[derive(Clone)]
pub struct Group {
    store: Arc<dyn Store>,
    path: String,
    metadata: Arc<GroupMetadata>,
    options: OpenOptions,
    /// Revision that the metadata reflect.
    revision: u64,
    /// Last revision without a change to the document of a consolidated group, and the version of the document.
    unchanged: Arc<[AtomicU64; 2]>,
}

impl fmt::Debug for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Group")
            .field("store", &self.store.name())
            .field("path", &self.path)
            .field("zarr_format", &self.zarr_format())
            .finish_non_exhaustive()
    }
}

impl Group {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        path: String,
        metadata: GroupMetadata,
        options: OpenOptions,
    ) -> Group {
        let revision = revision::present();
        Group { store, path, metadata: Arc::new(metadata), options, revision, unchanged: Arc::default() }
    }

    /// Returns the revision of this process's changes that this handle reflects, as
    /// [`Array::revision`](crate::Array::revision).
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the group's store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the options that the group was opened with.
    #[must_use]
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Returns the path in the store, `""` for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the attributes that the user stored with the group.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.metadata.attributes
    }

    /// Returns the Zarr version that the group is stored in.
    #[must_use]
    pub fn zarr_format(&self) -> ZarrFormat {
        self.metadata.zarr_format
    }

    /// Whether the group has the metadata of everything below it from one document.
    #[must_use]
    pub fn is_consolidated(&self) -> bool {
        self.metadata.consolidated.is_some()
    }

    /// Returns the same group without its consolidated metadata, so that it lists the store.
    #[must_use]
    pub fn without_consolidated(&self) -> Group {
        let metadata = GroupMetadata { consolidated: None, ..(*self.metadata).clone() };
        Group { metadata: Arc::new(metadata), ..self.clone() }
    }

    pub(crate) fn place(&self, error: Error) -> Error {
        error.in_array(self.store.name(), &self.path)
    }
}

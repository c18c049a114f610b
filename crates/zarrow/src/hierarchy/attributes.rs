//! Attributes of a node, changed one by one: those that a change does not name stay as they are stored.

use super::consolidate;
use super::create::node_document;
use super::document::{check_nbytes, update, writer};
use crate::error::{ErrorKind, Result};
use crate::metadata::{JsonText, ZATTRS, ZarrFormat};
use crate::options::OpenOptions;
use crate::store::{Store, join};
use serde_json::{Map, Value};
use zarrow_array::allocation;

/// What becomes of the attributes of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeChange {
    /// These are all.
    Replace(Map<String, Value>),
    /// These are set, and the others stay.
    Update(Map<String, Value>),
    /// These are taken out where they are there, and the others stay.
    Remove(Vec<String>),
}

/// A node whose documents change.
pub(crate) struct StoredNode<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) path: &'a str,
    pub(crate) zarr_format: ZarrFormat,
    pub(crate) is_array: bool,
    pub(crate) options: &'a OpenOptions,
}

impl StoredNode<'_> {
    /// Changes the attributes and returns all of them as they are then, what others have changed since included.
    pub(crate) fn change_attributes(&self, change: &AttributeChange) -> Result<Map<String, Value>> {
        let mut attributes = Map::new();
        let mut apply = |mut text: JsonText| {
            change.apply(&mut text)?;
            attributes = text.values()?;
            Ok(text)
        };
        match self.zarr_format {
            ZarrFormat::V3 => self.update_node(|document| {
                let changed = apply(document.object("attributes")?)?;
                Ok(document.set_object("attributes", &changed)?)
            }),
            ZarrFormat::V2 => {
                writer(self.store)?;
                if self.store.open(&self.node_key())?.is_none() {
                    return Err(ErrorKind::NotFound.into());
                }
                let limit = self.options.limits.metadata.max_metadata_nbytes;
                let key = join(self.path, ZATTRS);
                update(self.store, &key, limit, self.options.durability, |document| {
                    apply(document.unwrap_or_default()).map(Some)
                })
            }
        }?;
        consolidate::refresh(self.store, self.path, self.options)?;
        Ok(attributes)
    }

    /// Changes the document that makes the node, which must be there.
    pub(crate) fn update_node(&self, change: impl FnOnce(&mut JsonText) -> Result<()>) -> Result<()> {
        let limits = &self.options.limits.metadata;
        // That of a group may have consolidated metadata in it, and only then may it be so large.
        let limit = if self.is_array { limits.max_metadata_nbytes } else { limits.max_consolidated_nbytes };
        // Looked at before the lock, which would make a folder for itself.
        if self.store.open(&self.node_key())?.is_none() {
            return Err(ErrorKind::NotFound.into());
        }
        update(self.store, &self.node_key(), limit, self.options.durability, |document| {
            let mut document = document.ok_or(ErrorKind::NotFound)?;
            change(&mut document)?;
            if document.keys().all(|key| key != consolidate::KEY) {
                check_nbytes(document.as_bytes(), limits.max_metadata_nbytes)?;
            }
            Ok(Some(document))
        })
    }

    fn node_key(&self) -> String {
        join(self.path, node_document(self.zarr_format, self.is_array))
    }
}

impl AttributeChange {
    fn apply(&self, attributes: &mut JsonText) -> Result<()> {
        match self {
            AttributeChange::Replace(all) => {
                let stale: Vec<String> =
                    allocation::collected(attributes.keys().filter(|key| !all.contains_key(key)))?;
                for key in stale {
                    attributes.remove(&key)?;
                }
                all.iter().try_for_each(|(key, value)| attributes.set(key, value))?;
            }
            AttributeChange::Update(some) => {
                some.iter().try_for_each(|(key, value)| attributes.set(key, value))?;
            }
            AttributeChange::Remove(keys) => {
                for key in keys {
                    attributes.remove(key)?;
                }
            }
        }
        Ok(())
    }
}

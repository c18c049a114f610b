//! Changes to the attributes of a node: attributes not named in a change remain as stored.

use super::ahead;
use super::consolidate;
use super::document::{check_size, update};
use super::document_names::node_document;
use super::node_lock::NodeLock;
use super::revision;
use crate::error::{ErrorKind, OUTDATED, Result};
use crate::metadata::{ArrayMetadata, Attributes, JsonText, NodeMetadata, ZATTRS, ZarrFormat};
use crate::node::node_documents::read_metadata;
use crate::node::open_options::OpenOptions;
use crate::store::remote::AheadStore;
use crate::store::{Store, join};
use serde_json::Value;

/// Change to the attributes of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeChange {
    /// Replace all attributes.
    Replace(Attributes),
    /// Set these attributes, and keep the others.
    Update(Attributes),
    /// Remove the attributes with these keys, if they exist, and keep the others.
    Remove(Attributes),
    /// Append the items of these lists to the stored lists that lack them, and keep everything else. A key without a
    /// stored list is ignored.
    Extend(Attributes),
    /// Remove the items of these lists from the stored lists, and keep everything else. A key without a stored list is
    /// ignored.
    Shorten(Attributes),
}

/// A node to be changed, as its handle describes it.
pub(crate) struct StoredNode<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) path: &'a str,
    pub(crate) zarr_format: ZarrFormat,
    /// Metadata in the handle of the array; `None` for a group.
    pub(crate) array: Option<&'a ArrayMetadata>,
    /// Whether the handle's metadata are those of a group above.
    pub(crate) is_consolidated: bool,
    pub(crate) options: &'a OpenOptions,
}

/// A node after a change, and the revision of the change.
pub(crate) type Changed = (NodeMetadata, u64);

impl StoredNode<'_> {
    /// Changes the attributes; returns the node as stored afterwards, including changes by others.
    pub(crate) fn change_attributes(&self, change: &AttributeChange) -> Result<Changed> {
        let limits = &self.options.limits.metadata;
        let ahead = ahead::for_change(self.store, self.path, self.zarr_format, limits, true, None);
        let store = ahead.as_ref().map_or(self.store, |ahead| ahead as &dyn Store);
        StoredNode { store, ..*self }.change_attributes_here(change)
    }

    fn change_attributes_here(&self, change: &AttributeChange) -> Result<Changed> {
        self.change(|held, _| match self.zarr_format {
            ZarrFormat::V3 => self.update_node(held, |document| {
                let mut attributes = document.object("attributes")?;
                change.apply(&mut attributes)?;
                Ok(document.set_object("attributes", &attributes)?)
            }),
            ZarrFormat::V2 => {
                let limit = self.options.limits.metadata.max_metadata_nbytes;
                update(
                    self.store,
                    held,
                    &join(self.path, ZATTRS),
                    limit,
                    self.options.durability,
                    |document| {
                        let mut attributes = document.unwrap_or_default();
                        change.apply(&mut attributes)?;
                        Ok(Some(attributes))
                    },
                )
            }
        })
    }

    /// Changes a node that remains: under the locks, checks that the stored node is the node of the handle, calls
    /// `change`, and then updates the consolidated metadata above. Returns the node as stored afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the node is gone, [`ErrorKind::Stale`] if it was replaced, and errors of `change`.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&NodeLock<'_>, &NodeMetadata) -> Result<()>,
    ) -> Result<Changed> {
        let held = NodeLock::new(self.store, self.path)?;
        change(&held, &self.read()?)?;
        consolidate::renew(self.store, &held, &[self.path], self.options);
        let number = revision::count();
        Ok((self.read()?, number))
    }

    /// Reads the stored metadata, if they are still of the node of the handle.
    pub(crate) fn read(&self) -> Result<NodeMetadata> {
        let found = read_metadata(self.store, self.path, &self.options.limits.metadata)?;
        let is_meant = match (&found, self.array) {
            (NodeMetadata::Array(found), Some(array)) => found.has_layout_of(array),
            (NodeMetadata::Group(found), None) => found.zarr_format == self.zarr_format,
            _ => false,
        };
        if is_meant {
            Ok(found)
        } else if AheadStore::doubt(self.store) {
            self.read()
        } else {
            Err(ErrorKind::Stale(if self.is_consolidated { OUTDATED } else { "was replaced" }).into())
        }
    }

    /// Changes the document that makes the node.
    pub(super) fn update_node(
        &self,
        held: &NodeLock<'_>,
        mut change: impl FnMut(&mut JsonText) -> Result<()>,
    ) -> Result<()> {
        let limits = &self.options.limits.metadata;
        // A group's document may contain consolidated metadata, and only then may it be this large.
        let limit =
            if self.array.is_some() { limits.max_metadata_nbytes } else { limits.max_consolidated_nbytes };
        update(self.store, held, &self.key(), limit, self.options.durability, |document| {
            let mut document = document.ok_or(ErrorKind::NotFound)?;
            change(&mut document)?;
            if self.array.is_some() {
                document.normalise_array(self.zarr_format)?;
            }
            // Without the consolidated metadata, it must be as short as any other document.
            let consolidated = document.object(consolidate::KEY)?;
            check_size(
                document.as_bytes().len() - consolidated.as_bytes().len(),
                limits.max_metadata_nbytes,
            )?;
            Ok(Some(document))
        })
    }

    /// The key of that document.
    pub(crate) fn key(&self) -> String {
        join(self.path, node_document(self.zarr_format, self.array.is_some()))
    }
}

impl AttributeChange {
    /// Changes these attributes.
    pub(super) fn apply(&self, attributes: &mut JsonText) -> Result<()> {
        match self {
            AttributeChange::Replace(all) => {
                attributes.remove_all(all, false);
                attributes.update(all)?;
            }
            AttributeChange::Update(some) => attributes.update(some)?,
            AttributeChange::Remove(some) => attributes.remove_all(some, true),
            AttributeChange::Extend(lists) => change_lists(attributes, lists, |list, items| {
                for item in items {
                    if !list.contains(item) {
                        list.push(item.clone());
                    }
                }
            })?,
            AttributeChange::Shorten(lists) => {
                change_lists(attributes, lists, |list, items| list.retain(|item| !items.contains(item)))?;
            }
        }
        Ok(())
    }
}

/// Changes the stored lists with the keys of `lists`.
fn change_lists(
    attributes: &mut JsonText,
    lists: &Attributes,
    change: impl Fn(&mut Vec<Value>, &[Value]),
) -> Result<()> {
    let mut stored = attributes.values()?;
    for (key, items) in lists.iter() {
        if let (Some(Value::Array(list)), Value::Array(items)) = (stored.get_mut(key), items) {
            change(list, items);
            attributes.set(key, &Value::Array(std::mem::take(list)))?;
        }
    }
    Ok(())
}

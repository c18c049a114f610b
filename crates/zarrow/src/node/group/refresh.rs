//! Renewing a group after changes of the documents below it.

use crate::error::Result;
use crate::metadata::{ZARR_JSON, ZGROUP, ZMETADATA, ZarrFormat};
use crate::node::group::Group;
use crate::node::hierarchy::document_version::fingerprint;
use crate::node::hierarchy::revision;
use crate::node::open::open_node;
use crate::store::{Version, join};
use std::sync::atomic::Ordering;

impl Group {
    /// Returns the current group if its metadata were consolidated and this process, by any handle, has changed
    /// something in it since; `None` if nothing has changed. [`refresh`](Group::refresh) also sees changes of other
    /// processes.
    ///
    /// This looks at the store once after a change, and never without one.
    ///
    /// # Errors
    /// As [`refresh`](Group::refresh).
    pub fn changed(&self) -> Result<Option<Group>> {
        let present = revision::present();
        let [seen, version] = &*self.unchanged;
        if !self.is_consolidated() || seen.load(Ordering::Relaxed).max(self.revision) >= present {
            return Ok(None);
        }
        let found = self.document_version()?.unwrap_or_default();
        if found != 0 && version.load(Ordering::Relaxed) == found {
            seen.store(present, Ordering::Relaxed);
            return Ok(None);
        }
        let mut group = self.clone();
        group.refresh()?;
        // The version was requested before the document was read: if it is old, the next call reads once more.
        group.unchanged[1].store(found, Ordering::Relaxed);
        Ok(Some(group))
    }

    /// Returns the present version of the document that describes this group, as a number; 0 if there is no document,
    /// `None` if the store has no versions. Another version means that the document was changed or replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), and errors of a remote store, which is sent a request.
    pub fn document_version(&self) -> Result<Option<u64>> {
        let name = match self.zarr_format() {
            ZarrFormat::V3 => ZARR_JSON,
            ZarrFormat::V2 if self.is_consolidated() => ZMETADATA,
            ZarrFormat::V2 => ZGROUP,
        };
        Ok(match self.store.version_of(&join(&self.path, name)).map_err(|error| self.place(error))? {
            Version::Of(version) => Some(fingerprint(&version)),
            Version::Missing => Some(0),
            Version::Unknown => None,
        })
    }

    /// Reads the metadata again.
    ///
    /// # Errors
    /// As [`open`](crate::open).
    pub fn refresh(&mut self) -> Result<()> {
        let revision = revision::present();
        let group = open_node(&self.store, &self.path, &self.options)?.into_group()?;
        *self = Group { revision, ..group };
        Ok(())
    }
}

//! Zip archives in cloud stores: URLs with a path ending in `.zip`.
//!
//! 1. The archive is a value of the cloud store of its folder. If there is no such value, the URL names an ordinary
//!    store.
//! 2. It is pickled and compared by its URL and the options of its store.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use zarrow::ErrorKind;
use zarrow::store::remote::{RemoteAdapter, RemoteStore};
use zarrow::store::{RemoteZip, Store};
use zarrow_cloud::{CloudStore, StorageOptions};

/// Returns the archive at the URL of `store`, or `store` itself (step 1).
///
/// # Errors
/// See [`RemoteZip::open`].
pub fn open(store: Arc<dyn Store>) -> zarrow::Result<Arc<dyn Store>> {
    let Some((archive, key)) = archive_of(&*store)? else { return Ok(store) };
    match RemoteZip::open(Arc::new(archive), &key) {
        Ok(archive) => Ok(Arc::new(RemoteAdapter::new(Arc::new(archive)))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(store),
        Err(error) => Err(error),
    }
}

/// Returns the store for a new node; archives are read-only.
///
/// # Errors
/// See [`open`]; [`ErrorKind::Unsupported`] if the URL names an archive.
pub fn create(store: Arc<dyn Store>) -> zarrow::Result<Arc<dyn Store>> {
    if archive_of(&*store)?.is_none() {
        return Ok(store);
    }
    let archive = open(store)?;
    if beneath(&*archive).is_none() {
        return Ok(archive);
    }
    let error = zarrow::Error::from(ErrorKind::Unsupported("zip archives are read-only".into()));
    let hint = "write a folder, pack it by shutil.make_archive(name, \"zip\", folder), and upload it";
    Err(error.in_array(archive.name(), "").with_hint(hint))
}

/// Returns the cloud store that a store wraps.
pub fn beneath(store: &dyn Store) -> Option<&CloudStore> {
    let remote: &dyn RemoteStore = store.remote()?;
    (remote as &dyn Any).downcast_ref()
}

/// Returns whether the URL of `store` is named like an archive.
pub fn is_archive(store: &dyn Store) -> bool {
    beneath(store).is_some_and(|cloud| split(cloud.url()).is_some())
}

/// Returns the store of an archive's folder and the archive's key in it, if the URL of `store` is named like an
/// archive.
fn archive_of(store: &dyn Store) -> zarrow::Result<Option<(CloudStore, String)>> {
    let Some(cloud) = beneath(store) else { return Ok(None) };
    let Some((folder, key)) = split(cloud.url()) else { return Ok(None) };
    let folder = CloudStore::new(&folder, cloud.options().clone())?;
    Ok(Some((folder.with_policy(cloud.transport_policy()), key)))
}

/// Returns the URL and the options of an archive in a cloud store (step 2).
pub fn source(store: &dyn Store) -> Option<(String, StorageOptions)> {
    let remote: &dyn RemoteStore = store.remote()?;
    let (folder, key) = (remote as &dyn Any).downcast_ref::<RemoteZip>()?.archive();
    let folder = (folder as &dyn Any).downcast_ref::<CloudStore>()?;
    Some((joined(folder.url(), key), folder.options().clone()))
}

/// Splits a URL into the archive's folder and name; `None` for other names.
fn split(url: &str) -> Option<(String, String)> {
    let (path, query) = parts(url);
    let (folder, key) = path.rsplit_once('/')?;
    let is_archive =
        Path::new(key).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    // A bucket or a host may have such a name.
    (is_archive && folder.split_once("://")?.1.contains(|c: char| c != '/'))
        .then(|| (format!("{folder}/{query}"), key.to_owned()))
}

/// Returns the URL of an archive in a folder, the inverse of [`split`].
fn joined(folder: &str, key: &str) -> String {
    let (path, query) = parts(folder);
    format!("{}/{key}{query}", path.trim_end_matches('/'))
}

/// Splits off the query of a URL, including `?`. Only http URLs have one.
fn parts(url: &str) -> (&str, &str) {
    let is_web = url.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    url.split_at(if is_web { url.find('?').unwrap_or(url.len()) } else { url.len() })
}

//! Zip archives: `zip://` URLs, and zarr-python's `ZipStore`.
//!
//! `zip://data.zip` is a whole archive, `zip://data.zip::folder` a folder in it. fsspec's order,
//! `zip://folder::data.zip`, means the same if the last part ends in `.zip`. (A path to an archive needs no URL.)

use crate::python::error::{Attempt, unsupported};
use crate::python::importing::import;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zarrow::ErrorKind;
use zarrow::store::{Store, ZipStore};

/// An archive and a folder in it.
pub struct ZipUrl {
    archive: PathBuf,
    folder: String,
}

impl ZipUrl {
    /// Returns a whole archive.
    pub fn from_archive(archive: PathBuf) -> ZipUrl {
        ZipUrl { archive, folder: String::new() }
    }

    /// Parses `object`; `None` if it is not an archive, or if it is a path to one.
    pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Option<ZipUrl>> {
        let Ok(text) = object.extract::<&str>() else { return ZipUrl::from_zip_store(object) };
        match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("zip") => {
                ZipUrl::parse(object.py(), rest).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn parse(py: Python<'_>, rest: &str) -> PyResult<ZipUrl> {
        let (archive, folder) = match rest.rsplit_once("::") {
            None => (rest, ""),
            Some((folder, archive)) if is_named_so(Path::new(archive)) => (archive, folder),
            Some((archive, folder)) => (archive, folder),
        };
        let archive = match archive.split_once("://") {
            Some((scheme, rest)) => path_of_url(py, scheme, rest)?,
            None => PathBuf::from(archive),
        };
        Ok(ZipUrl { archive, folder: folder.to_owned() })
    }

    /// Returns the archive of a zarr-python store.
    fn from_zip_store(object: &Bound<'_, PyAny>) -> PyResult<Option<ZipUrl>> {
        let class = object.get_type();
        if !class.name().is_ok_and(|name| name == "ZipStore")
            || !class.module().is_ok_and(|module| module.to_string_lossy().starts_with("zarr."))
        {
            return Ok(None);
        }
        let path = object.getattr("path")?.extract::<PathBuf>().attempt(object.py())?;
        Ok(path.map(ZipUrl::from_archive))
    }

    /// Opens an existing archive.
    ///
    /// # Errors
    /// See [`ZipStore::open`].
    pub fn open(self) -> zarrow::Result<Arc<dyn Store>> {
        Ok(Arc::new(ZipStore::open(&self.archive)?.below(&self.folder)?))
    }

    /// Refuses to create a node in an archive; archives are read-only.
    ///
    /// # Errors
    /// See [`ZipStore::open`]; [`ErrorKind::Unsupported`] if the archive is missing.
    pub fn create(self) -> zarrow::Result<Arc<dyn Store>> {
        let place = self.archive.display().to_string();
        self.open().map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let text = "zip archives are read-only";
                let hint = format!(
                    "write a folder, and pack it by shutil.make_archive({:?}, \"zip\", folder)",
                    place.strip_suffix(".zip").unwrap_or(&place)
                );
                let error: zarrow::Error = ErrorKind::Unsupported(text.into()).into();
                error.in_array(&place, "").with_hint(hint)
            }
            _ => error,
        })
    }
}

/// Returns the URL of a cloud archive in a `zip://` URL, such as `zip://https://host/data.zip`; `None` for anything
/// else.
///
/// # Errors
/// Refuses a folder in the archive, which is the path of a node, and an archive not named `.zip`.
pub fn remote_archive<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(text) = object.extract::<&str>() else { return Ok(None) };
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(None) };
    let parts: Vec<&str> = rest.split("::").collect();
    let Some(url) = parts.iter().copied().find(|part| zarrow_cloud::is_cloud_url(part)) else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case("zip") {
        return Ok(None);
    }
    let folders: Vec<&str> = parts.into_iter().filter(|part| *part != url && !part.is_empty()).collect();
    let is_named_so = url.split('?').next().is_some_and(|path| is_named_so(Path::new(path)));
    match (&folders[..], is_named_so) {
        ([], true) => Ok(Some(PyString::new(object.py(), url).into_any())),
        ([folder], true) => Err(PyValueError::new_err(format!(
            "pass the folder in a cloud archive as the path of the node: open({:?}, {folder:?})",
            zarrow_cloud::redact(url)
        ))),
        _ => Err(PyValueError::new_err(format!(
            "expected the URL of a cloud archive, ending in .zip, such as open(\"https://host/data.zip\"), got {:?}",
            zarrow_cloud::redact(text)
        ))),
    }
}

/// Returns whether a path is named like an archive.
pub fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

/// Returns the path of a `file://` URL.
pub fn path_of_url(py: Python<'_>, scheme: &str, rest: &str) -> PyResult<PathBuf> {
    if !scheme.eq_ignore_ascii_case("file") {
        let message = format!(
            "{scheme}:// URLs are not supported: expected a folder, a zip file, or a URL with file://, zip://, s3://, gs://, \
             az://, abfs://, http:// or https://; for others pass fsspec.get_mapper(\"{scheme}://...\")"
        );
        return Err(unsupported(py, message));
    }
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(PyValueError::new_err(format!(
            "a file:// URL needs an absolute path, such as \"file:///tmp/data.zarr\", got {rest:?}"
        )));
    }
    import(py, "urllib.parse")?.call_method1("unquote", (path,))?.extract()
}

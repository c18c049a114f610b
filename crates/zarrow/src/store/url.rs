//! URLs in place of paths. The engine has no client: a crate of cloud stores, such as `zarrow-cloud`, says how it opens
//! them.

use crate::error::{ErrorKind, Result};
use crate::store::Store;
use std::path::Path;
use std::sync::Arc;
use zarrow_array::fork::OnceCell;

/// Opens the store at a URL.
pub type OpenUrl = fn(&str) -> Result<Arc<dyn Store>>;

static OPEN_URL: OnceCell<OpenUrl> = OnceCell::new();

/// Lets [`Array::open`](crate::Array::open), [`Group::open`](crate::Group::open), [`Group::create`](crate::Group::create)
/// and [`open_path`](crate::store::open_path) open URLs by `open`, for the rest of the process. The first call counts.
pub fn open_urls_by(open: OpenUrl) {
    OPEN_URL.set(open);
}

/// Returns the store at a URL; `None` for a path, and for a URL that nothing opens.
pub(crate) fn open_url(path: &Path) -> Option<Result<Arc<dyn Store>>> {
    let url = path.to_str()?;
    scheme(url).filter(|scheme| *scheme != "file")?;
    OPEN_URL.get().map(|open| open(url))
}

/// Refuses a URL: taken as a path, it would name a folder such as `s3:` in the working folder.
pub(super) fn refuse_url(path: &str) -> Result<()> {
    let Some(scheme) = scheme(path) else { return Ok(()) };
    // Do not repeat the URL in the message: it may contain a user and a password.
    let text = match scheme {
        "file" => format!("a file:// URL is not a folder: pass the path {:?}", &path["file://".len()..]),
        _ => format!(
            "a {scheme}:// URL is not a folder: add the crate zarrow-cloud, and call zarrow_cloud::open_urls() once; or, \
             with options, open zarrow_cloud::CloudStore::new(url, options)? by zarrow::open(store.into_store(), \"\")"
        ),
    };
    Err(ErrorKind::Unsupported(text).into())
}

/// Returns the scheme of a URL.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character));
    is_scheme.then_some(scheme)
}

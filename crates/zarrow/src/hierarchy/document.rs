//! One document of a node: read, changed and set under its lock.

use crate::error::{ErrorKind, Result};
use crate::metadata::JsonText;
use crate::store::{Durability, Lock, Store, StoreWriter};
use std::time::{Duration, Instant};
use zarrow_array::allocation;

/// How long to wait for the lock of a document, which is held for as long as a small file takes to read and write.
const PATIENCE: Duration = Duration::from_secs(60);

/// What changes the store.
///
/// # Errors
/// [`ErrorKind::ReadOnly`].
pub(super) fn writer(store: &dyn Store) -> Result<&dyn StoreWriter> {
    store.writer().ok_or_else(|| ErrorKind::ReadOnly.into())
}

/// The lock of a document.
///
/// # Errors
/// [`ErrorKind::Write`] where another holds it for a minute, and what the store gives.
pub(super) fn lock<'a>(store: &'a dyn Store, key: &str) -> Result<Box<dyn Lock + 'a>> {
    let start = Instant::now();
    writer(store)?.lock(key, &|| {
        if start.elapsed() < PATIENCE {
            return Ok(());
        }
        let text = format!("another process holds the lock of {key}");
        Err(ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::TimedOut, text)).into())
    })
}

/// Reads the document under `key`, has it changed, and sets it where it changed; all under its lock.
///
/// `change` gets `None` where there is no document, and gives `None` to leave it as it is.
///
/// # Errors
/// What `change` and the store give, and [`ErrorKind::Metadata`] for a document that is no JSON object.
pub(super) fn update(
    store: &dyn Store,
    key: &str,
    limit: u64,
    durability: Durability,
    change: impl FnOnce(Option<JsonText>) -> Result<Option<JsonText>>,
) -> Result<()> {
    let _lock = lock(store, key)?;
    let before = store.get(key, limit)?;
    let text = match &before {
        Some(bytes) => Some(JsonText::parse(allocation::copied(bytes)?, limit)?),
        None => None,
    };
    if let Some(after) = change(text)?.map(JsonText::into_bytes)
        && before.as_ref() != Some(&after)
    {
        check_nbytes(&after, limit)?;
        writer(store)?.set(key, &[&after], durability)?;
    }
    Ok(())
}

/// Refuses a document that would not be read again.
///
/// # Errors
/// [`ErrorKind::Limit`].
pub(super) fn check_nbytes(document: &[u8], limit: u64) -> Result<()> {
    let actual = document.len() as u64;
    if actual > limit {
        return Err(ErrorKind::Limit { what: "the size of a document", actual, limit }.into());
    }
    Ok(())
}

//! Options for reads, built from their default by methods named as the fields, so that fields can be added.

use crate::error::{ErrorKind, Result};
use crate::metadata::missing::MissingValues;
use std::fmt;

/// Whether to stop: called from time to time, on the calling thread.
pub(crate) type Cancel<'a> = &'a dyn Fn() -> bool;

pub(crate) const NEVER: Cancel<'static> = &|| false;

/// Options for reads.
///
/// ```
/// use std::time::{Duration, Instant};
/// let (start, limit) = (Instant::now(), Duration::from_secs(60));
/// let is_late = || start.elapsed() > limit;
/// let options = zarrow::ReadOptions::default().cancel(&is_late);
/// assert!(options.missing.is_none());
/// ```
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct ReadOptions<'a> {
    /// Values that mark missing elements. With these the result has a masked layout; elements that are missing by
    /// their type stay missing.
    pub missing: Option<&'a MissingValues>,
    /// Whether to stop: called from time to time, on the calling thread. If it returns true, the read ends with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl<'a> ReadOptions<'a> {
    /// Sets the values that mark missing elements.
    #[must_use]
    pub fn missing(self, missing: &'a MissingValues) -> Self {
        ReadOptions { missing: Some(missing), ..self }
    }

    /// Sets the function that says whether to stop.
    #[must_use]
    pub fn cancel(self, cancel: &'a dyn Fn() -> bool) -> Self {
        ReadOptions { cancel: Some(cancel), ..self }
    }

    pub(crate) fn interrupted(&self) -> Cancel<'a> {
        self.cancel.unwrap_or(NEVER)
    }

    /// Returns `cancel` for a read into memory without a mask; an error if `missing` is set.
    pub(crate) fn strided(&self) -> Result<Cancel<'a>> {
        match self.missing {
            None => Ok(self.interrupted()),
            Some(_) => Err(ErrorKind::Unsupported("a mask for a read into given memory".into()).into()),
        }
    }
}

impl<'a> From<&'a dyn Fn() -> bool> for ReadOptions<'a> {
    fn from(cancel: &'a dyn Fn() -> bool) -> Self {
        ReadOptions::default().cancel(cancel)
    }
}

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancel = self.cancel.map(|_| "Fn() -> bool");
        formatter
            .debug_struct("ReadOptions")
            .field("missing", &self.missing)
            .field("cancel", &cancel)
            .finish()
    }
}

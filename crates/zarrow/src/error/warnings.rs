//! Warnings of changes that succeeded in part.

use std::cell::RefCell;

thread_local! {
    /// The warnings of the innermost [`with_warnings`].
    static WARNINGS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Does `work`, and returns its result with the warnings of this thread's changes: for example, that a change is
/// stored, but its consolidated metadata could not be written. Outside such a call, warnings go to standard error.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// use zarrow::{Existing, OpenOptions, ZarrFormat, create_group, with_warnings};
/// let (store, options) = (Arc::new(MemoryStore::default()), OpenOptions::default());
/// let attributes = serde_json::Map::default();
/// let create = || create_group(store, "", ZarrFormat::V3, attributes, Existing::Refuse, &options);
/// let (group, warnings) = with_warnings(create);
/// assert!(group.is_ok() && warnings.is_empty());
/// ```
pub fn with_warnings<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    /// Restores the previous warnings, also if `work` panics.
    struct Before(Option<Vec<String>>);
    impl Drop for Before {
        fn drop(&mut self) {
            WARNINGS.set(self.0.take());
        }
    }
    let _before = Before(WARNINGS.replace(Some(Vec::new())));
    let result = work();
    (result, WARNINGS.take().unwrap_or_default())
}

/// Reports a warning.
pub(crate) fn warn(text: String) {
    let untold = WARNINGS.with_borrow_mut(|warnings| match warnings {
        Some(warnings) => {
            warnings.push(text);
            None
        }
        None => Some(text),
    });
    if let Some(text) = untold {
        eprintln!("zarrow: {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_belong_to_the_innermost_call() {
        let (inner, outer) = with_warnings(|| {
            warn("first".into());
            let ((), inner) = with_warnings(|| warn("second".into()));
            inner
        });
        assert_eq!((inner, outer), (vec!["second".to_owned()], vec!["first".to_owned()]));
    }
}

//! What `help()` shows. It is written once, in the stubs; the build script makes the macro `help!` of it.
//!
//! Names of Python that are compiled have it as `#[doc = help!("Array.read")]`, those written in Python ask
//! [`_help`].

use pyo3::prelude::*;

include!(concat!(env!("OUT_DIR"), "/help.rs"));

/// The docstring that the stubs have for a name, such as "Array.read".
#[pyfunction]
pub fn _help(name: &str) -> Option<&'static str> {
    let found = TEXTS.binary_search_by_key(&name, |(name, _)| name).ok()?;
    TEXTS.get(found).map(|(_, text)| *text)
}

//! The texts of `help()`. They are written once, in the stubs; the build script generates the macro `help!` from
//! them.
//!
//! Compiled objects use `#[doc = help!("Array.read")]`, and those written in Python call [`_help`].

use pyo3::prelude::*;

include!(concat!(env!("OUT_DIR"), "/help.rs"));

/// Return the docstring in the stubs of a name, such as "Array.read".
#[pyfunction]
pub fn _help(name: &str) -> Option<&'static str> {
    let found = TEXTS.binary_search_by_key(&name, |(name, _)| name).ok()?;
    TEXTS.get(found).map(|(_, text)| *text)
}

//! Registration of the layouts in other libraries' tables of types.
//!
//! Such a library may be imported after zarrow. So each read and import checks whether new modules were imported,
//! until the layouts are registered by `zarrow.interchange.consumers`.

use crate::python::importing::import;
use crate::python::made_once::{made_once, name};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zarrow_array::fork::OnceCell;

/// Registers the layouts with the libraries imported so far.
pub fn introduce(py: Python<'_>) -> PyResult<()> {
    static MODULES: OnceCell<Py<PyDict>> = OnceCell::new();
    /// Number of modules at the last check; 0 forces another check.
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    static COLLATE: AtomicBool = AtomicBool::new(false);
    static PYTREE: AtomicBool = AtomicBool::new(false);
    let make = || Ok(import(py, "sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind());
    let modules = made_once(&MODULES, make)?.bind(py);
    let count = modules.len();
    if SEEN.load(Ordering::Relaxed) == count {
        return Ok(());
    }
    SEEN.store(count, Ordering::Relaxed);
    let is_done = add_once(&COLLATE, modules, name!(py, "torch.utils.data"), "_add_to_collate")?
        & add_once(&PYTREE, modules, name!(py, "jax.tree_util"), "_add_to_pytrees")?;
    if !is_done {
        SEEN.store(0, Ordering::Relaxed);
    }
    Ok(())
}

/// Calls `adder` of `zarrow.interchange.consumers` if `module` is imported, until the layouts are registered. Returns whether
/// to wait for new modules before the next check: not while `module` is being imported.
fn add_once(
    is_added: &AtomicBool,
    modules: &Bound<'_, PyDict>,
    module: &Bound<'_, PyString>,
    adder: &str,
) -> PyResult<bool> {
    if is_added.load(Ordering::Relaxed) || !modules.contains(module)? {
        return Ok(true);
    }
    let added = import(module.py(), "zarrow.interchange.consumers")?.call_method0(adder)?.extract()?;
    is_added.store(added, Ordering::Relaxed);
    Ok(added)
}

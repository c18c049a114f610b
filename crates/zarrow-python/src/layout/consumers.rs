//! Libraries that look an argument's type up in a table of their own, to which the layouts are added.
//!
//! Such a library may be imported after zarrow. Each read and import therefore looks whether it is there by now, until the
//! layouts are in its table; `zarrow.consumers` adds them.

use crate::python::importing::import;
use crate::python::made_once::{made_once, name};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::atomic::{AtomicBool, Ordering};
use zarrow_array::fork::OnceCell;

/// Adds the layouts to the tables of the libraries that are there by now.
pub fn introduce(py: Python<'_>) -> PyResult<()> {
    static COLLATE: AtomicBool = AtomicBool::new(false);
    static PYTREE: AtomicBool = AtomicBool::new(false);
    add_once(&COLLATE, name!(py, "torch.utils.data"), "_add_to_collate")?;
    add_once(&PYTREE, name!(py, "jax.tree_util"), "_add_to_pytrees")
}

/// Calls `adder` of `zarrow.consumers` once `module` is imported, until it says that the layouts are added.
fn add_once(is_added: &AtomicBool, module: &Bound<'_, PyString>, adder: &str) -> PyResult<()> {
    static MODULES: OnceCell<Py<PyDict>> = OnceCell::new();
    if is_added.load(Ordering::Relaxed) {
        return Ok(());
    }
    let py = module.py();
    let modules = || Ok(import(py, "sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind());
    if made_once(&MODULES, modules)?.bind(py).contains(module)? {
        let added = import(py, "zarrow.consumers")?.call_method0(adder)?.extract()?;
        is_added.store(added, Ordering::Relaxed);
    }
    Ok(())
}

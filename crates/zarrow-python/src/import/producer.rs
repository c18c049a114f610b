//! What is known of the type of a producer, found once: looking an attribute of a type up that is not there costs
//! more than an import.
//!
//! A few types are kept, with a reference to each, so that none of them makes place for another at its address.

use super::torch;
use crate::exchange_table::ExchangeTable;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::Mutex;

/// How many types are kept.
const MAX_KNOWN: usize = 16;

/// What matters of a type.
#[derive(Clone, Copy)]
pub struct Producer {
    /// Its table of C functions for DLPack, where it has one of its own: that of a base class is for objects of that
    /// class alone.
    pub table: Option<ExchangeTable>,
    /// Whether it is PyTorch's tensor, or derived from it.
    pub is_torch: bool,
}

static KNOWN: Mutex<Vec<(Py<PyType>, Producer)>> = Mutex::new(Vec::new());

/// What is known of the type of `object`.
pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Producer> {
    let class = object.get_type();
    // A lock that a fork left locked, or that another thread has, is no cache.
    if let Ok(known) = KNOWN.try_lock()
        && let Some((_, producer)) = known.iter().find(|(known, _)| known.is(&class))
    {
        return Ok(*producer);
    }
    let own = class.getattr("__dict__")?.contains("__dlpack_c_exchange_api__")?;
    let table = if own { ExchangeTable::of(&class)? } else { None };
    let producer = Producer { table, is_torch: torch::is_tensor_class(&class)? };
    if let Ok(mut known) = KNOWN.try_lock()
        && known.len() < MAX_KNOWN
    {
        known.push((class.unbind(), producer));
    }
    Ok(producer)
}

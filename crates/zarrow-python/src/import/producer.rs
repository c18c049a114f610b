//! Cached facts about the types of producers. Looking up a missing attribute of a type, or checking for a base
//! class, costs as much as an import.
//!
//! The cache holds references to a few types, so that no other type can reuse their addresses.

use super::torch::Lazy;
use crate::export::exchange_table::ExchangeTable;
use crate::python::made_once::name;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use zarrow_array::fork::CacheMutex;

/// Maximum number of cached types.
const MAX_KNOWN: usize = 16;

/// Family of a type.
#[derive(Clone, Copy)]
pub enum Family {
    /// `numpy.ndarray` or a subclass.
    NumpyArray,
    /// `numpy.ma.MaskedArray` or a subclass.
    NumpyMasked,
    /// A NumPy scalar: a value, not memory.
    NumpyScalar,
    /// `torch.Tensor` or a subclass.
    Torch(Lazy),
    /// Any other type.
    Other,
}

/// Facts about a type.
#[derive(Clone, Copy)]
pub struct Producer {
    /// Family of the type.
    pub family: Family,
    /// Its own table of C functions for DLPack. A base class's table is not inherited: it is only valid for exact
    /// instances of that class.
    pub table: Option<ExchangeTable>,
}

static KNOWN: CacheMutex<Vec<(Py<PyType>, Producer)>> = CacheMutex::new(Vec::new());

impl Producer {
    /// Returns the facts about the type of `object`.
    pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Producer> {
        let class = object.get_type();
        if let Some(known) = KNOWN.try_lock()
            && let Some((_, producer)) = known.iter().find(|(known, _)| known.is(&class))
        {
            return Ok(*producer);
        }
        let own = class.getattr("__dict__")?.contains("__dlpack_c_exchange_api__")?;
        let table = if own { ExchangeTable::from_class(&class)? } else { None };
        let producer = Producer { family: Family::from_class(object, &class)?, table };
        if let Some(mut known) = KNOWN.try_lock()
            && known.len() < MAX_KNOWN
        {
            known.push((class.unbind(), producer));
        }
        Ok(producer)
    }
}

impl Family {
    /// Returns the family of `class`, the type of `object`. A library that is not imported has no objects.
    fn from_class(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Family> {
        let modules = class.py().import("sys")?.getattr(name!(class.py(), "modules"))?;
        let modules = modules.cast::<PyDict>()?;
        let is_of = |module: &str, name: &str| -> PyResult<bool> {
            // During a module's import, or if its import is blocked, attributes are missing.
            let module = modules.get_item(module)?;
            match module.map(|module| module.getattr_opt(name)).transpose()?.flatten() {
                Some(base) => class.is_subclass(&base),
                None => Ok(false),
            }
        };
        Ok(match () {
            () if is_of("numpy.ma", "MaskedArray")? => Family::NumpyMasked,
            () if is_of("numpy", "ndarray")? => Family::NumpyArray,
            () if is_of("numpy", "generic")? => Family::NumpyScalar,
            () if is_of("torch", "Tensor")? => Family::Torch(Lazy::from_tensor(object)?),
            () => Family::Other,
        })
    }
}

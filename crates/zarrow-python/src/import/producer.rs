//! What is known of the type of a producer, found once: to look up an attribute of a type that is not there, or to ask
//! whether it is derived from another, costs as much as an import.
//!
//! A few types are kept, with a reference to each, so that none of them makes place for another at its address.

use super::torch::Lazy;
use crate::export::exchange_table::ExchangeTable;
use crate::python::made_once::name;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use zarrow_array::fork::CacheMutex;

/// How many types are kept.
const MAX_KNOWN: usize = 16;

/// Whose a type is.
#[derive(Clone, Copy)]
pub enum Family {
    /// `numpy.ndarray`, or derived from it.
    NumpyArray,
    /// `numpy.ma.MaskedArray`, or derived from it.
    NumpyMasked,
    /// A scalar of NumPy's, which is a value and no memory.
    NumpyScalar,
    /// `torch.Tensor`, or derived from it.
    Torch(Lazy),
    /// Any other.
    Other,
}

/// What matters of a type.
#[derive(Clone, Copy)]
pub struct Producer {
    /// Whose it is.
    pub family: Family,
    /// Its table of C functions for DLPack, where it has one of its own: that of a base class is for objects of that
    /// class alone.
    pub table: Option<ExchangeTable>,
}

static KNOWN: CacheMutex<Vec<(Py<PyType>, Producer)>> = CacheMutex::new(Vec::new());

impl Producer {
    /// What is known of the type of `object`.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Producer> {
        let class = object.get_type();
        if let Some(known) = KNOWN.try_lock()
            && let Some((_, producer)) = known.iter().find(|(known, _)| known.is(&class))
        {
            return Ok(*producer);
        }
        let own = class.getattr("__dict__")?.contains("__dlpack_c_exchange_api__")?;
        let table = if own { ExchangeTable::of(&class)? } else { None };
        let producer = Producer { family: Family::of(object, &class)?, table };
        if let Some(mut known) = KNOWN.try_lock()
            && known.len() < MAX_KNOWN
        {
            known.push((class.unbind(), producer));
        }
        Ok(producer)
    }
}

impl Family {
    /// The family of `class`, that of `object`. A library that is not imported has no objects.
    fn of(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Family> {
        let modules = class.py().import("sys")?.getattr(name!(class.py(), "modules"))?;
        let modules = modules.cast::<PyDict>()?;
        let is_of = |module: &str, name: &str| -> PyResult<bool> {
            // While it is imported, or where its import is forbidden, a module lacks what it has.
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
            () if is_of("torch", "Tensor")? => Family::Torch(Lazy::of(object)?),
            () => Family::Other,
        })
    }
}

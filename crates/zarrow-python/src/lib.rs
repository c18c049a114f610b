//! The Python module `zarrow._zarrow`: the engine and the four layouts as Python classes.
//!
//! Each class is a thin file over the crate that does the work. `unsafe` stands only where a C protocol asks for
//! it: in `capsule`, `buffer_protocol`, `numpy_api` and `numpy_string`, `c_entry`,
//! `fast_method`, `exchange_api` and `exchange_table`, for slices in
//! `selection`, and where the memory of a tensor is read or filled.

mod array;
mod array_interface;
mod array_summary;
mod arrow;
mod arrow_stream;
mod attributes;
mod batch;
mod buffer_producer;
mod buffer_protocol;
mod c_entry;
mod capsule;
mod categorical;
mod consumer;
mod create;
mod current;
mod data_type;
mod decoded_array;
mod dlpack;
mod error;
mod exchange_api;
mod exchange_table;
mod fast_method;
mod field;
mod fill_value;
mod gil;
mod group;
mod import;
mod importing;
mod index_array;
mod indexer;
mod interrupt;
mod json;
mod made_once;
mod masked_tensor;
mod masked_variable;
mod memory;
mod metadata;
mod missing;
mod numpy;
mod numpy_api;
mod numpy_string;
mod open;
mod origin;
mod out;
mod rebuild;
mod selection;
mod store;
mod summary;
mod tensor;
mod tree;
mod variable;
mod written;

use pyo3::prelude::*;

/// The compiled part of zarrow: everything here is public as `zarrow.*`.
// Run with a GIL until it was tried without one.
#[pymodule(gil_used = true)]
mod _zarrow {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::arrow_stream::ArrowStream;
    #[pymodule_export]
    use crate::batch::read_many;
    #[pymodule_export]
    use crate::buffer_producer::BufferProducer;
    #[pymodule_export]
    use crate::categorical::Categorical;
    #[pymodule_export]
    use crate::create::{_create_array, _create_group, _shape_as};
    #[pymodule_export]
    use crate::decoded_array::DecodedArray;
    #[pymodule_export]
    use crate::group::Group;
    #[pymodule_export]
    use crate::import::{asarray, from_arrow, from_dlpack, from_numpy};
    #[pymodule_export]
    use crate::importing::_import;
    #[pymodule_export]
    use crate::indexer::Indexer;
    #[pymodule_export]
    use crate::masked_tensor::MaskedTensor;
    #[pymodule_export]
    use crate::masked_variable::MaskedVariable;
    #[pymodule_export]
    use crate::memory::{release_memory, set_memory_cache};
    #[pymodule_export]
    use crate::open::{num_threads, open, set_num_threads};
    #[pymodule_export]
    use crate::rebuild::{_mask_levels, _masked, _variable};
    #[pymodule_export]
    use crate::store::MemoryStore;
    #[pymodule_export]
    use crate::summary::_visible;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::tree::Tree;
    #[pymodule_export]
    use crate::variable::Variable;

    #[pymodule_init]
    fn initialize(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::importing::watch_forks(module.py())?;
        crate::fast_method::add::<crate::dlpack::Dlpack, _>(module.py())?;
        crate::fast_method::add::<crate::arrow::ArrowCArray, _>(module.py())?;
        crate::decoded_array::add_aliases(module)
    }
}

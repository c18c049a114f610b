//! The Python module `zarrow._zarrow`: the engine and the four layouts as Python classes.
//!
//! Each class is a thin layer over the crate that does the work:
//!
//! - `node`: arrays and groups; `python_store`: stores written in Python; `layout`: the four layouts; `index`:
//!   indexing;
//! - `import`: foreign arrays to ours; `export`: our arrays to others, one file per protocol;
//! - `device`: GPU tensors, and reads and writes with them;
//! - `python`: the GIL, errors, interruption.
//!
//! `unsafe` is only used where a C protocol requires it, and to read or fill a tensor's memory.

#![allow(missing_debug_implementations, reason = "the types are Python classes, which have a repr")]

#[macro_use]
mod python;

mod device;
mod export;
mod import;
mod index;
mod layout;
mod node;
mod python_store;

use pyo3::prelude::*;

/// The compiled part of zarrow: everything here is public as `zarrow.*`.
// Needs the GIL: free-threaded Python is untested.
#[pymodule(gil_used = true)]
mod _zarrow {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::export::buffer_producer::BufferProducer;
    #[pymodule_export]
    use crate::import::{asarray, from_arrow, from_dlpack, from_numpy};
    #[pymodule_export]
    use crate::layout::arrow_stream::ArrowStream;
    #[pymodule_export]
    use crate::layout::categorical::Categorical;
    #[pymodule_export]
    use crate::layout::decoded_array::DecodedArray;
    #[pymodule_export]
    use crate::layout::masked_tensor::MaskedTensor;
    #[pymodule_export]
    use crate::layout::masked_variable::MaskedVariable;
    #[pymodule_export]
    use crate::layout::memory::{release_memory, set_memory_cache};
    #[pymodule_export]
    use crate::layout::rebuild::{_categorical, _mask_levels, _masked, _variable};
    #[pymodule_export]
    use crate::layout::recycled_memory::RecycledMemory;
    #[pymodule_export]
    use crate::layout::shown::_text;
    #[pymodule_export]
    use crate::layout::tensor::{_count_assignment, Tensor};
    #[pymodule_export]
    use crate::layout::variable::Variable;
    #[pymodule_export]
    use crate::node::array::{Array, Unread};
    #[pymodule_export]
    use crate::node::batch::{_read_each, _read_into, _read_masked, _shapes_of, read_many};
    #[pymodule_export]
    use crate::node::chunk_parts::ChunkParts;
    #[pymodule_export]
    use crate::node::cloud_store::_with_options;
    #[pymodule_export]
    use crate::node::cloud_store::CloudStore;
    #[pymodule_export]
    use crate::node::codec::_register_codec;
    #[pymodule_export]
    use crate::node::create::{_create_array, _create_group, _create_whole_group, _new_array, _shape_as};
    #[pymodule_export]
    use crate::node::detached::{_read_detached, _write_detached, DetachedRead};
    #[pymodule_export]
    use crate::node::explanation::_explain;
    #[pymodule_export]
    use crate::node::group::Group;
    #[pymodule_export]
    use crate::node::indexer::Indexer;
    #[pymodule_export]
    use crate::node::node_batch::{_create_all, _is_remote, NewNode, write_many};
    #[pymodule_export]
    use crate::node::open::{
        _members_or_errors, _open_detached, _open_members, num_threads, open, set_num_threads,
    };
    #[pymodule_export]
    use crate::node::reference_target::_reference_target;
    #[pymodule_export]
    use crate::node::stage_times::StageTimes;
    #[pymodule_export]
    use crate::node::store::MemoryStore;
    #[pymodule_export]
    use crate::node::stored_values::StoredValues;
    #[pymodule_export]
    use crate::node::tree::Tree;
    #[pymodule_export]
    use crate::python::cancellation::Cancellation;
    #[pymodule_export]
    use crate::python::help::_help;
    #[pymodule_export]
    use crate::python::importing::_import;
    #[pymodule_export]
    use crate::python::serving_thread::_serves_stores;
    #[pymodule_export]
    use crate::python::summary::_visible;
    #[pymodule_export]
    use crate::python_store::queue::StoreQueue;
    #[pymodule_export]
    use crate::python_store::references::{ChunkReferences, ReferenceTarget, References};
    #[pymodule_export]
    use crate::python_store::request::StoreRequest;

    #[pymodule_init]
    fn initialize(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::python::importing::watch_forks(module.py())?;
        crate::python::interrupt::note_main_thread(module.py())?;
        crate::python::interpreter_exit::wait_at_exit(module)?;
        crate::node::open::check_environment(module.py())?;
        crate::python::fast_method::add::<crate::export::dlpack::Dlpack, _>(module.py())?;
        crate::python::fast_method::add::<crate::export::dlpack::DlpackDevice, _>(module.py())?;
        crate::python::fast_method::add::<crate::export::arrow::ArrowCArray, _>(module.py())?;
        crate::device::memory::give_back_when_out_of_memory();
        crate::device::import::add_to_class(module)?;
        // The layout's class is named `Tensor` too.
        module.add("DeviceTensor", module.py().get_type::<crate::device::tensor::DeviceTensor>())?;
        crate::layout::decoded_array::add_aliases(module)
    }
}

//! Lazy imports of modules, protected from concurrent forks.
//!
//! 1. Python locks a module while a thread imports it. A child forked at that moment has the lock but not the
//!    thread: its own import of the module would never end. Users of zarrow cannot know when it imports NumPy.
//! 2. So every importing thread is counted, and `os.fork` waits until no other thread imports. New imports wait for
//!    the fork.
//! 3. A module may fork during its import, and a thread may wait for a module imported by another thread that
//!    forks. So a thread's own imports are not waited for, and the wait always has a time limit.

use crate::python::interpreter_exit;
use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Imports in progress, and forks that wait for them. Both only change with the GIL held.
static IMPORTS: AtomicUsize = AtomicUsize::new(0);
static FORKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Imports in progress on this thread.
    static OWN: Cell<usize> = const { Cell::new(0) };

    /// Whether this thread is about to fork.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// Time limit of a wait that could otherwise never end (step 3): longer than the import of large modules.
const PATIENCE: Duration = Duration::from_secs(20);

/// Guard of an import in progress.
struct Importing;

impl Importing {
    fn begin(py: Python<'_>) -> Importing {
        if OWN.get() == 0 && !FORKING.get() {
            wait_while(py, || FORKS.load(Ordering::SeqCst) > 0);
        }
        IMPORTS.fetch_add(1, Ordering::SeqCst);
        OWN.set(OWN.get() + 1);
        Importing
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        IMPORTS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits without the GIL, and takes it again.
fn wait_while(py: Python<'_>, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while is_so() && start.elapsed() < PATIENCE {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
}

/// Imports a module. All imports of modules that may not be loaded yet go through this function.
pub fn import<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    interpreter_exit::guard_thread();
    let _importing = Importing::begin(py);
    py.import(name).map_err(|error| with_command(py, name, error).unwrap_or_else(|error| error))
}

/// Libraries that arrays are exported to, and the extra that installs each.
const EXTRAS: [(&str, &str); 4] =
    [("torch", "torch"), ("jax", "jax"), ("pyarrow", "arrow"), ("polars", "polars")];

/// Adds the install command to the import error of a missing package.
fn with_command(py: Python<'_>, name: &str, error: PyErr) -> PyResult<PyErr> {
    let package = name.split('.').next().unwrap_or(name);
    let Some((_, extra)) = EXTRAS.iter().find(|(known, _)| *known == package) else { return Ok(error) };
    let missing = error.is_instance_of::<PyModuleNotFoundError>(py)
        && error.value(py).getattr("name")?.extract::<Option<String>>()?.as_deref() == Some(package);
    if !missing {
        return Ok(error);
    }
    let message = format!("this needs {package}, which is not installed: pip install 'zarrow[{extra}]'");
    let arguments = PyDict::new(py);
    arguments.set_item("name", package)?;
    Ok(PyErr::from_value(py.get_type::<PyModuleNotFoundError>().call((message,), Some(&arguments))?))
}

/// Import a module, for zarrow's Python code; see [`import`].
#[pyfunction]
pub fn _import<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    import(py, name)
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKING.set(true);
    FORKS.fetch_add(1, Ordering::SeqCst);
    wait_while(py, || IMPORTS.load(Ordering::SeqCst) > OWN.get());
}

#[pyfunction]
fn after_fork_in_parent() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
    FORKING.set(false);
}

#[pyfunction]
fn after_fork_in_child() {
    FORKS.store(0, Ordering::SeqCst);
    FORKING.set(false);
    IMPORTS.store(OWN.get(), Ordering::SeqCst);
}

/// Registers the handlers with `os.fork` (step 2).
pub fn watch_forks(py: Python<'_>) -> PyResult<()> {
    let handlers = PyDict::new(py);
    handlers.set_item("before", wrap_pyfunction!(before_fork, py)?)?;
    handlers.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, py)?)?;
    handlers.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, py)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&handlers)).map(drop)
}

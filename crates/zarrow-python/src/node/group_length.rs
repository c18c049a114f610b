//! `iter(group)` and `len(group)`, which `list(group)` calls one after the other.
//!
//! 1. The iterator lists the group when it begins, not when it is made.
//! 2. `len` of a group passes its list to an iterator that still waits. So `list(group)` lists the group once.

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use std::sync::{Arc, Weak};
use zarrow_array::fork::Mutex;

/// What an iterator has of the names.
enum Stage {
    Made,
    Listed(Py<PyList>),
    Begun(Py<PyIterator>),
}

/// The iterator over the names of a group.
#[pyclass(frozen, name = "_GroupNames", module = "zarrow")]
pub struct GroupNames {
    group: Py<PyAny>,
    stage: Arc<Mutex<Stage>>,
}

#[pymethods]
impl GroupNames {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.begun(py)?.next().transpose()
    }
}

impl GroupNames {
    fn begun<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let listed = match &*self.stage.lock() {
            Stage::Begun(names) => return Ok(names.bind(py).clone()),
            Stage::Listed(names) => Some(names.bind(py).clone()),
            Stage::Made => None,
        };
        let listed = match listed {
            Some(listed) => listed.into_any(),
            None => self.group.bind(py).call_method0("keys")?,
        };
        let names = listed.try_iter()?;
        let mut stage = self.stage.lock();
        if let Stage::Begun(others) = &*stage {
            // Another thread has begun the iterator during the list.
            return Ok(others.bind(py).clone());
        }
        let before = std::mem::replace(&mut *stage, Stage::Begun(names.clone().unbind()));
        drop(stage);
        drop(before);
        Ok(names)
    }
}

/// The last iterator over the names of a group, while it waits for its first step.
#[derive(Default)]
pub struct UnbegunNames(Mutex<Weak<Mutex<Stage>>>);

impl UnbegunNames {
    /// Makes an iterator over the names of `group`, which owns `self`.
    pub fn iterate(&self, group: Py<PyAny>) -> GroupNames {
        let stage = Arc::new(Mutex::new(Stage::Made));
        *self.0.lock() = Arc::downgrade(&stage);
        GroupNames { group, stage }
    }

    /// Whether an iterator waits, without names.
    pub fn is_any(&self) -> bool {
        self.0.lock().upgrade().is_some_and(|stage| matches!(*stage.lock(), Stage::Made))
    }

    /// Passes the names to a waiting iterator.
    pub fn give(&self, names: &Bound<'_, PyList>) {
        let Some(stage) = std::mem::take(&mut *self.0.lock()).upgrade() else { return };
        let mut stage = stage.lock();
        if matches!(*stage, Stage::Made) {
            *stage = Stage::Listed(names.clone().unbind());
        }
    }
}

//! Iteration over the names of a group in a remote store.
//!
//! 1. The loop begins with a list of names (`zarrow::ListedMembers`).
//! 2. While the loop body runs for a name, `group[name]` returns the listed member once. The first such lookup reads the
//!    documents of that member and of those around it with one round of requests.
//! 3. Everything else reads the documents again: another name, the same name a second time, a name after the loop,
//!    and any name after this process has changed a document.

use crate::python::interrupt::waiting;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use zarrow::{ListedMembers, Node};
use zarrow_array::fork::Mutex;

/// Number of members that one lookup reads: a host gets as many requests at once.
const AHEAD: usize = 256;

/// The member that a loop currently visits, until it is taken.
#[derive(Clone, Default)]
pub struct Visited(Arc<Mutex<Option<Visit>>>);

/// A name, and the loop that visits it.
type Visit = (String, Arc<Loop>);

impl Visited {
    /// Returns the member of this name, if a loop currently visits it.
    pub fn take(&self, py: Python<'_>, name: &str) -> PyResult<Option<Node>> {
        let mut visited = self.0.lock();
        let taken = visited.take_if(|(visited, _)| visited == name);
        drop(visited);
        match taken {
            Some((name, members)) => Ok(members.member(py, &name)?.filter(Node::is_latest)),
            None => Ok(None),
        }
    }

    fn set(&self, member: Option<Visit>) {
        let before = std::mem::replace(&mut *self.0.lock(), member);
        drop(before);
    }
}

/// Members of one loop.
struct Loop {
    listed: ListedMembers,
    read: Mutex<ReadAhead>,
}

#[derive(Default)]
struct ReadAhead {
    /// The blocks of the list that were read.
    blocks: HashSet<usize>,
    /// Their nodes, by places in the list, until they are taken.
    nodes: HashMap<usize, Node>,
}

impl Loop {
    /// Returns the node of this name, once; `None` if it has been taken, or cannot be opened.
    fn member(&self, py: Python<'_>, name: &str) -> PyResult<Option<Node>> {
        let names = self.listed.names();
        let Ok(place) = names.binary_search_by(|other| other.as_str().cmp(name)) else { return Ok(None) };
        let block = place / AHEAD;
        {
            let mut read = self.read.lock();
            if read.blocks.contains(&block) {
                return Ok(read.nodes.remove(&place));
            }
        }
        let start = block * AHEAD;
        let range = start..names.len().min(start + AHEAD);
        let opened = waiting(py, || self.listed.open(range.clone()))?;
        let mut read = self.read.lock();
        if read.blocks.insert(block) {
            // A node that cannot be opened raises its error when it is looked up in the store.
            read.nodes.extend(range.zip(opened).filter_map(|(place, node)| Some((place, node?))));
        }
        Ok(read.nodes.remove(&place))
    }
}

/// Starts loops over a list of names.
#[pyclass(frozen, name = "_GroupLoops", module = "zarrow")]
pub struct GroupLoops {
    listed: Mutex<Option<ListedMembers>>,
    later: ListedMembers,
    visited: Visited,
}

impl GroupLoops {
    pub fn new(listed: ListedMembers, visited: Visited) -> GroupLoops {
        GroupLoops { later: listed.without_documents(), listed: Mutex::new(Some(listed)), visited }
    }
}

#[pymethods]
impl GroupLoops {
    /// Begins a loop over these names. The first loop uses the documents in the list, a later one requests them
    /// again.
    fn __call__(&self, names: Py<PyIterator>) -> GroupIterator {
        let listed = self.listed.lock().take();
        let listed = listed.unwrap_or_else(|| self.later.without_documents());
        let members = Arc::new(Loop { listed, read: Mutex::default() });
        GroupIterator { names, members, visited: self.visited.clone() }
    }
}

/// The iterator over the names of a group.
#[pyclass(frozen, name = "_GroupIterator", module = "zarrow")]
pub struct GroupIterator {
    names: Py<PyIterator>,
    members: Arc<Loop>,
    visited: Visited,
}

#[pymethods]
impl GroupIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = self.names.bind(py).clone().next().transpose()?;
        let name = next.as_ref().and_then(|name| name.extract::<String>().ok());
        self.visited.set(name.map(|name| (name, Arc::clone(&self.members))));
        Ok(next)
    }
}

impl Drop for GroupIterator {
    fn drop(&mut self) {
        self.visited.set(None);
    }
}

//! Iteration over the names of a group.
//!
//! 1. The loop begins with one listing, which reads the documents of all members.
//! 2. While the loop body runs for a name, `group[name]` returns the member from the listing once, without another
//!    request. So `for name in group: group[name]` sees the same state as `group.items()`.
//! 3. Everything else reads the documents again: another name, the same name a second time, a name after the loop,
//!    and any name after this process has changed a document.

use pyo3::prelude::*;
use std::sync::Arc;
use zarrow::{Members, Node};
use zarrow_array::fork::Mutex;

/// The member that a loop currently visits, until it is taken.
#[derive(Clone, Default)]
pub struct Visited(Arc<Mutex<Option<(String, Node)>>>);

impl Visited {
    /// Returns the member of this name, if a loop currently visits it.
    pub fn take(&self, name: &str) -> Option<Node> {
        let mut visited = self.0.lock();
        let taken = visited.take_if(|(visited, _)| visited == name);
        drop(visited);
        taken.map(|(_, node)| node).filter(Node::is_latest)
    }

    fn set(&self, member: Option<(String, Node)>) {
        let before = std::mem::replace(&mut *self.0.lock(), member);
        drop(before);
    }
}

/// Iterator over the names of a group.
#[pyclass(frozen, name = "_GroupIterator", module = "zarrow")]
pub struct GroupIterator {
    members: Mutex<std::vec::IntoIter<(String, zarrow::Result<Node>)>>,
    visited: Visited,
}

impl GroupIterator {
    pub fn new(members: Members, visited: Visited) -> GroupIterator {
        GroupIterator { members: Mutex::new(members.into_iter()), visited }
    }
}

#[pymethods]
impl GroupIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> Option<String> {
        let next = self.members.lock().next();
        let (name, node) = next.unzip();
        // A member that cannot be opened raises its error when it is looked up.
        let member = name.clone().zip(node.and_then(Result::ok));
        self.visited.set(member.filter(|(_, node)| node.store().remote().is_some()));
        name
    }
}

impl Drop for GroupIterator {
    fn drop(&mut self) {
        self.visited.set(None);
    }
}

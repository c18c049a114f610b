//! Contents of a new node: elements of an array, or members of a group.

use crate::error::Result;
use crate::node::array::Array;
use crate::selection::Selection;
use crate::store::Store;
use crate::write::options::WriteOptions;
use crate::write::values::Values;
use std::sync::Arc;

/// Function that puts all elements of a new array, part by part, by calling its argument.
pub type Source<'a> = dyn Fn(&mut dyn FnMut(&Selection, &Values<'_>) -> Result<()>) -> Result<()> + 'a;

/// Contents of a new node.
#[derive(Clone, Copy)]
pub enum Contents<'a> {
    /// Elements of an array, and how to write them.
    Elements(&'a Source<'a>, &'a WriteOptions<'a>),
    /// Members of a group: a function that creates them in the store of the group.
    Members(&'a dyn Fn(&Arc<dyn Store>) -> Result<()>),
}

impl<'a> Contents<'a> {
    pub fn write_options(self) -> WriteOptions<'a> {
        match self {
            Contents::Elements(_, write) => *write,
            Contents::Members(_) => WriteOptions::default(),
        }
    }

    /// Puts the contents below the root of a hidden store, which has the documents of the node.
    pub fn stage(self, store: &Arc<dyn Store>, array: Option<&Array>) -> Result<()> {
        match (self, array) {
            (Contents::Members(create), _) => create(store),
            (_, Some(array)) => self.fill(&array.moved(Arc::clone(store), String::new())),
            (_, None) => Ok(()),
        }
    }

    /// Writes the elements.
    pub fn fill(self, array: &Array) -> Result<()> {
        match self {
            Contents::Elements(source, write) => {
                source(&mut |selection, values| array.write_elements(selection, values, None, write))
            }
            Contents::Members(_) => Ok(()),
        }
    }
}

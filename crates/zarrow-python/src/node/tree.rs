//! Drawing of a hierarchy.

use crate::python::summary::{Summary, tuple};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::Value;
use std::sync::Arc;
use zarrow::metadata::Attributes;
use zarrow::{Array, Group, Node, open_with, visible};
use zarrow_array::allocation::no_memory;

/// Default depth limit.
const DEEPEST: usize = 64;

#[doc = help!("Tree")]
#[pyclass(frozen, module = "zarrow")]
pub struct Tree {
    drawing: String,
}

impl Tree {
    /// Wraps a finished drawing.
    pub fn new(drawing: String) -> Tree {
        Tree { drawing }
    }
}

#[pymethods]
impl Tree {
    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        PyString::from_bytes(py, self.drawing.as_bytes())
    }

    fn _repr_html_(&self) -> String {
        Summary::new("").html(&self.drawing)
    }
}

/// Draws the descendants of `group`, down to `depth` levels.
pub fn render(group: &Group, depth: Option<usize>) -> zarrow::Result<String> {
    let mut drawing = format!("/{}", visible(group.path()));
    if let Some(levels) = multiscales(group.attributes()) {
        add(&mut drawing, &format!(" multiscales {}", visible(&levels)))?;
    }
    draw(group, "", depth.unwrap_or(DEEPEST).min(DEEPEST), usize::MAX, &mut drawing)?;
    Ok(drawing)
}

/// Draws the members of `group`, at most the first hundred.
pub fn render_members(group: &Group) -> zarrow::Result<String> {
    const MOST: usize = 100;
    let mut drawing = format!("/{}", visible(group.path()));
    draw(group, "", 1, MOST, &mut drawing)?;
    Ok(drawing)
}

fn draw(group: &Group, indent: &str, depth: usize, most: usize, drawing: &mut String) -> zarrow::Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let children = group.children()?;
    for (at, (name, child)) in children.iter().enumerate() {
        if at == most {
            return add(
                drawing,
                &format!("\n{indent}└── {} more: .keys() lists them", children.len() - most),
            );
        }
        let (branch, below) =
            if at + 1 == children.len() { ("└── ", "    ") } else { ("├── ", "│   ") };
        add(drawing, &format!("\n{indent}{branch}{}", visible(name)))?;
        match child {
            Ok(Node::Array(array)) => {
                let data_type = array.data_type().to_string();
                add(drawing, &format!(" {} {}", tuple(array.shape()), visible(&data_type)))?;
                if let Some(fault) = fault_of_document(group, array) {
                    add(drawing, &format!(", by consolidated metadata: {}", visible(&fault)))?;
                }
            }
            // A broken node must not hide the others.
            Err(error) => {
                let reason = error.kind().to_string();
                add(drawing, &format!(" cannot be opened: {}", visible(&reason)))?;
            }
            Ok(Node::Group(inner)) => {
                if let Some(levels) = multiscales(inner.attributes()) {
                    add(drawing, &format!(" multiscales {}", visible(&levels)))?;
                }
                match inner.check_links() {
                    Ok(()) => draw(inner, &format!("{indent}{below}"), depth - 1, most, drawing)?,
                    Err(error) => add(drawing, &format!(", not entered: {}", error.kind()))?,
                }
            }
        }
    }
    Ok(())
}

/// Returns the axes and the number of levels of an OME-Zarr image; `None` if the attributes describe no image.
pub fn multiscales(attributes: &Attributes) -> Option<String> {
    let images = attributes.get("ome").and_then(|ome| ome.get("multiscales"));
    let image = images.or_else(|| attributes.get("multiscales"))?.get(0)?;
    let names = image.get("axes").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<_> = names.filter_map(|axis| axis.get("name").unwrap_or(axis).as_str()).take(8).collect();
    let levels = image.get("datasets").and_then(Value::as_array)?.len();
    let word = if levels == 1 { "level" } else { "levels" };
    Some(format!("{}, {levels} {word}", names.join(" ")))
}

/// Returns the fault of an array's own document, if the group opened the array from consolidated metadata. Remote
/// stores are not checked, since that would take a request per array.
fn fault_of_document(group: &Group, array: &Array) -> Option<String> {
    if !group.is_consolidated() || group.store().remote().is_some() {
        return None;
    }
    match open_with(Arc::clone(group.store()), array.path(), group.options()) {
        Ok(Node::Array(_)) => None,
        Ok(Node::Group(_)) => Some("its own document describes a group".to_owned()),
        Err(error) => Some(format!("its own document cannot be opened: {}", error.kind())),
    }
}

fn add(drawing: &mut String, text: &str) -> zarrow::Result<()> {
    drawing.try_reserve(text.len()).map_err(|_| no_memory::<u8>(drawing.len().saturating_add(text.len())))?;
    drawing.push_str(text);
    Ok(())
}

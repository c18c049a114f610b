//! Nodes of Arrow arrays: elements with their validity, and the lists around them.

use crate::export::arrow::form::RowForm;
use crate::export::arrow::nulls::Validity;
use crate::export::arrow_abi::{ArrayNode, Owner};
use std::ffi::c_void;

/// Makes a node of elements in contiguous memory.
pub fn leaf(length: i64, validity: Validity, buffers: Vec<*const c_void>, owners: Vec<Owner>) -> ArrayNode {
    let null_count = validity.null_count;
    let mut node = ArrayNode { length, null_count, buffers, owners, ..ArrayNode::default() };
    let bitmap = validity.bitmap.as_ref().map_or(std::ptr::null(), |bitmap| bitmap.as_ptr().cast());
    node.buffers.insert(0, bitmap);
    node.owners.extend(validity.bitmap.map(|bitmap| Owner::new(bitmap)));
    node
}

/// Wraps elements in the lists of this row form.
pub fn wrapped(elements: ArrayNode, form: RowForm, shape: &[i64]) -> ArrayNode {
    let list = |array, axes: usize| {
        let length = shape[..axes].iter().product();
        ArrayNode { children: vec![array], ..leaf(length, Validity::default(), vec![], vec![]) }
    };
    match form {
        RowForm::Flat => elements,
        RowForm::Tensor => list(elements, 1),
        RowForm::Nested => (1..shape.len()).rev().fold(elements, list),
    }
}

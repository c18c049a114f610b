//! One selection of one array, as the engine reads it.

use crate::codec::{Layout, Swap};
use crate::decode::reader::Reader;
use crate::error::{Error, ErrorKind};
use crate::metadata::FillValue;
use crate::selection::{AxisSelection, Selection};
use zarrow_array::DataType;

/// One selection of one array.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// The array's number: items with the same number read the same array, and the same field.
    pub array: usize,
    /// The array reader.
    pub reader: Reader<'a>,
    /// The selection to read.
    pub selection: &'a Selection,
}

impl<'a> Item<'a> {
    /// Whether the store's answers come by completion.
    pub fn is_remote(&self) -> bool {
        self.reader.store.remote().is_some()
    }

    /// The element type and the fill value for missing chunks.
    pub fn element(&self) -> (&'a DataType, &'a FillValue) {
        (&self.reader.metadata.data_type, &self.reader.metadata.fill_value)
    }

    /// Whether the selected chunks can be handed over as they are stored: whole elements of a fixed size, contiguous in
    /// their decompressed chunks, at evenly spaced positions on each axis.
    pub fn hands_over(&self) -> bool {
        let mut chain = self.reader.chain;
        while let Layout::InnerChunks(inner_chunks) = chain.layout() {
            chain = &inner_chunks.chain;
        }
        let is_plain = matches!(chain.layout(), Layout::Elements(swap) if !matches!(swap, Swap::Fields(_)));
        let is_even = |axis: &AxisSelection| matches!(axis, AxisSelection::Even { .. });
        self.reader.field.is_none()
            && is_plain
            && chain.has_fixed_elements()
            && self.selection.axes().iter().all(is_even)
    }

    /// Adds store and path to an error.
    pub fn place(&self, error: Error) -> Error {
        error.in_array(self.reader.store.name(), self.reader.path)
    }

    /// Adds chunk and codec to the error of text that is not UTF-8, which is found when all chunks are read.
    pub fn at_text(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Array(zarrow_array::Error::NotUtf8 { index }) => {
                let chunk = self.chunk_with(*index as u64);
                error.in_codec(self.reader.chain.elements_codec()).in_chunk(&chunk)
            }
            _ => error,
        }
    }

    /// Returns the chunk that holds the element `index` (in C order) of the selection.
    fn chunk_with(&self, index: u64) -> Vec<u64> {
        let mut rest = index;
        let mut numbers: Vec<u64> = Vec::new();
        for extent in self.selection.flat_shape().iter().rev() {
            numbers.insert(0, rest % extent.max(&1));
            rest /= extent.max(&1);
        }
        let of_points = self.selection.axes_of_points().map(|(axis, _)| axis);
        let axes = self.selection.axes().iter().zip(self.selection.outputs()).enumerate();
        let chunk = axes.map(|(axis, (positions, output))| {
            let output = output.or(of_points.filter(|_| positions.count() > 1));
            let number = output.and_then(|output| numbers.get(output).copied()).unwrap_or(0);
            self.reader.metadata.chunk_grid.locate(axis, positions.position(number))
        });
        chunk.collect()
    }
}

//! Boxes of elements for the placing kernel: the selected part of a chunk, with its strides in the chunk and in the
//! result.

use super::Batches;
use crate::error::{Error, Result};
use crate::kernel::structs::Piece;
use crate::kernel::{walk, width};
use zarrow::ChunkAxis;

impl Batches<'_> {
    /// Returns the boxes of a part of a chunk, without their sources.
    pub(super) fn pieces(&self, axes: &[ChunkAxis], shape: &[u64], template: &Piece) -> Result<Vec<Piece>> {
        let item_size = self.result.item_size();
        let strides = self.result.byte_strides();
        let number = |value: u64| {
            i64::try_from(value).map_err(|_| Error::Unsupported("a chunk is too large".to_owned()))
        };
        let bad = || Error::Unsupported("the axes of a chunk and the result differ".to_owned());
        let (mut extents, mut from, mut to) = (Vec::new(), Vec::new(), Vec::new());
        let (mut source, mut destination) = (0i64, 0i64);
        // Strides of the decoded chunk, from its last axis on.
        let mut stride = item_size as i64;
        let mut source_strides = vec![0; axes.len()];
        for (place, extent) in source_strides.iter_mut().zip(shape).rev() {
            *place = stride;
            stride = stride.checked_mul(number(*extent)?).ok_or_else(bad)?;
        }
        for (axis, source_stride) in axes.iter().zip(source_strides) {
            source += number(axis.start)? * source_stride;
            let Some(output) = axis.output else { continue };
            let stride = *strides.get(output).ok_or_else(bad)?;
            destination += number(axis.place)? * stride;
            extents.push(number(axis.count)?);
            from.push(source_stride * number(axis.step)?);
            to.push(if axis.reversed { -stride } else { stride });
        }
        let width = width(item_size);
        let words = item_size / width;
        if words > 1 {
            extents.push(words as i64);
            from.push(width as i64);
            to.push(width as i64);
        }
        let walks = walk::walks(&extents, [&from, &to]);
        let pieces = walks.into_iter().map(|walk| Piece {
            source_offset: source.wrapping_add(walk.offsets[0]) as u64,
            destination: self.result.address().wrapping_add_signed(destination + walk.offsets[1]),
            count: walk.count,
            shape: walk.shape,
            source_stride: walk.strides[0],
            destination_stride: walk.strides[1],
            rank: walk.rank,
            ..*template
        });
        Ok(zarrow_array::allocation::collected(pieces)?)
    }

    /// Returns the boxes to fill, starting at byte `offset` of each element.
    pub(super) fn fill_pieces(
        &self,
        axes: &[ChunkAxis],
        template: &Piece,
        offset: usize,
    ) -> Result<Vec<Piece>> {
        let strides = self.result.byte_strides();
        let bad = || Error::Unsupported("the axes of a chunk and the result differ".to_owned());
        let number = |value: u64| i64::try_from(value).map_err(|_| bad());
        let (mut extents, mut to, mut destination) = (Vec::new(), Vec::new(), offset as i64);
        for axis in axes {
            let Some(output) = axis.output else { continue };
            let stride = *strides.get(output).ok_or_else(bad)?;
            destination += number(axis.place)? * stride;
            extents.push(number(axis.count)?);
            to.push(if axis.reversed { -stride } else { stride });
        }
        let pieces = walk::walks(&extents, [&to]).into_iter().map(|walk| Piece {
            destination: self.result.address().wrapping_add_signed(destination + walk.offsets[0]),
            count: walk.count,
            shape: walk.shape,
            destination_stride: walk.strides[0],
            rank: walk.rank,
            ..*template
        });
        Ok(zarrow_array::allocation::collected(pieces)?)
    }
}

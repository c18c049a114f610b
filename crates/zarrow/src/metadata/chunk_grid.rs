//! Chunk grids: how an array is divided into chunks, and which chunk contains a coordinate.

use serde_json::{Value, json};

use super::MetadataError;
use super::json::{Extension, extent, extents};
use crate::error::metadata::excerpt;

const KEY: &str = "chunk_grid";

/// Division of an array into chunks. No extent is zero.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkGrid {
    /// Chunks of one shape (Zarr core 3.1, regular grids). The last along an axis may reach beyond the array.
    Regular {
        /// Elements of a chunk along each axis.
        chunk_shape: Vec<u64>,
    },
    /// Chunks with different extents along an axis (zarr-extensions, `rectilinear`).
    Rectilinear {
        /// The edges along each axis.
        axes: Vec<AxisEdges>,
    },
}

/// Chunk extents along one axis of a rectilinear grid, as runs: they are never expanded, since eight bytes of metadata
/// can claim 2⁶³ chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisEdges {
    runs: Vec<Run>,
    /// Number of chunks; `None` for one run without an end.
    count: Option<u64>,
}

/// `extent` repeated, starting with the chunk `first` at the coordinate `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    extent: u64,
    first: u64,
    start: u64,
}

impl ChunkGrid {
    /// Returns the number of axes.
    #[must_use]
    pub fn ndim(&self) -> usize {
        match self {
            ChunkGrid::Regular { chunk_shape } => chunk_shape.len(),
            ChunkGrid::Rectilinear { axes } => axes.len(),
        }
    }

    /// Returns the number of chunks along each axis that contain elements of an array of `array_shape`.
    ///
    /// ```
    /// use zarrow::metadata::ChunkGrid;
    /// let grid = ChunkGrid::Regular { chunk_shape: vec![4, 10] };
    /// assert_eq!(grid.grid_shape(&[9, 0]), [3, 0]);
    /// assert_eq!(grid.locate(0, 8), 2);
    /// assert_eq!(grid.chunk_extent(0, 2), (8, 4));
    /// ```
    #[must_use]
    pub fn grid_shape(&self, array_shape: &[u64]) -> Vec<u64> {
        let count = |(axis, extent): (usize, &u64)| match extent.checked_sub(1) {
            Some(last) => self.locate(axis, last).saturating_add(1),
            None => 0,
        };
        array_shape.iter().enumerate().map(count).collect()
    }

    /// Returns the start of the chunk `index` along `axis`, and its stored extent, which may reach beyond the array.
    ///
    /// # Panics
    /// If the grid has no such axis, or its extent there is zero.
    #[must_use]
    #[inline]
    pub fn chunk_extent(&self, axis: usize, index: u64) -> (u64, u64) {
        match self {
            ChunkGrid::Regular { chunk_shape } => {
                (index.saturating_mul(chunk_shape[axis]), chunk_shape[axis])
            }
            ChunkGrid::Rectilinear { axes } => {
                let run = axes[axis].run(|run| run.first <= index);
                let start = run.start.saturating_add((index - run.first).saturating_mul(run.extent));
                (start, run.extent)
            }
        }
    }

    /// Returns the index along `axis` of the chunk that contains `coordinate`.
    ///
    /// # Panics
    /// If the grid has no such axis, or its extent there is zero.
    #[must_use]
    #[inline]
    pub fn locate(&self, axis: usize, coordinate: u64) -> u64 {
        match self {
            ChunkGrid::Regular { chunk_shape } => coordinate / chunk_shape[axis],
            ChunkGrid::Rectilinear { axes } => {
                let run = axes[axis].run(|run| run.start <= coordinate);
                run.first + (coordinate - run.start) / run.extent
            }
        }
    }

    /// Returns the extent of the largest chunk along each axis.
    #[must_use]
    pub fn largest_chunk(&self) -> Vec<u64> {
        match self {
            ChunkGrid::Regular { chunk_shape } => chunk_shape.clone(),
            ChunkGrid::Rectilinear { axes } => axes.iter().map(AxisEdges::largest).collect(),
        }
    }

    /// Returns whether both grids have the same chunks as far as both reach, and the same largest chunk. Other programs
    /// append edges to a rectilinear grid when the array grows, and may write its runs in another form.
    pub(super) fn has_chunks_of(&self, other: &ChunkGrid) -> bool {
        match (self, other) {
            (ChunkGrid::Rectilinear { axes }, ChunkGrid::Rectilinear { axes: others }) => {
                axes.len() == others.len()
                    && axes.iter().zip(others).all(|(axis, other)| axis.has_chunks_of(other))
                    && self.largest_chunk() == other.largest_chunk()
            }
            _ => self == other,
        }
    }

    /// Checks that there is a chunk for every element of an array of `shape`, which has as many axes as the grid.
    pub(super) fn check_covers(&self, shape: &[u64]) -> Result<(), MetadataError> {
        let ChunkGrid::Rectilinear { axes } = self else { return Ok(()) };
        if axes.iter().zip(shape).all(|(axis, extent)| axis.end() >= *extent) {
            return Ok(());
        }
        Err(MetadataError::unsupported(format!(
            "shape {shape:?}, which exceeds the array's rectilinear chunk grid (create an array with chunks for this \
             shape, and copy the elements),"
        )))
    }

    /// Returns the `chunk_grid` of a version 3 document.
    pub(super) fn document(&self) -> Value {
        match self {
            ChunkGrid::Regular { chunk_shape } => {
                json!({ "name": "regular", "configuration": { "chunk_shape": chunk_shape } })
            }
            ChunkGrid::Rectilinear { axes } => {
                let shapes: Vec<Value> = axes.iter().map(AxisEdges::document).collect();
                json!({ "name": "rectilinear", "configuration": { "kind": "inline", "chunk_shapes": shapes } })
            }
        }
    }

    pub(crate) fn parse(value: &Value, shape: &[u64]) -> Result<ChunkGrid, MetadataError> {
        let extension = Extension::parse(KEY, value)?;
        match extension.name {
            "regular" => Self::regular(KEY, extension.require("chunk_shape")?, shape),
            "rectilinear" if extension.require("kind")? == "inline" => {
                let edges = extension.require("chunk_shapes")?;
                let axes =
                    edges.as_array().ok_or_else(|| MetadataError::expected(KEY, "a list per axis", edges))?;
                check_ndim(axes.len(), shape)?;
                let axes = axes.iter().zip(shape).map(|(edges, extent)| AxisEdges::parse(edges, *extent));
                Ok(ChunkGrid::Rectilinear { axes: axes.collect::<Result<_, _>>()? })
            }
            _ => Err(MetadataError::unsupported(format!("chunk grid {}", excerpt(value)))),
        }
    }

    /// Creates a regular grid from the chunk shape in `value`, for an array of `shape`.
    pub(super) fn regular(
        key: &'static str,
        value: &Value,
        shape: &[u64],
    ) -> Result<ChunkGrid, MetadataError> {
        let chunk_shape = extents(key, value)?;
        check_ndim(chunk_shape.len(), shape)?;
        if chunk_shape.contains(&0) {
            return Err(MetadataError::expected(key, "chunk extents above 0", value));
        }
        Ok(ChunkGrid::Regular { chunk_shape })
    }
}

fn check_ndim(ndim: usize, shape: &[u64]) -> Result<(), MetadataError> {
    if ndim == shape.len() {
        return Ok(());
    }
    let reason = format!("the chunks have {ndim} axes, and the array has {}", shape.len());
    Err(MetadataError::invalid(KEY, reason))
}

impl AxisEdges {
    /// Reads the edges of one axis: an extent for all, or a list of extents and `[extent, count]` pairs, which must
    /// cover `array_extent`.
    fn parse(value: &Value, array_extent: u64) -> Result<AxisEdges, MetadataError> {
        let invalid = || MetadataError::expected(KEY, "extents above 0, or [extent, count] pairs", value);
        let positive = |value: &Value| extent(value).filter(|extent| *extent > 0).ok_or_else(invalid);
        if value.is_number() {
            let runs = vec![Run { extent: positive(value)?, first: 0, start: 0 }];
            return Ok(AxisEdges { runs, count: None });
        }
        let mut runs = Vec::new();
        let (mut first, mut start) = (0u64, 0u64);
        for item in value.as_array().ok_or_else(invalid)? {
            let (extent, count) = match item.as_array().map(Vec::as_slice) {
                None => (positive(item)?, 1),
                Some([extent, count]) => (positive(extent)?, positive(count)?),
                Some(_) => return Err(invalid()),
            };
            runs.push(Run { extent, first, start });
            let end = extent.checked_mul(count).and_then(|length| start.checked_add(length));
            start = end.filter(|end| i64::try_from(*end).is_ok()).ok_or_else(invalid)?;
            first = first.checked_add(count).ok_or_else(invalid)?;
        }
        if runs.is_empty() {
            return Err(invalid());
        }
        if start < array_extent {
            let reason = format!("the chunks cover {start} of {array_extent} elements along an axis");
            return Err(MetadataError::invalid(KEY, reason));
        }
        Ok(AxisEdges { runs, count: Some(first) })
    }

    /// Returns the JSON of these edges, readable by [`parse`](AxisEdges::parse).
    fn document(&self) -> Value {
        let Some(count) = self.count else { return json!(self.largest()) };
        let ends = self.runs.iter().skip(1).map(|run| run.first).chain([count]);
        let pairs = self.runs.iter().zip(ends);
        pairs.map(|(run, end)| json!([run.extent, end.saturating_sub(run.first)])).collect()
    }

    /// Returns the last run that satisfies `starts_before`. The first run starts at 0, so that there always is one.
    fn run(&self, starts_before: impl Fn(&Run) -> bool) -> Run {
        let after = self.runs.partition_point(starts_before);
        self.runs[after.saturating_sub(1)]
    }

    /// Returns the coordinate after the last chunk.
    fn end(&self) -> u64 {
        match (self.count, self.runs.last()) {
            (Some(count), Some(last)) => {
                let length = count.saturating_sub(last.first).saturating_mul(last.extent);
                last.start.saturating_add(length)
            }
            _ => u64::MAX,
        }
    }

    /// Whether the chunks are the same up to the end of the shorter axis.
    fn has_chunks_of(&self, other: &AxisEdges) -> bool {
        let end = self.end().min(other.end());
        let starts = self.runs.iter().chain(&other.runs).map(|run| run.start).filter(|start| *start < end);
        let mut starts = starts;
        starts.all(|start| {
            let [own, theirs] = [self, other].map(|axis| axis.run(|run| run.start <= start));
            let place = |run: Run| (run.extent, run.first + (start - run.start) / run.extent);
            place(own) == place(theirs)
                && (start - own.start) % own.extent == (start - theirs.start) % own.extent
        })
    }

    fn largest(&self) -> u64 {
        self.runs.iter().map(|run| run.extent).max().unwrap_or(1)
    }
}

//! Why a tensor cannot be taken.

use std::fmt;

use crate::{DLDataType, DLDevice, DLPackVersion, DtypeError, MAX_NDIM};

/// Reason why [`from_dlpack`](crate::from_dlpack) rejected a tensor, after calling its deleter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The pointer to the managed tensor is NULL.
    NullTensor,
    /// The struct has the layout of another major version; its tensor was not read.
    Version {
        /// The version found.
        found: DLPackVersion,
    },
    /// The tensor is on another device than expected.
    Device {
        /// The expected device.
        expected: DLDevice,
        /// The device found.
        found: DLDevice,
    },
    /// The elements are of another type than expected.
    DtypeMismatch {
        /// The expected type.
        expected: DLDataType,
        /// The type found.
        found: DLDataType,
    },
    /// The element type is unknown.
    Dtype(DtypeError),
    /// The number of axes is negative or above [`MAX_NDIM`].
    Ndim {
        /// The number of axes found.
        ndim: i32,
    },
    /// `ndim` is positive, but the pointer to the extents is NULL.
    NullShape,
    /// An extent is negative.
    NegativeExtent {
        /// The axis, counted from 0.
        axis: usize,
        /// The extent of the axis.
        extent: i64,
    },
    /// The tensor has elements, but its data pointer is NULL.
    NullData,
    /// The elements exceed the address space.
    Overflow,
    /// Packed sub-byte elements are not C-contiguous: some would start within a byte.
    StridedSubByte,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NullTensor => write!(formatter, "the DLPack managed tensor is NULL"),
            Self::Version { found } => {
                let latest = DLPackVersion::LATEST;
                write!(formatter, "the DLPack tensor has version {found}, this library reads {latest}")
            }
            Self::Device { expected, found } => {
                write!(formatter, "the DLPack tensor is on {found}, not on {expected}")
            }
            Self::DtypeMismatch { expected, found } => {
                write!(formatter, "the DLPack tensor has elements of type {found}, not {expected}")
            }
            Self::Dtype(error) => error.fmt(formatter),
            Self::Ndim { ndim } => {
                write!(formatter, "the DLPack tensor has {ndim} axes, not between 0 and {MAX_NDIM}")
            }
            Self::NullShape => write!(formatter, "the DLPack tensor has axes, but its shape is NULL"),
            Self::NegativeExtent { axis, extent } => {
                write!(formatter, "axis {axis} of the DLPack tensor has the negative extent {extent}")
            }
            Self::NullData => write!(formatter, "the DLPack tensor has elements, but its data is NULL"),
            Self::Overflow => write!(formatter, "the DLPack tensor reaches beyond the address space"),
            Self::StridedSubByte => {
                write!(formatter, "the DLPack tensor has packed sub-byte elements that are not in C order")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dtype(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DtypeError> for Error {
    fn from(error: DtypeError) -> Self {
        Self::Dtype(error)
    }
}

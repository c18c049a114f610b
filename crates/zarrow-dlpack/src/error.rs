//! Why a tensor cannot be taken.

use std::fmt;

use crate::{DLDataType, DLDevice, DLPackVersion, DtypeError, MAX_NDIM};

/// Why [`from_dlpack`](crate::from_dlpack) refused a tensor, whose deleter it has then called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The pointer to the managed tensor is NULL.
    NullTensor,
    /// The struct has the layout of another major version, so that none of it was read.
    Version {
        /// The version found.
        found: DLPackVersion,
    },
    /// The tensor lies on another device than was asked for.
    Device {
        /// The device asked for.
        expected: DLDevice,
        /// The device found.
        found: DLDevice,
    },
    /// The elements are of another type than was asked for.
    DtypeMismatch {
        /// The type asked for.
        expected: DLDataType,
        /// The type found.
        found: DLDataType,
    },
    /// The elements are of no known type.
    Dtype(DtypeError),
    /// The number of axes is negative or above [`MAX_NDIM`].
    Ndim {
        /// The number of axes found.
        ndim: i32,
    },
    /// There are axes, but the pointer to their extents is NULL.
    NullShape,
    /// An extent is negative.
    NegativeExtent {
        /// The axis, from 0.
        axis: usize,
        /// Its extent.
        extent: i64,
    },
    /// There are elements, but the pointer to them is NULL.
    NullData,
    /// The elements reach further than memory can.
    Overflow,
    /// Packed sub-byte elements are not in C order without gaps, so that they begin within bytes.
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

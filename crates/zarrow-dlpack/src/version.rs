//! The version that a versioned managed tensor carries.

use std::fmt;

/// `DLPackVersion`: a major step changes the layout, a minor step only adds constants.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLPackVersion {
    /// Tensors of another major version must be deleted unread.
    pub major: u32,
    /// Tensors of another minor version are good as long as their constants are known.
    pub minor: u32,
}

impl DLPackVersion {
    /// The major version of the layouts in this crate.
    pub const CURRENT_MAJOR: u32 = 1;
    /// The minor version up to which this crate knows the constants.
    pub const CURRENT_MINOR: u32 = 3;
    /// The version that this crate writes.
    pub const LATEST: Self = Self::new(Self::CURRENT_MAJOR, Self::CURRENT_MINOR);

    /// The version `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Whether a tensor of this version has the layouts of this crate.
    ///
    /// ```
    /// use zarrow_dlpack::DLPackVersion;
    ///
    /// assert!(DLPackVersion::new(1, 9).is_readable());
    /// assert!(!DLPackVersion::new(2, 0).is_readable());
    /// ```
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.major == Self::CURRENT_MAJOR
    }
}

impl fmt::Display for DLPackVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

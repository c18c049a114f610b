//! The version of a versioned managed tensor.

use std::fmt;

/// `DLPackVersion`: a new major version changes the layout, a new minor version only adds constants.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLPackVersion {
    /// A tensor of another major version must be deleted unread.
    pub major: u32,
    /// A tensor of another minor version is usable if its constants are known.
    pub minor: u32,
}

impl DLPackVersion {
    /// Major version of the layouts in this crate.
    pub const CURRENT_MAJOR: u32 = 1;
    /// Minor version of the constants in this crate.
    pub const CURRENT_MINOR: u32 = 3;
    /// Version that this crate writes.
    pub const LATEST: Self = Self::new(Self::CURRENT_MAJOR, Self::CURRENT_MINOR);

    /// Creates the version `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Returns whether a tensor of this version has the layouts of this crate.
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

//! Compression formats of frames that the device decompresses.

/// Compression format of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Zstandard frames (RFC 8878), one each.
    Zstd,
    /// LZ4 blocks.
    Lz4,
    /// DEFLATE streams (RFC 1951), without a header or a checksum.
    Deflate,
    /// Members of gzip (RFC 1952), one each.
    Gzip,
    /// Snappy blocks.
    Snappy,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [Format::Zstd, Format::Lz4, Format::Deflate, Format::Gzip, Format::Snappy];

    /// Returns nvCOMP's maximum decoded size of a frame. Zarr's LZ4 stores the size in 31 bits.
    #[must_use]
    pub fn largest_frame(self) -> u64 {
        match self {
            Format::Zstd | Format::Lz4 | Format::Snappy => (1 << 31) - 1,
            Format::Deflate | Format::Gzip => (1 << 32) - 1,
        }
    }

    /// Returns the name for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Zstd => "zstd",
            Format::Lz4 => "lz4",
            Format::Deflate => "deflate",
            Format::Gzip => "gzip",
            Format::Snappy => "snappy",
        }
    }
}

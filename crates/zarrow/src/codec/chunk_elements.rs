//! The elements of a chunk of any layout, as they are to be encoded.

/// The elements of a chunk in the C order of its stored axes.
pub enum ChunkElements<'a> {
    /// Elements of a fixed size, in the machine's byte order.
    Fixed(Vec<u8>),
    /// Strings or bytes.
    Variable(Vec<&'a [u8]>),
    /// Elements of which some are missing.
    Optional {
        /// 1 where one is missing.
        missing: Vec<u8>,
        /// The elements, with room for the missing ones.
        data: Box<ChunkElements<'a>>,
    },
}

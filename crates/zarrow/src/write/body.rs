//! The bytes of an encoded chunk, on their way to the store or into a shard.

use crate::codec::borrowed::Borrowed;
use crate::error::Result;
use std::borrow::Cow;

/// The bytes of a chunk, without the trailing checksums, in a worker's or the caller's memory.
#[derive(Debug)]
pub enum Body<'w, 'v> {
    /// Bytes that no other code writes to.
    Own(Cow<'w, [u8]>),
    /// The caller's memory, which other code may write to.
    Borrowed(Borrowed<'v>),
}

impl Body<'_, '_> {
    /// Returns the bytes for a store, which reads each byte once and inspects none
    /// ([`StoreWriter::set`](crate::store::StoreWriter::set)).
    pub fn to_be_written(&self) -> &[u8] {
        match self {
            Body::Own(bytes) => bytes,
            // SAFETY: a store hands the slice to the kernel or copies it: its contract.
            Body::Borrowed(borrowed) => unsafe { borrowed.to_be_written() },
        }
    }

    /// Size in bytes.
    pub fn nbytes(&self) -> usize {
        match self {
            Body::Own(bytes) => bytes.len(),
            Body::Borrowed(borrowed) => borrowed.nbytes(),
        }
    }

    /// Appends the bytes to `piece`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn append_to(&self, piece: &mut Vec<u8>) -> Result<()> {
        let nbytes = self.nbytes();
        piece.try_reserve(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
        match self {
            Body::Own(bytes) => piece.extend_from_slice(bytes),
            Body::Borrowed(borrowed) => {
                let copied = borrowed.copy_to(0, &mut piece.spare_capacity_mut()[..nbytes]).len();
                // SAFETY: `copied` bytes behind the last were written, inside the reserved memory.
                unsafe { piece.set_len(piece.len() + copied) };
            }
        }
        Ok(())
    }
}

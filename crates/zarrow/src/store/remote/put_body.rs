//! The bytes of a put, owned or borrowed.
//!
//! 1. A writer that keeps its values until a put has ended can lend their memory, so that the value is never copied as a
//!    whole.
//! 2. Borrowed memory may change at any time. A store copies each piece once, and sends and examines only the copy.
//! 3. When the put is answered or cancelled, the writer takes its memory back at once. The store cannot copy any more
//!    then, and must not store a body that it has only in part.

use crate::error::Result;
use std::fmt;
use std::sync::Arc;

/// Memory that a writer lends to a put.
pub trait BorrowedBytes: Send + Sync + fmt::Debug {
    /// Size in bytes.
    fn nbytes(&self) -> usize;

    /// Appends a copy of up to `nbytes` bytes from offset `start` to `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the writer has taken the memory back; out of memory.
    fn append_to(&self, start: usize, nbytes: usize, bytes: &mut Vec<u8>) -> Result<()>;
}

/// The bytes of a put.
#[derive(Debug)]
pub enum PutBody {
    /// Consecutive parts.
    Owned(Vec<Vec<u8>>),
    /// Memory of the writer.
    Borrowed(Arc<dyn BorrowedBytes>),
}

impl PutBody {
    /// Returns the bytes as owned parts; copies borrowed ones.
    ///
    /// # Errors
    /// As [`BorrowedBytes::append_to`].
    pub fn into_parts(self) -> Result<Vec<Vec<u8>>> {
        match self {
            PutBody::Owned(parts) => Ok(parts),
            PutBody::Borrowed(borrowed) => {
                let mut bytes = Vec::new();
                borrowed.append_to(0, borrowed.nbytes(), &mut bytes)?;
                Ok(vec![bytes])
            }
        }
    }
}

impl From<Vec<u8>> for PutBody {
    fn from(bytes: Vec<u8>) -> PutBody {
        PutBody::Owned(vec![bytes])
    }
}

impl From<Vec<Vec<u8>>> for PutBody {
    fn from(parts: Vec<Vec<u8>>) -> PutBody {
        PutBody::Owned(parts)
    }
}

//! The caller's memory, borrowed by a put.
//!
//! 1. The driver holds the lease of each put, and drops it when the put is answered or cancelled, before the caller has
//!    its memory back.
//! 2. A store copies from the memory under the lock that the end of the lease takes. So nothing is read later, whatever
//!    the store does with an abandoned request.

use crate::codec::borrowed::Borrowed;
use crate::error::{ErrorKind, Result};
use crate::store::remote::BorrowedBytes;
use std::marker::PhantomData;
use std::sync::Arc;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Ends the use of borrowed memory when dropped.
#[derive(Debug)]
pub struct Lease<'a>(Arc<Memory>, PhantomData<&'a [u8]>);

#[derive(Debug)]
struct Memory {
    nbytes: usize,
    /// `None` after the end of the lease.
    borrowed: Mutex<Option<Borrowed<'static>>>,
}

impl<'a> Lease<'a> {
    /// Lends memory to a put.
    ///
    /// # Safety
    /// The lease is dropped, and not forgotten, before `'a` ends.
    pub unsafe fn new(borrowed: Borrowed<'a>) -> Lease<'a> {
        let nbytes = borrowed.nbytes();
        // SAFETY: the memory is readable until the lease is dropped, by the caller's contract, and not read later.
        let borrowed = Mutex::new(Some(unsafe { Borrowed::new(borrowed.pointer(), nbytes) }));
        Lease(Arc::new(Memory { nbytes, borrowed }), PhantomData)
    }

    /// Returns the bytes for a store.
    pub fn bytes(&self) -> Arc<dyn BorrowedBytes> {
        Arc::clone(&self.0) as _
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        *self.0.borrowed.lock() = None;
    }
}

impl BorrowedBytes for Memory {
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn append_to(&self, start: usize, nbytes: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let nbytes = nbytes.min(self.nbytes.saturating_sub(start));
        bytes.make_room(nbytes)?;
        let borrowed = self.borrowed.lock();
        let borrowed = borrowed.as_ref().ok_or(ErrorKind::Interrupted)?;
        let copied = borrowed.copy_to(start, &mut bytes.spare_capacity_mut()[..nbytes]).len();
        // SAFETY: `copied` bytes behind the last were written, inside the reserved memory.
        unsafe { bytes.set_len(bytes.len() + copied) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_copied_after_the_end_of_a_lease() {
        let values = *b"abcdef";
        // SAFETY: the lease is dropped below.
        let lease = unsafe { Lease::new(Borrowed::from(&values[..])) };
        let (borrowed, mut copy) = (lease.bytes(), b"-".to_vec());
        borrowed.append_to(2, 3, &mut copy).unwrap();
        borrowed.append_to(5, 9, &mut copy).unwrap();
        borrowed.append_to(9, 1, &mut copy).unwrap();
        assert_eq!((&copy[..], borrowed.nbytes()), (&b"-cdef"[..], 6));
        drop(lease);
        let error = borrowed.append_to(0, 1, &mut copy).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Interrupted));
        assert_eq!(copy, b"-cdef");
    }
}

//! The caller's memory, lent to a put.
//!
//! 1. The driver holds the lease of each put, and drops it when the put is answered or cancelled, before the caller has
//!    its memory back.
//! 2. A store copies from the memory under the lock that the end of the lease takes. So nothing is read later, whatever
//!    the store does with an abandoned request.

use crate::codec::lent::Lent;
use crate::error::{ErrorKind, Result};
use crate::store::remote::LentBytes;
use std::marker::PhantomData;
use std::sync::Arc;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Ends the use of lent memory when dropped.
#[derive(Debug)]
pub struct Lease<'a>(Arc<Memory>, PhantomData<&'a [u8]>);

#[derive(Debug)]
struct Memory {
    nbytes: usize,
    /// `None` after the end of the lease.
    lent: Mutex<Option<Lent<'static>>>,
}

impl<'a> Lease<'a> {
    /// Lends memory to a put.
    ///
    /// # Safety
    /// The lease is dropped, and not forgotten, before `'a` ends.
    pub unsafe fn new(lent: Lent<'a>) -> Lease<'a> {
        let nbytes = lent.nbytes();
        // SAFETY: the memory is readable until the lease is dropped, by the caller's contract, and not read later.
        let lent = Mutex::new(Some(unsafe { Lent::new(lent.pointer(), nbytes) }));
        Lease(Arc::new(Memory { nbytes, lent }), PhantomData)
    }

    /// Returns the bytes for a store.
    pub fn bytes(&self) -> Arc<dyn LentBytes> {
        Arc::clone(&self.0) as _
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        *self.0.lent.lock() = None;
    }
}

impl LentBytes for Memory {
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn append_to(&self, start: usize, nbytes: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let nbytes = nbytes.min(self.nbytes.saturating_sub(start));
        bytes.make_room(nbytes)?;
        let lent = self.lent.lock();
        let lent = lent.as_ref().ok_or(ErrorKind::Interrupted)?;
        let copied = lent.copy_to(start, &mut bytes.spare_capacity_mut()[..nbytes]).len();
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
        let lease = unsafe { Lease::new(Lent::from(&values[..])) };
        let (lent, mut copy) = (lease.bytes(), b"-".to_vec());
        lent.append_to(2, 3, &mut copy).unwrap();
        lent.append_to(5, 9, &mut copy).unwrap();
        lent.append_to(9, 1, &mut copy).unwrap();
        assert_eq!((&copy[..], lent.nbytes()), (&b"-cdef"[..], 6));
        drop(lease);
        let error = lent.append_to(0, 1, &mut copy).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Interrupted));
        assert_eq!(copy, b"-cdef");
    }
}

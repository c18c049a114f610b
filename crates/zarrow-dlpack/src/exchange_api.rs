//! A library's table of C functions, in the version that we can read.

use crate::{DLPackExchangeAPI, DLPackExchangeAPIHeader};

/// How many tables are looked at: a chain that loops has no end.
const MAX_TABLES: usize = 16;

impl DLPackExchangeAPI {
    /// The first table, from `header` on to those of older versions, whose layout is the one of this crate.
    ///
    /// # Safety
    ///
    /// `header` must be NULL or point to a table that stays as it is while the process lives, and so must each
    /// that it names as the one of an older version. Each has the layout that its version says.
    #[must_use]
    pub unsafe fn readable(header: *const DLPackExchangeAPIHeader) -> Option<&'static Self> {
        let mut header = header;
        for _ in 0..MAX_TABLES {
            // SAFETY: by this function's contract; every version has a header of this layout.
            let found = unsafe { header.as_ref() }?;
            if found.version.is_readable() {
                // SAFETY: by this function's contract a table of this version has our layout.
                return Some(unsafe { &*header.cast::<Self>() });
            }
            header = found.prev_api;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DLPackVersion;
    use std::ptr::null;

    fn table(major: u32, prev_api: *const DLPackExchangeAPIHeader) -> DLPackExchangeAPI {
        DLPackExchangeAPI {
            header: DLPackExchangeAPIHeader { version: DLPackVersion::new(major, 3), prev_api },
            managed_tensor_allocator: None,
            managed_tensor_from_py_object_no_sync: None,
            managed_tensor_to_py_object_no_sync: None,
            dltensor_from_py_object_no_sync: None,
            current_work_stream: None,
        }
    }

    fn readable(header: *const DLPackExchangeAPIHeader) -> Option<*const DLPackExchangeAPI> {
        // SAFETY: the tables of these tests outlive the call, and what it returns is not read.
        unsafe { DLPackExchangeAPI::readable(header) }.map(std::ptr::from_ref)
    }

    /// The header of a whole table: a reference to the header alone would not reach what is behind it.
    fn header(table: &DLPackExchangeAPI) -> *const DLPackExchangeAPIHeader {
        std::ptr::from_ref(table).cast()
    }

    #[test]
    fn the_newest_readable_table_is_taken() {
        let old = table(1, null());
        let new = table(2, header(&old));
        assert_eq!(readable(header(&old)), Some(&raw const old));
        assert_eq!(readable(header(&new)), Some(&raw const old));
        assert_eq!(readable(header(&table(2, null()))), None);
        assert_eq!(readable(null()), None);
    }

    #[test]
    fn a_chain_without_an_end_is_left() {
        let mut first = DLPackExchangeAPIHeader { version: DLPackVersion::new(2, 0), prev_api: null() };
        let pointer = &raw mut first;
        // SAFETY: the pointer is that of a local variable, which nothing else uses.
        unsafe { (*pointer).prev_api = pointer };
        assert_eq!(readable(pointer), None);
    }
}

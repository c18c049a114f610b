//! Lookup of an exchange table in a supported version.

use crate::{DLPackExchangeAPI, DLPackExchangeAPIHeader};

/// Maximum number of tables to visit: a chain that loops has no end.
const MAX_TABLES: usize = 16;

impl DLPackExchangeAPI {
    /// Returns the first table with this crate's layout: that of `header`, or an older version linked from it.
    ///
    /// # Safety
    ///
    /// `header` must be NULL or point to a table that stays unchanged while the process lives, and the same holds
    /// for every older table linked from it. Each table must have the layout of its version.
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
        // SAFETY: the tables of these tests outlive the call, and the returned pointer is not dereferenced.
        unsafe { DLPackExchangeAPI::readable(header) }.map(std::ptr::from_ref)
    }

    /// Casts a whole table: a reference to the header alone could not access the bytes behind the header.
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
    fn endless_chains_are_abandoned() {
        let mut first = DLPackExchangeAPIHeader { version: DLPackVersion::new(2, 0), prev_api: null() };
        let pointer = &raw mut first;
        // SAFETY: the pointer is to a local variable without any other access.
        unsafe { (*pointer).prev_api = pointer };
        assert_eq!(readable(pointer), None);
    }
}

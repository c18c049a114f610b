//! The structs of the Arrow C data interface, built from nodes and freed exactly once.
//!
//! 1. A [`SchemaNode`] or [`ArrayNode`] says what the struct shall say, children included.
//! 2. `into_c` puts everything the struct points to in one private box, and hands the struct out.
//! 3. Whoever holds the struct calls `release`, which frees the box and sets `release` to null; our own
//!    `Drop` does so where nobody else did. A consumer that moves the struct out sets `release` to null.
//!
//! Source: Arrow C data interface, "Structure definitions" and "Memory management".

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// The flag of a field that may be null.
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`: the type of an array.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`: the memory of an array.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<ArrowSchema>() == 72 && size_of::<ArrowArray>() == 80);

// SAFETY: both structs own what they point to, and it is freed by a function that any thread may call.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above; what the array's buffers point to is immutable to both sides.
unsafe impl Send for ArrowArray {}

/// What an [`ArrowSchema`] shall say.
#[derive(Debug, Default)]
pub struct SchemaNode {
    /// The format string.
    pub format: String,
    /// The field's name.
    pub name: String,
    /// Keys and values of the field's metadata.
    pub metadata: Vec<(&'static str, String)>,
    /// The children's types.
    pub children: Vec<SchemaNode>,
}

/// What an [`ArrowArray`] shall say.
#[derive(Debug)]
pub struct ArrayNode {
    /// The number of elements.
    pub length: i64,
    /// How many of them are null.
    pub null_count: i64,
    /// The buffers' addresses, null where there is no validity bitmap.
    pub buffers: Vec<*const c_void>,
    /// What keeps the buffers alive.
    pub owners: Vec<Owner>,
    /// The children's memory.
    pub children: Vec<ArrayNode>,
}

/// Something whose life keeps buffers alive.
#[derive(Clone)]
pub struct Owner(#[allow(dead_code, reason = "held for its drop")] Arc<dyn Send + Sync>);

impl Owner {
    /// Keeps `owner` alive.
    #[must_use]
    pub fn new(owner: Arc<dyn Send + Sync>) -> Owner {
        Owner(owner)
    }
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Owner")
    }
}

struct SchemaPrivate {
    _format: CString,
    _name: CString,
    _metadata: Vec<u8>,
    children: Vec<*mut ArrowSchema>,
}

struct ArrayPrivate {
    buffers: Vec<*const c_void>,
    _owners: Vec<Owner>,
    children: Vec<*mut ArrowArray>,
}

/// A string for C; what follows a NUL, which no caller sends, would be lost.
fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// The metadata's binary form: counts and lengths as native `i32`.
fn encode_metadata(entries: &[(&'static str, String)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let push_length = |bytes: &mut Vec<u8>, length: usize| {
        bytes.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_ne_bytes());
    };
    push_length(&mut bytes, entries.len());
    for (key, value) in entries {
        push_length(&mut bytes, key.len());
        bytes.extend_from_slice(key.as_bytes());
        push_length(&mut bytes, value.len());
        bytes.extend_from_slice(value.as_bytes());
    }
    bytes
}

impl SchemaNode {
    /// The struct that says so.
    #[must_use]
    pub fn into_c(self) -> ArrowSchema {
        let (format, name) = (c_string(&self.format), c_string(&self.name));
        let metadata = if self.metadata.is_empty() { Vec::new() } else { encode_metadata(&self.metadata) };
        let children =
            self.children.into_iter().map(|child| Box::into_raw(Box::new(child.into_c()))).collect();
        let mut private =
            Box::new(SchemaPrivate { _format: format, _name: name, _metadata: metadata, children });
        ArrowSchema {
            format: private._format.as_ptr(),
            name: private._name.as_ptr(),
            metadata: if private._metadata.is_empty() {
                ptr::null()
            } else {
                private._metadata.as_ptr().cast()
            },
            flags: NULLABLE,
            n_children: private.children.len() as i64,
            children: private.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(private).cast(),
        }
    }
}

impl ArrayNode {
    /// The struct that says so.
    #[must_use]
    pub fn into_c(self) -> ArrowArray {
        let children =
            self.children.into_iter().map(|child| Box::into_raw(Box::new(child.into_c()))).collect();
        let mut private = Box::new(ArrayPrivate { buffers: self.buffers, _owners: self.owners, children });
        ArrowArray {
            length: self.length,
            null_count: self.null_count,
            offset: 0,
            n_buffers: private.buffers.len() as i64,
            n_children: private.children.len() as i64,
            buffers: private.buffers.as_ptr(),
            children: private.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(private).cast(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface calls this once, with a struct that `SchemaNode::into_c` made: its private data is
    // the box made there, whose children are boxes, and nobody else frees either.
    unsafe {
        for child in Box::from_raw((*schema).private_data.cast::<SchemaPrivate>()).children {
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
        (*schema).private_data = ptr::null_mut();
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as for `release_schema`, by `ArrayNode::into_c`.
    unsafe {
        for child in Box::from_raw((*array).private_data.cast::<ArrayPrivate>()).children {
            drop(Box::from_raw(child));
        }
        (*array).release = None;
        (*array).private_data = ptr::null_mut();
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a struct that is not released is released once, here.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a struct that is not released is released once, here.
            unsafe { release(self) }
        }
    }
}

impl ArrowSchema {
    /// The format string; empty for a struct that was released.
    #[must_use]
    pub fn format(&self) -> &CStr {
        // SAFETY: until release the private box holds the string.
        if self.release.is_some() { unsafe { CStr::from_ptr(self.format) } } else { c"" }
    }
}

impl ArrowArray {
    /// The number of elements.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.length
    }

    /// How many elements are null.
    #[must_use]
    pub fn null_count(&self) -> i64 {
        self.null_count
    }

    /// The address of a buffer; `None` past the last one, and for a struct that was released.
    #[must_use]
    pub fn buffer(&self, index: usize) -> Option<*const c_void> {
        // SAFETY: until release the private box holds `n_buffers` addresses.
        (self.release.is_some() && (index as i64) < self.n_buffers)
            .then(|| unsafe { *self.buffers.add(index) })
    }

    /// A child's array; `None` past the last one, and for a struct that was released.
    #[must_use]
    pub fn child(&self, index: usize) -> Option<&ArrowArray> {
        // SAFETY: until release the private box holds `n_children` children.
        (self.release.is_some() && (index as i64) < self.n_children)
            .then(|| unsafe { &**self.children.add(index) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counted(Arc<std::sync::atomic::AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }

    #[test]
    fn owners_are_dropped_once() {
        let drops = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let leaf = |owners| ArrayNode { length: 0, null_count: 0, buffers: vec![], owners, children: vec![] };
        let owner = || Owner::new(Arc::new(Counted(Arc::clone(&drops))));
        let node = ArrayNode { children: vec![leaf(vec![owner()])], ..leaf(vec![owner()]) };
        let mut array = node.into_c();
        // SAFETY: the struct was just made and not released.
        unsafe { array.release.unwrap()(&mut array) };
        assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 2);
        drop(array);
        assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 2);
        drop(leaf(vec![owner()]).into_c());
        assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 3);
    }

    #[test]
    fn metadata_has_its_binary_form() {
        let bytes = encode_metadata(&[("k", "vv".into())]);
        let words = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((words(0), words(4), bytes[8], words(9), &bytes[13..]), (1, 1, b'k', 2, &b"vv"[..]));
    }
}

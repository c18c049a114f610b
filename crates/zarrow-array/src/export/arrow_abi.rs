//! The structs of the Arrow C data interface, built from nodes and freed exactly once.
//!
//! 1. A [`SchemaNode`] or [`ArrayNode`] describes the contents of a struct, including its children.
//! 2. `into_c` moves everything that the struct points to into a private box, and returns the struct.
//! 3. The holder of the struct calls `release`, which frees the box and sets `release` to null. Our own `Drop`
//!    calls it if it has not been called. A consumer that moves the struct out sets `release` to null.
//!
//! The structs are declared here rather than taken from `arrow-data`: its structs are made from its own arrays alone,
//! so that each export would build one first, and every program would compile the arrow crates.
//!
//! Source: Arrow C data interface, "Structure definitions" and "Memory management".

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// Flag of a dictionary with ordered values.
const ORDERED: i64 = 1;

/// Flag of a nullable field.
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`: the type of an array.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut ArrowSchema,
    pub(crate) dictionary: *mut ArrowSchema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(crate) private_data: *mut c_void,
}

/// `struct ArrowArray`: the memory of an array.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *const *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

const _: () = assert!(size_of::<ArrowSchema>() == 72 && size_of::<ArrowArray>() == 80);

// SAFETY: both structs own what they point to, and any thread may call the function that frees it.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above; the memory behind the array's buffers is immutable to both sides.
unsafe impl Send for ArrowArray {}

/// Contents of an [`ArrowSchema`]. Every field is nullable.
#[derive(Debug, Clone, Default)]
pub struct SchemaNode {
    /// Format string.
    pub format: Cow<'static, CStr>,
    /// Name of the field.
    pub name: String,
    /// Keys and values of the field's metadata.
    pub metadata: Vec<(String, String)>,
    /// Types of the children.
    pub children: Vec<SchemaNode>,
    /// Type of the values, if the format is that of dictionary indices.
    pub dictionary: Option<Box<SchemaNode>>,
    /// Whether the dictionary's values are ordered.
    pub ordered: bool,
}

/// Contents of an [`ArrowArray`].
#[derive(Debug, Clone, Default)]
pub struct ArrayNode {
    /// Number of elements.
    pub length: i64,
    /// Number of null elements.
    pub null_count: i64,
    /// Addresses of the buffers; null if there is no validity bitmap.
    pub buffers: Vec<*const c_void>,
    /// Owners that keep the buffers alive.
    pub owners: Vec<Owner>,
    /// Memory of the children.
    pub children: Vec<ArrayNode>,
    /// Values of a dictionary, if the elements are indices.
    pub dictionary: Option<Box<ArrayNode>>,
}

// SAFETY: a node's addresses point into memory that its owners keep and that any thread may read.
unsafe impl Send for ArrayNode {}
// SAFETY: as above; a shared node only gives out copies of the addresses.
unsafe impl Sync for ArrayNode {}

/// A handle that keeps buffers alive.
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
    _format: Cow<'static, CStr>,
    _name: CString,
    _metadata: Vec<u8>,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

struct ArrayPrivate {
    buffers: Vec<*const c_void>,
    _owners: Vec<Owner>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

/// Private data of an array with a single values buffer.
struct ValuesPrivate {
    buffers: [*const c_void; 2],
    _owner: Arc<dyn Send + Sync>,
}

/// Returns the static format string of a number; it needs no allocation.
pub fn letter(format: &str) -> Option<&'static CStr> {
    const LETTERS: [&CStr; 11] = [c"c", c"C", c"s", c"S", c"i", c"I", c"l", c"L", c"e", c"f", c"g"];
    let &[byte] = format.as_bytes() else { return None };
    LETTERS.into_iter().find(|letter| letter.to_bytes()[0] == byte)
}

/// Converts to a C string, truncated at the first NUL.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Encodes the metadata's binary form: counts and lengths as native `i32`.
fn encode_metadata(entries: &[(String, String)]) -> Vec<u8> {
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

fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

impl SchemaNode {
    /// Creates an unnamed field with a constant format.
    #[must_use]
    pub fn plain(format: &'static CStr) -> SchemaNode {
        SchemaNode { format: Cow::Borrowed(format), ..SchemaNode::default() }
    }

    /// Creates an unnamed field with a format that has parameters.
    #[must_use]
    pub fn formatted(format: &str) -> SchemaNode {
        if let Some(format) = letter(format) {
            return SchemaNode::plain(format);
        }
        SchemaNode { format: Cow::Owned(c_string(format)), ..SchemaNode::default() }
    }

    /// Sets the field's name.
    #[must_use]
    pub fn named(self, name: &str) -> SchemaNode {
        SchemaNode { name: name.into(), ..self }
    }

    /// Converts to the C struct.
    #[must_use]
    pub fn into_c(self) -> ArrowSchema {
        let flags = NULLABLE | if self.ordered { ORDERED } else { 0 };
        let is_plain = self.name.is_empty()
            && self.metadata.is_empty()
            && self.children.is_empty()
            && self.dictionary.is_none();
        if let (Cow::Borrowed(format), true) = (&self.format, is_plain) {
            return ArrowSchema { flags, ..ArrowSchema::plain(format) };
        }
        let mut schema = ArrowSchema { flags, ..ArrowSchema::plain(c"") };
        let metadata = if self.metadata.is_empty() { Vec::new() } else { encode_metadata(&self.metadata) };
        let mut private = Box::new(SchemaPrivate {
            _format: self.format,
            _name: c_string(&self.name),
            _metadata: metadata,
            children: self.children.into_iter().map(|child| boxed(child.into_c())).collect(),
            dictionary: self.dictionary.map_or(ptr::null_mut(), |values| boxed(values.into_c())),
        });
        schema.format = private._format.as_ptr();
        schema.name = private._name.as_ptr();
        if !private._metadata.is_empty() {
            schema.metadata = private._metadata.as_ptr().cast();
        }
        schema.n_children = private.children.len() as i64;
        schema.children = private.children.as_mut_ptr();
        schema.dictionary = private.dictionary;
        schema.private_data = Box::into_raw(private).cast();
        schema
    }
}

impl ArrayNode {
    /// Converts to the C struct.
    #[must_use]
    pub fn into_c(self) -> ArrowArray {
        let mut private = Box::new(ArrayPrivate {
            buffers: self.buffers,
            _owners: self.owners,
            children: self.children.into_iter().map(|child| boxed(child.into_c())).collect(),
            dictionary: self.dictionary.map_or(ptr::null_mut(), |values| boxed(values.into_c())),
        });
        ArrowArray {
            length: self.length,
            null_count: self.null_count,
            offset: 0,
            n_buffers: private.buffers.len() as i64,
            n_children: private.children.len() as i64,
            buffers: private.buffers.as_ptr(),
            children: private.children.as_mut_ptr(),
            dictionary: private.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(private).cast(),
        }
    }
}

impl ArrowSchema {
    /// Creates an unnamed field with a constant format, without going through a node.
    #[must_use]
    pub fn plain(format: &'static CStr) -> ArrowSchema {
        ArrowSchema {
            format: format.as_ptr(),
            name: c"".as_ptr(),
            metadata: ptr::null(),
            flags: NULLABLE,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: ptr::null_mut(),
        }
    }
}

impl ArrowArray {
    /// Creates an array without nulls over one values buffer, without going through a node.
    #[must_use]
    pub fn values(length: i64, data: *const c_void, owner: Arc<dyn Send + Sync>) -> ArrowArray {
        let private = Box::into_raw(Box::new(ValuesPrivate { buffers: [ptr::null(), data], _owner: owner }));
        ArrowArray {
            length,
            null_count: 0,
            offset: 0,
            n_buffers: 2,
            n_children: 0,
            // SAFETY: the box was just made.
            buffers: unsafe { (&raw const (*private).buffers).cast() },
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(release_values),
            private_data: private.cast(),
        }
    }
}

unsafe extern "C" fn release_values(array: *mut ArrowArray) {
    // SAFETY: the interface calls this once, with a struct made by `ArrowArray::values`, and only this frees its
    // box.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<ValuesPrivate>()));
        (*array).release = None;
        (*array).private_data = ptr::null_mut();
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface calls this once, with a struct made by `SchemaNode::into_c`: its private data is null
    // or the box made there; its children and dictionary are boxes, and only this frees them.
    unsafe {
        if !(*schema).private_data.is_null() {
            let private = Box::from_raw((*schema).private_data.cast::<SchemaPrivate>());
            for child in private.children.into_iter().chain(non_null(private.dictionary)) {
                drop(Box::from_raw(child));
            }
        }
        (*schema).release = None;
        (*schema).private_data = ptr::null_mut();
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as for `release_schema`, with a struct made by `ArrayNode::into_c`, which always has a box.
    unsafe {
        let private = Box::from_raw((*array).private_data.cast::<ArrayPrivate>());
        for child in private.children.into_iter().chain(non_null(private.dictionary)) {
            drop(Box::from_raw(child));
        }
        (*array).release = None;
        (*array).private_data = ptr::null_mut();
    }
}

fn non_null<T>(pointer: *mut T) -> Option<*mut T> {
    (!pointer.is_null()).then_some(pointer)
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: an unreleased struct is released once, here.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: an unreleased struct is released once, here.
            unsafe { release(self) }
        }
    }
}

impl ArrowSchema {
    /// Returns an empty place for a type: a released struct.
    #[must_use]
    pub fn released() -> ArrowSchema {
        ArrowSchema { release: None, ..ArrowSchema::plain(c"") }
    }

    /// Returns the format string; empty for a released struct, or if it is missing.
    #[must_use]
    pub fn format(&self) -> &CStr {
        if self.release.is_none() || self.format.is_null() {
            return c"";
        }
        // SAFETY: the producer keeps the string until release.
        unsafe { CStr::from_ptr(self.format) }
    }

    /// Returns the field's name; empty if it is missing.
    #[must_use]
    pub fn name(&self) -> &CStr {
        if self.release.is_none() || self.name.is_null() {
            return c"";
        }
        // SAFETY: the producer keeps the string until release.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// Returns a child's type; `None` past the last child, for a NULL child, and for a released struct.
    #[must_use]
    pub fn child(&self, index: usize) -> Option<&ArrowSchema> {
        if self.release.is_none() || (index as i64) >= self.n_children || self.children.is_null() {
            return None;
        }
        // SAFETY: until release the producer keeps `n_children` children, each NULL or a live struct.
        unsafe { (*self.children.add(index)).as_ref() }
    }

    /// Returns the types of the children.
    pub fn children(&self) -> impl Iterator<Item = &ArrowSchema> {
        (0..).map_while(|index| self.child(index))
    }

    /// Returns the value of a key of the field's metadata.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&[u8]> {
        if self.release.is_none() || self.metadata.is_null() {
            return None;
        }
        let start = self.metadata.cast::<u8>();
        let mut offset = 0usize;
        // SAFETY: until release the producer keeps the metadata: a count, then that many keys and values, each a
        // length and its bytes. They are walked here in order and not past the last.
        let length = |offset: usize| unsafe { start.add(offset).cast::<i32>().read_unaligned() };
        let mut text = || {
            let size = usize::try_from(length(offset + 4)).unwrap_or(0);
            offset += 4 + size;
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(start.add(offset + 4 - size), size) }
        };
        (0..length(0)).find_map(|_| {
            let (found, value) = (text(), text());
            (found == key.as_bytes()).then_some(value)
        })
    }
}

impl ArrowArray {
    /// Returns an empty place for an array: a released struct.
    #[must_use]
    pub fn released() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// Returns whether the array was released, or is an empty place.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.length
    }

    /// Returns the number of null elements.
    #[must_use]
    pub fn null_count(&self) -> i64 {
        self.null_count
    }

    /// Returns the address of a buffer; `None` past the last buffer, and for a released struct.
    #[must_use]
    pub fn buffer(&self, index: usize) -> Option<*const c_void> {
        // SAFETY: until release the private box holds `n_buffers` addresses.
        (self.release.is_some() && (index as i64) < self.n_buffers)
            .then(|| unsafe { *self.buffers.add(index) })
    }

    /// Returns a child array; `None` past the last child, and for a released struct.
    #[must_use]
    pub fn child(&self, index: usize) -> Option<&ArrowArray> {
        // SAFETY: until release the private box holds `n_children` children.
        (self.release.is_some() && (index as i64) < self.n_children)
            .then(|| unsafe { &**self.children.add(index) })
    }

    /// Returns the values of a dictionary, if the elements are indices.
    #[must_use]
    pub fn dictionary(&self) -> Option<&ArrowArray> {
        // SAFETY: until release the private box holds the dictionary, if there is one.
        if self.release.is_some() { unsafe { self.dictionary.as_ref() } } else { None }
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
        let leaf = |owners| ArrayNode { owners, ..ArrayNode::default() };
        let owner = || Owner::new(Arc::new(Counted(Arc::clone(&drops))));
        let dictionary = Some(Box::new(leaf(vec![owner()])));
        let node = ArrayNode { children: vec![leaf(vec![owner()])], dictionary, ..leaf(vec![owner()]) };
        let mut array = node.into_c();
        // SAFETY: the struct was just made and is not released.
        unsafe { array.release.unwrap()(&mut array) };
        assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 3);
        drop(array);
        assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 3);
        drop(leaf(vec![owner()]).into_c());
        assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 4);
    }

    #[test]
    fn metadata_has_its_binary_form() {
        let bytes = encode_metadata(&[("k".into(), "vv".into())]);
        let words = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((words(0), words(4), bytes[8], words(9), &bytes[13..]), (1, 1, b'k', 2, &b"vv"[..]));
    }

    #[test]
    fn null_pointers_in_a_schema_are_not_followed() {
        let lists =
            || SchemaNode { children: vec![SchemaNode::plain(c"i")], ..SchemaNode::formatted("+w:2") };
        let mut schema = lists().into_c();
        let (format, children) = (schema.format, schema.children);
        schema.format = ptr::null();
        assert!(schema.format().is_empty());
        schema.format = format;
        schema.children = ptr::null_mut();
        assert!(schema.child(0).is_none() && schema.children().next().is_none());
        let mut nobody = ptr::null_mut();
        schema.children = &mut nobody;
        assert!(schema.child(0).is_none());
        // Release frees the child.
        schema.children = children;
        assert_eq!(schema.child(0).unwrap().format(), c"i");
    }

    #[test]
    fn a_schema_matches_its_node() {
        let metadata = vec![("first".into(), String::new()), ("second".into(), "2".into())];
        let child = SchemaNode { metadata, ..SchemaNode::formatted("w:3").named("child") };
        let dictionary = Some(Box::new(SchemaNode::plain(c"U")));
        let node =
            SchemaNode { children: vec![child], dictionary, ordered: true, ..SchemaNode::plain(c"+s") };
        let mut schema = node.into_c();
        assert_eq!((schema.format(), schema.name(), schema.flags), (c"+s", c"", NULLABLE | ORDERED));
        let names: Vec<&CStr> = schema.children().map(ArrowSchema::name).collect();
        assert_eq!(names, [c"child"]);
        let child = schema.child(0).unwrap();
        assert_eq!((child.format(), child.metadata("first")), (c"w:3", Some(&b""[..])));
        assert_eq!((child.metadata("second"), child.metadata("third")), (Some(&b"2"[..]), None));
        // SAFETY: the struct was just made and is not released.
        unsafe { schema.release.unwrap()(&mut schema) };
        assert_eq!((schema.format(), schema.metadata("first"), schema.child(0).is_none()), (c"", None, true));
        assert_eq!(SchemaNode::plain(c"i").into_c().format(), c"i");
    }
}

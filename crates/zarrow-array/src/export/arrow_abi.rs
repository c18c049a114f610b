//! The structs of the Arrow C data interface, built from nodes and freed exactly once.
//!
//! 1. A [`SchemaNode`] or [`ArrayNode`] says what the struct shall say, children included.
//! 2. `into_c` puts everything the struct points to in one private box, and hands the struct out.
//! 3. Whoever holds the struct calls `release`, which frees the box and sets `release` to null; our own
//!    `Drop` does so where nobody else did. A consumer that moves the struct out sets `release` to null.
//!
//! Source: Arrow C data interface, "Structure definitions" and "Memory management".

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// The flag of a dictionary whose values have an order.
const ORDERED: i64 = 1;

/// The flag of a field that may be null.
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

// SAFETY: both structs own what they point to, and it is freed by a function that any thread may call.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above; what the array's buffers point to is immutable to both sides.
unsafe impl Send for ArrowArray {}

/// What an [`ArrowSchema`] shall say. Every field may be null.
#[derive(Debug, Clone, Default)]
pub struct SchemaNode {
    /// The format string.
    pub format: Cow<'static, CStr>,
    /// The field's name.
    pub name: String,
    /// Keys and values of the field's metadata.
    pub metadata: Vec<(String, String)>,
    /// The children's types.
    pub children: Vec<SchemaNode>,
    /// The type of the values, where the format is that of indices into a dictionary.
    pub dictionary: Option<Box<SchemaNode>>,
    /// Whether those values have an order.
    pub ordered: bool,
}

/// What an [`ArrowArray`] shall say.
#[derive(Debug, Clone, Default)]
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
    /// The values that the elements are indices into.
    pub dictionary: Option<Box<ArrayNode>>,
}

// SAFETY: a node's addresses lie in memory that its owners keep, which any thread may read.
unsafe impl Send for ArrayNode {}
// SAFETY: as above; a shared node gives nothing out but copies of the addresses.
unsafe impl Sync for ArrayNode {}

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

/// Everything that an array of one piece of memory points to.
struct ValuesPrivate {
    buffers: [*const c_void; 2],
    _owner: Arc<dyn Send + Sync>,
}

/// The format of a number, which needs no memory of its own.
pub fn letter(format: &str) -> Option<&'static CStr> {
    const LETTERS: [&CStr; 11] = [c"c", c"C", c"s", c"S", c"i", c"I", c"l", c"L", c"e", c"f", c"g"];
    let &[byte] = format.as_bytes() else { return None };
    LETTERS.into_iter().find(|letter| letter.to_bytes()[0] == byte)
}

/// A string for C; one with a NUL inside ends there.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// The metadata's binary form: counts and lengths as native `i32`.
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
    /// A field without a name, of a type that is a constant.
    #[must_use]
    pub fn plain(format: &'static CStr) -> SchemaNode {
        SchemaNode { format: Cow::Borrowed(format), ..SchemaNode::default() }
    }

    /// A field without a name, of a type that has parameters.
    #[must_use]
    pub fn formatted(format: &str) -> SchemaNode {
        if let Some(format) = letter(format) {
            return SchemaNode::plain(format);
        }
        SchemaNode { format: Cow::Owned(c_string(format)), ..SchemaNode::default() }
    }

    /// The field with a name.
    #[must_use]
    pub fn named(self, name: &str) -> SchemaNode {
        SchemaNode { name: name.into(), ..self }
    }

    /// The struct that says so.
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
    /// The struct that says so.
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
    /// A field without a name, of a type that is a constant, as its node would say it.
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
    /// An array of elements in one piece of memory, none of them null, as its node would say it.
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
    // SAFETY: the interface calls this once, with a struct that `ArrowArray::values` made, whose box nobody else frees.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<ValuesPrivate>()));
        (*array).release = None;
        (*array).private_data = ptr::null_mut();
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface calls this once, with a struct that `SchemaNode::into_c` made: its private data is null
    // or the box made there, whose children and dictionary are boxes, and nobody else frees any of them.
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
    // SAFETY: as for `release_schema`, by `ArrayNode::into_c`, which always has a box.
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
    /// What stands for no type: a struct that was released.
    #[must_use]
    pub fn released() -> ArrowSchema {
        ArrowSchema { release: None, ..ArrowSchema::plain(c"") }
    }

    /// The format string; empty for a struct that was released, or that lacks it.
    #[must_use]
    pub fn format(&self) -> &CStr {
        if self.release.is_none() || self.format.is_null() {
            return c"";
        }
        // SAFETY: until release whoever made the struct holds the string.
        unsafe { CStr::from_ptr(self.format) }
    }

    /// The field's name; empty where it has none.
    #[must_use]
    pub fn name(&self) -> &CStr {
        if self.release.is_none() || self.name.is_null() {
            return c"";
        }
        // SAFETY: until release whoever made the struct holds the string.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// A child's type; `None` past the last one, for one that is not there, and for a struct that was released.
    #[must_use]
    pub fn child(&self, index: usize) -> Option<&ArrowSchema> {
        if self.release.is_none() || (index as i64) >= self.n_children || self.children.is_null() {
            return None;
        }
        // SAFETY: until release whoever made the struct holds `n_children` children, each NULL or a live struct.
        unsafe { (*self.children.add(index)).as_ref() }
    }

    /// The children's types.
    pub fn children(&self) -> impl Iterator<Item = &ArrowSchema> {
        (0..).map_while(|index| self.child(index))
    }

    /// The value of a key of the field's metadata.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&[u8]> {
        if self.release.is_none() || self.metadata.is_null() {
            return None;
        }
        let start = self.metadata.cast::<u8>();
        let mut offset = 0usize;
        // SAFETY: until release whoever made the struct holds the metadata: a count, and as many pairs of keys and
        // values, each a length and its bytes, which are walked here in their order and not past the last.
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
    /// What stands for no array: a struct that was released.
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

    /// Whether this was released, or never was an array.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }

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

    /// The values that the elements are indices into.
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
        // SAFETY: the struct was just made and not released.
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
    fn what_a_schema_lacks_is_not_followed() {
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
        // Releasing it frees the child.
        schema.children = children;
        assert_eq!(schema.child(0).unwrap().format(), c"i");
    }

    #[test]
    fn a_schema_says_what_its_node_said() {
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
        // SAFETY: the struct was just made and not released.
        unsafe { schema.release.unwrap()(&mut schema) };
        assert_eq!((schema.format(), schema.metadata("first"), schema.child(0).is_none()), (c"", None, true));
        assert_eq!(SchemaNode::plain(c"i").into_c().format(), c"i");
    }
}

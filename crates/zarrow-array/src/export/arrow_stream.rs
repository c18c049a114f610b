//! The struct of the Arrow C stream interface, over a [`BatchSource`].
//!
//! 1. A consumer asks for the schema, and then for batches, until it gets a released one.
//! 2. An error is an `errno` number and a text, returned by `get_last_error` and valid until the next call.
//! 3. The consumer may release the stream on any thread; a panic of the source becomes an error.
//!
//! Source: Arrow C stream interface.

use crate::export::arrow_abi::{ArrowArray, ArrowSchema};
use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Source of record batches.
pub trait BatchSource: Send {
    /// Returns the type of every batch.
    ///
    /// # Errors
    /// An error to report to the consumer.
    fn schema(&self) -> Result<ArrowSchema, StreamError>;

    /// Returns the next batch; `None` after the last one.
    ///
    /// # Errors
    /// An error to report to the consumer.
    fn next_batch(&mut self) -> Result<Option<ArrowArray>, StreamError>;
}

/// An error reported to the consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamError {
    /// `errno` number, not 0.
    pub code: c_int,
    /// Error text.
    pub message: String,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(crate) private_data: *mut c_void,
}

const _: () = assert!(size_of::<ArrowArrayStream>() == 40);

// SAFETY: the struct owns its source, which is `Send`, and only one thread at a time calls it.
unsafe impl Send for ArrowArrayStream {}

struct StreamPrivate {
    source: Box<dyn BatchSource>,
    error: Option<CString>,
}

impl StreamPrivate {
    /// Runs one call, and stores its error for `get_last_error`; returns 0 on success.
    fn run(&mut self, call: impl FnOnce(&mut dyn BatchSource) -> Result<(), StreamError>) -> c_int {
        let source = &mut *self.source;
        let result = catch_unwind(AssertUnwindSafe(|| call(source))).unwrap_or_else(|panic| {
            // Dropping the payload might panic again.
            std::mem::forget(panic);
            Err(StreamError { code: libc::EIO, message: "the source of the stream panicked".into() })
        });
        self.error = None;
        let Err(StreamError { code, message }) = result else { return 0 };
        self.error = CString::new(message.replace('\0', " ")).ok();
        code
    }
}

impl ArrowArrayStream {
    /// Creates the stream of a source.
    #[must_use]
    pub fn new(source: Box<dyn BatchSource>) -> ArrowArrayStream {
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release),
            private_data: Box::into_raw(Box::new(StreamPrivate { source, error: None })).cast(),
        }
    }
}

/// # Safety
/// The stream must come from [`ArrowArrayStream::new`], must not be released, and no other call may use it.
unsafe fn private<'a>(stream: *mut ArrowArrayStream) -> &'a mut StreamPrivate {
    // SAFETY: the private data of such a stream is the box made in `new`, and the interface allows one call at a
    // time.
    unsafe { &mut *(*stream).private_data.cast() }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface passes a stream of ours, and a place without a struct to drop.
    unsafe {
        private(stream).run(|source| {
            out.write(source.schema()?);
            Ok(())
        })
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as for `get_schema`.
    unsafe {
        private(stream).run(|source| {
            out.write(source.next_batch()?.unwrap_or_else(ArrowArray::released));
            Ok(())
        })
    }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the interface passes a stream of ours; the text lives until the next call.
    unsafe { private(stream).error.as_ref().map_or(ptr::null(), |text| text.as_ptr()) }
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: the interface calls this once, with a stream of ours, and only this frees its box.
    unsafe {
        let private = Box::from_raw((*stream).private_data.cast::<StreamPrivate>());
        // A source that panics when it is dropped must not unwind into C.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(private))) {
            std::mem::forget(panic);
        }
        (*stream).release = None;
        (*stream).private_data = ptr::null_mut();
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: an unreleased stream is released once, here.
            unsafe { release(self) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::arrow_abi::{ArrayNode, SchemaNode};
    use std::ffi::CStr;

    struct Countdown(i64);

    impl BatchSource for Countdown {
        fn schema(&self) -> Result<ArrowSchema, StreamError> {
            Ok(SchemaNode::plain(c"n").into_c())
        }

        fn next_batch(&mut self) -> Result<Option<ArrowArray>, StreamError> {
            self.0 -= 1;
            match self.0 {
                -1 => Ok(None),
                -2 => Err(StreamError { code: libc::ENOMEM, message: "too\0far".into() }),
                // A zero-sized payload, since payloads are leaked.
                -3 => std::panic::panic_any(()),
                length => Ok(Some(ArrayNode { length, ..ArrayNode::default() }.into_c())),
            }
        }
    }

    #[test]
    fn a_consumer_gets_schema_batches_and_errors() {
        let mut stream = ArrowArrayStream::new(Box::new(Countdown(2)));
        let (mut schema, mut array) = (std::mem::MaybeUninit::uninit(), std::mem::MaybeUninit::uninit());
        let (get_schema, get_next, text) =
            (stream.get_schema.unwrap(), stream.get_next.unwrap(), stream.get_last_error.unwrap());
        // SAFETY: the calls follow the interface's order, and each output is read once, if the return code is 0.
        unsafe {
            assert_eq!(get_schema(&mut stream, schema.as_mut_ptr()), 0);
            assert_eq!(schema.assume_init().format(), c"n");
            for length in [1, 0] {
                assert_eq!(get_next(&mut stream, array.as_mut_ptr()), 0);
                assert_eq!(array.assume_init_read().length(), length);
            }
            assert_eq!(get_next(&mut stream, array.as_mut_ptr()), 0);
            assert!(array.assume_init_read().is_released());
            assert!(text(&mut stream).is_null());
            assert_eq!(get_next(&mut stream, array.as_mut_ptr()), libc::ENOMEM);
            assert_eq!(CStr::from_ptr(text(&mut stream)), c"too far");
            assert_eq!(get_next(&mut stream, array.as_mut_ptr()), libc::EIO);
            assert!(CStr::from_ptr(text(&mut stream)).to_str().unwrap().contains("panicked"));
            stream.release.unwrap()(&mut stream);
        }
        assert!(stream.release.is_none());
    }
}

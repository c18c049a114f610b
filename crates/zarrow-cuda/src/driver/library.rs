//! The driver's library, opened at run time.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

/// An open library. It is never closed: the driver has threads of its own.
#[derive(Debug)]
pub struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Opens `name`, a file name that the loader searches for or a path.
    ///
    /// # Errors
    /// The loader's words.
    pub fn open(name: &str) -> Result<Library, String> {
        let name = CString::new(name).map_err(|_| format!("{name:?} is no name of a library"))?;
        // SAFETY: the name ends with NUL. The constructors of the library run, as with any library that is loaded.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(|handle| Library { handle }).ok_or_else(|| {
            // SAFETY: `dlerror` gives NULL or a text of this thread's, which ends with NUL.
            let text = unsafe { libc::dlerror().cast_const().as_ref().map(|text| CStr::from_ptr(text)) };
            text.map_or_else(|| "cannot be loaded".to_owned(), |text| text.to_string_lossy().into_owned())
        })
    }

    /// The address of a function, `None` where the library has none of that name.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is of an open library, and the name ends with NUL.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

// SAFETY: a handle of the loader's may be used by any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

//! Loading of the driver library at run time.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

/// A loaded library. It is never closed, because the driver has its own threads.
#[derive(Debug)]
pub struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Loads `name`, a path or a file name that the loader searches for.
    pub fn open(name: &str) -> Result<Library, String> {
        let name = CString::new(name).map_err(|_| format!("{name:?} is not a valid library name"))?;
        // SAFETY: the name ends with NUL. The constructors of the library run, as with any loaded library.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(|handle| Library { handle }).ok_or_else(|| {
            // SAFETY: `dlerror` returns NULL or a NUL-terminated text that belongs to this thread.
            let text = unsafe { libc::dlerror().cast_const().as_ref().map(|text| CStr::from_ptr(text)) };
            text.map_or_else(|| "cannot be loaded".to_owned(), |text| text.to_string_lossy().into_owned())
        })
    }

    /// Returns the address of a function; `None` if the library lacks it.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is that of a loaded library, and the name ends with NUL.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

// SAFETY: any thread may use a handle of the loader.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

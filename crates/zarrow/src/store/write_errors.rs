//! New files and folders: their permissions, and the errors of creating and writing them.

use crate::error::{Error, ErrorKind};
use rustix::fs::Mode;
use rustix::io::Errno;

/// Lock files and values are created with default permissions: the process's umask decides.
pub const MODE: Mode = Mode::from_raw_mode(0o666);

/// Returns the error for a value that could not be written.
pub fn write(error: Errno) -> ErrorKind {
    ErrorKind::Write(error.into())
}

/// As [`write`], as an error of the engine.
pub fn write_error(error: Errno) -> Error {
    write(error).into()
}

/// Returns the error for a folder where new files keep disappearing.
pub fn disappears(folder: &str) -> Error {
    let text = format!(
        "the folder {:?}, or a new file in it, was removed or locked in every attempt: if the store \
         was removed, open it again",
        if folder.is_empty() { "." } else { folder }
    );
    ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::NotFound, text)).into()
}

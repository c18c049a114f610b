//! New files and folders: their permissions, and the errors of creating and writing them.

use crate::error::{Error, ErrorKind};
use crate::store::dangling_link::dangling_link;
use rustix::fs::Mode;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Lock files and values are created with default permissions: the process's umask decides.
pub const MODE: Mode = Mode::from_raw_mode(0o666);

/// Returns the error for a value that could not be written.
pub fn write(error: Errno) -> ErrorKind {
    ErrorKind::Write(error.into())
}

/// Returns the error for a call that some file systems refuse. `call` names the system call, and the feature that
/// needs it.
pub fn refused(call: &str) -> impl Fn(Errno) -> ErrorKind {
    move |error| match error {
        Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL => {
            ErrorKind::Unsupported(format!("a file system that refuses {call}"))
        }
        other => write(other),
    }
}

/// As [`write`], as an error of the engine.
pub fn write_error(error: Errno) -> Error {
    write(error).into()
}

/// Returns the error of creating something at or below `path`, if a link in `path` has no target.
pub fn behind_link(root: impl AsFd, path: &str) -> Option<ErrorKind> {
    let text = format!("{}: remove the link, or create its target", dangling_link(root, path)?);
    Some(ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::NotFound, text)))
}

/// Returns the error for a folder below `root` where new files keep disappearing.
pub fn disappears(root: impl AsFd, folder: &str) -> Error {
    let disappears = || {
        let text = format!(
            "the folder {:?}, or a new file in it, was removed or locked in every attempt: if the store \
             was removed, open it again",
            if folder.is_empty() { "." } else { folder }
        );
        ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::NotFound, text))
    };
    behind_link(root, folder).unwrap_or_else(disappears).into()
}

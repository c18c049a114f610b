//! Explains a path that cannot be read or written because a symbolic link leads nowhere.

use crate::store::system_calls::{readlinkat, statat};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Returns a description of the first link in `path` without an existing target; `None` if there is no such link.
pub fn dangling_link(folder: impl AsFd, path: &str) -> Option<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    for part in ends.map(|end| &path[..end]).filter(|part| !part.is_empty()) {
        let named = statat(&folder, part, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(named.st_mode) != FileType::Symlink {
            continue;
        }
        let fault = match statat(&folder, part, AtFlags::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => "which does not exist",
            Err(Errno::LOOP) => "which leads back to it",
            _ => continue,
        };
        let target = readlinkat(&folder, part).ok()?;
        return Some(format!("{part:?} is a symbolic link to {:?}, {fault}", target.to_string_lossy()));
    }
    None
}

//! Faults in place of system calls that change a folder. The tests set them, each for its own thread.

use crate::store::system_calls;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::AsFd;

#[derive(Default)]
struct Faults {
    /// Number of changes before the first fault, and the number of faults.
    due: Option<(usize, usize)>,
    /// Folders that cannot be renamed, by number. An open folder keeps its number from being reused.
    fixed: HashMap<u64, std::fs::File>,
}

thread_local! {
    static FAULTS: RefCell<Faults> = RefCell::default();
}

/// Makes `count` changes of this thread fail, after `before` others. Returns whether `work` reached the first, and what
/// it returned.
pub fn with_faults<T>(before: usize, count: usize, work: impl FnOnce() -> T) -> (bool, T) {
    FAULTS.with_borrow_mut(|faults| faults.due = Some((before, count)));
    let result = work();
    let left = FAULTS.with_borrow_mut(|faults| faults.due.take());
    (left.is_none_or(|(before, left)| before == 0 && left < count), result)
}

/// Makes all folders below `top` impossible to rename in this thread, as in a lower layer of an overlay.
pub fn fix_folders(top: &std::path::Path) {
    use std::os::unix::fs::MetadataExt;
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        let file = std::fs::File::open(&folder).unwrap();
        let number = file.metadata().unwrap().ino();
        FAULTS.with_borrow_mut(|faults| faults.fixed.insert(number, file));
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
    }
}

/// Lets all folders be renamed again.
pub fn free_folders() {
    FAULTS.with_borrow_mut(|faults| faults.fixed.clear());
}

/// Fails if a fault is due.
pub fn fault() -> Result<(), Errno> {
    FAULTS.with_borrow_mut(|faults| match &mut faults.due {
        Some((0, 0)) | None => Ok(()),
        Some((0, left)) => {
            *left -= 1;
            Err(Errno::IO)
        }
        Some((before, _)) => {
            *before -= 1;
            Ok(())
        }
    })
}

/// Fails if `name` in `folder` cannot be renamed.
pub fn fault_of_rename(folder: impl AsFd, name: &CStr) -> Result<(), Errno> {
    let Ok(found) = system_calls::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
    let is_fixed = FAULTS.with_borrow(|faults| faults.fixed.contains_key(&found.st_ino));
    if is_fixed { Err(Errno::XDEV) } else { Ok(()) }
}

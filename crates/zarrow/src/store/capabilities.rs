//! Capabilities of a store's folder and its file system, shared with the stores of its subtrees. They are determined
//! when a write first needs them; readers never do.

use crate::store::flock_call::has_flock;
use crate::store::system_calls::{fstat, fstatfs};
use rustix::fs::Stat;
use rustix::io::Errno;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use zarrow_array::fork::OnceCell;

/// Known capabilities of the file system.
#[derive(Debug, Default)]
pub struct Capabilities {
    origin: OnceCell<Origin>,
    has_flock: OnceCell<bool>,
    is_local: OnceCell<bool>,
}

/// The folder opened by its path.
#[derive(Debug)]
pub struct Origin {
    /// Device number.
    device: u64,
    /// Number that identifies the folder.
    pub number: u64,
}

impl Capabilities {
    /// Returns the folder opened by its path; the first call must pass that folder.
    pub fn origin(&self, folder: BorrowedFd<'_>) -> &Origin {
        self.origin.get_or_make(|| {
            let (device, folder) = fstat(folder).map_or((0, 0), |stat| (stat.st_dev, stat.st_ino));
            let mut hasher = DefaultHasher::new();
            (device, folder).hash(&mut hasher);
            Origin { device, number: hasher.finish() }
        })
    }

    /// Whether the file system supports `flock`. The first call tries it in `folder`, which must be on this file
    /// system.
    pub fn has_flock(&self, folder: &OwnedFd) -> Result<bool, Errno> {
        match self.has_flock.get() {
            Some(known) => Ok(*known),
            None => has_flock(folder).map(|has_flock| *self.has_flock.set(has_flock)),
        }
    }

    /// Whether the file system is local to this machine. The first call checks `folder`, which must be on this file
    /// system.
    pub fn is_local(&self, folder: impl AsFd) -> bool {
        *self.is_local.get_or_make(|| is_local(folder))
    }

    /// Whether a file is on this file system.
    pub fn has(&self, file: &Stat) -> bool {
        self.origin.get().is_some_and(|origin| origin.device == file.st_dev)
    }
}

/// Whether the file system of `folder` is local to this machine, so that its kernel knows every lock and every name on
/// it. For other file systems this is unknown: a server may pass locks on to other machines, or each machine may have
/// separate locks.
///
/// Source: `statfs(2)` and `linux/magic.h`.
pub fn is_local(folder: impl AsFd) -> bool {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, ZFS, F2FS, bcachefs, JFS, ReiserFS, NILFS, exFAT, FAT, NTFS.
    const LOCAL: [u32; 15] = [
        0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x8584_58F6, 0x794C_7630, 0x2FC1_2FC1, 0xF2F5_2010,
        0xCA45_1A4E, 0x3153_464A, 0x5265_4973, 0x3434, 0x2011_BAB0, 0x4D44, 0x7366_746E,
    ];
    fstatfs(folder).is_ok_and(|statistics| LOCAL.contains(&(statistics.f_type as u32)))
}

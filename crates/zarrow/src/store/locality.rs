//! Whether everybody who can reach a file system sees the locks on its files.

use rustix::fs::fstatfs;
use std::os::fd::AsFd;

/// Whether the file system of `folder` is one of this machine alone, whose kernel knows every lock on it. Of others it is not
/// known: a server may pass locks on to other machines, or each machine may have its own.
///
/// Source: `statfs(2)` and `linux/magic.h`.
pub fn is_local(folder: impl AsFd) -> bool {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, overlayfs, ZFS, F2FS, bcachefs, JFS, ReiserFS, NILFS, exFAT, FAT, NTFS.
    const LOCAL: [u32; 15] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0x0102_1994,
        0x8584_58F6,
        0x794C_7630,
        0x2FC1_2FC1,
        0xF2F5_2010,
        0xCA45_1A4E,
        0x3153_464A,
        0x5265_4973,
        0x3434,
        0x2011_BAB0,
        0x4D44,
        0x7366_746E,
    ];
    fstatfs(folder).is_ok_and(|statistics| LOCAL.contains(&(statistics.f_type as u32)))
}

//! System calls on files and folders, repeated while signals interrupt them.
//!
//! Every module makes its system calls here; clippy refuses the same functions of `rustix` elsewhere. Signals interrupt
//! calls on file systems of other processes and machines (FUSE, NFS, SMB), and waits.
//!
//! A call that signals keep interrupting checks from time to time whether its thread is to stop, so that Ctrl-C ends
//! a call that never returns. A short call is repeated without this check: work that cleans up after an interrupt
//! still finishes.

#![expect(clippy::disallowed_methods, reason = "the place that repeats them")]

use super::remote::pass_signal;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Stat, StatFs, Timestamps};
use rustix::io::{Errno, IoSlice};
use rustix::path::Arg;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of attempts: more signals than any timer sends during one call.
pub const MOST_SIGNALS: u32 = 100_000;

/// Time after which an interrupted call checks whether to stop.
const SHORT: Duration = Duration::from_millis(50);

/// Makes a system call, and repeats it if a signal interrupts it.
///
/// # Errors
/// Errors of the call; `INTR` if the thread is to stop.
pub fn repeat<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    match call() {
        Err(Errno::INTR) => repeat_interrupted(call),
        done => done,
    }
}

#[cold]
fn repeat_interrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let first = Instant::now();
    for _ in 1..MOST_SIGNALS {
        match call() {
            Err(Errno::INTR) => {
                if first.elapsed() >= SHORT && pass_signal().is_err() {
                    break;
                }
            }
            done => return done,
        }
    }
    Err(Errno::INTR)
}

pub fn open(path: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    repeat(|| rustix::fs::open(path, flags, mode))
}

/// Opens a folder that is not a link.
pub fn open_folder(folder: impl AsFd, path: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(folder, path, flags, Mode::empty())
}

pub fn openat(folder: impl AsFd, path: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    repeat(|| rustix::fs::openat(&folder, path, flags, mode))
}

pub fn fstat(file: impl AsFd) -> Result<Stat, Errno> {
    repeat(|| rustix::fs::fstat(&file))
}

pub fn fstatfs(file: impl AsFd) -> Result<StatFs, Errno> {
    repeat(|| rustix::fs::fstatfs(&file))
}

pub fn stat(path: impl Arg + Copy) -> Result<Stat, Errno> {
    repeat(|| rustix::fs::stat(path))
}

pub fn statat(folder: impl AsFd, path: impl Arg + Copy, flags: AtFlags) -> Result<Stat, Errno> {
    repeat(|| rustix::fs::statat(&folder, path, flags))
}

pub fn readlinkat(folder: impl AsFd, path: impl Arg + Copy) -> Result<CString, Errno> {
    repeat(|| rustix::fs::readlinkat(&folder, path, Vec::new()))
}

pub fn mkdirat(folder: impl AsFd, path: impl Arg + Copy, mode: Mode) -> Result<(), Errno> {
    repeat(|| rustix::fs::mkdirat(&folder, path, mode))
}

/// Creates the folder `path` and its parents.
pub fn create_dir_all(path: &Path) -> std::io::Result<()> {
    let mut created = Ok(());
    let _ = repeat(|| {
        created = std::fs::create_dir_all(path);
        match &created {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Err(Errno::INTR),
            _ => Ok(()),
        }
    });
    created
}

pub fn symlinkat(target: &str, folder: impl AsFd, path: impl Arg + Copy) -> Result<(), Errno> {
    repeat(|| rustix::fs::symlinkat(target, &folder, path))
}

pub fn unlinkat(folder: impl AsFd, path: impl Arg + Copy, flags: AtFlags) -> Result<(), Errno> {
    repeat(|| rustix::fs::unlinkat(&folder, path, flags))
}

pub fn renameat(
    from: impl AsFd,
    old: impl Arg + Copy,
    to: impl AsFd,
    new: impl Arg + Copy,
) -> Result<(), Errno> {
    repeat(|| rustix::fs::renameat(&from, old, &to, new))
}

pub fn renameat_with(
    from: impl AsFd,
    old: impl Arg + Copy,
    to: impl AsFd,
    new: impl Arg + Copy,
    flags: RenameFlags,
) -> Result<(), Errno> {
    repeat(|| rustix::fs::renameat_with(&from, old, &to, new, flags))
}

pub fn fchmod(file: impl AsFd, mode: Mode) -> Result<(), Errno> {
    repeat(|| rustix::fs::fchmod(&file, mode))
}

pub fn chmodat(folder: impl AsFd, path: impl Arg + Copy, mode: Mode) -> Result<(), Errno> {
    repeat(|| rustix::fs::chmodat(&folder, path, mode, AtFlags::empty()))
}

pub fn futimens(file: impl AsFd, times: &Timestamps) -> Result<(), Errno> {
    repeat(|| rustix::fs::futimens(&file, times))
}

pub fn fsync(file: impl AsFd) -> Result<(), Errno> {
    repeat(|| rustix::fs::fsync(&file))
}

pub fn flock(file: impl AsFd, operation: FlockOperation) -> Result<(), Errno> {
    repeat(|| rustix::fs::flock(&file, operation))
}

/// Returns the number of bytes read.
pub fn pread(file: impl AsFd, memory: &mut [MaybeUninit<u8>], offset: u64) -> Result<usize, Errno> {
    repeat(|| rustix::io::pread(&file, &mut memory[..], offset).map(|(read, _)| read.len()))
}

pub fn pwritev(file: impl AsFd, parts: &[IoSlice<'_>], offset: u64) -> Result<usize, Errno> {
    repeat(|| rustix::io::pwritev(&file, parts, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::remote::interrupted_by;
    use std::rc::Rc;

    #[test]
    fn a_call_that_signals_always_interrupt_ends() {
        assert_eq!(repeat(|| Err::<(), _>(Errno::INTR)), Err(Errno::INTR));
    }

    #[test]
    fn an_interrupted_call_is_repeated_until_its_thread_is_to_stop() {
        let mut calls = 0;
        let done = interrupted_by(Rc::new(|| true), || {
            repeat(|| {
                calls += 1;
                if calls < 1000 { Err(Errno::INTR) } else { Ok(calls) }
            })
        });
        assert_eq!(done, Ok(1000));
        let mut calls = 0;
        let slow = || {
            calls += 1;
            std::thread::sleep(SHORT);
            Err::<(), _>(Errno::INTR)
        };
        assert_eq!(interrupted_by(Rc::new(|| true), || repeat(slow)), Err(Errno::INTR));
        assert!(calls < 5, "{calls}");
    }
}

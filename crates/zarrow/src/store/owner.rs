//! Identifies the process that owns a temporary file, so that another process can tell whether its writer has ended.
//!
//! 1. A process is identified by its machine, its number and its start time, since numbers are reused.
//! 2. A machine is identified by its boot id and its namespaces of process numbers and of time: the process numbers of
//!    one container mean nothing in another, and start times are shifted by the offset of the time namespace.
//! 3. Whether a process of another machine, or from before a restart, has ended is unknown. It never counts as dead.
//! 4. If the kernel hides a part of this identity, the process's state is unknown as well.
//! 5. A zombie has ended, even if its parent never waits for it, unless other threads of its process still run.

use crate::store::system_calls::readlinkat;
use rustix::fs::CWD;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use zarrow_array::fork::{Mutex, generation};

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// 0 if the kernel does not report it.
    machine: u64,
    process: u32,
    /// In the kernel's ticks; 0 if the kernel does not report it.
    start: u64,
}

impl Owner {
    /// Returns this process.
    pub fn current() -> Owner {
        static CURRENT: Mutex<Option<(u64, Owner)>> = Mutex::new(None);
        let (known, generation) = (*CURRENT.lock(), generation());
        match known {
            Some((of, owner)) if of == generation => owner,
            // The first call, or the first one in a forked child.
            _ => {
                let process = std::process::id();
                let start = Stat::from_process(process).map_or(0, |stat| stat.start);
                let owner = Owner { machine: machine(), process, start };
                *CURRENT.lock() = Some((generation, owner));
                owner
            }
        }
    }

    /// Whether another process of the same machine can determine whether this one has ended (step 4).
    pub fn is_identified(self) -> bool {
        self.machine != 0 && self.start != 0
    }

    /// Whether this is a process of this machine (step 2).
    pub fn is_of_this_machine(self) -> bool {
        self.machine == Owner::current().machine
    }

    /// Parses the owner from a text returned by [`unique`].
    pub fn parse(text: &str) -> Option<Owner> {
        let mut numbers = text.split('-').map(|number| u64::from_str_radix(number, 16).ok());
        let (machine, process, start) = (numbers.next()??, numbers.next()??, numbers.next()??);
        (numbers.next()?? > 0 && numbers.next()?.is_some() && numbers.next().is_none()).then_some(())?;
        Some(Owner { machine, process: u32::try_from(process).ok()?, start })
    }

    /// Whether the process has certainly ended (step 3).
    pub fn is_dead(self) -> bool {
        if !self.is_identified() || !self.is_of_this_machine() {
            return false;
        }
        match i32::try_from(self.process).ok().and_then(rustix::process::Pid::from_raw) {
            // A process that this one may not signal is alive.
            Some(pid) if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) => true,
            // Another process may have reused the number.
            Some(_) => Stat::from_process(self.process)
                .is_some_and(|stat| stat.start != self.start || stat.has_ended),
            None => false,
        }
    }
}

/// Returns a text that identifies this process and is unique among all calls and processes.
pub fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    format!("{}-{now:x}-{:x}", Owner::current(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}-{:x}-{:x}", self.machine, self.process, self.start)
    }
}

/// Step 2.
fn machine() -> u64 {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let space = readlinkat(CWD, "/proc/self/ns/pid");
    // Kernels before 5.6 have no time namespaces.
    let time = readlinkat(CWD, "/proc/self/ns/time").ok();
    match (boot, space) {
        (Ok(boot), Ok(space)) => {
            let mut hasher = DefaultHasher::new();
            (boot.trim(), space, time).hash(&mut hasher);
            hasher.finish()
        }
        _ => 0,
    }
}

/// State of a process, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    start: u64,
    /// Step 5.
    has_ended: bool,
}

impl Stat {
    /// Returns the state of a process.
    fn from_process(process: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// Parses a `stat` line. Field 2 may contain spaces and ends with a parenthesis.
    fn parse(line: &str) -> Option<Stat> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let threads: u64 = fields.nth(16)?.parse().ok()?;
        let start = fields.nth(1)?.parse().ok()?;
        Some(Stat { start, has_ended: matches!(state, "Z" | "X") && threads <= 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_processes_are_dead() {
        let own = Owner::current();
        assert!(!own.is_dead() && own.start > 0);
        assert_eq!(Owner::parse(&unique()), Some(own));
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started =
            Owner { process: other.id(), start: Stat::from_process(other.id()).unwrap().start, ..own };
        assert!(!started.is_dead());
        assert!(Owner { start: started.start + 1, ..started }.is_dead());
        other.kill().unwrap();
        // The process is a zombie until `wait`.
        while !Stat::from_process(other.id()).unwrap().has_ended {
            std::thread::yield_now();
        }
        assert!(started.is_dead());
        other.wait().unwrap();
        assert!(started.is_dead());
        assert!(!Owner { machine: own.machine + 1, ..started }.is_dead());
        assert!(!Owner { machine: 0, ..started }.is_dead() && !Owner { start: 0, ..started }.is_dead());
        for text in ["", "1-2-3", "1-2-3-4", "x-2-3-4-5", "1-2-3-4-5-6", "lock-a", "1-2-3-0-5"] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn zombies_without_other_threads_have_ended() {
        for (state, threads, has_ended) in [("Z", 1, true), ("Z", 2, false), ("S", 1, false), ("X", 0, true)]
        {
            let line = format!("7 (a) Z 1) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0");
            assert_eq!(Stat::parse(&line), Some(Stat { start: 4711, has_ended }), "{line}");
        }
        assert_eq!(Stat::parse("7 (a) Z 1 7"), None);
    }
}

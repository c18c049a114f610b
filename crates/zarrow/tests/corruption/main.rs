//! Corrupt chunks of every layout through every decoder give an error or an array, in little memory.
//!
//! 1. A case is a valid chunk: zarrs encodes its array to bytes, and then applies each codec from bytes to bytes
//!    separately, so that every intermediate stage is known.
//! 2. A bit of the chunk is flipped, or the chunk is truncated, or a number in one stage is changed to a critical size,
//!    offset or count, and the later stages are encoded again, so that checksums agree.
//! 3. The array is read whole or in part, and the result compared with the valid chunk's, while the process may take at
//!    most [`SPARE_NBYTES`] of address space beyond its size at the start.
//!
//! `ZARROW_CORRUPTIONS` is the number of flips and of truncations of each case, with a fifth as many changed numbers;
//! `ZARROW_TEST_SEED` draws others. `--nocapture` shows the table.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod case;
mod chains;
mod damage;
mod filters;

use case::Case;
use chains::cases;
use damage::{Damage, Random};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use zarrow::ErrorKind;

const SPARE_NBYTES: u64 = 512 << 20;

/// Counts of the outcomes of one kind of damage.
#[derive(Default)]
struct Count {
    errors: usize,
    out_of_memory: usize,
    exact: usize,
    different: usize,
    panics: usize,
}

/// Returns a number from the environment.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

fn count(case: &Case, damage: Damage, times: usize, seed: u64, longest: &mut Duration) -> Count {
    let stages = case.stages();
    let valid = stages.last().unwrap();
    let expected = [false, true].map(|part| case.read(valid, valid, part).unwrap());
    let mut random = Random(seed << 8 | damage as u64);
    let mut count = Count::default();
    for turn in 0..times {
        let part = turn % 2 == 1;
        let chunk = damage.apply(case, &stages, &mut random);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| case.read(&chunk, valid, part)));
        *longest = (*longest).max(start.elapsed());
        match result {
            Err(_) => count.panics += 1,
            Ok(Ok(image)) if image == expected[usize::from(part)] => count.exact += 1,
            Ok(Ok(_)) => count.different += 1,
            Ok(Err(error)) => match error.kind() {
                ErrorKind::Internal(_) => count.panics += 1,
                ErrorKind::Corrupt(text) if text.contains("panicked") => count.panics += 1,
                kind if kind.code() == "out_of_memory" => count.out_of_memory += 1,
                _ => count.errors += 1,
            },
        }
    }
    count
}

/// Limits the process to `spare` bytes of address space beyond its current size.
fn limit_address_space(spare: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = libc::rlimit { rlim_cur: kibibytes * 1024 + spare, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the function reads one struct, a local.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn corrupt_chunks_are_errors_and_never_panics() {
    let times = setting("ZARROW_CORRUPTIONS", 300) as usize;
    let seed = setting("ZARROW_TEST_SEED", 0);
    zarrow::set_num_threads(2);
    limit_address_space(SPARE_NBYTES);
    let (mut table, mut faults) = (String::new(), String::new());
    let mut longest = Duration::ZERO;
    let mut layout = "";
    for case in cases().into_iter().chain(filters::cases()) {
        if case.layout != layout {
            layout = case.layout;
            write!(table, "\n{layout}: error / of these no memory / exact / different / panic\n").unwrap();
        }
        let name = case.name();
        write!(table, "  {name:<72}").unwrap();
        for damage in Damage::ALL {
            let times = if let Damage::Lie = damage { times.div_ceil(5) } else { times };
            let Count { errors, out_of_memory, exact, different, panics } =
                count(&case, damage, times, seed, &mut longest);
            write!(table, "  {}/{out_of_memory}/{exact}/{different}/{panics}", errors + out_of_memory)
                .unwrap();
            let silent = if let Damage::Lie = damage { 0 } else { different };
            if panics > 0 || (case.is_checked() && silent > 0) {
                writeln!(faults, "{layout}, {name}: {panics} panics, {silent} silent").unwrap();
            }
        }
        table.push_str(if case.is_checked() { "  checked\n" } else { "\n" });
    }
    eprintln!("{table}\nlongest read: {longest:?}");
    assert!(faults.is_empty(), "{faults}");
}

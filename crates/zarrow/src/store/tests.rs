//! Tests of writing to stores: values, leftovers, locks, and concurrent writers.

use super::temporary_name::unique_name;
use super::*;
use crate::error::{ErrorKind, Result};
use crate::store::system_calls::flock;
use rustix::fs::{Dir, FlockOperation};
use std::collections::HashSet;

fn store() -> (tempfile::TempDir, FilesystemStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FilesystemStore::create(folder.path().join("made/here")).unwrap();
    (folder, store)
}

fn names(store: &FilesystemStore, path: &str) -> Vec<String> {
    let folder = Dir::new(store.folder(path).unwrap().unwrap()).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned());
    names.filter(|name| !matches!(name.as_str(), "." | "..")).collect()
}

#[test]
fn values_are_set_and_erased() {
    let (_folder, store) = store();
    for durability in [Durability::None, Durability::File, Durability::Full] {
        store.set("a/b/c", &[b"on", b"", b"e"], durability).unwrap();
        assert_eq!(store.get("a/b/c", 9).unwrap().unwrap(), b"one");
        store.overwrite("a/b/c", Some(&[b"two"]), durability, &|| Ok(())).unwrap();
        assert_eq!(store.get("a/b/c", 9).unwrap().unwrap(), b"two");
        assert_eq!(names(&store, "a/b"), ["c"]);
        assert!(store.erase("a/b/c", durability).unwrap());
        assert!(!store.erase("a/b/c", durability).unwrap());
        store.overwrite("a/b/c", None, durability, &|| Ok(())).unwrap();
        assert_eq!(store.open("a/b/c").unwrap().map(drop), None);
    }
    store.set("a/b/c", &[], Durability::None).unwrap();
    assert_eq!(store.get("a/b/c", 9).unwrap().unwrap(), b"");
}

#[test]
fn many_parts_and_versions() {
    let (_folder, store) = store();
    let bytes: Vec<u8> = (0..5000u32).map(|number| number as u8).collect();
    let parts: Vec<&[u8]> = bytes.chunks(1).collect();
    let mut versions = HashSet::new();
    for _ in 0..50 {
        store.set("value", &parts, Durability::None).unwrap();
        let Version::Of(version) = store.version_of("value").unwrap() else { panic!("it is there") };
        assert!(versions.insert(version));
    }
    assert_eq!(store.get("value", 9999).unwrap().unwrap(), bytes);
}

#[test]
fn a_prefix_is_erased_in_one_step_and_links_are_not_followed() {
    let (folder, store) = store();
    let outside = folder.path().join("outside");
    std::fs::write(&outside, b"kept").unwrap();
    store.set("a/b/c", &[b"1"], Durability::None).unwrap();
    store.set("a/d", &[b"2"], Durability::None).unwrap();
    store.set("e", &[b"3"], Durability::None).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("made/here/a/b/link")).unwrap();
    assert!(store.erase_prefix("a", Durability::Full).unwrap());
    assert!(!store.erase_prefix("a", Durability::None).unwrap());
    assert_eq!(names(&store, ""), ["e"]);
    assert_eq!(std::fs::read(&outside).unwrap(), b"kept");
    assert!(store.erase_prefix("", Durability::None).unwrap());
    assert_eq!(names(&store, ""), [""; 0]);
}

#[test]
fn a_prefix_is_erased_during_writes_below_it() {
    let (_folder, store) = store();
    let going = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (store, going) = (&store, &going);
            scope.spawn(move || {
                while going.load(std::sync::atomic::Ordering::Relaxed) {
                    // Its folder may be erased before the value is set.
                    let _ = store.set(&format!("a/b/{number}"), &[b"1"], Durability::None);
                }
            });
        }
        let erased: Vec<_> = (0..1000).map(|_| store.erase_prefix("a", Durability::None)).collect();
        going.store(false, std::sync::atomic::Ordering::Relaxed);
        assert!(erased.into_iter().all(|erased| erased.is_ok()));
    });
    store.erase_prefix("a", Durability::None).unwrap();
    store.sweep("").unwrap();
    assert_eq!(names(&store, ""), [""; 0]);
}

#[test]
fn leftovers_are_no_keys_and_are_swept_unless_in_use() {
    let (folder, store) = store();
    // The folder needs a name that is new to this process: an earlier test's folder may have had the same number.
    let outer = unique_name().replace('.', "");
    let own = format!("{outer}/inner");
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    // Names of an ended process of this machine, of a process of another machine, and of a process with unknown
    // identity.
    let name = |owner: &str, number: usize| format!(".zarrow-{owner}-1-{number:x}");
    let mut numbers: Vec<String> = unique_name().split('-').skip(1).map(str::to_owned).collect();
    numbers.truncate(3);
    let living = numbers.join("-");
    numbers[1] = format!("{:x}", ended.id());
    let dead = numbers.join("-");
    let machine = u64::from_str_radix(&numbers[0], 16).unwrap() ^ 1;
    let (elsewhere, unknown) = (format!("{machine:x}-{}", numbers[1..].join("-")), "0-7-0");
    let leave = |path: &str| {
        let path = folder.path().join("made/here").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(path).unwrap()
    };
    leave(&format!("{outer}/{}", name(&dead, 1)));
    leave(&format!("{own}/{}", name(&dead, 2)));
    leave(&format!("{own}/.zarrow-lock-c"));
    leave(&format!("{own}/{}/inside/it", name(&dead, 3)));
    let used = leave(&format!("{own}/{}", name(unknown, 4)));
    flock(&used, FlockOperation::LockExclusive).unwrap();
    leave(&format!("{own}/{}", name(unknown, 5)));
    let old = |path: &str| {
        let day = std::time::SystemTime::now() - std::time::Duration::from_secs(90_000);
        leave(path).set_modified(day).unwrap();
    };
    old(&format!("{own}/{}", name(&elsewhere, 6)));
    leave(&format!("{own}/{}", name(&elsewhere, 7)));
    old(&format!("{own}/{}", name(&living, 8)));
    // This library never creates files with these names.
    for foreign in ["x", "1", "1-2-3", "used-by-others", "locks"] {
        old(&format!("{own}/.zarrow-{foreign}"));
    }
    let foreign = ["1", "1-2-3", "locks", "used-by-others", "x"].map(|name| format!(".zarrow-{name}"));
    let mut kept: Vec<String> = foreign.into_iter().chain([name(&elsewhere, 7), name(&living, 8)]).collect();
    kept.push("c".to_owned());
    kept.sort();
    assert_eq!(
        (store.list("").unwrap(), store.list(&outer).unwrap()),
        (vec![outer.clone()], vec!["inner".into()])
    );
    assert_eq!((store.list(&own).unwrap(), store.nbytes("").unwrap()), (vec![], 0));
    assert!(store.get(&format!("{own}/{}", name(&dead, 2)), 9).is_err());
    // The first write of this process to a folder sweeps it and the folders above.
    store.set(&join(&own, "c"), &[b"1"], Durability::None).unwrap();
    let found = || {
        let mut found = names(&store, &own);
        found.sort();
        found
    };
    let locked = name(unknown, 4);
    let without = |found: Vec<String>| found.into_iter().filter(|name| *name != locked).collect::<Vec<_>>();
    assert!(found().contains(&locked));
    assert_eq!((without(found()), names(&store, &outer)), (kept.clone(), vec!["inner".to_owned()]));
    leave(&format!("{outer}/{}", name(&dead, 9)));
    assert_eq!((store.sweep("").unwrap(), store.sweep("none").unwrap()), (1, 0));
    drop(used);
    assert_eq!((store.sweep("").unwrap(), found()), (1, kept));
}

#[test]
fn one_process_holds_a_lock_and_leaves_no_file() {
    let (_folder, store) = store();
    let held = store.try_lock("a/b").unwrap();
    assert!(held.is_some() && store.try_lock("a/b").unwrap().is_none());
    assert!(store.try_lock("a/c").unwrap().is_some());
    let stopped = store.lock("a/b", &|| Err(ErrorKind::Interrupted.into()));
    assert!(matches!(stopped.err().unwrap().kind(), ErrorKind::Interrupted));
    drop(held);
    assert!(store.try_lock("a/b").unwrap().is_some());
    assert_eq!((names(&store, "a").len(), store.sweep("").unwrap()), (0, 0));
}

/// Threads increment a counter under the lock while another overwrites it: no increment is lost, and no thread that
/// read the old value undoes an overwrite.
#[test]
fn a_lock_keeps_threads_apart() {
    let (_folder, on_disk) = store();
    let stores: [&dyn Store; 2] = [&on_disk, &crate::store::MemoryStore::default()];
    for store in stores {
        let writer = store.writer().unwrap();
        writer.set("count", &[&0u64.to_le_bytes()], Durability::None).unwrap();
        let add = |amount: u64| {
            let _lock = writer.lock("count", &|| Ok(())).unwrap();
            let value = store.get("count", 8).unwrap().unwrap();
            let next = u64::from_le_bytes(value.try_into().unwrap()) + amount;
            writer.set("count", &[&next.to_le_bytes()], Durability::None).unwrap();
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| add(1)));
            }
            scope.spawn(|| {
                for round in 1..=20u64 {
                    let value = (round << 32).to_le_bytes();
                    writer.overwrite("count", Some(&[&value]), Durability::None, &|| Ok(())).unwrap();
                    let found = store.get("count", 8).unwrap().unwrap();
                    assert!(u64::from_le_bytes(found.try_into().unwrap()) >> 32 == round);
                }
            });
        });
        let count = u64::from_le_bytes(store.get("count", 8).unwrap().unwrap().try_into().unwrap());
        assert_eq!(count >> 32, 20);
        add(1000);
        assert!(store.get("count", 8).unwrap().is_some());
    }
}

/// A lock holder that sets a value derived from an erased one does not bring it back.
#[test]
fn what_was_erased_stays_so() {
    let (_folder, on_disk) = store();
    let stores: [&dyn Store; 2] = [&on_disk, &crate::store::MemoryStore::default()];
    for store in stores {
        let writer = store.writer().unwrap();
        let set = |value: &[u8]| writer.set("a/b/c", &[value], Durability::None).unwrap();
        set(b"old");
        let lock = writer.lock("a/b/c", &|| Ok(())).unwrap();
        assert!(writer.erase_prefix("a", Durability::None).unwrap());
        let late = writer.set_under(&*lock, &[b"from old"], Durability::None);
        assert!(late.is_ok() || late.unwrap_err().kind().code() == "write");
        assert_eq!(store.get("a/b/c", 9).unwrap(), None);
        // Another array may have been created there.
        set(b"new");
        let _ = writer.set_under(&*lock, &[b"from old"], Durability::None);
        let _ = writer.erase_under(&*lock, Durability::None);
        let other = writer.try_lock("a/b/c").unwrap();
        assert!(other.is_some());
        drop(lock);
        assert!(writer.try_lock("a/b/c").unwrap().is_none());
        assert_eq!(store.get("a/b/c", 9).unwrap().unwrap(), b"new");
    }
}

#[test]
fn what_cannot_be_written_is_an_error_and_leaves_the_old_value() {
    let (_folder, store) = store();
    store.set("a", &[b"old"], Durability::None).unwrap();
    let code = |result: Result<()>| result.unwrap_err().kind().code();
    assert_eq!(code(store.set("../a", &[b"x"], Durability::None)), "bad_key");
    assert_eq!(code(store.set(".zarrow-a", &[b"x"], Durability::None)), "bad_key");
    assert_eq!(code(store.set("a/below", &[b"x"], Durability::None)), "write");
    store.set("folder/x", &[b"x"], Durability::None).unwrap();
    assert_eq!(code(store.set("folder", &[b"x"], Durability::None)), "write");
    assert_eq!((store.get("a", 9).unwrap().unwrap(), names(&store, "").len()), (b"old".to_vec(), 2));
}

//! Lists groups with little memory, then with more, until all lists succeed. An allocation of any size may fail; each
//! list is complete or an error.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use serde_json::{Map, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use zarrow::store::{FilesystemStore, MemoryStore, Store};
use zarrow::{ArrayBuilder, Existing, Group, Node, OpenOptions, Result, ZarrFormat};
use zarrow_array::Number;

/// The system's allocator, with a limit for one thread.
struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

thread_local! {
    /// Number of bytes that this thread may still allocate; `isize::MAX` for no limit.
    static ROOM: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// Takes `nbytes` from the room, or returns false if they exceed it.
fn take(nbytes: usize) -> bool {
    let (room, nbytes) = (ROOM.get(), nbytes as isize);
    if room != isize::MAX && nbytes <= room {
        ROOM.set(room - nbytes);
    }
    nbytes <= room
}

fn give_back(nbytes: usize) {
    if ROOM.get() != isize::MAX {
        ROOM.set(ROOM.get() + nbytes as isize);
    }
}

// SAFETY: all memory comes from the system, and an allocator may return null.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        if take(layout.size()) { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Creates a group of 100 arrays, with attributes.
fn create(store: Arc<dyn Store>, zarr_format: ZarrFormat, consolidated: bool) -> Group {
    let options = OpenOptions::default();
    let attributes = Map::from_iter([("title".to_owned(), json!("x".repeat(500)))]);
    let mut group =
        zarrow::create_group(store.clone(), "", zarr_format, attributes, Existing::Refuse, &options).unwrap();
    for number in 0..100 {
        let array = ArrayBuilder::new([10], Number::Int16).zarr_format(zarr_format).build().unwrap();
        group.create_array(&format!("array-{number}"), array, Existing::Refuse).unwrap();
    }
    if consolidated {
        group.consolidate_metadata().unwrap();
    }
    let Node::Group(opened) = zarrow::open(store, "").unwrap() else { panic!("an array") };
    opened
}

fn folder(path: &Path) -> Arc<dyn Store> {
    std::fs::create_dir(path).unwrap();
    Arc::new(FilesystemStore::open(path).unwrap())
}

#[test]
fn lists_with_little_memory() {
    let place = tempfile::tempdir().unwrap();
    for (format, consolidated) in [(ZarrFormat::V2, false), (ZarrFormat::V3, false), (ZarrFormat::V3, true)] {
        let kind = format!("{format:?}, consolidated: {consolidated}");
        for store in [Arc::new(MemoryStore::default()), folder(&place.path().join(&kind))] {
            let group = create(store, format, consolidated);
            let members = || group.children()?.into_iter().try_for_each(|(_, child)| child.map(drop));
            let names = || group.listed().map(drop);
            for (what, act) in [("members", &members as &dyn Fn() -> Result<()>), ("names", &names)] {
                let (mut done, mut refused) = (0, 0);
                for step in 1..4096 {
                    ROOM.set(step * (16 << 10));
                    let result = act();
                    ROOM.set(isize::MAX);
                    match result {
                        Ok(()) => done += 1,
                        Err(error) => {
                            refused += 1;
                            assert_eq!(
                                error.kind().code(),
                                "out_of_memory",
                                "{what}, {kind}, {step}: {error}"
                            );
                        }
                    }
                    if done == 2 {
                        break;
                    }
                }
                assert!(done == 2 && refused > 2, "{what}, {kind}: {refused} refused");
            }
        }
    }
}

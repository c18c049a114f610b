//! Concurrent changes: creators of one node, handles of removed nodes, and changes that fail in the middle.
#![allow(clippy::disallowed_types, reason = "these tests do not fork")]

use super::*;
use crate::metadata::ArrayMetadata;
use crate::store::{Detached, Draft, Lock, Stage, StoreWriter, Value, Version};
use crate::{Array, ErrorKind, Index, Selection, Values, WriteOptions};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use zarrow_array::DecodedArray;

fn on_disk(folder: &tempfile::TempDir) -> Arc<dyn Store> {
    Arc::new(FilesystemStore::create(folder.path().join("store")).unwrap())
}

/// 1, 2, 3, ... as 16-bit integers.
fn numbers(count: i16) -> Vec<u8> {
    (1..=count).flat_map(i16::to_ne_bytes).collect()
}

fn values(bytes: &[u8], shape: &[u64]) -> Values<'static> {
    let bytes: &'static [u8] = bytes.to_vec().leak();
    Values::contiguous(bytes, Number::Int16.into(), shape).unwrap()
}

fn rows(array: &Array, start: i64, stop: i64) -> Selection {
    let slice = Index::Slice { start: Some(start), stop: Some(stop), step: None };
    Selection::new(array.shape(), &[slice]).unwrap()
}

fn read(array: &Array) -> Vec<i16> {
    let DecodedArray::Tensor(tensor) = array.read(Selection::all(array.shape())).unwrap() else { panic!() };
    tensor.bytes().chunks_exact(2).map(|item| i16::from_ne_bytes([item[0], item[1]])).collect()
}

fn opened_array(store: &Arc<dyn Store>, path: &str) -> Array {
    match open(Arc::clone(store), path).unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => panic!("a group"),
    }
}

/// Six rows of four numbers, in chunks of four rows.
fn metadata(zarr_format: ZarrFormat, number: Number) -> ArrayMetadata {
    ArrayBuilder::new([6, 4], number).chunk_shape([4, 4]).zarr_format(zarr_format).build().unwrap()
}

fn replace(store: &Arc<dyn Store>, path: &str, metadata: ArrayMetadata) -> crate::Result<Array> {
    create_array(Arc::clone(store), path, metadata, Existing::Erase, &OpenOptions::default())
}

#[test]
fn one_of_several_creators_of_a_node_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), on_disk(&folder)] {
        for round in 0..60 {
            let path = format!("{round}/node");
            let start = std::sync::Barrier::new(4);
            let create = |number: usize| {
                let options = OpenOptions::default();
                start.wait();
                let (store, zarr_format) = (Arc::clone(&store), FORMATS[number % 2]);
                match number {
                    0 | 1 => array(&store, &path, zarr_format).map(drop),
                    _ => create_group(store, &path, zarr_format, Map::new(), Existing::Refuse, &options)
                        .map(drop),
                }
            };
            let made: Vec<bool> = std::thread::scope(|scope| {
                let create = &create;
                let threads: Vec<_> =
                    (0..4).map(|number| scope.spawn(move || create(number).is_ok())).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(made.iter().filter(|made| **made).count(), 1, "{path}: {made:?}");
            let documents = store.list(&path).unwrap();
            assert_eq!(documents.len(), 1, "{documents:?}");
        }
    }
}

#[test]
fn consolidating_includes_concurrently_created_nodes() {
    let folder = tempfile::tempdir().unwrap();
    for (number, store) in [memory(), on_disk(&folder)].into_iter().enumerate() {
        let mut root = group(&store, "", FORMATS[number % 2]);
        // Once before, in case the creators finish before the consolidating thread starts.
        root.consolidate_metadata().unwrap();
        let going = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let consolidating = scope.spawn(|| {
                let mut root = opened(&store, "");
                while going.load(Ordering::Relaxed) {
                    root.consolidate_metadata().unwrap();
                }
            });
            let creators: Vec<_> = (0..3)
                .map(|thread| {
                    let store = &store;
                    scope.spawn(move || {
                        for round in 0..25 {
                            array(store, &format!("{thread}-{round}"), FORMATS[number % 2]).unwrap();
                        }
                    })
                })
                .collect();
            for creator in creators {
                creator.join().unwrap();
            }
            going.store(false, Ordering::Relaxed);
            consolidating.join().unwrap();
        });
        root.refresh().unwrap();
        check_consolidated(&store);
        assert_eq!(root.children().unwrap().len(), 75);
    }
}

#[test]
fn handles_of_erased_nodes_raise_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (zarr_format, store) in [(FORMATS[0], memory()), (FORMATS[1], on_disk(&folder))] {
        let options = WriteOptions::default();
        let mut old = replace(&store, "a", metadata(zarr_format, Number::Int16)).unwrap();
        let row = values(&numbers(4), &[1, 4]);
        let write = |array: &Array, row_number: i64, row: &Values<'_>| {
            array.write_request(rows(array, row_number, row_number + 1))?.options(&options).write(row)
        };
        write(&old, 5, &row).unwrap();
        opened_array(&store, "a").resize(&[3, 4]).unwrap();
        assert_eq!(code(write(&old, 5, &row)), "stale");
        write(&old, 2, &row).unwrap();
        opened_array(&store, "a").resize(&[6, 4]).unwrap();
        assert_eq!(read(&opened_array(&store, "a"))[8..], [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        write(&old, 5, &row).unwrap();
        // A handle cannot distinguish a replacement of the same layout.
        replace(&store, "a", metadata(zarr_format, Number::Int16)).unwrap();
        write(&old, 0, &row).unwrap();
        // After a replacement of another layout, the write is refused and nothing is written.
        replace(&store, "a", metadata(zarr_format, Number::Int64)).unwrap();
        let before = keys(&*store, "a");
        assert_eq!(code(write(&old, 0, &row)), "stale");
        assert_eq!(code(old.append_with(&row, 0, &options)), "stale");
        assert_eq!(code(old.resize(&[9, 4])), "stale");
        assert_eq!(code(old.change_attributes(&AttributeChange::Remove(Attributes::default()))), "stale");
        assert_eq!(keys(&*store, "a"), before);
        old.refresh().unwrap();
        assert_eq!(old.data_type(), &Number::Int64.into());
        opened(&store, "").erase("a").unwrap();
        assert_eq!(code(write(&old, 0, &row)), "not_found");
        assert_eq!(code(old.append_with(&row, 0, &options)), "not_found");
        assert!(store.list("a").unwrap().is_empty() && store.version_of("a").unwrap() == Version::Missing);
    }
}

/// A store with an event in the middle of a write: before the value of the n-th chunk is started.
#[derive(Debug)]
struct Between {
    store: Arc<dyn Store>,
    event: Mutex<Option<(usize, Event)>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Fails,
    Erased,
    Shrunk,
    Replaced,
    ReplacedAlike,
}

impl Between {
    fn happen(&self, key: &str) -> crate::Result<()> {
        let due = {
            let mut event = self.event.lock().unwrap();
            let is_chunk = !key.ends_with(".json") && !key.contains(".z");
            match &mut *event {
                Some((0, _)) if is_chunk => event.take().map(|(_, event)| event),
                Some((left, _)) if is_chunk => {
                    *left -= 1;
                    None
                }
                _ => None,
            }
        };
        match due {
            None => {}
            Some(Event::Fails) => return Err(ErrorKind::Write(std::io::Error::other("disk full")).into()),
            Some(Event::Erased) => opened(&self.store, "").erase("a")?,
            Some(Event::Shrunk) => opened_array(&self.store, "a").resize(&[1, 4])?,
            Some(Event::Replaced) => {
                replace(&self.store, "a", metadata(ZarrFormat::V3, Number::Int64)).map(drop)?;
            }
            Some(Event::ReplacedAlike) => {
                let alike = ArrayBuilder::new([2, 4], Number::Int16).chunk_shape([4, 4]).build()?;
                replace(&self.store, "a", alike).map(drop)?;
            }
        }
        Ok(())
    }

    fn writer(&self) -> &dyn StoreWriter {
        self.store.writer().unwrap()
    }
}

impl Store for Between {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn open(&self, key: &str) -> crate::Result<Option<Box<dyn Value + '_>>> {
        self.store.open(key)
    }

    fn list(&self, prefix: &str) -> crate::Result<Vec<String>> {
        self.store.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> crate::Result<u64> {
        self.store.nbytes(prefix)
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }
}

impl StoreWriter for Between {
    fn draft(&self, key: &str, durability: Durability) -> crate::Result<Box<dyn Draft + '_>> {
        self.happen(key)?;
        self.writer().draft(key, durability)
    }

    /// Without a lock, as real stores do.
    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        durability: Durability,
        pass: &dyn Fn() -> crate::Result<()>,
    ) -> crate::Result<()> {
        self.happen(key)?;
        self.writer().overwrite(key, parts, durability, pass)
    }

    fn erase(&self, key: &str, durability: Durability) -> crate::Result<bool> {
        self.writer().erase(key, durability)
    }

    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> crate::Result<Option<Box<dyn Detached + 'a>>> {
        self.writer().detach(prefix, durability, marks)
    }

    fn stage<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
    ) -> crate::Result<Option<Box<dyn Stage<'a> + 'a>>> {
        self.writer().stage(prefix, durability)
    }

    fn try_lock(&self, key: &str) -> crate::Result<Option<Box<dyn Lock + '_>>> {
        self.writer().try_lock(key)
    }

    fn sweep(&self, prefix: &str) -> crate::Result<usize> {
        self.writer().sweep(prefix)
    }
}

fn between(store: Arc<dyn Store>, event: Event, chunk: usize) -> (Arc<dyn Store>, Arc<dyn Store>) {
    replace(&store, "a", metadata(ZarrFormat::V3, Number::Int16)).unwrap();
    let event = Mutex::new(Some((chunk, event)));
    (Arc::clone(&store), Arc::new(Between { store, event }))
}

#[test]
fn what_happens_in_the_middle_of_a_write_is_noticed() {
    let events = [
        (Event::Erased, "not_found"),
        (Event::Shrunk, "stale"),
        (Event::Replaced, "stale"),
        (Event::Fails, "write"),
    ];
    for (event, expected) in events {
        let (store, watched) = between(memory(), event, 1);
        let array = opened_array(&watched, "a");
        let all = Selection::all(array.shape());
        let written = array.write(&all, &values(&numbers(24), &[6, 4]));
        assert_eq!(code(written), expected, "{event:?}");
        if event == Event::Shrunk {
            let mut array = opened_array(&store, "a");
            array.resize(&[6, 4]).unwrap();
            assert_eq!(read(&array)[4..], [0; 20]);
        }
    }
}

#[test]
fn an_append_that_fails_leaves_nothing_to_be_seen() {
    for event in [Event::Fails, Event::Replaced, Event::ReplacedAlike, Event::Erased] {
        for chunk in 0..3 {
            let folder = tempfile::tempdir().unwrap();
            let (store, watched) = between(on_disk(&folder), event, chunk);
            let mut array = opened_array(&watched, "a");
            let appended = array.append(&values(&numbers(40), &[10, 4]), 0);
            let expected = match event {
                Event::Fails => "write",
                Event::Erased => "not_found",
                _ => "stale",
            };
            let said = format!("{appended:?}");
            assert_eq!(code(appended), expected, "{event:?} {chunk}: {said}");
            match event {
                Event::Erased => assert_eq!(code(open(store, "a")), "not_found"),
                Event::Fails => {
                    assert_eq!(array.shape(), [6, 4]);
                    assert_eq!(keys(&*store, "a"), ["a/zarr.json"], "{chunk}");
                }
                _ => {
                    let rows = if event == Event::Replaced { 6 } else { 2 };
                    assert_eq!(opened_array(&store, "a").shape()[0], rows);
                }
            }
        }
    }
}

/// Leftovers of a killed writer: chunks outside of the grid, and elements beyond the edge in the chunks inside.
#[test]
fn growing_shows_no_old_elements() {
    let folder = tempfile::tempdir().unwrap();
    let sharded = |builder: ArrayBuilder| builder.shard_shape([4, 4]).chunk_shape([2, 2]);
    for (number, store) in [memory(), memory(), on_disk(&folder)].into_iter().enumerate() {
        let builder = ArrayBuilder::new([10, 9], Number::Int16).fill_value(FillValue::Fixed(vec![7, 0]));
        let builder = match number {
            0 => builder.chunk_shape([4, 4]).zarr_format(ZarrFormat::V2),
            1 => sharded(builder),
            _ => builder.chunk_shape([4, 4]),
        };
        let mut array = replace(&store, "a", builder.build().unwrap()).unwrap();
        let all = Selection::all(array.shape());
        array.write(&all, &values(&numbers(90), &[10, 9])).unwrap();
        // Put the document of a smaller array over all of these chunks.
        let name = if number == 0 { "a/.zarray" } else { "a/zarr.json" };
        let text = String::from_utf8(store.get(name, 1 << 20).unwrap().unwrap()).unwrap();
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        document["shape"] = json!([3, 2]);
        store.writer().unwrap().set(name, &[document.to_string().as_bytes()], Durability::None).unwrap();
        array.refresh().unwrap();
        array.resize(&[3, 9]).unwrap();
        let expected = |row: i16, column: i16| if row < 3 && column < 2 { row * 9 + column + 1 } else { 7 };
        let all = |rows: i16| (0..rows).flat_map(move |row| (0..9).map(move |column| expected(row, column)));
        assert_eq!(read(&array), all(3).collect::<Vec<_>>(), "{number}");
        array.resize(&[10, 9]).unwrap();
        assert_eq!(read(&array), all(10).collect::<Vec<_>>(), "{number}");
        assert_eq!(read(&opened_array(&store, "a")), all(10).collect::<Vec<_>>(), "{number}");
    }
}

#[test]
fn a_node_appears_with_all_its_elements() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), on_disk(&folder)] {
        for path in ["", "a", "deep/er/a"] {
            let options = OpenOptions::default();
            let make = |existing: Existing, fails: bool| {
                let many = ArrayBuilder::new([60], Number::Int16).chunk_shape([1]).build().unwrap();
                let count = if fails { 59 } else { 60 };
                let numbers = values(&numbers(count), &[count as u64]);
                create_array_with(
                    Arc::clone(&store),
                    path,
                    many,
                    &numbers,
                    existing,
                    &options,
                    &WriteOptions::default(),
                )
            };
            assert_eq!(code(make(Existing::Refuse, true)), "shape");
            assert_eq!(keys(&*store, path), [""; 0]);
            let made = make(Existing::Refuse, false).unwrap();
            assert_eq!(read(&made)[59], 60);
            assert_eq!(code(make(Existing::Refuse, false)), "exists");
            made.write(&rows(&made, 0, 1), &values(&[9, 0], &[1])).unwrap();
            assert_eq!(code(make(Existing::EraseArray, true)), "shape");
            assert_eq!(read(&opened_array(&store, path))[0], 9);
            make(Existing::EraseArray, false).unwrap();
            assert_eq!(read(&opened_array(&store, path))[0], 1);
            replace(&store, path, metadata(ZarrFormat::V2, Number::Int16)).map_or_else(
                // The groups above are of the other version.
                |error| assert_eq!((error.kind().code(), path.is_empty()), ("unsupported", false)),
                |array| assert_eq!(keys(&*store, array.path()), [".zarray"]),
            );
            store.writer().unwrap().erase_prefix("", Durability::None).unwrap();
        }
        assert_eq!(keys(&*store, ""), [""; 0]);
    }
    assert_eq!(std::fs::read_dir(folder.path().join("store")).unwrap().count(), 0);
}

#[test]
fn what_is_no_node_is_never_erased() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), on_disk(&folder)] {
        let writer = store.writer().unwrap();
        for path in ["", "a"] {
            let notes = crate::store::join(path, "notes.txt");
            writer.set(&notes, &[b"mine"], Durability::None).unwrap();
            let options = OpenOptions::default();
            let group = |existing: Existing| {
                create_group(Arc::clone(&store), path, ZarrFormat::V3, Map::new(), existing, &options)
            };
            let refused = replace(&store, path, metadata(ZarrFormat::V3, Number::Int16)).unwrap_err();
            assert_eq!(refused.kind().code(), "foreign");
            assert!(refused.to_string().contains("notes.txt"), "{refused}");
            assert_eq!(code(group(Existing::Erase)), "foreign");
            assert_eq!(store.get(&notes, 9).unwrap().unwrap(), b"mine");
            // With a group document the folder is a node, and is erased with everything in it.
            group(Existing::Refuse).unwrap();
            group(Existing::Erase).unwrap();
            assert_eq!(store.get(&notes, 9).unwrap(), None);
            writer.erase_prefix("", Durability::None).unwrap();
        }
    }
}

#[test]
fn a_consolidated_group_shows_what_its_members_did() {
    for zarr_format in FORMATS {
        let store = memory();
        let mut root = group(&store, "", zarr_format);
        replace(&store, "g/t", metadata(zarr_format, Number::Int16)).unwrap();
        root.consolidate_metadata().unwrap();
        let Node::Array(mut member) = root.get("g/t").unwrap() else { panic!() };
        member.append(&values(&numbers(4), &[1, 4]), 0).unwrap();
        member.change_attributes(&AttributeChange::Update(map(json!({"units": "K"})))).unwrap();
        let Node::Array(found) = root.get("g/t").unwrap() else { panic!() };
        assert_eq!((found.shape(), &found.metadata().attributes["units"]), (&[7, 4][..], &json!("K")));
        let Node::Group(inner) = root.get("g").unwrap() else { panic!() };
        array(&store, "g/new", zarr_format).unwrap();
        assert!(root.get("g/new").is_ok());
        assert_eq!(root.children().unwrap().len(), 1);
        drop(inner);
    }
}

#[test]
fn handles_of_threads_have_the_latest_shape() {
    let store = memory();
    let log = ArrayBuilder::new([0], Number::Int16).chunk_shape([3]).build().unwrap();
    let log = replace(&store, "log", log).unwrap();
    let shapes: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut handle = log.clone();
                scope.spawn(move || {
                    let mut seen = Vec::new();
                    for _ in 0..10 {
                        let one = values(&numbers(1), &[1]);
                        handle.append(&one, 0).unwrap();
                        seen.push((handle.revision(), handle.shape()[0]));
                    }
                    seen
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut by_revision = shapes;
    by_revision.sort_unstable();
    assert!(by_revision.windows(2).all(|pair| pair[0].1 < pair[1].1), "{by_revision:?}");
    assert_eq!(opened_array(&store, "log").shape(), [40]);
}

/// Makes an array larger as another program does: by changing only its document.
fn set_shape(store: &Arc<dyn Store>, shape: &[u64]) {
    let document = store.get("a/zarr.json", 1 << 20).unwrap().unwrap();
    let mut document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    document["shape"] = json!(shape);
    let document = document.to_string();
    store.writer().unwrap().set("a/zarr.json", &[document.as_bytes()], Durability::None).unwrap();
}

#[test]
fn writes_during_shrinking_leave_nothing_outside_the_shape() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), on_disk(&folder)] {
        for chunk in 0..2 {
            let (store, watched) = between(Arc::clone(&store), Event::Shrunk, chunk);
            let array = opened_array(&watched, "a");
            let all = Selection::all(array.shape());
            assert_eq!(code(array.write(&all, values(&numbers(24), &[6, 4]))), "stale");
            assert_eq!(keys(&*store, "a"), ["a/c/0/0", "a/zarr.json"]);
            set_shape(&store, &[6, 4]);
            let found = read(&opened_array(&store, "a"));
            assert_eq!((&found[..4], &found[4..]), (&[1, 2, 3, 4][..], &[0; 20][..]), "chunk {chunk}");
        }
    }
}

#[test]
fn reads_of_erased_arrays_raise_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (zarr_format, store) in [(FORMATS[0], memory()), (FORMATS[1], on_disk(&folder))] {
        let mut root = group(&store, "", zarr_format);
        let old = replace(&store, "a", metadata(zarr_format, Number::Int16)).unwrap();
        let opened_too = opened_array(&store, "a");
        let handles = [&old, &opened_too];
        let all = Selection::all(old.shape());
        let read_all = |array: &Array| array.read(&all).map(drop);
        let read_both =
            |array: &Array| crate::read_many(&[array.request(&all)?, array.request(&all)?]).map(drop);
        for array in handles {
            assert_eq!(read(array), [0; 24]);
            read_both(array).unwrap();
        }
        // A handle cannot distinguish a replacement of the same layout, whatever its shape.
        let longer = ArrayMetadata { shape: vec![9, 4], ..metadata(zarr_format, Number::Int16) };
        replace(&store, "a", longer).unwrap();
        handles.into_iter().for_each(|array| read_all(array).unwrap());
        replace(&store, "a", metadata(zarr_format, Number::Int64)).unwrap();
        for array in handles {
            assert_eq!((code(read_all(array)), code(read_both(array))), ("stale", "stale"));
        }
        // An array known from consolidated metadata needs a document only if one was seen.
        root.consolidate_metadata().unwrap();
        let Node::Array(copied) = root.get("a").unwrap() else { panic!() };
        let Node::Array(seen) = root.get("a").unwrap() else { panic!() };
        read_all(&seen).unwrap();
        let names = ["zarr.json", ".zarray"].map(|name| crate::store::join("a", name));
        let removed = names.iter().map(|key| store.writer().unwrap().erase(key, Durability::None).unwrap());
        assert_eq!(removed.filter(|removed| *removed).count(), 1);
        read_all(&copied).unwrap();
        assert_eq!((code(read_all(&seen)), code(read_all(&old))), ("not_found", "not_found"));
        // Consolidated metadata that lack the array, as after it was erased, say that it is gone.
        root.without_consolidated().consolidate_metadata().unwrap();
        assert_eq!(code(read_all(&copied)), "not_found");
        // The same holds without them.
        for key in ["zarr.json", ".zmetadata", ".zgroup"] {
            store.writer().unwrap().erase(key, Durability::None).unwrap();
        }
        assert_eq!(code(read_all(&copied)), "not_found");
    }
}

/// A handle that writes while its array is repeatedly replaced leaves nothing in the replacements.
#[test]
fn a_write_lands_in_the_array_that_it_found_or_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), on_disk(&folder)] {
        let going = AtomicBool::new(true);
        let numbers = [Number::Int16, Number::Int32];
        replace(&store, "a", metadata(ZarrFormat::V3, numbers[0])).unwrap();
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let bytes = self::numbers(16);
                while going.load(Ordering::Relaxed) {
                    // Opens the array between two replacements; only the 16-bit one is used.
                    let Ok(Node::Array(array)) = open(Arc::clone(&store), "a") else { continue };
                    if array.data_type() != &numbers[0].into() {
                        continue;
                    }
                    let _ = array.write(&rows(&array, 0, 4), values(&bytes, &[4, 4]));
                }
            });
            for round in 1..=400 {
                let new = replace(&store, "a", metadata(ZarrFormat::V3, numbers[round % 2])).unwrap();
                if round % 2 == 1 {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                    assert_eq!(keys(&*store, "a"), ["a/zarr.json"], "a chunk of the array before");
                    let all = Selection::all(new.shape());
                    new.read(&all).unwrap();
                }
            }
            going.store(false, Ordering::Relaxed);
            replace(&store, "a", metadata(ZarrFormat::V3, numbers[0])).unwrap();
            writing.join().unwrap();
        });
    }
}

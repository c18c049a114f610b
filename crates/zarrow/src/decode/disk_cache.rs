//! A cache of decoded chunks in a file, for chunks that a cache in memory drops.
//!
//! 1. The file has no name, so that it ends with the process. A forked child does not use it, because the parent still
//!    writes there.
//! 2. A chunk is written to a free range of the file. If none is large enough, chunks are dropped that were not used for
//!    a long time. Chunks in use stay. Otherwise epochs that read more chunks than fit would drop each chunk shortly
//!    before its next use. A chunk of an old version is dropped when the new one is looked for.
//! 3. A range is used again only after the last reader has finished.
//! 4. A chunk is read with its checksum. A full disk, a failed read or a wrong checksum is a chunk that is not cached.

use crate::decode::cache::Key;
use crate::store::system_calls;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use zarrow_array::fork::{Mutex, generation};
use zarrow_array::{Buffer, UninitBuffer};

/// A smaller chunk costs about as much as its bookkeeping.
const LEAST_NBYTES: usize = 4 << 10;

/// A chunk is dropped after this many uses of other chunks for each chunk in the file. In shuffled epochs, two uses of a
/// chunk are up to two epochs apart, and an epoch may use a chunk for several batches.
const UNUSED: u64 = 8;

/// A key has the numbers of the chunk, this many numbers of its version, and the numbers of an inner chunk.
const VERSION: usize = 4;

/// Decoded chunks in a file.
#[derive(Debug)]
pub struct DiskCache {
    file: File,
    /// The number of the array's axes.
    axes: usize,
    generation: u64,
    state: Mutex<State>,
    free: Arc<FreeRanges>,
}

/// The free ranges of the file: sizes by their starts, never two that touch.
#[derive(Debug)]
struct FreeRanges(Mutex<BTreeMap<u64, u64>>);

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Arc<[u64]>, Entry>,
    /// The places by time of last use.
    order: BTreeMap<u64, Arc<[u64]>>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    version: [u64; VERSION],
    range: Arc<CachedRange>,
    checksum: u32,
    used: u64,
}

/// A range of the file, which becomes free when it is dropped (step 3).
#[derive(Debug)]
struct CachedRange {
    start: u64,
    nbytes: u64,
    free: Arc<FreeRanges>,
}

impl Drop for CachedRange {
    fn drop(&mut self) {
        self.free.give_back(self.start, self.nbytes);
    }
}

impl FreeRanges {
    /// Takes the first range with this size.
    fn take(&self, nbytes: u64) -> Option<u64> {
        let mut free = self.0.lock();
        let (&start, &size) = free.iter().find(|(_, size)| **size >= nbytes)?;
        free.remove(&start);
        if size > nbytes {
            free.insert(start + nbytes, size - nbytes);
        }
        Some(start)
    }

    fn give_back(&self, mut start: u64, mut nbytes: u64) {
        let mut free = self.0.lock();
        if let Some((&before, &size)) = free.range(..start).next_back()
            && before + size == start
        {
            free.remove(&before);
            (start, nbytes) = (before, size + nbytes);
        }
        if let Some(size) = free.remove(&(start + nbytes)) {
            nbytes += size;
        }
        free.insert(start, nbytes);
    }
}

impl DiskCache {
    /// Creates a file of at most `limit` bytes in `folder`, for chunks of an array with `axes` axes.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn new(folder: &Path, limit: u64, axes: usize) -> io::Result<DiskCache> {
        let free = Arc::new(FreeRanges(Mutex::new(BTreeMap::from([(0, limit)]))));
        let state = Mutex::new(State::default());
        Ok(DiskCache { file: nameless(folder)?, axes, generation: generation(), state, free })
    }

    /// Returns the elements under `key`, in memory that `allocate` returns for their size.
    pub fn get(&self, key: &Key, allocate: &mut dyn FnMut(usize) -> Option<UninitBuffer>) -> Option<Buffer> {
        if !self.is_own() {
            return None;
        }
        let mut state = self.state.lock();
        let State { entries, order, clock } = &mut *state;
        let (place, version) = self.split(key)?;
        let entry = entries.get_mut(&place[..])?;
        if entry.version != version {
            drop(state);
            self.forget(&place);
            return None;
        }
        *clock += 1;
        let own = order.remove(&entry.used)?;
        entry.used = *clock;
        order.insert(*clock, own);
        let (range, checksum) = (Arc::clone(&entry.range), entry.checksum);
        drop(state);
        let buffer = self.read(&range, allocate).filter(|buffer| crc32c::crc32c(buffer) == checksum);
        if buffer.is_none() {
            self.forget(&place);
        }
        buffer
    }

    /// Divides a key into the place of a chunk and its version.
    fn split(&self, key: &Key) -> Option<(SmallVec<[u64; 8]>, [u64; VERSION])> {
        let (chunk, rest) = key.split_at_checked(self.axes)?;
        let (version, inner) = rest.split_first_chunk::<VERSION>()?;
        Some((chunk.iter().chain(inner).copied().collect(), *version))
    }

    /// Drops a chunk of an old version, or one that cannot be read (steps 2 and 4).
    fn forget(&self, place: &[u64]) {
        let mut state = self.state.lock();
        let State { entries, order, .. } = &mut *state;
        let dropped = entries.remove(place);
        if let Some(entry) = &dropped {
            order.remove(&entry.used);
        }
        drop(state);
        drop(dropped);
    }

    fn read(
        &self,
        range: &CachedRange,
        allocate: &mut dyn FnMut(usize) -> Option<UninitBuffer>,
    ) -> Option<Buffer> {
        let mut buffer = allocate(usize::try_from(range.nbytes).ok()?)?;
        let (memory, mut filled) = (buffer.as_mut_slice(), 0);
        while filled < memory.len() {
            let at = range.start.saturating_add(filled as u64);
            match system_calls::pread(&self.file, &mut memory[filled..], at).ok()? {
                0 => return None,
                read => filled += read,
            }
        }
        // SAFETY: `pread` has written the bytes from the start up to `filled`, which is the whole buffer, without a gap.
        Some(unsafe { buffer.assume_init() })
    }

    /// Writes elements under `key`, unless the key is known.
    pub fn insert(&self, key: &Key, elements: &[u8]) {
        if elements.len() < LEAST_NBYTES || !self.is_own() || self.contains(key) {
            return;
        }
        let Some((place, version)) = self.split(key) else { return };
        let nbytes = elements.len() as u64;
        let Some(start) = self.room(nbytes) else { return };
        let range = Arc::new(CachedRange { start, nbytes, free: Arc::clone(&self.free) });
        if self.file.write_all_at(elements, start).is_err() {
            return;
        }
        let checksum = crc32c::crc32c(elements);
        let mut state = self.state.lock();
        let State { entries, order, clock } = &mut *state;
        if entries.try_reserve(1).is_err() {
            return;
        }
        *clock += 1;
        let place: Arc<[u64]> = place.as_slice().into();
        let replaced = entries.insert(Arc::clone(&place), Entry { version, range, checksum, used: *clock });
        if let Some(before) = &replaced {
            order.remove(&before.used);
        }
        order.insert(*clock, place);
        drop(state);
        drop(replaced);
    }

    /// Step 1.
    fn is_own(&self) -> bool {
        self.generation == generation()
    }

    fn contains(&self, key: &Key) -> bool {
        let Some((place, version)) = self.split(key) else { return true };
        self.state.lock().entries.get(&place[..]).is_some_and(|entry| entry.version == version)
    }

    /// Takes a range, and drops unused chunks until there is one (step 2).
    fn room(&self, nbytes: u64) -> Option<u64> {
        loop {
            if let Some(start) = self.free.take(nbytes) {
                return Some(start);
            }
            let mut state = self.state.lock();
            let (&used, _) = state.order.first_key_value()?;
            if state.clock - used <= UNUSED.saturating_mul(state.entries.len() as u64) {
                return None;
            }
            let (_, oldest) = state.order.pop_first()?;
            let dropped = state.entries.remove(&oldest);
            drop(state);
            drop(dropped);
        }
    }
}

/// Creates a file without a name in `folder`; where the file system has no such files, it removes the name.
fn nameless(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    #[cfg(target_os = "linux")]
    if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        return Ok(file);
    }
    let name = format!(".zarrow-cache-{:016x}", crate::store::remote::random_number());
    let path = folder.join(name);
    let said = |error: io::Error| {
        io::Error::new(error.kind(), format!("no cache can be made in {}: {error}", folder.display()))
    };
    let file = options.create_new(true).open(&path).map_err(said)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 8 << 10;

    fn elements(number: u64) -> Vec<u8> {
        (0..CHUNK).map(|at| (at as u64 * 7 + number * 31) as u8).collect()
    }

    fn key(number: u64) -> Key {
        version_of(number, 1)
    }

    fn version_of(number: u64, version: u64) -> Key {
        vec![number, 3, 3, 3, version]
    }

    fn disk(chunks: u64) -> (tempfile::TempDir, DiskCache) {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskCache::new(folder.path(), chunks * CHUNK as u64, 1).unwrap();
        (folder, disk)
    }

    fn get(disk: &DiskCache, key: &Key) -> Option<Buffer> {
        disk.get(key, &mut |nbytes| UninitBuffer::new(nbytes).ok())
    }

    #[test]
    fn chunks_in_use_stay_and_unused_ones_make_room() {
        let (folder, disk) = disk(3);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // Epochs of more chunks than fit.
        for epoch in 0..20 {
            let found = (0..5).filter(|&number| match get(&disk, &key(number)) {
                Some(found) => {
                    assert_eq!(&*found, &elements(number)[..]);
                    true
                }
                None => {
                    disk.insert(&key(number), &elements(number));
                    false
                }
            });
            assert_eq!(found.count(), if epoch == 0 { 0 } else { 3 });
        }
        // Chunk 0 is used no more.
        for _ in 0..20 {
            for number in [1, 2, 7] {
                if get(&disk, &key(number)).is_none() {
                    disk.insert(&key(number), &elements(number));
                }
            }
        }
        assert_eq!(get(&disk, &key(7)).as_deref(), Some(&elements(7)[..]));
        assert!(get(&disk, &key(0)).is_none());
        assert!(disk.file.metadata().unwrap().len() <= 3 * CHUNK as u64);
    }

    #[test]
    fn a_new_version_takes_the_place_of_the_old_one() {
        let (_folder, disk) = disk(3);
        for version in 0..20 {
            for number in 0..3 {
                let key = version_of(number, version);
                assert!(get(&disk, &key).is_none());
                disk.insert(&key, &elements(number + version));
                assert_eq!(get(&disk, &key).as_deref(), Some(&elements(number + version)[..]));
            }
        }
        // Each inner chunk has its place.
        let inner = |number| [key(9), vec![number]].concat();
        assert!(get(&disk, &version_of(0, 99)).is_none() && get(&disk, &version_of(1, 99)).is_none());
        disk.insert(&inner(0), &elements(50));
        disk.insert(&inner(1), &elements(51));
        assert_eq!(get(&disk, &inner(0)).as_deref(), Some(&elements(50)[..]));
        assert_eq!(get(&disk, &inner(1)).as_deref(), Some(&elements(51)[..]));
    }

    #[test]
    fn free_ranges_are_joined() {
        let (_folder, disk) = disk(4);
        for number in 0..4 {
            disk.insert(&key(number), &elements(number));
        }
        for _ in 0..40 {
            assert!(get(&disk, &key(3)).is_some());
        }
        let large = [elements(8), elements(9), elements(10)].concat();
        disk.insert(&key(9), &large);
        assert_eq!(get(&disk, &key(9)).as_deref(), Some(&large[..]));
        assert_eq!(get(&disk, &key(3)).as_deref(), Some(&elements(3)[..]));
        disk.insert(&key(10), &vec![0; 5 * CHUNK]);
        assert!(get(&disk, &key(10)).is_none());
        assert!(disk.free.0.lock().values().sum::<u64>() <= 4 * CHUNK as u64);
    }

    #[test]
    fn a_range_is_kept_while_it_is_read() {
        let (_folder, disk) = disk(1);
        disk.insert(&key(0), &elements(0));
        let range = Arc::clone(&disk.state.lock().entries[&[0][..]].range);
        disk.state.lock().clock += 100;
        disk.insert(&key(1), &elements(1));
        assert!(get(&disk, &key(1)).is_none());
        drop(range);
        disk.insert(&key(1), &elements(1));
        assert_eq!(get(&disk, &key(1)).as_deref(), Some(&elements(1)[..]));
    }

    #[test]
    fn damaged_bytes_are_not_found() {
        let (_folder, disk) = disk(2);
        disk.insert(&key(0), &elements(0));
        disk.file.write_all_at(b"!", 100).unwrap();
        assert!(get(&disk, &key(0)).is_none());
        disk.insert(&key(0), &elements(0));
        assert_eq!(get(&disk, &key(0)).as_deref(), Some(&elements(0)[..]));
        disk.insert(&key(1), &elements(1));
        disk.file.set_len(CHUNK as u64 + 7).unwrap();
        assert!(get(&disk, &key(1)).is_none());
    }

    #[test]
    fn threads_find_what_they_wrote() {
        let (_folder, disk) = disk(20);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let disk = &disk;
                scope.spawn(move || {
                    for turn in 0..400 {
                        let number = (turn * 7 + thread * 13) % 60;
                        match get(disk, &key(number)) {
                            Some(found) => assert_eq!(&*found, &elements(number)[..]),
                            None => disk.insert(&key(number), &elements(number)),
                        }
                    }
                });
            }
        });
    }
}

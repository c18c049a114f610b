//! The server's values by key: the files of its folder, and the puts.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum size of a file to send in one call with the head; the rest is sent from the page cache.
const WITH_HEAD_NBYTES: u64 = 64 << 10;

/// A value of one version.
#[derive(Debug, Clone)]
pub struct Object {
    pub nbytes: u64,
    pub e_tag: String,
    bytes: Bytes,
}

#[derive(Debug, Clone)]
enum Bytes {
    File(PathBuf),
    /// One part, or the parts of an upload.
    Memory(Arc<Vec<Vec<u8>>>),
}

/// The parts of an upload, by their numbers.
type Parts = BTreeMap<u32, Vec<u8>>;

/// All values, by their keys.
#[derive(Debug, Default)]
pub struct Objects {
    all: Mutex<BTreeMap<String, Object>>,
    uploads: Mutex<BTreeMap<String, Parts>>,
    /// Memory of old values, so that a put does not wait for fresh pages.
    spare: Mutex<Vec<Vec<u8>>>,
    versions: AtomicU64,
}

/// Why a value was not set.
#[derive(Debug)]
pub struct Refused;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Objects {
    /// Returns the files below a folder.
    pub fn of_folder(folder: &Path) -> io::Result<Objects> {
        let objects = Objects::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next)? {
                let (path, about) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
                if about.is_dir() {
                    folders.push(path);
                    continue;
                }
                let key = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                let e_tag = objects.next_version();
                let object = Object { nbytes: about.len(), e_tag, bytes: Bytes::File(path) };
                locked(&objects.all).insert(key, object);
            }
        }
        Ok(objects)
    }

    fn next_version(&self) -> String {
        format!("\"{:032x}\"", self.versions.fetch_add(1, Ordering::Relaxed))
    }

    pub fn get(&self, key: &str) -> Option<Object> {
        locked(&self.all).get(key).cloned()
    }

    /// Returns memory for a body.
    pub fn memory(&self) -> Vec<u8> {
        locked(&self.spare).pop().unwrap_or_default()
    }

    /// Sets a value if `allows` accepts the current version.
    pub fn put(
        &self,
        key: &str,
        parts: Vec<Vec<u8>>,
        allows: impl FnOnce(Option<&str>) -> bool,
    ) -> Result<String, Refused> {
        let (nbytes, e_tag) = (parts.iter().map(|part| part.len() as u64).sum(), self.next_version());
        let object = Object { nbytes, e_tag: e_tag.clone(), bytes: Bytes::Memory(Arc::new(parts)) };
        let mut all = locked(&self.all);
        if !allows(all.get(key).map(|object| object.e_tag.as_str())) {
            return Err(Refused);
        }
        let old = all.insert(key.to_owned(), object);
        drop(all);
        old.into_iter().for_each(|old| self.recycle(old));
        Ok(e_tag)
    }

    pub fn delete(&self, key: &str) {
        let old = locked(&self.all).remove(key);
        old.into_iter().for_each(|old| self.recycle(old));
    }

    fn recycle(&self, object: Object) {
        if let Bytes::Memory(parts) = object.bytes
            && let Some(parts) = Arc::into_inner(parts)
        {
            locked(&self.spare).extend(parts);
        }
    }

    pub fn begin_upload(&self) -> String {
        let id = format!("upload{}", self.versions.fetch_add(1, Ordering::Relaxed));
        locked(&self.uploads).insert(id.clone(), Parts::new());
        id
    }

    /// Stores a part; returns whether the upload exists.
    pub fn put_part(&self, upload: &str, number: u32, bytes: Vec<u8>) -> bool {
        locked(&self.uploads).get_mut(upload).map(|parts| parts.insert(number, bytes)).is_some()
    }

    pub fn end_upload(&self, upload: &str) -> Option<Vec<Vec<u8>>> {
        Some(locked(&self.uploads).remove(upload)?.into_values().collect())
    }

    /// Returns the names below a prefix in order, up to the first `delimiter` after it: values with sizes and versions, and
    /// folders.
    pub fn list(&self, prefix: &str, delimiter: &str) -> BTreeMap<String, Option<(u64, String)>> {
        let mut names = BTreeMap::new();
        for (key, object) in locked(&self.all).range(prefix.to_owned()..) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            match rest.split_once(delimiter).filter(|_| !delimiter.is_empty()) {
                Some((folder, _)) => names.insert(format!("{prefix}{folder}{delimiter}"), None),
                None => names.insert(key.clone(), Some((object.nbytes, object.e_tag.clone()))),
            };
        }
        names
    }
}

impl Object {
    /// Sends the head of an answer, followed by these bytes.
    pub fn send(&self, stream: &mut TcpStream, mut head: Vec<u8>, range: Range<u64>) -> io::Result<()> {
        match &self.bytes {
            Bytes::File(path) => {
                let mut file = File::open(path)?;
                let nbytes = range.end - range.start;
                let with_head = nbytes.min(WITH_HEAD_NBYTES);
                let start = head.len();
                head.resize(start + with_head as usize, 0);
                file.read_exact_at(&mut head[start..], range.start)?;
                stream.write_all(&head)?;
                io::Seek::seek(&mut file, io::SeekFrom::Start(range.start + with_head))?;
                // Between a file and a socket this is `sendfile`.
                io::copy(&mut io::Read::take(file, nbytes - with_head), stream)?;
            }
            Bytes::Memory(parts) => {
                stream.write_all(&head)?;
                let mut start = 0;
                for part in parts.iter() {
                    let end = start + part.len() as u64;
                    let (from, to) = (range.start.max(start), range.end.min(end));
                    if from < to {
                        stream.write_all(&part[(from - start) as usize..(to - start) as usize])?;
                    }
                    start = end;
                }
            }
        }
        Ok(())
    }
}

//! Calls of user-defined codecs in progress.
//!
//! 1. A codec may read and write arrays with other user-defined codecs, down to [`MAX_DEPTH`]. A job of the thread
//!    pool inherits the depth of the thread that submitted it, so that helping threads count correctly.
//! 2. A codec may wait for a lock that its own caller holds. This cannot be detected in general: the codec may wait on
//!    another thread. So a wait inside a codec ends soon. So does any other wait, if one call of a codec lasts
//!    as long.
//! 3. A codec may block a thread of the pool until a detached job has ended. The pool starts another thread then.

use std::cell::Cell;
use std::time::{Duration, Instant};
use zarrow_array::fork::{Mutex, generation};

/// Maximum number of calls that led to each other.
const MAX_DEPTH: usize = 8;

/// Maximum number of calls in the process: codecs that hand their work to new threads have no depth.
const MAX_CALLS: usize = 4096;

/// Maximum time that a codec waits for one holder of a lock.
#[cfg(not(test))]
const INSIDE: Duration = Duration::from_secs(10);
#[cfg(test)]
const INSIDE: Duration = Duration::from_millis(200);

/// Maximum wait for one holder of a lock during a single call of a codec, on any thread. Even a slow codec needs less
/// for a chunk.
#[cfg(not(test))]
const BESIDE: Duration = Duration::from_secs(30);
#[cfg(test)]
const BESIDE: Duration = Duration::from_millis(400);

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The process and the start of each call.
static CALLS: Mutex<Vec<(u64, Instant)>> = Mutex::new(Vec::new());

/// Guard of a call in progress.
pub struct CodecCall((u64, Instant));

impl CodecCall {
    /// Enters a call; returns `None` if there are too many.
    pub fn enter() -> Option<CodecCall> {
        if depth() >= MAX_DEPTH {
            return None;
        }
        let call = (generation(), Instant::now());
        let mut calls = CALLS.lock();
        if calls.len() >= MAX_CALLS {
            return None;
        }
        calls.push(call);
        drop(calls);
        DEPTH.set(depth() + 1);
        Some(CodecCall(call))
    }
}

impl Drop for CodecCall {
    fn drop(&mut self) {
        DEPTH.set(depth().saturating_sub(1));
        let mut calls = CALLS.lock();
        if let Some(at) = calls.iter().position(|call| *call == self.0) {
            calls.swap_remove(at);
        }
    }
}

/// Returns the number of nested calls around this thread's work.
pub fn depth() -> usize {
    DEPTH.get()
}

/// Guard that gives this thread the depth of another one.
pub struct Inherited(usize);

impl Inherited {
    /// Takes over a depth (step 1).
    pub fn take(depth: usize) -> Inherited {
        Inherited(DEPTH.replace(depth))
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

/// Returns the number of calls under way in this process.
pub fn count() -> usize {
    let own = generation();
    CALLS.lock().iter().filter(|(process, _)| *process == own).count()
}

/// Returns whether a wait for one holder of a lock, begun at `first`, is too long given the codec calls in progress
/// (step 2).
pub fn is_too_long(first: Instant) -> bool {
    let waited = first.elapsed();
    if depth() > 0 {
        return waited >= INSIDE;
    }
    let own = generation();
    waited >= BESIDE && CALLS.lock().iter().any(|(process, start)| *process == own && *start <= first)
}

#[cfg(test)]
mod tests {
    use crate::codec::{ChunkDescription, Codec, CodecFailure, CodecKind, DecodedBytes, register};
    use crate::error::Result;
    use crate::metadata::CodecMetadata;
    use crate::node::array::Array;
    use crate::store::{FilesystemStore, MemoryStore, Store};
    use crate::{ArrayBuilder, Existing, Number, OpenOptions, Selection};
    use std::fmt;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use zarrow_array::fork::OnceCell;

    type Work = Box<dyn Fn(&Array) -> Result<()> + Send + Sync>;

    /// A codec that uses the array while encoding it.
    struct Reentrant {
        array: Arc<OnceCell<Array>>,
        work: Arc<Work>,
    }

    impl fmt::Debug for Reentrant {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.debug_struct("Reentrant").finish_non_exhaustive()
        }
    }

    impl Codec for Reentrant {
        fn decode(
            &self,
            encoded: &[u8],
            _: Option<ChunkDescription<'_>>,
            decoded: &mut DecodedBytes<'_>,
        ) -> Result<(), CodecFailure> {
            Ok(decoded.push(encoded)?)
        }

        fn encode(&self, decoded: &[u8], _: Option<ChunkDescription<'_>>) -> Result<Vec<u8>, CodecFailure> {
            if let Some(array) = self.array.get() {
                (self.work)(array)?;
            }
            Ok(decoded.to_vec())
        }
    }

    /// Writes part of a chunk, and appends, while the codec does `work`; returns the errors.
    fn errors_of(name: &str, work: impl Fn(&Array) -> Result<()> + Send + Sync + 'static) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let local = Arc::new(FilesystemStore::create(folder.path()).unwrap());
        let stores: [Arc<dyn Store>; 2] = [Arc::new(MemoryStore::default()), local];
        let work: Arc<Work> = Arc::new(Box::new(work));
        let mut errors = Vec::new();
        for store in stores {
            let array = Arc::new(OnceCell::new());
            let (own, work) = (Arc::clone(&array), Arc::clone(&work));
            let make = move |_: &_| -> Result<Arc<dyn Codec>, CodecFailure> {
                Ok(Arc::new(Reentrant { array: Arc::clone(&own), work: Arc::clone(&work) }))
            };
            register(name, CodecKind::BytesToBytes, make).unwrap();
            let codec = CodecMetadata::new(name, serde_json::Map::new());
            let metadata =
                ArrayBuilder::new([20], Number::UInt8).chunk_shape([5]).compressors([codec]).build().unwrap();
            let options = OpenOptions::default();
            let mut own = crate::create_array(store, "", metadata, Existing::Refuse, &options).unwrap();
            own.write(.., &[1u8; 20]).unwrap();
            array.set(own.clone());
            errors.push(own.write(1..3, &[2u8, 2]).unwrap_err().to_string());
            errors.push(own.append(&[3u8; 3], 0).unwrap_err().to_string());
        }
        errors
    }

    #[test]
    fn a_codec_that_writes_to_its_own_array_is_an_error() {
        for error in errors_of("writes itself", |array| array.write(4..6, &[7u8, 7])) {
            assert!(error.contains("a codec waited too long for the lock of"), "{error}");
        }
        for error in errors_of("replaces itself", |array| array.write(5..10, &[7u8; 5])) {
            assert!(error.contains("call each other too deeply"), "{error}");
        }
        for error in errors_of("appends to itself", |array| array.clone().append(&[7u8], 0).map(drop)) {
            assert!(error.contains("too long for the lock of") || error.contains("need itself"), "{error}");
        }
    }

    #[test]
    fn a_codec_whose_other_thread_writes_to_its_own_array_is_an_error() {
        let errors = errors_of("has it written", |array| {
            std::thread::scope(|scope| scope.spawn(|| array.write(1..17, &[7u8; 16])).join()).unwrap()
        });
        for error in errors {
            assert!(error.contains("may be in a codec that waits for this write"), "{error}");
        }
    }

    /// All threads of the pool wait in codecs for work of the pool.
    #[test]
    fn a_codec_that_awaits_the_pool_is_an_error_where_it_needs_itself() {
        let errors = errors_of("awaits itself", |array| {
            let (sender, receiver) = channel();
            let values = array.read(5..10)?;
            let selection = Selection::new(&[20], &[(5..10).into()])?;
            let done = move |written| sender.send(written).unwrap();
            array.write_request(selection)?.detach(Box::new(values), done)?;
            receiver.recv().unwrap()
        });
        for error in errors {
            assert!(error.contains("call each other too deeply"), "{error}");
        }
    }
}

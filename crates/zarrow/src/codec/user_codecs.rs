//! User-defined codecs, by name.
//!
//! 1. [`register`](super::register()) takes a name, the [`CodecKind`], and a function that creates a [`Codec`] from a configuration.
//!    Arrays opened or created later know the name, in version 2 and 3, with or without `numcodecs.` before it.
//! 2. Built-in codecs cannot be replaced: a program does not decide what a store means by `zstd`.
//! 3. The metadata determine how many bytes a codec decodes to, and [`DecodedBytes`] accepts no more.
//! 4. A codec is called on any thread of the pool, on several at once, while no lock is held that another array needs.
//!    It may therefore read and write other arrays. A codec that needs itself is stopped: see `codec_calls`.

use crate::codec::output::Output;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecKind, CodecMetadata};
use crate::store::codec_calls::CodecCall;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use zarrow_array::DataType;
use zarrow_array::allocation;
use zarrow_array::fork::Mutex;

/// Failure of a user-defined codec: any error.
pub type CodecFailure = Box<dyn std::error::Error + Send + Sync>;

/// The chunk that a codec encodes or decodes.
#[derive(Debug, Clone, Copy)]
pub struct ChunkDescription<'a> {
    /// Type of an element.
    pub data_type: &'a DataType,
    /// Number of elements along each axis. They are native-endian and in C order.
    pub shape: &'a [u64],
}

/// A codec configured by the metadata of an array.
pub trait Codec: Debug + Send + Sync {
    /// Decodes `encoded` to `decoded`. `chunk` is `None` for a bytes-to-bytes codec.
    ///
    /// # Errors
    /// Any error: it is reported to the caller with store, array, chunk and codec.
    fn decode(
        &self,
        encoded: &[u8],
        chunk: Option<ChunkDescription<'_>>,
        decoded: &mut DecodedBytes<'_>,
    ) -> Result<(), CodecFailure>;

    /// Encodes `decoded` to the bytes to store; an array-to-array codec returns as many bytes as `decoded` has.
    ///
    /// # Errors
    /// As [`decode`](Codec::decode).
    fn encode(&self, decoded: &[u8], chunk: Option<ChunkDescription<'_>>) -> Result<Vec<u8>, CodecFailure>;
}

/// Output of a decoding codec (step 3).
pub struct DecodedBytes<'a> {
    output: Output<'a>,
    written: usize,
    is_over: bool,
}

impl Debug for DecodedBytes<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (expected, written) = (self.expected(), self.written);
        formatter
            .debug_struct("DecodedBytes")
            .field("expected", &expected)
            .field("written", &written)
            .finish()
    }
}

impl DecodedBytes<'_> {
    /// Returns the expected number of bytes if the metadata determine it: they do except for strings, and for
    /// codecs that follow a compressor.
    #[must_use]
    pub fn expected(&self) -> Option<usize> {
        match &self.output {
            Output::Exact(memory) => Some(memory.len()),
            Output::Growing(..) => None,
        }
    }

    /// Returns the maximum number of bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        match &self.output {
            Output::Exact(memory) => memory.len(),
            Output::Growing(_, limit) => *limit,
        }
    }

    /// Appends bytes to those already written.
    ///
    /// # Errors
    /// [`ErrorKind::TooLong`] for more than [`limit`](DecodedBytes::limit); [`zarrow_array::Error::OutOfMemory`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.written.saturating_add(bytes.len());
        if self.is_over || end > self.limit() {
            self.is_over = true;
            return Err(self.too_long());
        }
        match &mut self.output {
            Output::Exact(memory) => {
                memory[self.written..end].write_copy_of_slice(bytes);
            }
            Output::Growing(vector, _) => {
                let no_memory = |_| zarrow_array::Error::OutOfMemory { nbytes: bytes.len() };
                vector.try_reserve(bytes.len()).map_err(no_memory)?;
                vector.extend_from_slice(bytes);
            }
        }
        self.written = end;
        Ok(())
    }

    fn too_long(&self) -> Error {
        let limit = self.limit() as u64;
        ErrorKind::TooLong { expected: limit, least: limit }.into()
    }

    /// Checks that all expected bytes were written.
    fn finish(self) -> Result<()> {
        match self.expected() {
            _ if self.is_over => Err(self.too_long()),
            Some(expected) if expected != self.written => {
                Err(ErrorKind::WrongSize { expected: expected as u64, actual: self.written as u64 }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Creates a codec from its configuration.
type Make = dyn Fn(&Map<String, Value>) -> Result<Arc<dyn Codec>, CodecFailure> + Send + Sync;

static REGISTRY: Mutex<BTreeMap<String, (CodecKind, Arc<Make>)>> = Mutex::new(BTreeMap::new());

/// Registers a codec under a name without the prefix of numcodecs, replacing any codec registered before.
pub fn insert(
    name: &str,
    kind: CodecKind,
    make: impl Fn(&Map<String, Value>) -> Result<Arc<dyn Codec>, CodecFailure> + Send + Sync + 'static,
) {
    let replaced = REGISTRY.lock().insert(name.to_owned(), (kind, Arc::new(make)));
    // Dropped after unlocking: the drop may run arbitrary code.
    drop(replaced);
}

/// Prefix of numcodecs ids in version 3.
pub const PREFIX: &str = "numcodecs.";

fn entry(name: &str) -> Option<(CodecKind, Arc<Make>)> {
    let registry = REGISTRY.lock();
    registry.get(name.strip_prefix(PREFIX).unwrap_or(name)).cloned()
}

/// Returns the kind of the codec registered under `name`; `None` if there is no such codec.
pub fn kind_of(name: &str) -> Option<CodecKind> {
    entry(name).map(|(kind, _)| kind)
}

/// A registered codec, configured for an array.
#[derive(Debug, Clone)]
pub struct UserCodec {
    name: Arc<str>,
    codec: Arc<dyn Codec>,
}

impl PartialEq for UserCodec {
    fn eq(&self, other: &UserCodec) -> bool {
        Arc::ptr_eq(&self.codec, &other.codec)
    }
}

impl Eq for UserCodec {}

impl UserCodec {
    /// Returns the codec that `metadata` name.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCodec`] if no codec of this kind is registered under the name; errors of the codec's
    /// constructor; with the codec named.
    pub fn from_metadata(metadata: &CodecMetadata, kind: CodecKind) -> Result<UserCodec> {
        let codec = match entry(&metadata.name) {
            Some((registered, make)) if registered == kind => nested(|| make(&metadata.configuration)),
            _ => Err(ErrorKind::UnknownCodec(metadata.name.clone()).into()),
        };
        let codec = codec.map_err(|error| error.in_codec(&metadata.name))?;
        Ok(UserCodec { name: metadata.name.as_str().into(), codec })
    }

    /// Returns the name in the metadata.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Decodes to all of `output`.
    ///
    /// # Errors
    /// Errors of the codec; [`ErrorKind::WrongSize`], [`ErrorKind::TooLong`]; with the codec named.
    pub fn decode(
        &self,
        encoded: &[u8],
        chunk: Option<ChunkDescription<'_>>,
        output: Output<'_>,
    ) -> Result<()> {
        let mut decoded = DecodedBytes { output, written: 0, is_over: false };
        nested(|| self.codec.decode(encoded, chunk, &mut decoded))
            .and_then(|()| decoded.finish())
            .map_err(|error| error.in_codec(&self.name))
    }

    /// As [`decode`](UserCodec::decode), to fresh memory.
    pub fn decoded(&self, encoded: &[u8], chunk: ChunkDescription<'_>, nbytes: usize) -> Result<Vec<u8>> {
        let mut decoded = allocation::with_capacity(nbytes)?;
        self.decode(encoded, Some(chunk), Output::Growing(&mut decoded, nbytes))?;
        match decoded.len() {
            actual if actual == nbytes => Ok(decoded),
            actual => Err(self.wrong_size(nbytes, actual)),
        }
    }

    /// Encodes `decoded`.
    ///
    /// # Errors
    /// Errors of the codec; [`ErrorKind::Limit`] for more bytes than a read accepts; with the codec named.
    pub fn encode(&self, decoded: &[u8], chunk: Option<ChunkDescription<'_>>) -> Result<Vec<u8>> {
        let limit = most_encoded(decoded.len());
        nested(|| self.codec.encode(decoded, chunk))
            .and_then(|encoded| match encoded.len() {
                nbytes if nbytes > limit => {
                    let what = "the encoded size of a chunk";
                    Err(ErrorKind::Limit { what, actual: nbytes as u64, limit: limit as u64 }.into())
                }
                _ => Ok(encoded),
            })
            .map_err(|error| error.in_codec(&self.name))
    }

    /// As [`encode`](UserCodec::encode), for an array-to-array codec: the number of bytes stays the same.
    pub fn encode_elements(&self, decoded: &[u8], chunk: ChunkDescription<'_>) -> Result<Vec<u8>> {
        let encoded = self.encode(decoded, Some(chunk))?;
        if encoded.len() == decoded.len() {
            Ok(encoded)
        } else {
            Err(self.wrong_size(decoded.len(), encoded.len()))
        }
    }

    fn wrong_size(&self, expected: usize, actual: usize) -> Error {
        let kind = ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 };
        Error::from(kind).in_codec(&self.name)
    }
}

/// Returns the maximum encoded size of `nbytes` with a user-defined codec. Its behaviour is unknown: numbers as text
/// take several digits for each byte.
pub fn most_encoded(nbytes: usize) -> usize {
    nbytes.saturating_add(nbytes / 8).saturating_add(64 << 10).saturating_mul(4)
}

/// Calls a codec, unless the call is nested too deeply (step 4).
fn nested<T>(call: impl FnOnce() -> Result<T, CodecFailure>) -> Result<T> {
    let Some(_call) = CodecCall::enter() else {
        let text =
            "user-defined codecs call each other too deeply: one may read an array that needs the same codec";
        return Err(ErrorKind::BadCodec(text.into()).into());
    };
    // Zarrow errors are passed on unchanged.
    call().map_err(|failure| match failure.downcast::<Error>() {
        Ok(error) => *error,
        Err(failure) => ErrorKind::CodecFailed(failure).into(),
    })
}

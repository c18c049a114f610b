//! Registration of user-defined codecs.

use crate::codec::built_in;
use crate::codec::user_codecs::{Codec, CodecFailure, PREFIX, insert};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::CodecKind;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Registers a codec under a name, replacing any codec registered before. Open arrays keep their codec.
///
/// # Errors
/// [`ErrorKind::BadCodec`] for the name of a built-in codec and for an empty name.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::codec::{ChunkDescription, Codec, CodecFailure, CodecKind, DecodedBytes, register};
///
/// #[derive(Debug)]
/// struct Inverted;
///
/// impl Codec for Inverted {
///     fn decode(
///         &self,
///         encoded: &[u8],
///         _: Option<ChunkDescription<'_>>,
///         decoded: &mut DecodedBytes<'_>,
///     ) -> Result<(), CodecFailure> {
///         Ok(decoded.push(&encoded.iter().map(|byte| !byte).collect::<Vec<u8>>())?)
///     }
///
///     fn encode(&self, decoded: &[u8], _: Option<ChunkDescription<'_>>) -> Result<Vec<u8>, CodecFailure> {
///         Ok(decoded.iter().map(|byte| !byte).collect())
///     }
/// }
///
/// register("inverted", CodecKind::BytesToBytes, |_configuration| Ok(Arc::new(Inverted)))?;
/// assert!(register("zstd", CodecKind::BytesToBytes, |_| Ok(Arc::new(Inverted))).is_err());
/// # Ok::<(), zarrow::Error>(())
/// ```
pub fn register(
    name: &str,
    kind: CodecKind,
    make: impl Fn(&Map<String, Value>) -> Result<Arc<dyn Codec>, CodecFailure> + Send + Sync + 'static,
) -> Result<()> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    if name.is_empty() {
        return Err(ErrorKind::BadCodec("the name of a codec is empty".into()).into());
    }
    if [name.to_owned(), format!("{PREFIX}{name}")].iter().any(|name| built_in::find(name).is_some()) {
        let text = "this codec is built in: register yours under another name";
        return Err(Error::from(ErrorKind::BadCodec(text.into())).in_codec(name));
    }
    insert(name, kind, make);
    Ok(())
}

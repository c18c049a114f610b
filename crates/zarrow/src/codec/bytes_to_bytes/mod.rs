//! Bytes-to-bytes codecs. Each is a file with its names, parameters, bounds, decoder and encoder, and a line below.

pub mod checksum;
mod fletcher32;
pub mod libdeflate;
pub mod libzstd;
mod lookup3;
pub mod setting;

crate::codec::definition::codecs! {
    base64: DEFINITION;
    bz2: DEFINITION;
    checksum_codecs: CRC32C, CRC32, ADLER32, FLETCHER32, LOOKUP3;
    deflate: GZIP, ZLIB;
    lz4: DEFINITION;
    lzma: DEFINITION;
    shuffle: DEFINITION;
    zstd: DEFINITION;
}

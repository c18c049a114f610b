//! Zip archives for tests; every second member is deflated, with stored blocks.

use std::collections::BTreeMap;

/// Returns an archive of these values. Each local header has `extra` bytes of extra fields.
pub fn archive(values: &BTreeMap<String, Vec<u8>>, extra: usize) -> Vec<u8> {
    let (mut archive, mut directory) = (b"leading bytes before the archive".to_vec(), Vec::new());
    for (number, (key, value)) in values.iter().enumerate() {
        let (method, stored) = if number % 2 == 0 { (0u16, value.clone()) } else { (8, deflated(value)) };
        let sizes: Vec<u8> = [crc32(value), stored.len() as u32, value.len() as u32]
            .iter()
            .flat_map(|size| size.to_le_bytes())
            .collect();
        let header = archive.len() as u32;
        let fields = |version: &[u8]| {
            let mut fields = version.to_vec();
            fields.extend_from_slice(&[0, 0]);
            fields.extend_from_slice(&method.to_le_bytes());
            fields.extend_from_slice(&[0; 4]);
            fields.extend_from_slice(&sizes);
            fields.extend_from_slice(&(key.len() as u16).to_le_bytes());
            fields
        };
        archive.extend_from_slice(b"PK\x03\x04");
        archive.extend(fields(&[20, 0]));
        archive.extend_from_slice(&(extra as u16).to_le_bytes());
        archive.extend_from_slice(key.as_bytes());
        archive.extend(vec![0; extra]);
        archive.extend(&stored);
        directory.extend_from_slice(b"PK\x01\x02");
        directory.extend(fields(&[20, 0, 20, 0]));
        directory.extend_from_slice(&[0; 12]);
        directory.extend_from_slice(&header.to_le_bytes());
        directory.extend_from_slice(key.as_bytes());
    }
    let (start, count) = (archive.len() as u32, values.len() as u16);
    archive.extend(&directory);
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    archive.extend([count, count].iter().flat_map(|count| count.to_le_bytes()));
    archive.extend([directory.len() as u32, start].iter().flat_map(|number| number.to_le_bytes()));
    archive.extend_from_slice(&[7, 0]);
    archive.extend_from_slice(b"comment");
    archive
}

/// Returns a deflate stream of stored blocks.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    for block in bytes.chunks(1000) {
        stream.push(0);
        stream.extend((block.len() as u16).to_le_bytes());
        stream.extend((!(block.len() as u16)).to_le_bytes());
        stream.extend(block);
    }
    stream.extend([1, 0, 0, 0xff, 0xff]);
    stream
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

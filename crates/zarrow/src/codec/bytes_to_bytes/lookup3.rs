//! Bob Jenkins' lookup3, as HDF5 uses it: a hash of 32 bits that does not depend on the machine's byte order.
//!
//! Source: HDF5 1.14, `H5_checksum_lookup3`; burtleburtle.net/bob/c/lookup3.c, `hashlittle`.

/// Returns the hash of `bytes`, starting from `initval`.
pub fn lookup3(bytes: &[u8], initval: u32) -> u32 {
    /// Number of bytes mixed in at once.
    const BLOCK: usize = 12;
    // The length is taken modulo 2³², as in the original.
    let [mut a, mut b, mut c] = [0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(initval); 3];
    let add = |block: &[u8; BLOCK], mut state: [u32; 3]| {
        for (sum, word) in state.iter_mut().zip(block.as_chunks::<4>().0) {
            *sum = sum.wrapping_add(u32::from_le_bytes(*word));
        }
        state
    };
    // The last block, even a full one, is mixed in differently.
    let last = bytes.len().saturating_sub(1) / BLOCK * BLOCK;
    let (blocks, last) = bytes.split_at(last);
    for block in blocks.as_chunks::<BLOCK>().0 {
        [a, b, c] = mix(add(block, [a, b, c]));
    }
    if last.is_empty() {
        return c;
    }
    let mut block = [0; BLOCK];
    block[..last.len()].copy_from_slice(last);
    finish(add(&block, [a, b, c]))
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for [r, s, t] in [[4, 6, 8], [16, 19, 4]] {
        a = a.wrapping_sub(c) ^ c.rotate_left(r);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(s);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(t);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    /// Test vectors of the original's `driver5`.
    #[test]
    fn it_is_that_of_the_original() {
        let text = b"Four score and seven years ago";
        for (bytes, initval, expected) in [
            (&b""[..], 0, 0xdead_beef),
            (b"", 0xdead_beef, 0xbd5b_7dde),
            (text, 0, 0x1777_0551),
            (text, 1, 0xcd62_8161),
        ] {
            assert_eq!(lookup3(bytes, initval), expected);
        }
    }
}

//! The damage to a chunk: step 2.

use crate::case::Case;

/// Pseudorandom numbers, the same in each run.
pub struct Random(pub u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

#[derive(Clone, Copy)]
pub enum Damage {
    Flip,
    Truncation,
    Lie,
}

impl Damage {
    pub const ALL: [Damage; 3] = [Damage::Flip, Damage::Truncation, Damage::Lie];

    /// Step 2.
    pub fn apply(self, case: &Case, stages: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let stored = stages.last().unwrap();
        match self {
            Damage::Flip => {
                let mut bytes = stored.clone();
                let bit = random.below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            }
            Damage::Truncation => stored[..random.below(stored.len())].to_vec(),
            Damage::Lie => {
                let stage = random.below(stages.len());
                let mut bytes = stages[stage].clone();
                lie(&mut bytes, random);
                case.sealed(stage, bytes).pop().unwrap()
            }
        }
    }
}

/// Changes a number: mostly one near an end, where headers, lengths and indexes are.
fn lie(bytes: &mut [u8], random: &mut Random) {
    let length = bytes.len() as u64;
    let near = [0, 1, 2, length - 1, length, length + 1, length / 2, random.next() % (2 * length)];
    let far = [
        i32::MAX as u64,
        1 << 31,
        u64::from(u32::MAX),
        1 << 40,
        i64::MAX as u64,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    let number = [near, far][random.below(2)][random.below(8)];
    let width = [1, 2, 4, 4, 8, 8][random.below(6)].min(bytes.len());
    let at = match random.below(4) {
        0 => random.below(40.min(bytes.len())),
        1 => bytes.len() - 1 - random.below(136.min(bytes.len())),
        2 => random.below(bytes.len()) / 4 * 4,
        _ => random.below(40.min(bytes.len())) / 4 * 4,
    };
    let at = at.min(bytes.len() - width);
    let number = if random.below(4) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
    let field = if number[0] == 0 && random.below(2) == 0 { &number[8 - width..] } else { &number[..width] };
    bytes[at..at + width].copy_from_slice(field);
}

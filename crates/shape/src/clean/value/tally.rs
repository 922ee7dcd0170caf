//! What a value is made of, counted in one pass.

#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    /// `_`, `-`, `.`, `:` and `/`, with which words are joined.
    pub(super) joints: usize,
    pub(super) symbols: usize,
    pub(super) spaces: usize,
    pub(super) case_changes: usize,
    /// What else is in it, as of [`FLAGS`].
    pub(super) flags: u8,
}

/// `(`, `[`, `{`, `<` and their like.
pub(super) const BRACKET: u8 = 1;
/// What two-character operators begin with.
pub(super) const OPERATOR: u8 = 2;
/// What marks a place where something is put in.
pub(super) const TEMPLATE: u8 = 4;
pub(super) const DOT: u8 = 8;
/// What a path has between its parts.
pub(super) const SLASH: u8 = 16;

static FLAGS: [u8; 256] = {
    let mut flags = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        flags[byte as usize] = match byte {
            b'{' | b'<' => BRACKET | TEMPLATE,
            b'(' | b')' | b'[' | b']' | b'}' | b'>' | b'`' => BRACKET,
            b':' | b'-' | b'?' | b'=' => OPERATOR,
            b'$' | b'#' | b'%' | b'@' => TEMPLATE,
            b'.' => DOT,
            b'/' | b'\\' => SLASH,
            _ => 0,
        };
        byte += 1;
    }
    flags
};

/// The case of a byte: none, or one of two that differ by one bit, which makes a change of case cheap to see. Beyond
/// ASCII there are letters, most of them without case, that count as small ones.
static CASES: [u8; 256] = {
    let mut cases = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        cases[byte as usize] = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => 1,
            _ => 2,
        };
        byte += 1;
    }
    cases
};

/// A one in the lane in which a byte is counted. All counts are in one number: as elements of a list, each would wait for
/// the one before to be stored.
static LANES: [u64; 256] = {
    let mut lanes = [1; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let lane = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            b'_' | b'-' | b'.' | b':' | b'/' => 3,
            b' ' | b'\t' => 4,
            _ => 5,
        };
        lanes[byte as usize] = 1 << (8 * lane);
        byte += 1;
    }
    lanes
};

/// So many bytes are counted before a lane of eight bits could overflow.
const ROUND: usize = 255;

/// The lane in which the changes of case are counted, behind those of the kinds.
const CHANGES: usize = 6;

pub(super) fn tally(value: &[u8]) -> Tally {
    #[cfg(test)]
    crate::clean::bytes::asked::add(value.len());
    let (mut counts, mut before, mut flags) = ([0_usize; CHANGES + 1], 2, 0);
    for round in value.chunks(ROUND) {
        let mut lanes = 0_u64;
        for byte in round {
            let case = CASES[usize::from(*byte)];
            lanes += LANES[usize::from(*byte)];
            lanes += u64::from(before ^ case == 1) << (8 * CHANGES);
            before = case;
            flags |= FLAGS[usize::from(*byte)];
        }
        for (count, lane) in counts.iter_mut().zip(lanes.to_le_bytes()) {
            *count += usize::from(lane);
        }
    }
    let [lower, upper, digits, joints, spaces, symbols, case_changes] = counts;
    Tally { lower, upper, digits, joints, symbols, spaces, case_changes, flags }
}

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

const FLAGS: [u8; 256] = {
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

/// What a byte counts as: small letters are 0 and capitals 1, which makes a change of case cheap to see.
const CLASSES: [u8; 256] = {
    let mut classes = [5; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            b'_' | b'-' | b'.' | b':' | b'/' => 3,
            b' ' | b'\t' => 4,
            _ => 5,
        };
        byte += 1;
    }
    classes
};

pub(super) fn tally(value: &[u8]) -> Tally {
    let (mut counts, mut case_changes, mut before, mut flags) = ([0; 6], 0, 5, 0);
    for byte in value {
        let class = CLASSES[usize::from(*byte)];
        counts[usize::from(class)] += 1;
        case_changes += usize::from(before | class == 1 && before != class);
        before = class;
        flags |= FLAGS[usize::from(*byte)];
    }
    let [lower, upper, digits, joints, spaces, symbols] = counts;
    Tally { lower, upper, digits, joints, symbols, spaces, case_changes, flags }
}

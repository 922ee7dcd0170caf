//! Lines that were looked at before, so that one that comes again is not looked at again.
//!
//! What is in a line follows from the line alone, unless it has to do with those around it, and then it is not kept. Of
//! lines no more than their hashes are kept, some of each stream. In most texts lines do not come again: there, few are
//! asked about.

use super::{edit::Edit, found::Found, labels};

/// How many lines are kept: as many as stay near the processor.
const PLACES: usize = 1 << 9;
/// A line with more secrets than this is looked at again.
const MOST: usize = 2;
/// What tells the hash of a line from those that decisions are kept by.
const SALT: u64 = 1 << 16;

/// So much text is worth a question,
const QUESTION_BYTES: usize = 4096;
/// each line that was known is worth so many more,
const EARNED: usize = 8;
/// and more than this are not saved up.
const MOST_QUESTIONS: usize = PLACES;

/// What was found in lines, each where its hash says.
#[derive(Debug, Default)]
pub(super) struct Seen {
    lines: Vec<Option<(u64, Secrets)>>,
    /// How many lines may still be asked about.
    questions: usize,
}

/// A line of which nothing is known yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknown {
    pub(super) hash: u64,
    /// How many edits there were before it.
    pub(super) edits: usize,
}

/// The secrets of a line, by their places in it.
type Secrets = [Option<Found>; MOST];

impl Seen {
    /// Whether it is worth to ask about a line.
    pub(super) fn is_worth_asking(&self) -> bool {
        self.questions > 0
    }

    /// So much text comes now.
    pub(super) fn expect(&mut self, bytes: usize) {
        self.earn(bytes / QUESTION_BYTES);
    }

    fn earn(&mut self, questions: usize) {
        self.questions = (self.questions + questions).min(MOST_QUESTIONS);
    }

    /// What was found in this line before; if nothing is known of it, the hash under which that can be kept.
    pub(super) fn recall(&mut self, line: &[u8]) -> Result<&Secrets, u64> {
        let hash = labels::hash(SALT, line);
        let is_known = matches!(self.lines.get(place(hash)), Some(Some((kept, _))) if *kept == hash);
        if is_known {
            self.earn(EARNED);
        }
        self.questions = self.questions.saturating_sub(1);
        match self.lines.get(place(hash)) {
            Some(Some((_, secrets))) if is_known => Ok(secrets),
            _ => Err(hash),
        }
    }

    /// Keeps what is done to a line that starts here, if it is one to be kept.
    #[inline]
    pub(super) fn keep(&mut self, line: Option<Unknown>, edits: &[Edit], start: usize) {
        if let Some(Unknown { hash, edits: before }) = line {
            self.keep_edits(hash, &edits[before..], start);
        }
    }

    fn keep_edits(&mut self, hash: u64, edits: &[Edit], line: usize) {
        let mut secrets = [const { None }; MOST];
        if edits.len() > MOST {
            return;
        }
        for (secret, edit) in secrets.iter_mut().zip(edits) {
            let Edit::Secret { range, label, why } = edit else { return };
            *secret = Some(Found { range: range.start - line..range.end - line, label, why });
        }
        self.lines.resize(PLACES, None);
        self.lines[place(hash)] = Some((hash, secrets));
    }
}

fn place(hash: u64) -> usize {
    usize::try_from(hash % PLACES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_in_a_line_is_known_again_wherever_the_line_is() {
        let mut seen = Seen::default();
        let hash = seen.recall(b"a line").unwrap_err();
        let secret = |at: usize| Edit::Secret { range: at..at + 3, label: "key", why: "because" };
        seen.keep_edits(hash, &[secret(102)], 100);
        let found = Found { range: 2..5, label: "key", why: "because" };
        assert_eq!(seen.recall(b"a line"), Ok(&[Some(found), None]));
        assert!(seen.recall(b"another").is_err());
    }

    #[test]
    fn lines_that_do_not_come_again_are_asked_about_as_long_as_there_is_hope() {
        let mut seen = Seen::default();
        assert!(!seen.is_worth_asking());
        seen.expect(2 * QUESTION_BYTES);
        for line in [b"one", b"two"] {
            assert!(seen.is_worth_asking());
            let hash = seen.recall(line).unwrap_err();
            seen.keep_edits(hash, &[], 0);
        }
        assert!(!seen.is_worth_asking());
        seen.expect(QUESTION_BYTES);
        // The last one: with a random key, two lines may share a place, and the later takes it.
        assert_eq!(seen.recall(b"two"), Ok(&[None, None]));
        assert!(seen.is_worth_asking());
    }

    #[test]
    fn a_line_with_many_secrets_or_of_a_key_is_not_kept() {
        let mut seen = Seen::default();
        let secret = |at: usize| Edit::Secret { range: at..at + 3, label: "key", why: "because" };
        let many: Vec<_> = (0..=MOST).map(|at| secret(4 * at)).collect();
        for edits in [many, vec![Edit::Drop { range: 0..6 }]] {
            let hash = seen.recall(b"a line").unwrap_err();
            seen.keep_edits(hash, &edits, 0);
            assert_eq!(seen.recall(b"a line"), Err(hash));
        }
    }
}

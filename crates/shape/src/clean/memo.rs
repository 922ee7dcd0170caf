//! What was decided before, so that a name or a value that comes again is not judged again.
//!
//! Only for decisions that follow from a text alone, so that nobody can tell whether one was remembered. Of texts no more
//! than their hashes are kept, a few of each thread.

use std::cell::Cell;

use super::labels;

/// How many decisions are kept: as many as stay near the processor, and so many that a few hundred seldom share one.
const PLACES: usize = 1 << 12;
/// What tells a decision from a place where there is none.
const DECIDED: u8 = 0x80;
/// The bits of a hash that say where its decision is kept, which is in their place there.
const DECISION: u64 = 0xff;

thread_local! {
    static MEMO: [Cell<u64>; PLACES] = const { [const { Cell::new(0) }; PLACES] };
}

/// What is decided about a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum About {
    /// What a name says its value is.
    Name,
    /// Whether the end of a key was made up.
    Key,
    /// Whether a value is a secret, where it is written in this way and has a name of this kind.
    Value(u8),
}

/// The decision about a text, a number below 128: the one from before, or one that is made now.
pub(super) fn recall(about: About, text: &[u8], decide: impl FnOnce() -> u8) -> u8 {
    let salt = match about {
        About::Name => 1,
        About::Key => 2,
        About::Value(way) => 3 + u64::from(way),
    };
    let hash = labels::hash(salt, text);
    let place = usize::try_from(hash % PLACES as u64).unwrap_or(0);
    MEMO.with(|memo| {
        let kept = memo[place].get();
        let [decision, ..] = kept.to_le_bytes();
        if (kept ^ hash) & !DECISION == 0 && decision & DECIDED != 0 {
            return decision & !DECIDED;
        }
        let decision = decide();
        memo[place].set(hash & !DECISION | u64::from(decision | DECIDED));
        decision
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_made_once_about_each_text_and_each_question() {
        let never = || unreachable!("it was decided before");
        for (about, decision) in [(About::Name, 3), (About::Value(0), 0), (About::Value(1), 1)] {
            assert_eq!(recall(about, b"one of a kind", || decision), decision);
            assert_eq!(recall(about, b"one of a kind", never), decision);
        }
        assert_eq!(recall(About::Name, b"another one", || 5), 5);
        for text in [&b"long enough for two words"[..], b"short"] {
            recall(About::Name, text, || 6);
            for other in 0..=u8::MAX {
                let (mut first, mut last) = (text.to_vec(), text.to_vec());
                first[0] ^= other;
                *last.last_mut().unwrap() ^= other;
                for like in [first, last] {
                    assert_eq!(recall(About::Value(9), &like, || 7), 7, "another question about {like:?}");
                }
            }
        }
    }
}

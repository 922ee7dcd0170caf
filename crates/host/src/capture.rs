//! Keeps the beginning and the end of an output of any length.

use std::collections::VecDeque;

/// The first half and the last half of what was written, within a fixed number of bytes.
#[derive(Debug, Clone)]
pub(crate) struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    dropped: u64,
}

impl HeadTail {
    /// Keeps at most `limit_bytes`. Memory is taken as it is needed.
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let head_limit = limit_bytes / 2;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit_bytes - head_limit,
            dropped: 0,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let (skipped, last) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..surplus);
        self.tail.extend(last);
        self.dropped += (skipped.len() + surplus) as u64;
    }

    /// Returns the kept bytes. If bytes were dropped, also returns the position and length of the
    /// gap.
    pub(crate) fn finish(self) -> (Vec<u8>, Option<(usize, u64)>) {
        let gap = (self.dropped > 0).then_some((self.head.len(), self.dropped));
        let mut kept = self.head;
        let (front, back) = self.tail.as_slices();
        kept.reserve_exact(front.len() + back.len());
        kept.extend_from_slice(front);
        kept.extend_from_slice(back);
        (kept, gap)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture(limit_bytes: usize, chunks: &[&[u8]]) -> (Vec<u8>, Option<(usize, u64)>) {
        let mut kept = HeadTail::new(limit_bytes);
        for chunk in chunks {
            kept.push(chunk);
        }
        kept.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(capture(6, &[b"abc", b"def"]), (b"abcdef".to_vec(), None));
    }

    #[test]
    fn what_does_not_fit_loses_its_middle() {
        assert_eq!(capture(6, &[b"abc", b"d", b"efghij"]), (b"abchij".to_vec(), Some((3, 4))));
    }

    proptest! {
        #[test]
        fn chunking_makes_no_difference_and_nothing_is_miscounted(
            limit_bytes in 0usize..40,
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..10),
        ) {
            let whole = chunks.concat();
            let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let (kept, gap) = capture(limit_bytes, &slices);
            prop_assert!(kept.len() <= limit_bytes);
            match gap {
                None => prop_assert_eq!(kept, whole),
                Some((at, missing)) => {
                    let resumes = at + usize::try_from(missing).unwrap();
                    prop_assert_eq!(&kept[..at], &whole[..at]);
                    prop_assert_eq!(&kept[at..], &whole[resumes..]);
                }
            }
        }
    }
}

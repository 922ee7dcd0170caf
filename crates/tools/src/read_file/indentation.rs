//! Finds the block of code around a line by indentation.

/// Width of a tab and of an indentation level, in columns.
const LEVEL: usize = 4;

/// Comment prefixes of most languages.
const COMMENTS: [&str; 3] = ["#", "//", "--"];

/// Extent of a block.
pub(super) struct IndentationBlock {
    /// Number of parents to include; 0 means all.
    pub(super) max_levels: usize,
    pub(super) include_siblings: bool,
    /// True if comments above belong to the block.
    pub(super) include_header: bool,
    /// Maximum number of lines.
    pub(super) budget: usize,
}

impl IndentationBlock {
    /// Returns the start and end of the block around `anchor`.
    pub(super) fn find(&self, lines: &[String], anchor: usize) -> (usize, usize) {
        let indents = indents(lines);
        let least = match self.max_levels {
            0 => 0,
            levels => indents[anchor].saturating_sub(LEVEL.saturating_mul(levels)),
        };
        let (mut from, mut to) = (anchor, anchor + 1);
        let (mut up, mut down) = (Some(0), Some(0));
        while to - from < self.budget && (up.is_some() || down.is_some()) {
            if let Some(seen) = up {
                up = from.checked_sub(1).filter(|at| indents[*at] >= least).and_then(|at| {
                    let counts = indents[at] == least && !self.include_siblings;
                    let header = self.include_header && is_comment(&lines[at]);
                    (!counts || seen == 0 || header).then_some(seen + usize::from(counts))
                });
                from -= usize::from(up.is_some());
            }
            if to - from >= self.budget {
                break;
            }
            if let Some(seen) = down {
                down = Some(to).filter(|at| *at < lines.len() && indents[*at] >= least).and_then(|at| {
                    let counts = indents[at] == least && !self.include_siblings;
                    (!counts || seen == 0).then_some(seen + usize::from(counts))
                });
                to += usize::from(down.is_some());
            }
        }
        trim(lines, from, to)
    }
}

/// Returns the indentation of each line. A blank line has that of the line before.
fn indents(lines: &[String]) -> Vec<usize> {
    let mut last = 0;
    let indent = lines.iter().map(|line| {
        if !line.trim().is_empty() {
            let blank = line.chars().take_while(|character| matches!(character, ' ' | '\t'));
            last = blank.map(|character| if character == '\t' { LEVEL } else { 1 }).sum();
        }
        last
    });
    indent.collect()
}

fn is_comment(line: &str) -> bool {
    COMMENTS.iter().any(|comment| line.trim_start().starts_with(comment))
}

/// Drops blank lines at both ends.
fn trim(lines: &[String], mut from: usize, mut to: usize) -> (usize, usize) {
    while from < to && lines[from].trim().is_empty() {
        from += 1;
    }
    while from < to && lines[to - 1].trim().is_empty() {
        to -= 1;
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODE: &str = "\
use std::fmt;

// The outer one.
// It has two.
fn outer() {
    let a = 1;

    if a {
        inner();
        again();
    }
    tail();
}

fn other() {}
";

    /// Numbers of the first and the last line.
    fn block(anchor: usize, change: impl FnOnce(&mut IndentationBlock)) -> (usize, usize) {
        let mut block =
            IndentationBlock { max_levels: 0, include_siblings: false, include_header: true, budget: 2000 };
        change(&mut block);
        let lines: Vec<_> = CODE.lines().map(str::to_owned).collect();
        let (from, to) = block.find(&lines, anchor - 1);
        (from + 1, to)
    }

    #[test]
    fn one_level_is_the_block_and_two_its_function_with_its_comments() {
        assert_eq!(block(9, |block| block.max_levels = 1), (8, 11));
        assert_eq!(block(9, |block| block.max_levels = 2), (3, 13));
        assert_eq!(
            block(9, |block| {
                block.max_levels = 2;
                block.include_header = false;
            }),
            (5, 13)
        );
    }

    #[test]
    fn siblings_bring_in_what_stands_beside() {
        assert_eq!(
            block(9, |block| {
                block.max_levels = 1;
                block.include_siblings = true;
            }),
            (6, 12)
        );
    }

    #[test]
    fn the_budget_is_spent_above_first_and_blank_ends_are_left_off() {
        assert_eq!(block(9, |block| block.budget = 1), (9, 9));
        assert_eq!(block(9, |block| block.budget = 2), (8, 9));
        assert_eq!(block(9, |block| block.budget = 3), (8, 10));
        assert_eq!(block(8, |block| block.budget = 2), (8, 8));
    }

    proptest! {
        #[test]
        fn a_block_holds_its_anchor_and_keeps_to_its_budget(
            lines in prop::collection::vec("[ \t]{0,9}(x|#|)", 1..40),
            anchor in any::<prop::sample::Index>(),
            max_levels in 0..4_usize,
            include_siblings in any::<bool>(),
            include_header in any::<bool>(),
            budget in 1..30_usize,
        ) {
            let anchor = anchor.index(lines.len());
            let block = IndentationBlock { max_levels, include_siblings, include_header, budget };
            let (from, to) = block.find(&lines, anchor);
            prop_assert!(to <= lines.len() && to - from <= budget);
            prop_assert!((from..to).contains(&anchor) || lines[anchor].trim().is_empty());
        }
    }
}

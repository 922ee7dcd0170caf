//! The lines of an output that a person sees before asking for more.

/// Number of lines of the beginning, and of a result that is no output of a program.
const FIRST_LINES: usize = 2;
const LINES_OF_RESULT: usize = 4;

/// Number of lines of the end, where programs report results and errors.
const LAST_LINES: usize = 4;
const LAST_LINES_OF_FAILURE: usize = 10;

/// The beginning and the end of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputExcerpt<'a> {
    /// The first lines, or all of them.
    pub first: Vec<&'a str>,
    /// The number of lines between the first and the last.
    pub hidden: u64,
    /// The last lines.
    pub last: Vec<&'a str>,
}

impl<'a> OutputExcerpt<'a> {
    /// Chooses lines of the output of a program. The text may be cut; then `total` is the original
    /// number of lines.
    pub fn new(text: &'a str, total: Option<u64>, has_succeeded: bool) -> Self {
        let last = if has_succeeded { LAST_LINES } else { LAST_LINES_OF_FAILURE };
        Self::choose(text, total, (FIRST_LINES, last))
    }

    /// Chooses the beginning of the result of another tool.
    pub fn from_beginning(text: &'a str, total: Option<u64>) -> Self {
        Self::choose(text, total, (LINES_OF_RESULT, 0))
    }

    fn choose(text: &'a str, total: Option<u64>, (begins, ends): (usize, usize)) -> Self {
        let mut first: Vec<_> = text.lines().collect();
        // A line in place of one that is hidden would save nothing.
        if first.len() <= begins + ends + 1 {
            return Self { first, hidden: 0, last: Vec::new() };
        }
        let total = total.unwrap_or(0).max(first.len() as u64);
        let last = first.split_off(first.len() - ends);
        first.truncate(begins);
        Self { hidden: total - (first.len() + last.len()) as u64, first, last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_that_are_not_shown_are_counted() {
        let chosen = |text, total, success| {
            let OutputExcerpt { first, hidden, last } = OutputExcerpt::new(text, total, success);
            (first.join(" "), hidden, last.join(" "))
        };
        let all = ("1 2 3 4 5 6 7".to_owned(), 0, String::new());
        assert_eq!(chosen("1\n2\n3\n4\n5\n6\n7", None, true), all);
        let cut = ("1 2".to_owned(), 2994, "2997 2998 2999 3000".to_owned());
        assert_eq!(chosen("1\n2\n3\n… cut …\n2997\n2998\n2999\n3000", Some(3000), true), cut);
        let (_, hidden, _) = chosen("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14", None, false);
        assert_eq!(hidden, 2);
        let result = OutputExcerpt::from_beginning("1\n2\n3\n4\n5\n6", None);
        assert_eq!((result.first.len(), result.hidden, result.last.len()), (4, 2, 0));
    }
}

//! A parsed request: its tokens, its words, and the places and lines that it names.

use super::{
    tokens::{BEFORE_PLACE, RequestToken, tokenize},
    words::{self, WordClass},
};
use crate::{RequestConstraint, RequestIntent};

/// Words between a place and the preposition before it.
const ARTICLES: [&str; 8] = ["the", "this", "my", "our", "all", "every", "directory", "folder"];

/// Words that are not a place, even after a preposition.
const NO_PLACE: [&str; 25] = [
    "log",
    "here",
    "project",
    "repo",
    "repository",
    "codebase",
    "code",
    "workspace",
    "file",
    "files",
    "line",
    "lines",
    "it",
    "directory",
    "folder",
    "rust",
    "python",
    "last",
    "context",
    "each",
    "git",
    "tests",
    "test",
    "content",
    "contents",
];

/// Words that follow a place in Chinese.
const AFTER_PLACE: [&str; 6] = ["目录", "文件夹", "里", "下", "中", "内"];

/// Constraints that forbid a whole kind of action.
const FORBIDDEN: [RequestConstraint; 2] = [RequestConstraint::ChangeNothing, RequestConstraint::RunNothing];

/// The requested lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineSelection {
    Whole,
    Lines(u64, u64),
    First(u64),
    Last(u64),
}

impl LineSelection {
    /// Returns true for a single line.
    pub(super) fn is_single(self) -> bool {
        matches!(self, Self::Lines(from, to) if from == to)
    }
}

/// Number of lines for a request that only says *the first lines*.
const DEFAULT_LINES: u64 = 10;

/// The files in which something is searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SearchScope {
    /// A file or directory, as the request names it.
    pub(super) place: Option<String>,
    /// A glob for names of files.
    pub(super) glob: Option<String>,
}

impl SearchScope {
    /// Returns the place and the glob that it names.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.place.iter().chain(&self.glob).map(String::as_str)
    }
}

/// The files that *the log* stands for.
pub(super) const LOG_FILES: &str = "*.log";

/// A parsed request.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    /// The text as written, without forbidden actions.
    pub(super) text: String,
    pub(super) tokens: Vec<RequestToken>,
    /// True if nothing may be changed.
    pub(super) changes_nothing: bool,
    /// True if nothing may be run.
    pub(super) runs_nothing: bool,
    /// The words in lower case with one space around each. Quotations and names are left out.
    plain: String,
}

impl ParsedRequest {
    /// Parses a request.
    pub(super) fn new(request: &str) -> Self {
        let forbids = |text: &str, what| RequestIntent::parse(text).demands(what);
        let [changes_nothing, runs_nothing] = FORBIDDEN.map(|what| forbids(request, what));
        // A clause that forbids an action is not an order.
        let text = if changes_nothing || runs_nothing {
            let forbids_any = |clause: &&str| FORBIDDEN.iter().any(|what| forbids(clause, *what));
            clauses(request).filter(|clause| !forbids_any(clause)).collect()
        } else {
            request.to_owned()
        };
        let tokens = tokenize(&text);
        Self { text, changes_nothing, runs_nothing, ..Self::from_tokens(tokens) }
    }

    /// Creates a request from tokens.
    pub(super) fn from_tokens(tokens: Vec<RequestToken>) -> Self {
        let mut plain = String::from(" ");
        for token in &tokens {
            match token {
                RequestToken::Word(word) | RequestToken::Symbol(word) => {
                    plain += &format!("{} ", word.to_lowercase())
                }
                RequestToken::Glyphs(text) => plain += &format!("{text} "),
                RequestToken::Quoted(_)
                | RequestToken::Name(_)
                | RequestToken::Number(_)
                | RequestToken::Range(..)
                | RequestToken::Option(_) => plain += "· ",
            }
        }
        Self { text: plain.clone(), tokens, changes_nothing: false, runs_nothing: false, plain }
    }

    /// Returns true if it has a word of this class.
    pub(super) fn has(&self, word: WordClass) -> bool {
        self.position_of(word).is_some()
    }

    /// Returns true if it has a word of any of these classes.
    pub(super) fn has_any(&self, words: &[WordClass]) -> bool {
        words.iter().any(|word| self.has(*word))
    }

    /// Returns true if it has a word of this class, and none of the others comes before it.
    pub(super) fn begins_with(&self, word: WordClass, others: &[WordClass]) -> bool {
        let Some(place) = self.position_of(word) else { return false };
        others.iter().filter_map(|other| self.position_of(*other)).all(|other| other >= place)
    }

    fn position_of(&self, word: WordClass) -> Option<usize> {
        word.place(&self.plain)
    }

    /// Returns true if it asks or says that something could be done, and is not a polite order:
    /// `can I delete it`, `I could delete it`, 可以删了吗.
    pub(super) fn is_question(&self) -> bool {
        const DOUBTS: [&str; 3] = ["可以", "能不能", "吗"];
        const REQUESTS: [&str; 7] = ["请", "帮", "你", "您", "麻烦", "劳驾", "给我"];
        let says = |words: &[&str]| words.iter().any(|word| self.plain.contains(word));
        let words: Vec<_> = self.plain.split_whitespace().collect();
        let mut polite = says(&REQUESTS);
        for (at, word) in words.iter().enumerate() {
            match (*word, words.get(at + 1)) {
                // The following words name what to run: `run the tests I wrote`.
                ("run", _) => break,
                ("can" | "could" | "would", Some(&"you")) => polite = true,
                ("i" | "we", Some(&"want")) => {}
                ("can" | "could" | "would" | "should" | "shall" | "may" | "i" | "we", _) => return true,
                _ => {}
            }
        }
        // `a.txt 删了` reports a deletion; 把 a.txt 删了 is an order.
        let reports_deletion = says(&["删了", "掉了"]) && !says(&["把", "将"]);
        !polite && (reports_deletion || says(&DOUBTS) || self.text.trim_end().ends_with(['?', '？']))
    }

    /// Returns the names of files and directories, without globs.
    pub(super) fn names(&self) -> Vec<&str> {
        let names = self.tokens.iter().filter_map(|token| match token {
            RequestToken::Name(name) if !name.contains('*') => Some(name.as_str()),
            _ => None,
        });
        names.collect()
    }

    /// Returns the quotations.
    pub(super) fn quoted(&self) -> Vec<&str> {
        let quoted = self.tokens.iter().filter_map(|token| match token {
            RequestToken::Quoted(text) => Some(text.as_str()),
            _ => None,
        });
        quoted.collect()
    }

    /// Returns the search terms: quotations and identifiers.
    pub(super) fn terms(&self) -> Vec<&str> {
        let terms = self.tokens.iter().filter_map(|token| match token {
            RequestToken::Quoted(text) | RequestToken::Symbol(text) => Some(text.as_str()),
            _ => None,
        });
        terms.collect()
    }

    /// Returns the words, except those of scripts without spaces.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            RequestToken::Word(word) => Some(word.as_str()),
            _ => None,
        })
    }

    /// Returns the first word after one of these, without articles.
    pub(super) fn after(&self, marks: &[&str]) -> Option<&str> {
        let at = self.tokens.iter().position(
            |token| matches!(token, RequestToken::Word(word) if marks.contains(&word.to_lowercase().as_str())),
        )?;
        self.tokens[at + 1..].iter().find_map(|token| match token {
            RequestToken::Word(word) if ARTICLES.contains(&word.to_lowercase().as_str()) => None,
            RequestToken::Word(word)
            | RequestToken::Symbol(word)
            | RequestToken::Quoted(word)
            | RequestToken::Name(word) => Some(Some(word.as_str())),
            RequestToken::Number(_)
            | RequestToken::Range(..)
            | RequestToken::Glyphs(_)
            | RequestToken::Option(_) => Some(None),
        })?
    }

    /// Returns the first number.
    pub(super) fn number(&self) -> Option<u64> {
        self.tokens.iter().find_map(|token| match token {
            RequestToken::Number(number) => Some(*number),
            _ => None,
        })
    }

    /// Returns the requested lines of a file.
    pub(super) fn part(&self) -> LineSelection {
        if let Some((from, to)) = self.range() {
            return LineSelection::Lines(from, to);
        }
        let one_line = self.words().any(|word| word == "line");
        let number = self.number().or(one_line.then_some(1));
        let lines = self.has(WordClass::Line);
        let before = |mark: char| {
            self.tokens
                .windows(2)
                .any(|pair| matches!(pair, [RequestToken::Glyphs(text), RequestToken::Number(_)] if text.ends_with(mark)))
        };
        let end = |words: &[&str]| self.words().any(|word| words.contains(&word.to_lowercase().as_str()));
        match number {
            None if end(&["top", "head", "beginning"]) || self.text.contains("开头") => {
                LineSelection::First(DEFAULT_LINES)
            }
            None if end(&["tail", "bottom"]) || self.text.contains("末尾") => {
                LineSelection::Last(DEFAULT_LINES)
            }
            None if !lines => LineSelection::Whole,
            _ if self.has(WordClass::First) || before('前') => {
                LineSelection::First(number.unwrap_or(DEFAULT_LINES))
            }
            _ if self.has(WordClass::Last) || before('后') => {
                LineSelection::Last(number.unwrap_or(DEFAULT_LINES))
            }
            Some(line) if lines && self.numbers_line() => LineSelection::Lines(line.max(1), line.max(1)),
            _ => LineSelection::Whole,
        }
    }

    /// Returns true if a number is that of a line: `line 3`, 第3行, but not `3 lines`.
    fn numbers_line(&self) -> bool {
        self.tokens.windows(2).any(|pair| match pair {
            [RequestToken::Word(word), RequestToken::Number(_)] => {
                ["line", "lines"].contains(&word.to_lowercase().as_str())
            }
            [RequestToken::Glyphs(text), RequestToken::Number(_)] => text.ends_with('第'),
            _ => false,
        })
    }

    /// Returns true if a line is only one end of a range: `from line 3`, `up to line 3`, 到第3行.
    pub(super) fn opens_range(&self) -> bool {
        const OPEN: [&str; 6] = ["from", "to", "until", "through", "after", "before"];
        self.tokens.windows(2).any(|pair| match pair {
            [RequestToken::Word(word), RequestToken::Word(next)] => {
                OPEN.contains(&word.to_lowercase().as_str())
                    && ["line", "lines", "the"].contains(&next.to_lowercase().as_str())
            }
            [RequestToken::Word(word), RequestToken::Number(_)] => {
                OPEN.contains(&word.to_lowercase().as_str())
            }
            [RequestToken::Glyphs(text), RequestToken::Number(_)] => text.contains(['到', '至', '从']),
            _ => false,
        })
    }

    /// Parses `10-20`, `10 to 20`, 10到20.
    fn range(&self) -> Option<(u64, u64)> {
        const BETWEEN: [&str; 6] = ["to", "through", "until", "-", "到", "至"];
        let between = |text: &str| {
            BETWEEN.iter().any(|word| text.trim_start_matches('行') == *word)
                || text == "行到第"
                || text == "到第"
        };
        let spelled = self.tokens.windows(3).find_map(|three| match three {
            [
                RequestToken::Number(from),
                RequestToken::Word(text) | RequestToken::Glyphs(text),
                RequestToken::Number(to),
            ] if between(text) => Some((*from, *to)),
            _ => None,
        });
        let written = self.tokens.iter().find_map(|token| match token {
            RequestToken::Range(from, to) => Some((*from, *to)),
            _ => None,
        });
        written.or(spelled).map(|(a, b)| (a.min(b).max(1), a.max(b).max(1)))
    }

    /// Returns the files in which to search.
    pub(super) fn scope(&self) -> SearchScope {
        SearchScope { place: self.place(), glob: self.glob() }
    }

    /// Returns the file or directory that is named.
    fn place(&self) -> Option<String> {
        let named = self.names().into_iter().find(|name| extension_of(name).is_none());
        named.map(str::to_owned).or_else(|| self.chinese_place()).or_else(|| self.english_place())
    }

    fn english_place(&self) -> Option<String> {
        let word = self.after(&BEFORE_PLACE)?;
        let is_place = !NO_PLACE.contains(&word.to_lowercase().as_str());
        (is_place && self.words().any(|each| each == word)).then(|| word.to_owned())
    }

    /// Parses `src 里`, `在 src`, 数据目录.
    fn chinese_place(&self) -> Option<String> {
        let pairs = self.tokens.windows(2).find_map(|pair| match pair {
            [RequestToken::Word(word), RequestToken::Glyphs(text)]
                if words::extension(word).is_none()
                    && AFTER_PLACE.iter().any(|mark| text.starts_with(mark)) =>
            {
                Some(word.clone())
            }
            [RequestToken::Glyphs(text), RequestToken::Word(word)]
                if text.ends_with('在') && words::extension(word).is_none() =>
            {
                Some(word.clone())
            }
            _ => None,
        });
        let own = self.tokens.iter().find_map(|token| match token {
            RequestToken::Glyphs(text) => {
                ["目录", "文件夹"].iter().find_map(|mark| text.split_once(mark)).map(|(name, _)| name)
            }
            _ => None,
        });
        pairs.or_else(|| {
            own.filter(|name| !name.is_empty() && !name.ends_with(['个', '前'])).map(str::to_owned)
        })
    }

    /// Returns the glob that is written, or that of the named kind of files.
    fn glob(&self) -> Option<String> {
        let written = self.tokens.iter().find_map(|token| match token {
            RequestToken::Name(name) if name.contains('*') => Some(name.clone()),
            _ => None,
        });
        let kind = || self.kind().map(|extension| format!("*.{extension}"));
        written.or_else(kind).or_else(|| self.means_log().then(|| LOG_FILES.to_owned()))
    }

    /// Returns true if it is about *the log* and not about commits, so that log files are meant.
    pub(super) fn means_log(&self) -> bool {
        let says = |words: &[&str]| self.words().any(|word| words.contains(&word.to_lowercase().as_str()));
        let log = says(&["log"]) || self.text.contains("日志");
        log && self.names().is_empty() && !says(&["git", "commit", "commits"]) && !self.text.contains("提交")
    }

    /// Returns the extension of the named kind of files: `python files`, `.py files`, `lines of
    /// rust`, md 文件.
    pub(super) fn kind(&self) -> Option<String> {
        let counts = self.has(WordClass::Count);
        self.tokens.iter().enumerate().find_map(|(at, token)| {
            let followed = self.tokens.get(at + 1).is_some_and(means_files);
            match token {
                // Longer names are unambiguous; `go` and `c` are not.
                RequestToken::Word(word) if counts && word.len() > 3 => {
                    words::extension(word).map(str::to_owned)
                }
                RequestToken::Word(word) | RequestToken::Symbol(word) if followed => {
                    words::extension(word).map(str::to_owned)
                }
                RequestToken::Name(name) if followed => extension_of(name),
                _ => None,
            }
        })
    }
}

/// Returns true if the word before this token is a kind of files.
fn means_files(token: &RequestToken) -> bool {
    const NOUNS: [&str; 7] = ["file", "files", "code", "source", "sources", "script", "scripts"];
    match token {
        RequestToken::Word(word) => NOUNS.contains(&word.to_lowercase().as_str()),
        RequestToken::Glyphs(text) => {
            ["文件", "代码", "源", "脚本"].iter().any(|mark| text.starts_with(mark))
        }
        _ => false,
    }
}

/// Splits a text into clauses, with their separators.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split_inclusive(['，', '。', '；', '：', ',', ';', '\n']);
    let parts =
        parts.flat_map(|part| part.split_inclusive(" but ")).flat_map(|part| part.split_inclusive(". "));
    // `delete a.txt without running anything` has two clauses.
    parts.flat_map(|part| {
        let (first, rest) = part.split_at(part.find(" without ").unwrap_or(part.len()));
        [first, rest].into_iter().filter(|part| !part.is_empty())
    })
}

/// Returns the extension, if the name is only an extension, such as `.py`.
fn extension_of(name: &str) -> Option<String> {
    words::extension(name.strip_prefix('.')?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_told_from_a_polite_order() {
        for (request, is_question) in [
            ("can i delete a.txt", true),
            ("ok i delete a.txt", true),
            ("you can delete a.txt", true),
            ("delete a.txt?", true),
            ("could you delete a.txt?", false),
            ("I want to delete a.txt", false),
            ("run the tests I wrote", false),
            ("a.txt 可以删了吗", true),
            ("a.txt 删了", true),
            ("把 a.txt 删了", false),
            ("请问你能不能删 a.txt？", false),
            ("运行性能测试", false),
        ] {
            assert_eq!(ParsedRequest::new(request).is_question(), is_question, "{request}");
        }
    }
}

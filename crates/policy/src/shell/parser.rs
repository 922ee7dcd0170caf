//! Runs the grammar within limits: bounded time, only ASCII bytes.

use std::{borrow::Cow, cell::RefCell, ops::ControlFlow};

use tree_sitter::{ParseOptions, Parser, Tree};

use super::unclear::is_plain;

/// Maximum number of progress reports of the parser, one per hundred steps. Plain scripts need one
/// step per two or three bytes; a script of 128 KiB that needs more is complicated on purpose.
const MAX_PROGRESS: usize = 4000;

/// The operator of a here-string.
pub(super) const HERE_STRING: &str = "<<<";

/// Returns the tree of a script; none if parsing takes too long.
pub(super) fn parse(source: &str) -> Option<Tree> {
    thread_local! {
        static PARSER: RefCell<Option<Parser>> = RefCell::new(new_parser());
    }
    PARSER.with_borrow_mut(|parser| {
        let parser = parser.as_mut()?;
        // Otherwise a stopped parser would resume.
        parser.reset();
        let mut progress = 0;
        let mut watch = |_: &_| {
            progress += 1;
            if progress > MAX_PROGRESS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let bytes = masked(source);
        let mut bytes = |at: usize, _| bytes.get(at..).unwrap_or_default();
        parser.parse_with_options(&mut bytes, None, Some(options))
    })
}

/// Returns the script as the grammar sees it: every byte that is not ASCII looks like a letter, as
/// it does to a shell. The grammar takes some of them for white space. Its scanner (0.25.1) also
/// indexes a table without a bounds check: `{` before U+10FFFF aborts the process. A here-string
/// looks like a file (`<  word`), because the grammar knows no here-string after a file. Offsets
/// stay the same.
fn masked(source: &str) -> Cow<'_, [u8]> {
    let here_strings: Vec<_> = source.match_indices(HERE_STRING).map(|(at, _)| at).collect();
    if source.bytes().all(is_plain) && here_strings.is_empty() {
        return Cow::Borrowed(source.as_bytes());
    }
    let mut bytes: Vec<_> = source.bytes().map(|byte| if is_plain(byte) { byte } else { b'x' }).collect();
    for at in here_strings {
        bytes[at + 1..at + HERE_STRING.len()].fill(b' ');
    }
    bytes.into()
}

fn new_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok().map(|()| parser)
}

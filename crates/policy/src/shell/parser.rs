//! The grammar, held to what is reasonable: bounded time, plain bytes.

use std::{borrow::Cow, cell::RefCell, ops::ControlFlow};

use tree_sitter::{ParseOptions, Parser, Tree};

use super::unclear::is_plain;

/// How often the parser may report that it is still at work, once per hundred steps. Plain scripts need one step per
/// two or three bytes; a script of 128 KiB that needs more than this is tangled on purpose.
const MAX_PROGRESS: usize = 4000;

/// The tree of a script; none if reading it takes too long.
pub(super) fn parse(source: &str) -> Option<Tree> {
    thread_local! {
        static PARSER: RefCell<Option<Parser>> = RefCell::new(new_parser());
    }
    PARSER.with_borrow_mut(|parser| {
        let parser = parser.as_mut()?;
        // A parser that was stopped would go on where it was.
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

/// The script as the grammar gets to see it: every byte that is not plain ASCII looks like a letter, which it is to a shell.
/// The grammar takes some of them for white space, and its scanner (0.25.1) looks characters up in a table without asking
/// whether they are in it: `{` before U+10FFFF ends the process. Places stay the same.
fn masked(source: &str) -> Cow<'_, [u8]> {
    if source.bytes().all(is_plain) {
        return Cow::Borrowed(source.as_bytes());
    }
    source.bytes().map(|byte| if is_plain(byte) { byte } else { b'x' }).collect()
}

fn new_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok().map(|()| parser)
}

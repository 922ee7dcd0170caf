//! Parsing patches and applying them to text. Pure: no files, no clock, no environment; whoever calls it reads and writes.
//!
//! ```
//! use windlass_patch::{Operation, Text, apply, parse};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let patch = parse(
//!     "*** Begin Patch\n\
//!      *** Update File: greet.py\n\
//!      @@ def greet():\n\
//!      -    print('hi')\n\
//!      +    print('hello')\n\
//!      *** End Patch",
//! )?;
//! let Operation::Update { chunks, .. } = &patch.operations[0] else { panic!("it updates") };
//! // A file from another system: its line endings and its missing last one stay.
//! let file = Text::decode(b"def greet():\r\n    print('hi')\r\n\r\ngreet()")?;
//! assert_eq!(apply(&file, chunks)?.bytes, b"def greet():\r\n    print('hello')\r\n\r\ngreet()");
//! # Ok(())
//! # }
//! ```

mod apply;
mod diff;
mod edit;
mod miss;
mod parse;
mod patch;
mod recognise;
mod seek;
mod text;
mod unified_diff;

pub use apply::{Applied, ApplyError, Match, apply};
pub use diff::{Side, diff, unified};
pub use edit::{Count, EditError, edit};
pub use miss::{LookedFor, Miss, Nearest, Reason};
pub use parse::{LIMIT_BYTES, ParseError, parse};
pub use patch::{Chunk, FileEnd, Line, Operation, Patch};
pub use recognise::{Invocation, NotCalled, recognise};
pub use seek::Pass;
pub use text::{Encoding, FileLine, NotText, Text, Unwritable};

/// The patch language as a Lark grammar, for models that write under one.
pub fn grammar() -> &'static str {
    include_str!("grammar.lark")
}

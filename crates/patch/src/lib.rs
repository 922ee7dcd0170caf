//! Parses patches and applies them to text.
//!
//! The functions are pure: they use no files, no clock and no environment. The caller reads and
//! writes files.
//!
//! ```
//! use windlass_patch::{FileOperation, Text, apply, parse};
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
//! let FileOperation::Update { chunks, .. } = &patch.operations[0] else { panic!("it updates") };
//! // Line endings of the file, and a missing final newline, are kept.
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

pub use apply::{AppliedChange, ApplyError, MatchPosition, apply};
pub use diff::{Side, diff, unified};
pub use edit::{EditError, ReplaceCount, edit};
pub use miss::{MissReason, MissReport, MissTarget, NearestLines};
pub use parse::{MAX_PATCH_BYTES, ParseError, parse};
pub use patch::{ChunkLine, FileEnd, FileOperation, ParsedPatch, PatchChunk};
pub use recognise::{ImplicitInvocation, PatchInvocation, recognise};
pub use seek::MatchPass;
pub use text::{Encoding, FileLine, NotText, Text, UnencodableChar};

/// Returns the patch language as a Lark grammar, for models that generate under one.
pub fn grammar() -> &'static str {
    include_str!("grammar.lark")
}

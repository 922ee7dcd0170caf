//! What comes back from a tool: cleaned of secrets, cut to size, understood, judged, and written the way its reader wants it.
//!
//! Pure: bytes and facts in, an [`Outcome`](windlass_contract::Outcome) out. Nothing enters history, events or
//! screens without passing through [`Shaper::shape`].

mod clean;
mod cut;
mod judge;
mod live;
mod render;
mod shaper;
mod terminal;
mod understand;
mod watched;
mod wide;

pub use clean::{Cleaner, Finding, KeyLines, Secrets};
pub use cut::Budget;
pub use judge::WEIGHTS;
pub use live::CleanEvents;
pub use render::{CallReport, verdict};
pub use shaper::{Failure, Shaper, Verdicts};
pub use terminal::Terminal;
pub use understand::{File, Text, junit, rerun, tests_in};
pub use watched::CleanQuestions;

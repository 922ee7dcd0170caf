//! Shapes the result of a tool: redacts secrets, cuts it to size, derives an insight, judges it,
//! and renders it for its reader.
//!
//! Pure: bytes and facts in, an [`Outcome`](windlass_contract::Outcome) out. Nothing enters
//! history, events or screens without passing through [`Shaper::shape`].

mod clean;
mod clean_events;
mod clean_report;
mod clean_values;
mod cut;
mod judge;
mod render;
mod shaper;
mod terminal;
mod understand;
mod utf16;

pub use clean::{Cleaner, Finding, KeyLines, Secrets};
pub use clean_events::CleanEvents;
pub use cut::Budget;
pub use judge::WEIGHTS;
pub use render::{CallReport, verdict};
pub use shaper::{Failure, Shaper, Verdicts};
pub use terminal::Terminal;
pub use understand::{File, Text, junit, rerun, tests_in};

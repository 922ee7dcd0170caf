//! The interactive session in a terminal.
//!
//! The agent works on a thread of its own; the main thread reads keys and draws. Between them is a
//! queue that never makes the agent wait, so that a slow terminal does not slow tools.

mod app;
mod approval_panel;
mod approver;
mod commands;
mod composer;
mod event_queue;
mod file_index;
mod fuzzy_match;
mod prompt_images;
pub mod render;
mod session;
mod session_worker;
mod terminal;
mod text_lines;
mod transcript;

pub use approver::QueueApprover;
pub use event_queue::{EventQueue, QueueSink};
pub use session::{
    Display, InteractiveSession, ProgramCommands, PromptHistory, SessionEnd, SessionInfo, TuiError,
};
pub use terminal::pick;

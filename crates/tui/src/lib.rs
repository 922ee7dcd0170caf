//! The interactive session in a terminal.
//!
//! The agent works on a thread of its own; the main thread reads keys and draws. Between them is a
//! queue that never makes the agent wait, so that a slow terminal does not slow tools.

mod app;
mod approval_panel;
mod approver;
mod call_log;
mod commands;
mod composer;
mod earlier;
mod elicitation_panel;
mod elicitor;
mod end_watch;
mod event_queue;
mod external_editor;
mod file_index;
mod frame_clock;
mod fuzzy_match;
mod notifications;
mod pick_list;
mod plain_session;
mod plan_question;
mod prompt_images;
pub mod render;
mod session;
mod session_core;
mod session_worker;
mod settings;
mod terminal;
mod text_lines;
mod transcript;

pub use approver::QueueApprover;
pub use earlier::{EarlierConversation, EarlierEntry};
pub use elicitor::QueueElicitor;
pub use end_watch::EndProcess;
pub use event_queue::{EventQueue, QueueSink};
pub use external_editor::ExternalEditor;
pub use notifications::NotificationSettings;
pub use session::{
    Display, InteractiveSession, ProgramCommands, PromptHistory, SessionEnd, SessionInfo, TuiError,
};
pub use settings::{
    AgentSource, FetchedPrompt, KeptRule, MechanismProbe, OfferedModel, OfferedPrompt, PromptFetch,
    PromptRequest, SessionSettings,
};
pub use terminal::pick;

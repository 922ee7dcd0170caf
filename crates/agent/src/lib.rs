//! The turn loop: calls out, outputs back, until the model answers.
//!
//! [`Agent::builder`] wires everything together; `turn.rs` is the loop and sees only a model client
//! and a toolbox.

mod agent;
mod announce;
mod answer_schema;
mod builder;
mod catalogue;
mod compaction;
mod context;
mod context_gauge;
mod described_tools;
mod error;
mod family;
mod history;
mod hook_commands;
mod loop_detector;
mod mcp_servers;
mod mentions;
mod model_table;
mod offered_tools;
mod prices;
mod recover_edits;
mod refusals;
mod retries;
mod reviewer;
mod session_budget;
mod session_fork;
mod settings;
mod spans;
mod spending;
mod standing;
mod steering;
mod sub_agents;
mod token_counter;
mod toolset;
mod turn;
mod turn_hooks;

pub use agent::{Agent, TurnReport};
pub use answer_schema::AnswerSchema;
pub use builder::{AgentBuilder, BuildError, UndoRecording};
pub use catalogue::{index, usage};
pub use compaction::CompactionReport;
pub use error::AgentError;
pub use family::{EditTools, Family, FileTools, ShellKind};
pub use hook_commands::HookCommands;
pub use mcp_servers::McpServers;
pub use mentions::MentionLoader;
pub use model_table::{ModelEntry, ModelTable, ModelTokenizer};
pub use prices::{ModelPrices, MoneySpent, TokenPrice};
pub use recover_edits::recover_edits;
pub use session_budget::{BudgetLimits, BudgetSpent, SessionBudget, ToolBudget};
pub use session_fork::{ForkedSession, SessionFork, SessionForkError};
pub use settings::{
    CompactAt, ContextSettings, ReviewSettings, StorageSettings, TOOL_CONTEXT_PERCENT, TurnLimits,
};
pub use standing::StandingInstructions;
pub use steering::SteeringInput;
pub use sub_agents::{AgentRole, DEFAULT_ROLE, SubAgentSettings, built_in_roles};
pub use token_counter::{RequestParts, TokenCounter};
pub use toolset::Toolset;
pub use windlass_tokens::Vocabulary;
pub use windlass_tools::{CommandSessions, RunningCommand, TurnDiff, image_url, program};

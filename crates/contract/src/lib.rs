//! The nouns and traits of Windlass.
//!
//! A model asks for a [`ToolCall`]. The router turns it into a [`Ready`] call, which declares its
//! [`Effects`]. The gate answers with a [`Grant`] or a refusal. A [`Sandbox`] turns the grant into
//! a confined [`Host`], and the tool acts through that host. Every way a call can end is an
//! [`Outcome`].
//!
//! Names that every crate uses are re-exported here. The rest is in the module of its subject.
//!
//! This crate opens nothing, spawns nothing, and reads neither the clock nor the environment.

pub mod approval;
pub mod call;
pub mod clean;
pub mod compaction;
pub mod edit;
pub mod effects;
pub mod elicitation;
pub mod event;
pub mod files;
pub mod grant;
pub mod hooks;
pub mod host;
pub mod id;
pub mod insight;
pub mod item;
pub mod journal;
pub mod meta;
pub mod model;
pub mod outcome;
pub mod policy;
pub mod program;
pub mod program_message;
pub mod remote;
pub mod report;
pub mod secret_names;
pub mod secret_paths;
pub mod snapshot;
pub mod spec;
pub mod sub_agent;
pub mod tool;
pub mod untrusted_text;
pub mod verdict;
pub mod wording;

use std::{future::Future, pin::Pin};

pub use call::{Input, ToolCall};
pub use clean::Clean;
pub use effects::Effects;
pub use event::Event;
pub use grant::Grant;
pub use host::{Denial, Host, Sandbox};
pub use id::{CallId, ToolName};
pub use item::{Content, Item};
pub use journal::Journal;
pub use meta::Meta;
pub use outcome::Outcome;
pub use spec::ToolSpec;
pub use tool::{AnyTool, Cx, Output, ParsedCall, Ready, Tool, ToolError, erase};
pub use verdict::Verdict;

/// The boxed future of every object-safe trait here.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

//! The nouns and traits of Windlass.
//!
//! A model asks for a [`ToolCall`]. The router turns it into something [`Ready`] that can say its [`Effects`].
//! The gate answers with a [`Grant`] or a refusal, a [`Sandbox`] turns the grant into a confined [`Host`], the tool
//! acts through that host, and every way this can end is an [`Outcome`].
//!
//! This crate opens nothing, spawns nothing, and reads neither the clock nor the environment.

mod approval;
mod call;
mod counted;
mod edit;
mod effects;
mod event;
#[cfg(feature = "fakes")]
pub mod fakes;
mod files;
mod grant;
mod host;
mod id;
mod insight;
mod item;
mod journal;
mod meta;
mod model;
mod outcome;
mod policy;
mod program;
mod schema;
mod secret_paths;
mod sight;
mod snapshot;
mod spec;
mod tool;
mod verdict;

use std::{future::Future, pin::Pin};

pub use approval::{Answer, AnsweredBy, Approver, Beyond, Offer, Question, Reach, Rulebook};
pub use call::{Input, InputKind, ToolCall};
pub use counted::counted;
pub use edit::{
    Action, Archive, Attributes, Change, Changed, CommitError, ContentPair, EditRecord, Expected,
    HashedContent, KeptPair, Version,
};
pub use effects::{CommandLine, Effects, Escalation, Network, OutwardEffect, Typed, normal};
pub use event::{EditKind, Event, EventSink, FileEdit, Plan, PlanStatus, PlanStep, Silent};
pub use files::{
    Entry, FileError, FileKind, Files, Found, FoundFile, FoundLine, Ignored, Listed, Listing, OpenFile,
    Search, Wanted,
};
pub use grant::{
    Accounting, Confinement, DefaultLimits, DirectProgram, Grant, Held, Limits, Mechanism, Quota,
    SandboxRules,
};
pub use host::{
    ApartOutput, Command, ConfineError, Denial, Ended, Exit, Finished, Host, HostError, Keyboard, Layer,
    Listener, Printed, Proof, Sandbox, Session, Whole,
};
pub use id::{CallId, ThreadId, ToolName};
pub use insight::{
    CommandInsight, Detail, Diagnostic, Diagnostics, ExitClass, FileInsight, Hits, Insight, Place,
    SearchInsight, Section, Severity, SlowTest, TestFailure, TestReport,
};
pub use item::{Body, Cached, Content, Item, Raw, Role};
pub use journal::{Feedback, Intent, Journal, JournalError, Rating, Record, SessionMeta, TurnContext};
pub use meta::{AliasMeaning, Category, Example, Format, Meta, ParameterAlias};
pub use model::{Finish, ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt, Retry, Usage};
pub use outcome::{CommandFacts, Facts, Outcome, Receipt, Refusal, SessionFacts, Status, View};
pub use policy::{ApprovalPolicy, SandboxMode};
pub use program::{ProgramFile, ProgramFinder, ProgramSearch};
pub use schema::{Profile, Schema, SchemaError, kind_of};
pub use secret_paths::{SecretKind, SecretPath, home_secrets, system_secrets};
pub use sight::{Seen, Sight, Since, Stamp};
pub use snapshot::{
    CommandEdit, CommandLog, ContentDigest, ContentStore, EntryChange, EntryContent, EntryVersion,
    UnkeptEntry, UnkeptReason,
};
pub use spec::{Grammar, SpecKind, ToolSpec, WebSearch};
pub use tool::{AnyTool, Cx, ErrorKind, FnTool, Look, Output, Ready, Tool, ToolError, erase, tool};
pub use verdict::{Criteria, Gives, Marks, Must, Opinion, Reviewer, Verdict};

/// The boxed future of every object-safe trait here.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

//! Turns tool calls into outcomes.
//!
//! [`Toolbox::run`] shows all steps in one function: route, get the effects, look first if needed,
//! pass the gate, record the intent, run, shape. [`Batch`] runs many calls, in parallel where that
//! is harmless. This crate only uses traits, so all of it is tested with fakes.

mod batch;
mod call_history;
mod decisions;
mod gate;
mod gate_time;
mod orchestrator;
mod plan_mode;
mod preflight;
mod registry;
mod review;
mod router;
mod schedule;
mod search;
mod session_hooks;
mod spans;
mod stages;
mod stop;
mod toolbox;

pub use batch::Batch;
pub use call_history::{CallHistory, PastCall};
pub use gate::{Gate, LiveRules, Policy, SessionApprovals};
pub use registry::{
    Deferral, DefinitionError, DefinitionErrors, Exposure, JoinedTools, Quarantined, Registered, Registry,
    RegistryBuilder,
};
pub use review::Review;
pub use search::{Indexer, SearchForm};
pub use session_hooks::{HookEffects, SessionHooks};
pub use stages::{FinishedCall, PreparedCall};
pub use stop::{Reason, Stop};
pub use toolbox::Toolbox;
pub use windlass_select::{Card, Index, Usage};
pub use windlass_shape::{Budget, CleanEvents, Secrets, Shaper, Verdicts};

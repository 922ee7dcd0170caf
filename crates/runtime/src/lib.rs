//! How a call becomes an outcome.
//!
//! [`Toolbox::run`] is the whole way in one function: route, ask the tool what it would do, look before leaping, pass
//! the gate, write down the intent, act, shape. [`Batch`] runs many of them: together where that is harmless, alone
//! where it is not. Only traits are seen here, so all of it is tested with fakes.

mod batch;
mod decisions;
mod gate;
mod orchestrator;
mod preflight;
mod registry;
mod review;
mod router;
mod search;
mod spans;
mod stages;
mod stop;
mod toolbox;

pub use batch::Batch;
pub use gate::{Gate, Policy};
pub use registry::{
    Deferral, DefinitionError, DefinitionErrors, Exposure, Quarantined, Registered, Registry, RegistryBuilder,
};
pub use review::{Review, fingerprint};
pub use search::{Indexer, SearchForm};
pub use stages::{FinishedCall, PreparedCall};
pub use stop::{Reason, Stop};
pub use toolbox::Toolbox;
pub use windlass_select::{Card, Index, Usage};
pub use windlass_shape::{Budget, CleanEvents, CleanQuestions, Secrets, Shaper, Verdicts};

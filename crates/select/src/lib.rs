//! Chooses the tools that fit a request, and explains the choice.
//!
//! The input is cards of tools and the words of a request; the output is a ranking. The crate reads
//! no file, no clock and no environment variable, and it cannot run a tool. `docs/selection.md`
//! describes the method and its results.
//!
//! ```
//! use windlass_select::{Card, ChoiceContext, Index, ToolRequest, choose};
//!
//! let mut index = Index::new();
//! for (name, description) in [("get_weather", "The weather of a city."), ("send_email", "Send a message.")] {
//!     index.add(&Card { name: name.to_owned(), description: description.to_owned(), ..Card::default() });
//! }
//! let choice = choose(&index, &ToolRequest::new("Will it rain in Oslo?"), ChoiceContext::default(), 5);
//! assert_eq!(choice.candidates[0].name, "get_weather");
//! ```

pub mod args;
mod card;
mod choice;
mod glossary;
mod hash;
mod index;
mod intent;
mod lexicon;
mod numbers;
mod plan;
pub mod repair;
mod request;
mod similarity;
mod text;
mod usage;
mod vectors;

pub use card::{Card, ToolChanges};
pub use choice::{
    ChoiceContext, FitEstimate, MODEL, RuledOut, ScorePart, ScoreParts, ToolCandidate, ToolChoice, choose,
    choose_among,
};
pub use index::{DamagedIndex, Index, ToolHit, ToolId};
pub use intent::{RequestConstraint, RequestIntent, RequestTarget, TargetKind, ToolOperation};
pub use plan::{FORMER_NAME, RULES, rules};
pub use request::ToolRequest;
pub use usage::{Usage, UsageRecord};

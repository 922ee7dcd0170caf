//! Which tools fit a request, and why.
//!
//! Pure: cards of tools and the words of a request in, a ranking out. Nothing here reads a file, a clock or the
//! environment, and nothing here can run a tool. `docs/selection.md` says how it works and how well.
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

//! Which tools fit a request, and why.
//!
//! Pure: cards of tools and the words of a request in, a ranking out. Nothing here reads a file, a clock or the
//! environment, and nothing here can run a tool.

mod card;

pub use card::{Card, Changes};

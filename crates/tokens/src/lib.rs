//! Counts the tokens of a text: exactly by a published [`Vocabulary`], or by an [`estimate`].
//!
//! ```
//! use windlass_tokens::{Vocabulary, estimate};
//!
//! assert_eq!(Vocabulary::O200k.count("fn main() {}"), 4);
//! assert_eq!(estimate("fn main() {}"), 3);
//! ```

mod estimate;
mod pieces;
mod vocabulary;

pub use estimate::{estimate, quarter_tokens};
pub use vocabulary::Vocabulary;

//! Tokens that some constructors of `contract` require.
//!
//! Rust has no visibility between "this crate" and "every crate". A constructor that takes a token
//! of this crate is public. But only a crate that depends on this one can name the token, and so
//! call the constructor. `contract` names the tokens in signatures and exports none of them. The
//! table of crates in `ARCHITECTURE.md` lists the crates that may depend on this one, and
//! `cargo xtask tidy` compares it with `cargo metadata`.

/// Required to make a `Grant`. For the gate (`runtime/gate`).
#[derive(Debug)]
pub struct GrantSeal;

/// Required to make a `Clean` value. For the cleaner (`shape`).
#[derive(Debug)]
pub struct CleanSeal;

//! Hooks: commands that are told about steps of a session as JSON on their standard input, and
//! answer with JSON on their standard output.
//!
//! The shape of both is the one that other agents use, so that a hook written for them works here.
//! A hook may tighten, add a text, and block; it never widens. A hook that fails, hangs, or answers
//! with something else counts as a denial where it guards, unless its configuration says otherwise.

pub mod answer;
mod command_hooks;
pub mod config;
mod hook_process;

pub use command_hooks::{CommandHooks, HookDescription};

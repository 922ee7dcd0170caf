//! The machine: the one crate that starts processes, and the only one with `unsafe`.
//!
//! [`Machine`] turns a grant into a host. What a host runs is held in a session of its own: at the end of a call,
//! whatever the end was, every process in that session's group is killed. A process left in the background dies
//! with the call that started it.

mod capture;
mod keeper;
mod machine;
mod process;
mod program;
mod sys;

pub use machine::Machine;

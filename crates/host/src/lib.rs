//! The machine: the one crate that starts processes, and the only one with `unsafe`.
//!
//! [`Machine`] turns a grant into a host. At the end of a call, whatever the end was, everything it has started is
//! killed, wherever it has hidden. A process left in the background dies with the call that started it.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use tokio_util::sync::CancellationToken;
//! use windlass_contract::{Command, Confinement, Effects, Exit, Grant, Limits, Sandbox};
//! use windlass_host::Machine;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let machine = Machine::new(BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]));
//! // In a session this is the gate's privilege.
//! let grant = Grant::issue("/".into(), &Effects::none(), Limits::default(), Confinement::Unconfined);
//! let command = Command {
//!     argv: vec!["echo".to_owned(), "hello".to_owned()],
//!     cwd: None,
//!     env: BTreeMap::new(),
//!     time_limit: None,
//! };
//! let finished = machine.confine(&grant)?.run(&command, &CancellationToken::new(), &|_| {}).await?;
//! assert_eq!((finished.exit, &finished.output[..]), (Exit::Code(0), &b"hello\n"[..]));
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "what only the rungs of Linux need is not marked piece by piece")
)]

mod attached;
#[cfg(target_os = "linux")]
mod blueprint;
mod capture;
#[cfg(target_os = "linux")]
mod cgroup;
mod denials;
mod doctor;
mod enclosure;
#[cfg(target_os = "linux")]
mod fence;
mod file_rules;
mod ground;
#[cfg(target_os = "linux")]
mod input_wait;
mod job_control;
mod kept;
mod links;
mod machine;
mod memory;
mod names;
mod outputs;
mod package_cache;
mod process;
mod program;
mod pty;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod secrets;
mod seen;
mod spawner;
mod spending;
mod sys;
mod temporary;
mod window;
mod workspace_guard;

pub use attached::Attached;
pub use doctor::{Diagnosis, Missing};
pub use machine::Machine;
pub use memory::physical_memory;
pub use outputs::retention::OutputRetention;
pub use sys::{grow_descriptor_table, inherited_descriptor, is_ignored, stdout_was_closed};
pub use windlass_files::{Recovery, recover};
pub use window::Window;

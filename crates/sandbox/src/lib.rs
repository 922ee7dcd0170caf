//! Starts programs in a sandbox. The only crate with `unsafe`.
//!
//! A [`SandboxSpec`] has the rules for the commands of a grant; a [`WritablePlan`] has the paths
//! that one command may write. Both become a plan (namespaces, Landlock or Seatbelt). The plan
//! starts a [`LaunchedChild`], which ends with an [`ExitReport`]. The host decides about access and
//! supervises the child.
//!
//! ```
//! use std::{collections::BTreeMap, fs::File, io::Read, path::PathBuf, sync::Arc};
//!
//! use windlass_contract::{grant::{Limits, SandboxRules}, host::Command};
//! use windlass_sandbox::{ChildStdio, Mechanisms, PrivateTmp, Program, SandboxSpec, WritablePlan, Zygotes};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = SandboxSpec {
//!     rules: SandboxRules::default(),
//!     limits: Limits::default(),
//!     cwd: PathBuf::from("/"),
//!     home: None,
//!     agent_socket: None,
//!     mechanisms: Arc::new(Mechanisms::default()),
//!     temporary: Arc::new(PrivateTmp::new(false)),
//!     package_cache: None,
//!     hidden: Arc::default(),
//!     named: Vec::new(),
//! };
//! # if spec.mechanisms.diagnose().rung.is_none() {
//! #     return Ok(());
//! # }
//! let argv = ["sh", "-c", "touch /etc/new || echo denied"].map(str::to_owned).to_vec();
//! let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
//! let variables = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
//! let program = Program::new(&command, &variables, &spec.cwd)?;
//! let (mut reader, writer) = std::io::pipe()?;
//! let null = || File::options().read(true).write(true).open("/dev/null");
//! let stdio = ChildStdio { input: null()?.into(), output: writer.into(), error: null()?.into() };
//! let mechanism = spec.mechanisms.preferred();
//! let mut zygotes = Zygotes::default();
//! let child = spec.launch(mechanism, &WritablePlan::nothing(), (&program, stdio), &mut zygotes);
//! let child = child.map_err(|error| format!("{error:?}"))?;
//! let mut output = String::new();
//! reader.read_to_string(&mut output)?;
//! child.started.pid.reap(0)?;
//! assert_eq!(output, "denied\n");
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "what only the mechanisms of Linux need is not marked piece by piece")
)]

#[cfg(target_os = "linux")]
mod cgroup;
pub mod denials;
mod diagnosis;
mod directory_names;
#[cfg(all(target_os = "linux", any(test, fuzzing)))]
pub mod fuzzing;
mod hidden_paths;
mod id_maps;
#[cfg(target_os = "linux")]
mod landlock_plan;
pub mod links;
mod memory;
#[cfg(target_os = "linux")]
mod namespace_plan;
pub mod package_cache;
mod private_tmp;
mod program;
mod protected_paths;
mod sandbox_paths;
mod sandbox_spec;
#[cfg(any(test, target_os = "macos"))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod secrets;
mod stat_cache;
mod sys;
mod writable_plan;

pub use diagnosis::{Diagnosis, Missing};
pub use hidden_paths::HiddenPathHandles;
pub use id_maps::IdMaps;
pub use memory::physical_memory;
pub use private_tmp::PrivateTmp;
pub use program::Program;
pub use protected_paths::ProtectedPaths;
pub use sandbox_spec::{
    LaunchedChild, Mechanisms, SandboxSpec, launch_externally_confined, launch_unconfined,
};
pub use secrets::home_directories;
pub use sys::{
    ChildPid, ChildStdio, ExitReport, StartError, StartedChild, Zygotes, grow_descriptor_table,
    inherited_descriptor, is_ignored, job_signals, stdout_was_closed, terminal,
};
pub use writable_plan::{LayerMount, PrivateFile, UPPER_NAME, WORK_NAME, WritablePlan, WritableRoot};

//! The machine: runs the commands of a grant, and looks after what they print, leave running and
//! change.
//!
//! [`Machine`] turns a grant into a host. When a call ends for any reason, all processes it started
//! are killed, including daemons. A process left in the background dies with the call that started
//! it.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use tokio_util::sync::CancellationToken; use windlass_contract::{Effects, Sandbox,
//! grant::{Confinement, Limits}, host::{Command, Exit}}; use windlass_fakes::issue_grant;
//! use windlass_host::Machine;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let machine = Machine::new(BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]));
//! // In a session only the gate can make a grant.
//! let grant = issue_grant("/".into(), &Effects::none(), Limits::default(), Confinement::Unconfined);
//! let command = Command {
//!     argv: vec!["echo".to_owned(), "hello".to_owned()],
//!     cwd: None,
//!     env: BTreeMap::new(),
//!     time_limit: None,
//! };
//! let finished = machine.confine(&grant)?.run(&command, &CancellationToken::new(), &|_| {}).await?;
//! assert_eq!((finished.report.exit, &finished.output[..]), (Exit::Code(0), &b"hello\n"[..]));
//! # Ok(())
//! # }
//! ```

mod apart_capture;
mod attached;
mod capture;
mod denial_check;
#[expect(
    clippy::disallowed_methods,
    reason = "names are compared with others; no file that is found is changed or passed on"
)]
mod direct_program;
mod file_rules;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "files of the kernel below /proc")]
mod input_wait;
mod job_control;
mod launch;
mod machine;
mod output_buffer;
mod output_file;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "outputs are below the home of Windlass, which no command can write"
)]
mod outputs;
mod outside_lock;
mod preview;
mod process;
#[expect(
    clippy::disallowed_methods,
    reason = "names are looked up as a shell would, by path; of a file only the first line is read"
)]
mod program_finder;
mod pty;
mod server_process;
mod server_sandbox;
mod spawner;
mod spending;
mod undo_recorder;
mod window;
mod workspace_guard;

pub use machine::Machine;
pub use output_file::OutputFile;
pub use preview::{AppliedPreview, Preview, PreviewChanges};
pub use program_finder::find_program;
pub use server_sandbox::{SandboxedServers, ServerSandboxSettings};
pub use undo_recorder::{UndoRecorder, UndoRoot};
pub use windlass_files::{
    AppliedLayer, CommitRecovery, EntryKind, EntryStanding, EntryStat, LayerApplyError, LayerChange,
    LayerChangeKind, LayerChanges, LayerConflict, LayerRecovery, LayerRefusal, RestoreError, RestoreReport,
    SnapshotLimits, inspect_changes, recover, recover_layers, recover_restores, restore_entries,
};
pub use windlass_sandbox::{
    Diagnosis, Missing, grow_descriptor_table, inherited_descriptor, is_ignored, physical_memory,
    stdout_was_closed,
};
pub use window::Window;

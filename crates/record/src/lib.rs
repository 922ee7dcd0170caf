//! Session files, the index of calls, and the log of edits.
//!
//! A session is one append-only JSONL file, from which it can be resumed:
//! `HOME/sessions/YYYY/MM/DD/ID.jsonl`. The date is part of the id, so an id leads to its file
//! without a search. Calls outside of any session are recorded in the same way below `HOME/calls`
//! ([`StandaloneCalls`]). The caller passes the home directory: this crate reads no environment
//! variable and writes nowhere else.
//!
//! | type | purpose |
//! |---|---|
//! | [`SessionFile`] | appends the records of a session, resumes one, and takes one back |
//! | [`SessionHolder`] | the process that has a session open |
//! | [`DurabilityMode`] | when records are flushed to the disk |
//! | [`RetentionLimits`] | how much is kept |
//! | [`Edits`] | the contents of files before tools changed them, for undo |
//! | [`SessionNames`] | the names that the user gave to sessions |
//! | [`Calls`] | the index that answers questions about many calls |
//!
//! ```
//! use windlass_contract::{Item, Journal, item::Role, journal::{Record, SessionMeta}};
//! use windlass_record::{SessionFile, Which, new_thread_id};
//! use windlass_shape::Secrets;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! let id = new_thread_id();
//! let meta = SessionMeta {
//!     id: id.clone(),
//!     cwd: "/project".into(),
//!     version: "0.1.0".into(),
//!     instructions: "Be brief.".into(),
//!     parent: None,
//! };
//! let file = SessionFile::create(home, &meta)?;
//! let item = Item::message(Role::User, "hello");
//! file.append(&Record::Item(Secrets::default().clean_item(&item).as_deref()))?;
//! drop(file);
//!
//! let (_file, session) = SessionFile::resume(home, &Which::Id(id))?;
//! assert_eq!(session.meta, meta);
//! assert_eq!(session.history.len(), 1);
//! # Ok(())
//! # }
//! ```

mod calls;
mod chain;
mod context_history;
mod disk_cache;
mod edits;
mod error;
mod flush;
mod hex;
mod journal;
mod messages;
mod repair;
mod replay;
mod retention;
mod session_holder;
mod session_line;
mod session_names;
mod session_paths;
mod snapshot_store;
mod standalone_calls;
mod stored_files;
mod stored_outputs;
mod summary;
mod turn_end;
mod verified_lines;

pub use calls::{
    Call, CallFilter, CallGroup, CallGrouping, CallIndexError, CallRecord, Calls, IndexedSession, Keep,
    SuccessfulRequest, ToolReliability,
};
pub use chain::{BreakReason, ChainAudit, ChainBreak, ChainHead, LineHash, verify};
pub use context_history::{CompactionSummary, ContextHistory, context_of};
pub use disk_cache::DiskCache;
pub use edits::{CommandNote, Edit, EditedFile, Edits, KeptKind, KeptVersion, UNDO, UnkeptFile};
pub use error::SessionError;
pub use flush::DurabilityMode;
pub use journal::{SessionFile, Which};
pub use messages::for_each_message;
pub use repair::{OutputSubstitute, SessionRepair};
pub use replay::{LoadedSession, LoadedTurn, load, load_before};
pub use retention::{
    DiskUsage, KeepLimit, KindUsage, RetentionLimits, StoredKind, StoredUnit, is_session_running,
    remove_session,
};
pub use session_holder::SessionHolder;
pub use session_names::SessionNames;
pub use session_paths::{
    SessionEntry, ThreadFolder, find, list, list_in, new_thread_id, outputs_directory, read_entry,
};
pub use snapshot_store::{SnapshotStore, SnapshotStoreState};
pub use standalone_calls::{StandaloneCalls, WarningHandler};
pub use stored_outputs::StoredOutputs;
pub use summary::{SessionSummary, find_by_prefix, summarize};
pub use turn_end::{RecordedTurnEnd, last_turn_end};

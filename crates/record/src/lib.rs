//! What happened: one append-only JSONL file per session, the truth from which a session is taken up again.
//!
//! A session lives in `HOME/sessions/YYYY/MM/DD/ID.jsonl`; its date is inside its id, so an id finds its file without a
//! search. Calls outside of any session are written down likewise, below `HOME/calls` ([`Outside`]). The caller names the home directory: this crate reads no environment and writes nowhere else.
//! [`Durability`] says when records are on the disk, and [`RetentionLimits`] how much is kept beside them.
//! What tools change in files is kept in [`Edits`], so that it can be undone. [`Calls`] is the index that answers questions about
//! many calls.
//!
//! ```
//! use windlass_contract::{Item, Journal, item::Role, journal::{Record, SessionMeta}};
//! use windlass_record::{SessionFile, Which, new_thread_id};
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
//! };
//! let file = SessionFile::create(home, &meta)?;
//! file.append(&Record::Item(&Item::message(Role::User, "hello")))?;
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
mod edits;
mod error;
mod flush;
mod hex;
mod journal;
mod line;
mod outside;
mod place;
mod repair;
mod replay;
mod retention;
mod shelf;
mod snapshot_store;
mod stored;
mod summary;
mod verified;

pub use calls::{Asked, By, Call, Calls, CallsError, Followed, Group, Keep, Recorded, Standing, Wanted};
pub use chain::{Audit, Break, Head, Link, Why, verify};
pub use edits::{CommandNote, Edit, EditedFile, Edits, Kept, KeptKind, UNDO, UnkeptFile};
pub use error::SessionError;
pub use flush::Durability;
pub use journal::{SessionFile, Which};
pub use outside::{Outside, Trouble};
pub use place::{Entry, Folder, find, list, list_in, new_thread_id, outputs};
pub use repair::{Repair, Substitute};
pub use replay::{Session, load};
pub use retention::{DiskUsage, KeepLimit, KindUsage, RetentionLimits, StoredKind, StoredUnit};
pub use shelf::Shelf;
pub use snapshot_store::{SnapshotStore, SnapshotStoreState};
pub use summary::{SessionSummary, find_by_prefix, summarize};

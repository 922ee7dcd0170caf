//! The journal of a layer, which the next start reads if this process dies before it is done.
//!
//! It is in a directory of Windlass and is locked while its writer lives. Without the field `go`,
//! no root was changed, and the layer is discarded. With `go` and without `done`, everything is
//! rolled back. With `done`, the layer was applied.
#![expect(
    clippy::disallowed_methods,
    reason = "the journal is in a directory of Windlass itself, which no command can reach"
)]

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{
    LayerRoot,
    changes::{MetadataChange, ModeAndTime},
    rollback::{AbandonedLayer, UnrestoredFile},
};
use crate::{
    EntryStat,
    crash_note::{CrashNote, for_each_abandoned},
    fail_points::FailPoints,
};

const BEGIN: &str = "windlass layer 1";
const EXTENSION: &str = "layer";

/// The journal of a layer that is in use.
#[derive(Debug)]
pub(super) struct LayerJournal(CrashNote);

/// A root in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RootRecord {
    pub(super) path: PathBuf,
    pub(super) dev: u64,
    pub(super) ino: u64,
    /// The directory of the layer in it.
    pub(super) name: OsString,
    /// The modification time of the root before the layer.
    pub(super) mtime_ns: i64,
}

impl RootRecord {
    pub(super) fn new(root: &LayerRoot, name: &OsStr) -> io::Result<Self> {
        let EntryStat { dev, ino, mtime_ns, .. } = root.handle.stat()?;
        Ok(Self { path: root.path.clone(), dev, ino, name: name.to_owned(), mtime_ns })
    }
}

/// One operation on an entry of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApplyOperation {
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    pub(super) kind: OperationKind,
    /// The entry at the path before the operation; `new` is the one after it.
    pub(super) old: Option<FileSignature>,
    pub(super) new: Option<FileSignature>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// Renames an entry of the layer to a free name.
    Create,
    /// Exchanges an entry of the root with one of the layer.
    Exchange,
    /// Renames an entry of the root into `undo`.
    Delete,
}

impl OperationKind {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Create, "create"), (Self::Exchange, "exchange"), (Self::Delete, "delete")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Identifies a file and its content. Renaming and linking do not alter it, a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileSignature {
    dev: u64,
    ino: u64,
    btime_ns: i64,
    /// 0 for a directory, whose entries may change.
    size: u64,
    mtime_ns: i64,
}

impl From<&EntryStat> for FileSignature {
    fn from(stat: &EntryStat) -> Self {
        let is_directory = stat.kind == crate::EntryKind::Directory;
        let (size, mtime_ns) = if is_directory { (0, 0) } else { (stat.size, stat.mtime_ns) };
        Self { dev: stat.dev, ino: stat.ino, btime_ns: stat.btime_ns, size, mtime_ns }
    }
}

impl FileSignature {
    /// Returns true if both are of the same file, whatever its content.
    pub(super) fn is_same_file(self, other: &Self) -> bool {
        (self.dev, self.ino, self.btime_ns) == (other.dev, other.ino, other.btime_ns)
    }

    fn to_field(self) -> String {
        let Self { dev, ino, btime_ns, size, mtime_ns } = self;
        format!("{dev}:{ino}:{btime_ns}:{size}:{mtime_ns}")
    }

    fn from_field(field: &[u8]) -> Option<Self> {
        let text = str::from_utf8(field).ok()?;
        let parts: Vec<_> = text.split(':').collect();
        let [dev, ino, btime_ns, size, mtime_ns] = parts.try_into().ok()?;
        Some(Self {
            dev: dev.parse().ok()?,
            ino: ino.parse().ok()?,
            btime_ns: btime_ns.parse().ok()?,
            size: size.parse().ok()?,
            mtime_ns: mtime_ns.parse().ok()?,
        })
    }
}

impl LayerJournal {
    /// Writes which layers will be made.
    pub(super) fn begin(directory: &Path, name: &OsStr, roots: &[RootRecord]) -> io::Result<Self> {
        let mut fields = vec![BEGIN.as_bytes().to_vec()];
        for root in roots {
            fields.push(b"root".to_vec());
            fields.push(root.path.as_os_str().as_bytes().to_vec());
            fields.extend([root.dev, root.ino].map(|number| number.to_string().into_bytes()));
            fields.push(root.name.as_bytes().to_vec());
            fields.push(root.mtime_ns.to_string().into_bytes());
        }
        let stem = name.to_string_lossy().trim_start_matches('.').to_owned();
        CrashNote::create(directory, &stem, EXTENSION, &to_bytes(&fields)).map(Self)
    }

    /// Writes which operations will be done. They survive a loss of power once this returns.
    pub(super) fn write_operations(
        &mut self,
        operations: &[ApplyOperation],
        metadata: &[MetadataChange],
        since_ns: i64,
        fail_points: &FailPoints,
    ) -> io::Result<()> {
        let mut fields = Vec::new();
        for operation in operations {
            let signature = |signature: Option<FileSignature>| {
                signature.map(FileSignature::to_field).unwrap_or_default().into_bytes()
            };
            fields.extend([b"operation".to_vec(), operation.root.to_string().into_bytes()]);
            fields.push(operation.relative.as_os_str().as_bytes().to_vec());
            fields.push(operation.kind.name().as_bytes().to_vec());
            fields.extend([signature(operation.old), signature(operation.new)]);
        }
        for MetadataChange { root, relative, before, after } in metadata {
            let field = |value: &ModeAndTime| format!("{}:{}", value.mode, value.mtime_ns).into_bytes();
            fields.extend([b"metadata".to_vec(), root.to_string().into_bytes()]);
            fields.extend([relative.as_os_str().as_bytes().to_vec(), field(before), field(after)]);
        }
        fields.extend([b"since".to_vec(), since_ns.to_string().into_bytes()]);
        fail_points.hit()?;
        self.0.append(&to_bytes(&fields))?;
        fail_points.hit()?;
        self.0.append(b"go\0")?;
        self.sync(fail_points)
    }

    /// Writes that everything is applied, which commits the changes.
    pub(super) fn write_done(&mut self, fail_points: &FailPoints) -> io::Result<()> {
        fail_points.hit()?;
        self.0.append(b"done\0")?;
        self.sync(fail_points)
    }

    fn sync(&self, fail_points: &FailPoints) -> io::Result<()> {
        fail_points.hit()?;
        self.0.flush()
    }

    /// Removes the journal, since there is nothing left to recover.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.0.remove()
    }
}

/// Joins fields, each with a NUL at its end.
fn to_bytes(fields: &[Vec<u8>]) -> Vec<u8> {
    fields.iter().flat_map(|field| [field, &[0][..]]).flatten().copied().collect()
}

/// The result of recovering a layer that a dead process has left.
#[derive(Debug)]
pub enum LayerRecovery {
    /// Nothing of it was applied. It was discarded.
    Discarded {
        /// The roots.
        roots: Vec<PathBuf>,
    },
    /// It was partly applied and is rolled back, except files that someone has changed since.
    PutBack {
        /// The roots.
        roots: Vec<PathBuf>,
        /// Files that were not restored, with the path of their earlier content.
        left: Vec<(PathBuf, Option<PathBuf>)>,
    },
    /// It was applied; only the layer had to be removed.
    Finished,
    /// A root could not be restored; it is tried again at the next start.
    Failed {
        /// The root.
        root: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

impl LayerRecovery {
    /// Returns one line for a person; `None` if there is nothing to report.
    pub fn describe(&self) -> Option<String> {
        let list = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Finished => None,
            Self::Discarded { roots } => Some(format!(
                "an earlier preview was thrown away, nothing of it was applied: {}",
                list(roots)
            )),
            Self::PutBack { roots, left } => {
                let mut text = format!(
                    "an earlier run ended while it applied a preview; it was taken back: {}",
                    list(roots)
                );
                for (path, before) in left {
                    let path = path.display();
                    text.push_str(&format!("; `{path}` was changed since and stays"));
                    if let Some(before) = before {
                        text.push_str(&format!(", what it was before is in `{}`", before.display()));
                    }
                }
                Some(text)
            }
            Self::Failed { root, source } => {
                let root = root.display();
                Some(format!(
                    "an earlier run ended while it applied a preview; `{root}` cannot be put back: {source}"
                ))
            }
        }
    }
}

/// Rolls back or removes the layers that dead processes have left. `directory` holds the journals.
pub fn recover_layers(directory: &Path) -> io::Result<Vec<LayerRecovery>> {
    let mut recovered = Vec::new();
    for_each_abandoned(directory, EXTENSION, |path, bytes| {
        let abandoned = parse(bytes);
        let roots: Vec<_> = abandoned.roots.iter().map(|root| root.path.clone()).collect();
        let recovery = match abandoned.recover() {
            Ok(_) if abandoned.is_done => LayerRecovery::Finished,
            Ok(_) if !abandoned.is_begun => LayerRecovery::Discarded { roots },
            Ok(left) => {
                let left = left.into_iter().map(|UnrestoredFile { path, before }| (path, before)).collect();
                LayerRecovery::PutBack { roots, left }
            }
            Err((root, source)) => {
                recovered.push(LayerRecovery::Failed { root, source });
                return Ok(());
            }
        };
        fs::remove_file(&path)?;
        recovered.push(recovery);
        Ok(())
    })?;
    Ok(recovered)
}

/// Parses a journal as far as it is complete.
fn parse(bytes: &[u8]) -> AbandonedLayer {
    let mut layer = AbandonedLayer::default();
    // A field without its NUL was cut by a crash.
    let mut fields = bytes.split_inclusive(|byte| *byte == 0).filter_map(|field| field.strip_suffix(&[0]));
    fields.next();
    while let Some(tag) = fields.next() {
        if record(tag, &mut fields, &mut layer).is_none() {
            break;
        }
    }
    layer
}

fn record<'a>(
    tag: &[u8],
    fields: &mut impl Iterator<Item = &'a [u8]>,
    layer: &mut AbandonedLayer,
) -> Option<()> {
    let path = |field: &[u8]| PathBuf::from(OsString::from_vec(field.to_vec()));
    match tag {
        b"root" => {
            let (root, dev, ino) = (path(fields.next()?), number(fields.next()?)?, number(fields.next()?)?);
            let (name, mtime_ns) = (path(fields.next()?).into_os_string(), number(fields.next()?)?);
            layer.roots.push(RootRecord { path: root, dev, ino, name, mtime_ns });
        }
        b"operation" => {
            let (root, relative) = (number(fields.next()?)?, path(fields.next()?));
            let kind = fields.next()?;
            let kind = OperationKind::ALL.iter().find(|(_, name)| name.as_bytes() == kind)?.0;
            let old = FileSignature::from_field(fields.next()?);
            let new = FileSignature::from_field(fields.next()?);
            layer.operations.push(ApplyOperation { root, relative, kind, old, new });
        }
        b"metadata" => {
            let (root, relative) = (number(fields.next()?)?, path(fields.next()?));
            let (before, after) = (mode_and_time(fields.next()?)?, mode_and_time(fields.next()?)?);
            layer.metadata.push(MetadataChange { root, relative, before, after });
        }
        b"since" => layer.since_ns = number(fields.next()?)?,
        b"go" => layer.is_begun = true,
        b"done" => layer.is_done = true,
        _ => return None,
    }
    Some(())
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    str::from_utf8(field).ok()?.parse().ok()
}

fn mode_and_time(field: &[u8]) -> Option<ModeAndTime> {
    let (mode, mtime_ns) = str::from_utf8(field).ok()?.split_once(':')?;
    Some(ModeAndTime { mode: mode.parse().ok()?, mtime_ns: mtime_ns.parse().ok()? })
}

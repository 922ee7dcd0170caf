//! The journal of a layer: what the next start reads if this process dies before it is done.
//!
//! It lies in a directory of Windlass and is locked while its writer lives. Without the word `go`
//! nothing in a root was touched, and the layer is thrown away. With `go` and without `done`
//! everything is put back. With `done` all was applied.
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
    take_back::{AbandonedLayer, LeftAsIs},
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

/// A root as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RootRecord {
    pub(super) path: PathBuf,
    pub(super) dev: u64,
    pub(super) ino: u64,
    /// The directory of the layer in it.
    pub(super) name: OsString,
    /// The time of the root before.
    pub(super) mtime_ns: i64,
}

impl RootRecord {
    pub(super) fn new(root: &LayerRoot, name: &OsStr) -> io::Result<Self> {
        let EntryStat { dev, ino, mtime_ns, .. } = root.handle.stat()?;
        Ok(Self { path: root.path.clone(), dev, ino, name: name.to_owned(), mtime_ns })
    }
}

/// One thing that applying does to an entry of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApplyOperation {
    pub(super) root: usize,
    pub(super) relative: PathBuf,
    pub(super) kind: OperationKind,
    /// What is at the path before, and after.
    pub(super) old: Option<FileSignature>,
    pub(super) new: Option<FileSignature>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// Renames an entry of the layer to a free name.
    Create,
    /// Has an entry of the root and one of the layer change places.
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

/// What tells a file from others, and from itself after a change to its content. Renaming and
/// linking leave it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileSignature {
    dev: u64,
    ino: u64,
    btime_ns: i64,
    /// Zero for a directory: what is in it may change.
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
    /// Tells whether both are of the same file, whatever is in it.
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
    /// Writes which layers are about to be made.
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

    /// Writes what is about to be done. When it returns, it survives the machine.
    pub(super) fn go(
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

    /// Writes that all is applied. This is the moment it counts.
    pub(super) fn done(&mut self, fail_points: &FailPoints) -> io::Result<()> {
        fail_points.hit()?;
        self.0.append(b"done\0")?;
        self.sync(fail_points)
    }

    fn sync(&self, fail_points: &FailPoints) -> io::Result<()> {
        fail_points.hit()?;
        self.0.flush()
    }

    /// There is nothing left to do.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.0.remove()
    }
}

/// Ends each field with a zero.
fn to_bytes(fields: &[Vec<u8>]) -> Vec<u8> {
    fields.iter().flat_map(|field| [field, &[0][..]]).flatten().copied().collect()
}

/// What became of a layer that a process has left.
#[derive(Debug)]
pub enum LayerRecovery {
    /// Nothing of it had been applied. It is thrown away.
    Discarded {
        /// The roots.
        roots: Vec<PathBuf>,
    },
    /// It was being applied. Everything is as it was before, but for files that someone has changed
    /// since.
    PutBack {
        /// The roots.
        roots: Vec<PathBuf>,
        /// Files that are not as they were, with where their earlier content is.
        left: Vec<(PathBuf, Option<PathBuf>)>,
    },
    /// It had been applied; only our own traces were left.
    Finished,
    /// Something could not be put back; it is tried again next time.
    Failed {
        /// The root.
        root: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

impl LayerRecovery {
    /// One line for a person; nothing if nobody has to know.
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

/// Takes back or finishes what processes that are gone have left of layers. The directory is that
/// of the journals.
pub fn recover_layers(directory: &Path) -> io::Result<Vec<LayerRecovery>> {
    let mut recovered = Vec::new();
    for_each_abandoned(directory, EXTENSION, |path, bytes| {
        let abandoned = parse(bytes);
        let roots: Vec<_> = abandoned.roots.iter().map(|root| root.path.clone()).collect();
        let recovery = match abandoned.recover() {
            Ok(_) if abandoned.is_done => LayerRecovery::Finished,
            Ok(_) if !abandoned.is_begun => LayerRecovery::Discarded { roots },
            Ok(left) => {
                let left = left.into_iter().map(|LeftAsIs { path, before }| (path, before)).collect();
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

/// Reads a journal as far as it is whole.
fn parse(bytes: &[u8]) -> AbandonedLayer {
    let mut layer = AbandonedLayer::default();
    // A field without its end was being written when the end came.
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

//! The binary format of a snapshot: every field in a fixed order, entries depth first.

use std::{ffi::OsString, os::unix::ffi::OsStrExt, os::unix::ffi::OsStringExt, sync::Arc};

use windlass_contract::snapshot::UnkeptReason;

use super::{NodeContent, RuleFiles, SnapshotNode, WorkspaceSnapshot};
use crate::{EntryKind, EntryStat};

/// The first bytes. Another version has others, and is rejected.
const MAGIC: &[u8; 8] = b"wlsnap01";

/// Maximum depth of directories: more than a scan ever writes.
const MAX_DEPTH: usize = 256;

const KINDS: [EntryKind; 4] = [EntryKind::File, EntryKind::Directory, EntryKind::Symlink, EntryKind::Special];

const REASONS: [UnkeptReason; 6] = [
    UnkeptReason::TooLarge,
    UnkeptReason::OverLimit,
    UnkeptReason::Unreadable,
    UnkeptReason::Changing,
    UnkeptReason::Special,
    UnkeptReason::Name,
];

pub(super) fn encode(snapshot: &WorkspaceSnapshot) -> Vec<u8> {
    let mut encoder = SnapshotEncoder(Vec::with_capacity(64 + snapshot.entries * 160));
    encoder.0.extend_from_slice(MAGIC);
    encoder.number(snapshot.started_ns);
    encoder.length(snapshot.entries);
    encoder.length(snapshot.above.len());
    snapshot.above.iter().for_each(|rules| encoder.rules(rules.as_ref()));
    encoder.node(&snapshot.root);
    encoder.0
}

/// Parses a snapshot; `None` if any part is malformed.
pub(super) fn decode(bytes: &[u8]) -> Option<WorkspaceSnapshot> {
    let mut decoder = SnapshotDecoder(bytes.strip_prefix(MAGIC)?);
    let started_ns = decoder.number()?;
    let entries = decoder.length()?;
    let above = (0..decoder.length()?).map(|_| decoder.rules().ok()).collect::<Option<_>>()?;
    let root = decoder.node(0)?;
    decoder.0.is_empty().then_some(WorkspaceSnapshot { root, above, entries, started_ns, is_whole: true })
}

struct SnapshotEncoder(Vec<u8>);

impl SnapshotEncoder {
    fn number(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        self.number(i64::try_from(length).unwrap_or(i64::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn stat(&mut self, stat: &EntryStat) {
        let kind = KINDS.iter().position(|kind| *kind == stat.kind).unwrap_or_default();
        self.0.push(u8::try_from(kind).unwrap_or_default());
        self.0.extend_from_slice(&stat.permissions.to_le_bytes());
        for number in [stat.uid, stat.gid] {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
        for number in [stat.dev, stat.ino, stat.nlink, stat.size] {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
        for number in [stat.btime_ns, stat.mtime_ns, stat.ctime_ns] {
            self.number(number);
        }
    }

    fn rules(&mut self, rules: Option<&Arc<RuleFiles>>) {
        self.0.push(u8::from(rules.is_some()));
        for stat in rules.iter().flat_map(|rules| &rules.stats) {
            self.0.push(u8::from(stat.is_some()));
            if let Some(stat) = stat {
                self.stat(stat);
            }
        }
    }

    fn node(&mut self, node: &SnapshotNode) {
        self.bytes(node.name.as_bytes());
        self.stat(&node.stat);
        match &node.content {
            NodeContent::Directory => self.0.push(0),
            NodeContent::File(digest) => {
                self.0.push(1);
                self.0.extend_from_slice(digest);
            }
            NodeContent::Symlink(target) => {
                self.0.push(2);
                self.bytes(target.as_bytes());
            }
            NodeContent::Unkept(reason) => {
                let at = REASONS.iter().position(|known| known == reason).unwrap_or_default();
                self.0.extend_from_slice(&[3, u8::try_from(at).unwrap_or_default()]);
            }
        }
        self.rules(node.rules.as_ref());
        self.length(node.children.len());
        node.children.iter().for_each(|child| self.node(child));
    }
}

struct SnapshotDecoder<'a>(&'a [u8]);

/// The error of bytes that are no snapshot.
struct MalformedSnapshot;

impl<'a> SnapshotDecoder<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn unsigned(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Returns a number of elements, each of which takes at least a byte.
    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|length| *length <= self.0.len())
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.array().map(u32::from_le_bytes)?;
        self.take(usize::try_from(length).ok()?)
    }

    fn stat(&mut self) -> Option<EntryStat> {
        let kind = *KINDS.get(usize::from(self.byte()?))?;
        let permissions = self.array().map(u16::from_le_bytes)?;
        let [uid, gid] = [self.array().map(u32::from_le_bytes)?, self.array().map(u32::from_le_bytes)?];
        let [dev, ino, nlink, size] =
            [self.unsigned()?, self.unsigned()?, self.unsigned()?, self.unsigned()?];
        let [btime_ns, mtime_ns, ctime_ns] = [self.number()?, self.number()?, self.number()?];
        Some(EntryStat { dev, ino, btime_ns, kind, permissions, uid, gid, nlink, size, mtime_ns, ctime_ns })
    }

    fn rules(&mut self) -> Result<Option<Arc<RuleFiles>>, MalformedSnapshot> {
        if self.byte().ok_or(MalformedSnapshot)? == 0 {
            return Ok(None);
        }
        let mut files = RuleFiles::default();
        for stat in &mut files.stats {
            let is_there = self.byte().ok_or(MalformedSnapshot)? != 0;
            *stat = is_there.then(|| self.stat().ok_or(MalformedSnapshot)).transpose()?;
        }
        Ok(Some(Arc::new(files)))
    }

    fn node(&mut self, depth: usize) -> Option<SnapshotNode> {
        if depth > MAX_DEPTH {
            return None;
        }
        let name = OsString::from_vec(self.bytes()?.to_vec());
        let stat = self.stat()?;
        let content = match self.byte()? {
            0 => NodeContent::Directory,
            1 => NodeContent::File(self.array()?),
            2 => NodeContent::Symlink(OsString::from_vec(self.bytes()?.to_vec())),
            3 => NodeContent::Unkept(*REASONS.get(usize::from(self.byte()?))?),
            _ => return None,
        };
        let rules = self.rules().ok()?;
        let children = (0..self.length()?).map(|_| self.node(depth + 1)).collect::<Option<Vec<_>>>()?;
        Some(SnapshotNode { name, stat, content, children: Arc::new(children), rules })
    }
}

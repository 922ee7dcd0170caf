//! Contents of files, each stored once under its SHA-256.
//!
//! A large file that changed little is stored as a delta: a line in a file of megabytes, edited a
//! hundred times, costs megabytes once. A delta names its base, so its own digest covers everything
//! below it.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use windlass_contract::edit::{ContentPair, HashedContent, KeptPair};

use super::durable::{MAX_FLUSHED_AT_ONCE, create_private_directory, flush_all, flush_directory};
use crate::hex::to_hex;

/// Prefix of the name of a delta.
const DELTA_PREFIX: &str = "piece-";

/// Minimum size of a file that is stored as a delta.
const MIN_DELTA_BYTES: usize = 64 * 1024;

/// Maximum length of a chain of deltas. All of them must be applied to load a content.
const MAX_DELTAS: usize = 100;

/// Size of the blocks that are compared at once.
const COMPARE_BYTES: usize = 4096;

/// A directory with contents.
#[derive(Debug, Clone)]
pub(super) struct ContentArchive {
    directory: PathBuf,
    /// The content that was stored last: usually it is changed next.
    last: Arc<Mutex<Option<NamedContent>>>,
}

#[derive(Debug, Clone)]
struct NamedContent {
    bytes: Arc<[u8]>,
    name: String,
    deltas: usize,
}

/// A change of another content: the bytes between a common beginning and a common end. They follow
/// in the file.
#[derive(Debug, Serialize, Deserialize)]
struct ContentDelta {
    of: String,
    start: usize,
    end: usize,
}

impl ContentArchive {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, last: Arc::default() }
    }

    /// Stores the contents of files before and after a change, and returns their names. They are
    /// flushed when it returns.
    pub(super) fn keep(&self, pairs: &[ContentPair]) -> io::Result<Vec<KeptPair>> {
        create_private_directory(&self.directory)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut blobs = Vec::new();
        let (mut kept, mut next) = (Vec::new(), last.take());
        for ContentPair { before, after } in pairs {
            let before = before.as_ref().map(|content| match next.take() {
                Some(known) if known.bytes == content.bytes => known,
                _ => add_whole(content, &mut blobs),
            });
            let after =
                after.as_ref().map(|content| add_delta(before.as_ref(), content, &mut blobs)).transpose()?;
            let name = |last: Option<&NamedContent>| last.map(|last| last.name.clone());
            kept.push(KeptPair { before: name(before.as_ref()), after: name(after.as_ref()) });
            // A small content is hashed again as quickly.
            next = after.filter(|after| after.bytes.len() >= MIN_DELTA_BYTES);
        }
        self.write(&blobs)?;
        *last = next;
        Ok(kept)
    }

    /// Loads a content by its name.
    pub(super) fn load(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut deltas = Vec::new();
        let mut name = name.to_owned();
        while let Some(digest) = name.strip_prefix(DELTA_PREFIX) {
            let bytes = self.read(&name, digest)?;
            let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::InvalidData)?;
            let add_delta: ContentDelta = serde_json::from_slice(&bytes[..end])?;
            name.clone_from(&add_delta.of);
            deltas.push((add_delta, bytes[end + 1..].to_vec()));
            if deltas.len() > MAX_DELTAS {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        let mut content = self.read(&name, &name)?;
        for (ContentDelta { start, end, .. }, between) in deltas.into_iter().rev() {
            let rest = content.len().checked_sub(end).filter(|rest| start <= *rest);
            content.splice(start..rest.ok_or(io::ErrorKind::InvalidData)?, between);
        }
        Ok(content)
    }

    /// Reads a file and checks that it matches its digest.
    fn read(&self, name: &str, digest: &str) -> io::Result<Vec<u8>> {
        // A name from a damaged log must not lead to another directory.
        if !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let bytes = fs::read(self.directory.join(name))?;
        if sha256_hex(&bytes) == digest { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Writes and flushes blobs, several at once. An existing blob is used if it is complete, and
    /// otherwise written again.
    fn write(&self, blobs: &[ContentBlob]) -> io::Result<()> {
        let mut known = HashSet::new();
        let blobs: Vec<_> = blobs.iter().filter(|blob| known.insert(&blob.name)).collect();
        for some in blobs.chunks(MAX_FLUSHED_AT_ONCE) {
            let mut files = Vec::new();
            let mut drafts = Vec::new();
            for blob in some {
                let path = self.directory.join(&blob.name);
                if fs::read(&path).is_ok_and(|found| found == *blob.bytes) {
                    // Flush it too: another process may have written it a moment ago.
                    files.push(File::open(&path)?);
                    continue;
                }
                // Write a draft and rename it, so that no partial content has the final name.
                let draft = self.directory.join(format!("{}.{}", blob.name, unique()));
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
                let written = file.write_all(&blob.bytes);
                drafts.push((draft, path));
                written.inspect_err(|_| discard(&drafts))?;
                files.push(file);
            }
            flush_all(&files).inspect_err(|_| discard(&drafts))?;
            for (draft, path) in &drafts {
                fs::rename(draft, path)?;
            }
        }
        if blobs.is_empty() { Ok(()) } else { flush_directory(&self.directory) }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A file to be written.
struct ContentBlob {
    name: String,
    bytes: Arc<[u8]>,
}

fn add_whole(content: &HashedContent, blobs: &mut Vec<ContentBlob>) -> NamedContent {
    let (name, bytes) = (to_hex(&content.sha256), Arc::clone(&content.bytes));
    blobs.push(ContentBlob { name: name.clone(), bytes: Arc::clone(&bytes) });
    NamedContent { bytes, name, deltas: 0 }
}

/// Stores a content as a delta of another, if that is much smaller.
fn add_delta(
    of: Option<&NamedContent>,
    content: &HashedContent,
    blobs: &mut Vec<ContentBlob>,
) -> io::Result<NamedContent> {
    let bytes = &content.bytes;
    let of = of.filter(|of| bytes.len() >= MIN_DELTA_BYTES && of.deltas < MAX_DELTAS);
    let Some(of) = of else { return Ok(add_whole(content, blobs)) };
    let (start, end) = common_ends(&of.bytes, bytes);
    let between = &bytes[start..bytes.len() - end];
    if between.len() > bytes.len() / 4 {
        return Ok(add_whole(content, blobs));
    }
    let mut file = serde_json::to_vec(&ContentDelta { of: of.name.clone(), start, end })?;
    file.push(b'\n');
    file.extend_from_slice(between);
    let name = format!("{DELTA_PREFIX}{}", sha256_hex(&file));
    blobs.push(ContentBlob { name: name.clone(), bytes: file.into() });
    Ok(NamedContent { bytes: Arc::clone(bytes), name, deltas: of.deltas + 1 })
}

/// Returns a part of a file name that no other draft has, of this process or another.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}-{}", std::process::id(), now.as_micros(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Removes drafts after an error. A draft that stays does no harm.
fn discard(drafts: &[(PathBuf, PathBuf)]) {
    for (draft, _) in drafts {
        drop(fs::remove_file(draft));
    }
}

/// Returns how many bytes two contents have in common at the beginning, and after that at the end.
fn common_ends(one: &[u8], other: &[u8]) -> (usize, usize) {
    let blocks = one.chunks(COMPARE_BYTES).zip(other.chunks(COMPARE_BYTES));
    let start = blocks.take_while(|(one, other)| one == other).map(|(one, _)| one.len()).sum::<usize>();
    let rest = one[start..].iter().zip(&other[start..]);
    let start = start + rest.take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[start..], &other[start..]);
    let blocks = one.rchunks(COMPARE_BYTES).zip(other.rchunks(COMPARE_BYTES));
    let end = blocks.take_while(|(one, other)| one == other).map(|(one, _)| one.len()).sum::<usize>();
    let rest = one[..one.len() - end].iter().rev().zip(other[..other.len() - end].iter().rev());
    (start, end + rest.take_while(|(one, other)| one == other).count())
}

fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contents() -> (tempfile::TempDir, ContentArchive) {
        let directory = tempfile::tempdir().unwrap();
        let contents = ContentArchive::new(directory.path().join("contents"));
        (directory, contents)
    }

    fn keep(contents: &ContentArchive, before: Arc<[u8]>, after: Arc<[u8]>) -> (String, String) {
        let hashed = |bytes: Arc<[u8]>| {
            let sha256 = digest(&SHA256, &bytes).as_ref().try_into().unwrap();
            Some(HashedContent { bytes, sha256 })
        };
        let pair = ContentPair { before: hashed(before), after: hashed(after) };
        let [kept] = &contents.keep(&[pair]).unwrap()[..] else { panic!("one pair") };
        (kept.before.clone().unwrap(), kept.after.clone().unwrap())
    }

    fn large(edit: usize) -> Arc<[u8]> {
        let mut bytes = vec![b'x'; 4 * MIN_DELTA_BYTES];
        bytes[1000..1008].copy_from_slice(format!("{edit:08}").as_bytes());
        bytes.into()
    }

    #[test]
    fn small_edits_of_a_large_file_take_little_room_and_all_come_back() {
        let (directory, contents) = contents();
        let mut names = Vec::new();
        for edit in 0..MAX_DELTAS + 50 {
            let (before, after) = keep(&contents, large(edit), large(edit + 1));
            names.extend([(edit, before), (edit + 1, after)]);
        }
        let size: u64 = fs::read_dir(contents.directory())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(size < 3 * large(0).len() as u64, "{size}");
        // With an empty cache.
        let again = ContentArchive::new(directory.path().join("contents"));
        for (edit, name) in names {
            assert_eq!(again.load(&name).unwrap(), *large(edit));
        }
    }

    #[test]
    fn a_piece_is_damaged_with_whatever_it_lies_on() {
        let (_directory, contents) = contents();
        let (before, after) = keep(&contents, large(0), large(1));
        assert!(after.starts_with(DELTA_PREFIX));
        fs::write(contents.directory().join(&before), large(7)).unwrap();
        assert_eq!(contents.load(&after).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_blob_that_was_damaged_is_written_again() {
        let (directory, contents) = contents();
        let text = |text: &str| Arc::from(text.as_bytes());
        let (before, _) = keep(&contents, text("one"), text("two"));
        for damaged in ["", "on", "onx", "one and more"] {
            fs::write(contents.directory().join(&before), damaged).unwrap();
            assert!(contents.load(&before).is_err(), "{damaged:?}");
            let again = ContentArchive::new(directory.path().join("contents"));
            keep(&again, text("one"), text("three"));
            assert_eq!(contents.load(&before).unwrap(), b"one");
        }
        let names = fs::read_dir(contents.directory()).unwrap();
        assert_eq!(names.count(), 3, "no draft is left");
    }

    #[test]
    fn a_name_that_is_none_leads_nowhere() {
        let (_directory, contents) = contents();
        for name in ["../../etc/passwd", "piece-../x", ""] {
            assert!(contents.load(name).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_is_the_same_is_found_from_both_ends(
            start in proptest::collection::vec(0..2_u8, 0..10_000),
            (one, other) in (proptest::collection::vec(0..2_u8, 0..9), proptest::collection::vec(0..2_u8, 0..9)),
            end in proptest::collection::vec(0..2_u8, 0..10_000),
        ) {
            let (one, other) = ([&start[..], &one, &end].concat(), [&start[..], &other, &end].concat());
            let (from, to) = common_ends(&one, &other);
            prop_assert!(from + to <= one.len().min(other.len()));
            prop_assert_eq!(&one[..from], &other[..from]);
            prop_assert_eq!(&one[one.len() - to..], &other[other.len() - to..]);
            prop_assert!(from + to >= (start.len() + end.len()).min(one.len().min(other.len())));
        }
    }
}

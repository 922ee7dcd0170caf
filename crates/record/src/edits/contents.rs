//! Contents of files, each kept once under a name made from what is kept.
//!
//! A large file of which little has changed is kept as what has changed: one line of a file of megabytes, edited a hundred
//! times, costs megabytes once. Such a piece names what it is a change of, so that its own name vouches for everything
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

use super::durable::{MAX_FLUSHED_AT_ONCE, flush_all, flush_directory, make_private};
use crate::hex::to_hex;

/// What the name of a piece begins with.
const PIECE: &str = "piece-";

/// Files of less are always kept whole.
const LARGE_BYTES: usize = 64 * 1024;

/// How many pieces may lie on top of each other; each has to be put in again to get at a content.
const MOST_PIECES: usize = 100;

/// How much is compared at once.
const BLOCK_BYTES: usize = 4096;

/// A place for contents.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    directory: PathBuf,
    /// What was kept last: most often it is changed next.
    last: Arc<Mutex<Option<Last>>>,
}

#[derive(Debug, Clone)]
struct Last {
    bytes: Arc<[u8]>,
    name: String,
    pieces: usize,
}

/// A change of another content: what is between a beginning and an end that are the same. Its bytes follow in the file.
#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    of: String,
    start: usize,
    end: usize,
}

impl Contents {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, last: Arc::default() }
    }

    /// Keeps what files were and are, and returns the names of the contents. When it returns, they survive a loss of power.
    pub(super) fn keep(&self, pairs: &[ContentPair]) -> io::Result<Vec<KeptPair>> {
        make_private(&self.directory)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut blobs = Vec::new();
        let (mut kept, mut next) = (Vec::new(), last.take());
        for ContentPair { before, after } in pairs {
            let before = before.as_ref().map(|content| match next.take() {
                Some(known) if known.bytes == content.bytes => known,
                _ => whole(content, &mut blobs),
            });
            let after =
                after.as_ref().map(|content| piece(before.as_ref(), content, &mut blobs)).transpose()?;
            let name = |last: Option<&Last>| last.map(|last| last.name.clone());
            kept.push(KeptPair { before: name(before.as_ref()), after: name(after.as_ref()) });
            // Small ones are as quickly named again.
            next = after.filter(|after| after.bytes.len() >= LARGE_BYTES);
        }
        self.write(&blobs)?;
        *last = next;
        Ok(kept)
    }

    /// A content by its name.
    pub(super) fn load(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut pieces = Vec::new();
        let mut name = name.to_owned();
        while let Some(digest) = name.strip_prefix(PIECE) {
            let bytes = self.read(&name, digest)?;
            let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::InvalidData)?;
            let piece: Piece = serde_json::from_slice(&bytes[..end])?;
            name.clone_from(&piece.of);
            pieces.push((piece, bytes[end + 1..].to_vec()));
            if pieces.len() > MOST_PIECES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        let mut content = self.read(&name, &name)?;
        for (Piece { start, end, .. }, between) in pieces.into_iter().rev() {
            let rest = content.len().checked_sub(end).filter(|rest| start <= *rest);
            content.splice(start..rest.ok_or(io::ErrorKind::InvalidData)?, between);
        }
        Ok(content)
    }

    /// What is in a file, if it is still what its name says.
    fn read(&self, name: &str, digest: &str) -> io::Result<Vec<u8>> {
        // A name from a damaged log must not lead elsewhere.
        if !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let bytes = fs::read(self.directory.join(name))?;
        if sha256_hex(&bytes) == digest { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Writes and flushes blobs, some at once. One that is there already is used if it is whole, and else written again.
    fn write(&self, blobs: &[Blob]) -> io::Result<()> {
        let mut known = HashSet::new();
        let blobs: Vec<_> = blobs.iter().filter(|blob| known.insert(&blob.name)).collect();
        for some in blobs.chunks(MAX_FLUSHED_AT_ONCE) {
            let mut files = Vec::new();
            let mut drafts = Vec::new();
            for blob in some {
                let path = self.directory.join(&blob.name);
                if fs::read(&path).is_ok_and(|found| found == *blob.bytes) {
                    // Another process may have written it a moment ago.
                    files.push(File::open(&path)?);
                    continue;
                }
                // Whole under its name, or not there.
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
struct Blob {
    name: String,
    bytes: Arc<[u8]>,
}

fn whole(content: &HashedContent, blobs: &mut Vec<Blob>) -> Last {
    let (name, bytes) = (to_hex(&content.sha256), Arc::clone(&content.bytes));
    blobs.push(Blob { name: name.clone(), bytes: Arc::clone(&bytes) });
    Last { bytes, name, pieces: 0 }
}

/// Keeps a content as a change of another, if that is much less.
fn piece(of: Option<&Last>, content: &HashedContent, blobs: &mut Vec<Blob>) -> io::Result<Last> {
    let bytes = &content.bytes;
    let of = of.filter(|of| bytes.len() >= LARGE_BYTES && of.pieces < MOST_PIECES);
    let Some(of) = of else { return Ok(whole(content, blobs)) };
    let (start, end) = same(&of.bytes, bytes);
    let between = &bytes[start..bytes.len() - end];
    if between.len() > bytes.len() / 4 {
        return Ok(whole(content, blobs));
    }
    let mut file = serde_json::to_vec(&Piece { of: of.name.clone(), start, end })?;
    file.push(b'\n');
    file.extend_from_slice(between);
    let name = format!("{PIECE}{}", sha256_hex(&file));
    blobs.push(Blob { name: name.clone(), bytes: file.into() });
    Ok(Last { bytes: Arc::clone(bytes), name, pieces: of.pieces + 1 })
}

/// A part of a name that no other draft has, of this process or another.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}-{}", std::process::id(), now.as_micros(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Removes drafts after an error; what stays does no harm.
fn discard(drafts: &[(PathBuf, PathBuf)]) {
    for (draft, _) in drafts {
        drop(fs::remove_file(draft));
    }
}

/// How many bytes two contents have in common at the beginning, and after that at the end.
fn same(one: &[u8], other: &[u8]) -> (usize, usize) {
    let blocks = one.chunks(BLOCK_BYTES).zip(other.chunks(BLOCK_BYTES));
    let start = blocks.take_while(|(one, other)| one == other).map(|(one, _)| one.len()).sum::<usize>();
    let rest = one[start..].iter().zip(&other[start..]);
    let start = start + rest.take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[start..], &other[start..]);
    let blocks = one.rchunks(BLOCK_BYTES).zip(other.rchunks(BLOCK_BYTES));
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

    fn contents() -> (tempfile::TempDir, Contents) {
        let directory = tempfile::tempdir().unwrap();
        let contents = Contents::new(directory.path().join("contents"));
        (directory, contents)
    }

    fn keep(contents: &Contents, before: Arc<[u8]>, after: Arc<[u8]>) -> (String, String) {
        let hashed = |bytes: Arc<[u8]>| {
            let sha256 = digest(&SHA256, &bytes).as_ref().try_into().unwrap();
            Some(HashedContent { bytes, sha256 })
        };
        let pair = ContentPair { before: hashed(before), after: hashed(after) };
        let [kept] = &contents.keep(&[pair]).unwrap()[..] else { panic!("one pair") };
        (kept.before.clone().unwrap(), kept.after.clone().unwrap())
    }

    fn large(edit: usize) -> Arc<[u8]> {
        let mut bytes = vec![b'x'; 4 * LARGE_BYTES];
        bytes[1000..1008].copy_from_slice(format!("{edit:08}").as_bytes());
        bytes.into()
    }

    #[test]
    fn small_edits_of_a_large_file_take_little_room_and_all_come_back() {
        let (directory, contents) = contents();
        let mut names = Vec::new();
        for edit in 0..MOST_PIECES + 50 {
            let (before, after) = keep(&contents, large(edit), large(edit + 1));
            names.extend([(edit, before), (edit + 1, after)]);
        }
        let size: u64 = fs::read_dir(contents.directory())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(size < 3 * large(0).len() as u64, "{size}");
        // By someone who remembers nothing.
        let again = Contents::new(directory.path().join("contents"));
        for (edit, name) in names {
            assert_eq!(again.load(&name).unwrap(), *large(edit));
        }
    }

    #[test]
    fn a_piece_is_damaged_with_whatever_it_lies_on() {
        let (_directory, contents) = contents();
        let (before, after) = keep(&contents, large(0), large(1));
        assert!(after.starts_with(PIECE));
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
            let again = Contents::new(directory.path().join("contents"));
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
            let (from, to) = same(&one, &other);
            prop_assert!(from + to <= one.len().min(other.len()));
            prop_assert_eq!(&one[..from], &other[..from]);
            prop_assert_eq!(&one[one.len() - to..], &other[other.len() - to..]);
            prop_assert!(from + to >= (start.len() + end.len()).min(one.len().min(other.len())));
        }
    }
}

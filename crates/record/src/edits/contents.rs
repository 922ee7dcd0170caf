//! Contents of files, each kept once under a name made from what is kept.
//!
//! A large file of which little has changed is kept as what has changed: one line of a file of megabytes, edited a hundred
//! times, costs megabytes once. Such a piece names what it is a change of, so that its own name vouches for everything
//! below it.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

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

    /// Keeps what a file was and what it is, and says under which names.
    pub(super) fn keep(
        &self,
        before: Option<&Arc<[u8]>>,
        after: Option<&Arc<[u8]>>,
    ) -> io::Result<(Option<String>, Option<String>)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = before.map(|bytes| match last.take().filter(|last| last.bytes == *bytes) {
            Some(known) => Ok(known),
            None => self.whole(bytes),
        });
        let before = before.transpose()?;
        let after = after.map(|bytes| self.piece(before.as_ref(), bytes)).transpose()?;
        let names = (before.map(|before| before.name), after.as_ref().map(|after| after.name.clone()));
        // Small ones are as quickly named again.
        *last = after.filter(|after| after.bytes.len() >= LARGE_BYTES);
        Ok(names)
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
        if hex(&bytes) == digest { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn whole(&self, bytes: &Arc<[u8]>) -> io::Result<Last> {
        let name = hex(bytes);
        self.write(&name, bytes)?;
        Ok(Last { bytes: Arc::clone(bytes), name, pieces: 0 })
    }

    /// Keeps a content as a change of another, if that is much less.
    fn piece(&self, of: Option<&Last>, bytes: &Arc<[u8]>) -> io::Result<Last> {
        let of = of.filter(|of| bytes.len() >= LARGE_BYTES && of.pieces < MOST_PIECES);
        let Some(of) = of else { return self.whole(bytes) };
        let (start, end) = same(&of.bytes, bytes);
        let between = &bytes[start..bytes.len() - end];
        if between.len() > bytes.len() / 4 {
            return self.whole(bytes);
        }
        let mut file = serde_json::to_vec(&Piece { of: of.name.clone(), start, end })?;
        file.push(b'\n');
        file.extend_from_slice(between);
        let name = format!("{PIECE}{}", hex(&file));
        self.write(&name, &file)?;
        Ok(Last { bytes: Arc::clone(bytes), name, pieces: of.pieces + 1 })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.directory.join(name);
        if path.try_exists()? {
            return Ok(());
        }
        // Whole under its name, or not there.
        let draft = self.directory.join(format!("{name}.{}", std::process::id()));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft);
        file.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&draft, &path))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
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

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
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
            let (before, after) = contents.keep(Some(&large(edit)), Some(&large(edit + 1))).unwrap();
            names.extend([(edit, before.unwrap()), (edit + 1, after.unwrap())]);
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
        let (before, after) = contents.keep(Some(&large(0)), Some(&large(1))).unwrap();
        let (before, after) = (before.unwrap(), after.unwrap());
        assert!(after.starts_with(PIECE));
        fs::write(contents.directory().join(&before), large(7)).unwrap();
        assert_eq!(contents.load(&after).unwrap_err().kind(), io::ErrorKind::InvalidData);
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

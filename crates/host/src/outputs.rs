//! Keeps long outputs in full, in files. The copy in memory loses its middle, and a model is shown
//! even less.
//!
//! A command does not fail because its output cannot be written: the error is reported with the
//! output.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    mem,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use tokio::{
    sync::mpsc::{self, OwnedPermit, Receiver, Sender, error::SendError},
    task::{self, JoinHandle},
};
use windlass_contract::host::Whole;

/// Maximum number of bytes that a session keeps in files. An output that was begun may exceed it.
const MAX_SESSION_BYTES: u64 = 1024 * 1024 * 1024;

/// Maximum number in a file name. Files of an earlier run of the session are skipped.
const MAX_FILE_NUMBER: u32 = 100_000;

/// Size of the blocks written to disk. Passing on every single read costs more than writing it.
const BLOCK_BYTES: usize = 1024 * 1024;

/// Maximum number of blocks that wait for the disk. Then the command waits.
const MAX_QUEUED_BLOCKS: usize = 4;

/// The directory of the output files of a session.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    pub(crate) directory: PathBuf,
    /// Outputs longer than this are kept in a file.
    pub(crate) above_bytes: usize,
    /// Maximum number of bytes of one output in its file.
    pub(crate) limit_bytes: u64,
    next: AtomicU32,
    /// Bytes in the files of this session.
    written: AtomicU64,
}

impl OutputDirectory {
    pub(crate) fn new(directory: PathBuf, above_bytes: usize, limit_bytes: u64) -> Self {
        Self { directory, above_bytes, limit_bytes, next: AtomicU32::new(1), written: AtomicU64::new(0) }
    }

    /// Returns the directory if it exists.
    pub(crate) fn existing(&self) -> Option<&Path> {
        Some(self.directory.as_path()).filter(|directory| directory.is_dir())
    }

    fn create(&self) -> io::Result<(PathBuf, File)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(format!("{number}.txt"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_FILE_NUMBER => {}
                file => return Ok((path, file?)),
            }
        }
    }

    /// Writes one output, up to the limits.
    fn write(&self, mut chunks: Receiver<Vec<u8>>) -> Whole {
        if self.written.load(Ordering::Relaxed) >= MAX_SESSION_BYTES {
            return Whole::Lost(format!(
                "this session has kept {} MB of output already, and keeps no more",
                MAX_SESSION_BYTES / (1024 * 1024)
            ));
        }
        let (path, mut file) = match self.create() {
            Ok(created) => created,
            Err(error) => {
                return Whole::Lost(format!("cannot write in `{}`: {error}", self.directory.display()));
            }
        };
        match self.fill(&mut file, &mut chunks) {
            Ok((bytes, complete)) => {
                self.written.fetch_add(bytes, Ordering::Relaxed);
                Whole::File { path, bytes, complete }
            }
            Err(error) => {
                // Half of it would be taken for all, and on a full disk it is in the way.
                drop(fs::remove_file(&path));
                Whole::Lost(format!("cannot write `{}`: {error}", path.display()))
            }
        }
    }

    fn fill(&self, file: &mut File, chunks: &mut Receiver<Vec<u8>>) -> io::Result<(u64, bool)> {
        let mut left = self.limit_bytes;
        while let Some(chunk) = chunks.blocking_recv() {
            let fits = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            file.write_all(&chunk[..fits])?;
            left -= fits as u64;
            if fits < chunk.len() {
                writeln!(
                    file,
                    "\n[the output goes on; only its first {} bytes were kept]",
                    self.limit_bytes
                )?;
                return Ok((self.limit_bytes, false));
            }
        }
        Ok((self.limit_bytes - left, true))
    }
}

/// One output, which goes to a file when it gets long.
#[derive(Debug)]
pub(crate) struct OutputSpill {
    outputs: Arc<OutputDirectory>,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
    /// The whole output so far.
    Short(Vec<u8>),
    /// The bytes that the writing thread does not have yet.
    Long(Vec<u8>, SpillWriter),
    /// The file is full, or could not be written.
    Over(SpillWriter),
}

#[derive(Debug)]
struct SpillWriter {
    blocks: Sender<Vec<u8>>,
    written: JoinHandle<Whole>,
}

impl OutputSpill {
    pub(crate) fn new(outputs: Arc<OutputDirectory>) -> Self {
        Self { outputs, state: SpillState::Short(Vec::new()) }
    }

    /// Returns the queue to wait for before the next bytes are pushed, if it is full.
    pub(crate) fn waits_for(&self) -> Option<Sender<Vec<u8>>> {
        match &self.state {
            SpillState::Long(waiting, writer) if waiting.len() >= BLOCK_BYTES => Some(writer.blocks.clone()),
            SpillState::Short(_) | SpillState::Long(..) | SpillState::Over(_) => None,
        }
    }

    /// Continues after waiting for the queue. The permit may belong to a piece that was taken
    /// meanwhile; it is ignored then.
    pub(crate) fn go_on(&mut self, room: Result<OwnedPermit<Vec<u8>>, SendError<()>>) {
        let SpillState::Long(waiting, writer) = &mut self.state else { return };
        match room {
            Ok(room) if room.same_channel_as_sender(&writer.blocks) => {
                // Returns the sender, which is not needed.
                let _next = room.send(mem::take(waiting));
            }
            Err(_) if writer.blocks.is_closed() => self.give_up(),
            Ok(_) | Err(_) => {}
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            SpillState::Short(all) => {
                all.extend_from_slice(bytes);
                if all.len() > self.outputs.above_bytes {
                    self.begin();
                }
            }
            SpillState::Long(waiting, _) => waiting.extend_from_slice(bytes),
            SpillState::Over(_) => {}
        }
    }

    /// Finishes the file. Returns `None` if the output is short and will be shown in full.
    pub(crate) async fn finish(mut self, shown_bytes: usize) -> Option<Whole> {
        // Invalid UTF-8 gets longer when shown.
        if let SpillState::Short(all) = &self.state
            && String::from_utf8_lossy(all).len() > self.outputs.above_bytes.min(shown_bytes)
        {
            self.begin();
        }
        let written = match self.state {
            SpillState::Short(_) => return None,
            SpillState::Over(writer) => writer.written,
            SpillState::Long(rest, writer) => {
                // If the thread has stopped receiving, its result says why.
                drop(writer.blocks.send(rest).await);
                writer.written
            }
        };
        Some(written.await.unwrap_or_else(|error| Whole::Lost(format!("cannot write it: {error}"))))
    }

    fn begin(&mut self) {
        let (blocks, received) = mpsc::channel(MAX_QUEUED_BLOCKS);
        let outputs = Arc::clone(&self.outputs);
        let writer = SpillWriter { blocks, written: task::spawn_blocking(move || outputs.write(received)) };
        if let SpillState::Short(all) = mem::replace(&mut self.state, SpillState::Short(Vec::new())) {
            self.state = SpillState::Long(all, writer);
        }
    }

    fn give_up(&mut self) {
        if let SpillState::Long(_, writer) = mem::replace(&mut self.state, SpillState::Short(Vec::new())) {
            self.state = SpillState::Over(writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_buffer::OutputBuffer;

    async fn spill(outputs: OutputDirectory, chunks: &[&[u8]]) -> Option<Whole> {
        let kept = OutputBuffer::new(0, Some(Arc::new(outputs)));
        for chunk in chunks {
            kept.ready().await;
            kept.push(chunk);
        }
        kept.take(usize::MAX).await.whole
    }

    fn file(whole: Option<Whole>) -> (PathBuf, u64, bool) {
        match whole {
            Some(Whole::File { path, bytes, complete }) => (path, bytes, complete),
            other => panic!("no file: {other:?}"),
        }
    }

    #[tokio::test]
    async fn what_a_model_is_shown_whole_needs_no_file() {
        let place = tempfile::tempdir().unwrap();
        let outputs = OutputDirectory::new(place.path().join("o"), 6, 100);
        assert_eq!(spill(outputs, &[b"abc", b"def"]).await, None);
        assert!(!place.path().join("o").exists());
    }

    #[tokio::test]
    async fn a_longer_output_is_in_its_file_from_the_first_byte_on() {
        let place = tempfile::tempdir().unwrap();
        let outputs = || OutputDirectory::new(place.path().join("o/p"), 6, 100);
        let (path, bytes, complete) = file(spill(outputs(), &[b"abc", b"def", b"g"]).await);
        assert_eq!((fs::read(&path).unwrap(), bytes, complete), (b"abcdefg".to_vec(), 7, true));
        // A session that is taken up again finds its old files.
        assert_ne!(file(spill(outputs(), &[b"1234567"]).await).0, path);
    }

    #[tokio::test]
    async fn bytes_that_are_longer_as_text_are_counted_as_text() {
        let place = tempfile::tempdir().unwrap();
        let outputs = OutputDirectory::new(place.path().to_owned(), 6, 100);
        assert_eq!(file(spill(outputs, &[b"\xff\xff\xff"]).await).1, 3);
    }

    #[tokio::test]
    async fn what_is_shown_only_in_part_is_whole_in_a_file_however_short() {
        let place = tempfile::tempdir().unwrap();
        let kept =
            OutputBuffer::new(100, Some(Arc::new(OutputDirectory::new(place.path().to_owned(), 50, 100))));
        kept.push(b"abcdef");
        assert_eq!(kept.take(6).await.whole, None);
        kept.push(b"ghijkl");
        let (path, ..) = file(kept.take(5).await.whole);
        assert_eq!(fs::read(path).unwrap(), b"ghijkl");
    }

    #[tokio::test]
    async fn pieces_taken_while_the_disk_is_behind_each_have_their_own_file() {
        let place = tempfile::tempdir().unwrap();
        let kept =
            OutputBuffer::new(0, Some(Arc::new(OutputDirectory::new(place.path().to_owned(), 6, u64::MAX))));
        let mut sizes = Vec::new();
        for piece in 0..3 {
            for _ in 0..=2 * MAX_QUEUED_BLOCKS + piece {
                kept.ready().await;
                kept.push(&vec![b'x'; BLOCK_BYTES]);
            }
            let (path, bytes, complete) = file(kept.take(usize::MAX).await.whole);
            assert_eq!((fs::metadata(path).unwrap().len(), complete), (bytes, true));
            sizes.push(bytes / BLOCK_BYTES as u64);
        }
        assert_eq!(sizes, [9, 10, 11]);
    }

    #[tokio::test]
    async fn a_file_ends_at_its_limit_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        let outputs = OutputDirectory::new(place.path().to_owned(), 2, 5);
        let (path, bytes, complete) = file(spill(outputs, &[b"abc", b"def", b"ghi"]).await);
        assert_eq!((bytes, complete), (5, false));
        let expected = "abcde\n[the output goes on; only its first 5 bytes were kept]\n";
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    }

    #[tokio::test]
    async fn a_session_that_has_kept_enough_keeps_no_more() {
        let place = tempfile::tempdir().unwrap();
        let outputs = OutputDirectory::new(place.path().to_owned(), 2, 5);
        outputs.written.store(MAX_SESSION_BYTES, Ordering::Relaxed);
        let whole = spill(outputs, &[b"abc"]).await;
        assert!(matches!(&whole, Some(Whole::Lost(reason)) if reason.contains("1024 MB")), "{whole:?}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_told() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        let outputs = OutputDirectory::new(place.path().join("file/o"), 2, 5);
        let whole = spill(outputs, &[b"abc", b"def"]).await;
        assert!(matches!(&whole, Some(Whole::Lost(reason)) if reason.contains("file/o")), "{whole:?}");
    }

    #[tokio::test]
    async fn a_full_disk_is_an_error_of_the_file_alone() {
        let place = tempfile::tempdir().unwrap();
        let outputs = OutputDirectory::new(place.path().to_owned(), 2, 5);
        let (sender, chunks) = mpsc::channel(1);
        sender.try_send(b"abc".to_vec()).unwrap();
        drop(sender);
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let filled = task::spawn_blocking(move || outputs.fill(&mut full, &mut { chunks })).await.unwrap();
        assert_eq!(filled.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

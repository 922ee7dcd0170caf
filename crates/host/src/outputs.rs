//! The whole of long outputs, in files: what is kept in memory loses its middle, and a model is shown even less.
//!
//! No file is no reason for a command to fail: what went wrong is told with the output.

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

/// The most that one session keeps in files, unless one output is longer.
const MAX_SESSION_BYTES: u64 = 1024 * 1024 * 1024;

/// How many names are tried: outputs of one session, in an earlier run perhaps.
const NAMES: u32 = 100_000;

/// How much goes to the disk at once. Handing over every read costs more than writing it.
const BLOCK_BYTES: usize = 1024 * 1024;

/// How many blocks may wait for the disk. After that the command waits.
const WAITING: usize = 4;

/// Where outputs go.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) directory: PathBuf,
    /// From which length on.
    pub(crate) above_bytes: usize,
    /// How much of one goes to its file.
    pub(crate) limit_bytes: u64,
    next: AtomicU32,
    /// Bytes in the files of this session.
    written: AtomicU64,
}

impl Outputs {
    pub(crate) fn new(directory: PathBuf, above_bytes: usize, limit_bytes: u64) -> Self {
        Self { directory, above_bytes, limit_bytes, next: AtomicU32::new(1), written: AtomicU64::new(0) }
    }

    /// The directory, if there is anything in it.
    pub(crate) fn made(&self) -> Option<&Path> {
        Some(self.directory.as_path()).filter(|directory| directory.is_dir())
    }

    fn create(&self) -> io::Result<(PathBuf, File)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(format!("{number}.txt"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES => {}
                file => return Ok((path, file?)),
            }
        }
    }

    /// Writes one output, as far as it may be long.
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

/// One output on its way to a file, or not: that depends on how long it gets.
#[derive(Debug)]
pub(crate) struct Spill {
    outputs: Arc<Outputs>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All there is so far.
    Short(Vec<u8>),
    /// What the thread that writes has not got yet.
    Long(Vec<u8>, Writer),
    /// The file is full, or could not be written.
    Over(Writer),
}

#[derive(Debug)]
struct Writer {
    blocks: Sender<Vec<u8>>,
    written: JoinHandle<Whole>,
}

impl Spill {
    pub(crate) fn new(outputs: Arc<Outputs>) -> Self {
        Self { outputs, state: State::Short(Vec::new()) }
    }

    /// Where room must be waited for before the next bytes are taken, if it must.
    pub(crate) fn waits_for(&self) -> Option<Sender<Vec<u8>>> {
        match &self.state {
            State::Long(waiting, writer) if waiting.len() >= BLOCK_BYTES => Some(writer.blocks.clone()),
            State::Short(_) | State::Long(..) | State::Over(_) => None,
        }
    }

    /// There is room, or never will be. It may be room for another output, one that was taken in the meantime.
    pub(crate) fn go_on(&mut self, room: Result<OwnedPermit<Vec<u8>>, SendError<()>>) {
        let State::Long(waiting, writer) = &mut self.state else { return };
        match room {
            Ok(room) if room.same_channel_as_sender(&writer.blocks) => {
                // Gives back where there may be room next.
                let _next = room.send(mem::take(waiting));
            }
            Err(_) if writer.blocks.is_closed() => self.give_up(),
            Ok(_) | Err(_) => {}
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Short(all) => {
                all.extend_from_slice(bytes);
                if all.len() > self.outputs.above_bytes {
                    self.begin();
                }
            }
            State::Long(waiting, _) => waiting.extend_from_slice(bytes),
            State::Over(_) => {}
        }
    }

    /// What became of it; nothing if it was short, or no longer than will be shown.
    pub(crate) async fn finish(mut self, shown_bytes: usize) -> Option<Whole> {
        // Bytes that are no text are longer when shown.
        if let State::Short(all) = &self.state
            && String::from_utf8_lossy(all).len() > self.outputs.above_bytes.min(shown_bytes)
        {
            self.begin();
        }
        let written = match self.state {
            State::Short(_) => return None,
            State::Over(writer) => writer.written,
            State::Long(rest, writer) => {
                // Whoever no longer takes it says why in the end.
                drop(writer.blocks.send(rest).await);
                writer.written
            }
        };
        Some(written.await.unwrap_or_else(|error| Whole::Lost(format!("cannot write it: {error}"))))
    }

    fn begin(&mut self) {
        let (blocks, received) = mpsc::channel(WAITING);
        let outputs = Arc::clone(&self.outputs);
        let writer = Writer { blocks, written: task::spawn_blocking(move || outputs.write(received)) };
        if let State::Short(all) = mem::replace(&mut self.state, State::Short(Vec::new())) {
            self.state = State::Long(all, writer);
        }
    }

    fn give_up(&mut self) {
        if let State::Long(_, writer) = mem::replace(&mut self.state, State::Short(Vec::new())) {
            self.state = State::Over(writer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::Kept;

    async fn spill(outputs: Outputs, chunks: &[&[u8]]) -> Option<Whole> {
        let kept = Kept::new(0, Some(Arc::new(outputs)));
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
        let outputs = Outputs::new(place.path().join("o"), 6, 100);
        assert_eq!(spill(outputs, &[b"abc", b"def"]).await, None);
        assert!(!place.path().join("o").exists());
    }

    #[tokio::test]
    async fn a_longer_output_is_in_its_file_from_the_first_byte_on() {
        let place = tempfile::tempdir().unwrap();
        let outputs = || Outputs::new(place.path().join("o/p"), 6, 100);
        let (path, bytes, complete) = file(spill(outputs(), &[b"abc", b"def", b"g"]).await);
        assert_eq!((fs::read(&path).unwrap(), bytes, complete), (b"abcdefg".to_vec(), 7, true));
        // A session that is taken up again finds its old files.
        assert_ne!(file(spill(outputs(), &[b"1234567"]).await).0, path);
    }

    #[tokio::test]
    async fn bytes_that_are_longer_as_text_are_counted_as_text() {
        let place = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(place.path().to_owned(), 6, 100);
        assert_eq!(file(spill(outputs, &[b"\xff\xff\xff"]).await).1, 3);
    }

    #[tokio::test]
    async fn what_is_shown_only_in_part_is_whole_in_a_file_however_short() {
        let place = tempfile::tempdir().unwrap();
        let kept = Kept::new(100, Some(Arc::new(Outputs::new(place.path().to_owned(), 50, 100))));
        kept.push(b"abcdef");
        assert_eq!(kept.take(6).await.whole, None);
        kept.push(b"ghijkl");
        let (path, ..) = file(kept.take(5).await.whole);
        assert_eq!(fs::read(path).unwrap(), b"ghijkl");
    }

    #[tokio::test]
    async fn pieces_taken_while_the_disk_is_behind_each_have_their_own_file() {
        let place = tempfile::tempdir().unwrap();
        let kept = Kept::new(0, Some(Arc::new(Outputs::new(place.path().to_owned(), 6, u64::MAX))));
        let mut sizes = Vec::new();
        for piece in 0..3 {
            for _ in 0..=2 * WAITING + piece {
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
        let outputs = Outputs::new(place.path().to_owned(), 2, 5);
        let (path, bytes, complete) = file(spill(outputs, &[b"abc", b"def", b"ghi"]).await);
        assert_eq!((bytes, complete), (5, false));
        let expected = "abcde\n[the output goes on; only its first 5 bytes were kept]\n";
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    }

    #[tokio::test]
    async fn a_session_that_has_kept_enough_keeps_no_more() {
        let place = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(place.path().to_owned(), 2, 5);
        outputs.written.store(MAX_SESSION_BYTES, Ordering::Relaxed);
        let whole = spill(outputs, &[b"abc"]).await;
        assert!(matches!(&whole, Some(Whole::Lost(reason)) if reason.contains("1024 MB")), "{whole:?}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_told() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        let outputs = Outputs::new(place.path().join("file/o"), 2, 5);
        let whole = spill(outputs, &[b"abc", b"def"]).await;
        assert!(matches!(&whole, Some(Whole::Lost(reason)) if reason.contains("file/o")), "{whole:?}");
    }

    #[tokio::test]
    async fn a_full_disk_is_an_error_of_the_file_alone() {
        let place = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(place.path().to_owned(), 2, 5);
        let (sender, chunks) = mpsc::channel(1);
        sender.try_send(b"abc".to_vec()).unwrap();
        drop(sender);
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let filled = task::spawn_blocking(move || outputs.fill(&mut full, &mut { chunks })).await.unwrap();
        assert_eq!(filled.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

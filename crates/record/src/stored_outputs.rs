//! Outputs that a compaction takes out of a conversation, kept beside the long outputs of commands
//! so that `read_output` finds them.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

/// Maximum number in a file name. Numbers that are taken are skipped.
const MAX_FILE_NUMBER: u32 = 100_000;

/// The directory of the outputs of a session, for writing further ones.
#[derive(Debug)]
pub struct StoredOutputs {
    directory: PathBuf,
    next: AtomicU32,
}

impl StoredOutputs {
    /// Writes to the directory that [`outputs_directory`](crate::outputs_directory) returns.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, next: AtomicU32::new(1) }
    }

    /// Writes a text to a new file and returns its path.
    pub fn write(&self, text: &str) -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(format!("{number}.txt"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_FILE_NUMBER => {}
                file => {
                    file?.write_all(text.as_bytes())?;
                    return Ok(path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn numbers_of_other_outputs_are_skipped() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("1.txt"), "of a command").unwrap();
        let stored = StoredOutputs::new(place.path().to_owned());
        let written = stored.write("of a compaction").unwrap();
        assert_eq!(written, place.path().join("2.txt"));
        assert_eq!(fs::read_to_string(written).unwrap(), "of a compaction");
        assert_eq!(fs::read_to_string(place.path().join("1.txt")).unwrap(), "of a command");
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        StoredOutputs::new(place.path().join("file/o")).write("x").unwrap_err();
    }
}

//! Numbers the edits of all sessions of a user in the order in which they were made, independent of
//! the clock.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use jiff::Timestamp;

use super::durable::{create_private_directory, lock};

/// The counter, locked.
#[derive(Debug)]
pub(super) struct SequenceCounter {
    file: File,
    last: i64,
}

impl SequenceCounter {
    /// Opens the counter of a directory, and waits for other processes that are logging an edit.
    pub(super) fn lock(directory: &Path) -> io::Result<Self> {
        create_private_directory(directory)?;
        let path = directory.join("sequence");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        lock(&file)?;
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(32).read_to_end(&mut text)?;
        // The counter is not flushed, so a loss of power may damage it. Then the number comes from
        // the clock.
        let last = str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(i64::MIN);
        Ok(Self { file, last })
    }

    /// Returns the next number: the time in microseconds, or one more than the last number if that
    /// is larger.
    pub(super) fn advance(&mut self, now: Timestamp) -> io::Result<i64> {
        self.last = now.as_microsecond().max(self.last.saturating_add(1));
        self.file.write_all_at(format!("{:<20}\n", self.last).as_bytes(), 0)?;
        Ok(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_though_the_clock_goes_back() {
        let directory = tempfile::tempdir().unwrap();
        let advance = |seconds: i64| {
            let mut counter = SequenceCounter::lock(directory.path()).unwrap();
            counter.advance(Timestamp::from_second(seconds).unwrap()).unwrap()
        };
        let numbers = [advance(1_000), advance(-5_000_000_000), advance(-1), advance(1_001)];
        assert_eq!(numbers, [1_000_000_000, 1_000_000_001, 1_000_000_002, 1_001_000_000]);
        std::fs::write(directory.path().join("sequence"), [0; 21]).unwrap();
        assert_eq!(advance(-3), -3_000_000);
    }
}

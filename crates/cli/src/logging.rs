//! Logs, written to stderr without secrets.

use std::io::{self, Stderr, Write};

use crate::redact;

/// Returns the writer for logs.
pub(crate) fn place() -> RedactingWriter<Stderr> {
    RedactingWriter(io::stderr())
}

/// Removes secrets from its input; every line is written at once.
pub(crate) struct RedactingWriter<W>(W);

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(redact::own().clean(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_line_holds_no_secret() {
        let mut log = RedactingWriter(Vec::new());
        let line = b"WARN the tool failed error=\"cannot reach https://bob:q8Zk2mPv0Lr7@x/\"\n";
        assert_eq!(log.write(line).unwrap(), line.len());
        let written = String::from_utf8(log.0).unwrap();
        assert!(
            written.contains("https://bob:[REDACTED:url-password#") && !written.contains("q8Zk2m"),
            "{written}"
        );
    }
}

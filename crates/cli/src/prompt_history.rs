//! Messages that a person wrote in interactive sessions, for the next one.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use windlass::clean::Secrets;
use windlass_tui::PromptHistory;

/// Maximum number of messages that are offered.
const MAX_MESSAGES: usize = 1000;

/// A longer file is cut to the newest messages when it is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file below the home directory, one message per line, without secrets.
pub(crate) struct PromptHistoryFile {
    path: PathBuf,
    secrets: Secrets,
}

impl PromptHistoryFile {
    pub(crate) fn new(home: &Path, secrets: Secrets) -> Self {
        Self { path: home.join("prompt-history"), secrets }
    }

    fn write(&self, text: &str, options: &mut OpenOptions) -> io::Result<()> {
        if let Some(home) = self.path.parent() {
            fs::create_dir_all(home)?;
        }
        options.create(true).mode(0o600).open(&self.path)?.write_all(text.as_bytes())
    }
}

impl PromptHistory for PromptHistoryFile {
    fn load(&self) -> Vec<String> {
        // Without the file there is no history, and everything else works.
        let text = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<_> = text.lines().collect();
        let newest = &all[all.len().saturating_sub(MAX_MESSAGES)..];
        if text.len() as u64 > MAX_FILE_BYTES {
            let lines = newest.iter().map(|line| format!("{line}\n")).collect::<String>();
            // Tried again the next time.
            let _failed = self.write(&lines, OpenOptions::new().write(true).truncate(true));
        }
        newest.iter().map(|line| unescape(line)).collect()
    }

    fn append(&self, text: &str) -> Result<(), String> {
        let line = format!("{}\n", escape(&self.secrets.clean(text)));
        self.write(&line, OpenOptions::new().append(true))
            .map_err(|error| format!("the message is not in the history: {error}"))
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(line: &str) -> String {
    let (mut text, mut chars) = (String::new(), line.chars());
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some(other) => text.push(other),
                None => {}
            },
            (c, false) => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn messages_come_back_as_they_were_in_a_private_file() {
        let home = tempfile::tempdir().unwrap();
        let file = PromptHistoryFile::new(home.path(), Secrets::default());
        let messages = ["one", "two\nlines \\n", "tab\tand\rreturn"].map(str::to_owned);
        for message in &messages {
            file.append(message).unwrap();
        }
        assert_eq!(file.load(), messages);
        let mode = fs::metadata(home.path().join("prompt-history")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

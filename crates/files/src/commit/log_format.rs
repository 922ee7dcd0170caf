//! The format of a write-ahead log: fields that end in NUL, a checksum, and after it the
//! directories that were made during the change.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

use super::{
    content_id::{BeforeId, ContentId},
    file_swap::FileSwap,
    folders::{FolderTree, MadeFolder},
};
use crate::sha256::{from_hex, sha256_of, to_hex};

const BEGIN: &[u8] = b"windlass change 2";
const BEGIN_BEFORE_CHECKSUMS: &[u8] = b"windlass change 1";

/// Everything that is needed to finish a change or to roll it back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LoggedChange {
    /// Its name in the edit log.
    pub(super) transaction: String,
    /// The edit log that decides whether the change is committed.
    pub(super) edit_log: PathBuf,
    /// Directories that the change makes.
    pub(super) trees: Vec<FolderTree>,
    /// Directories that are removed at the end, if they are empty.
    pub(super) removed_folders: Vec<PathBuf>,
    /// The files.
    pub(super) swaps: Vec<FileSwap>,
    /// Directories that were made, as far as they are in the log.
    pub(super) made: Vec<MadeFolder>,
}

/// The result of reading a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedLog {
    Complete(LoggedChange),
    /// It was not written completely, so nothing was changed yet.
    Torn,
    /// Written by a version without checksums: each file, and the names of the drafts beside it.
    WithoutChecksums(Vec<(PathBuf, [PathBuf; 2])>),
    /// Written by a later version.
    LaterVersion,
}

impl LoggedChange {
    /// Serializes everything that is known before the change.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |fields: &[&[u8]]| {
            for field in fields {
                bytes.extend(field.iter().copied().chain([0]));
            }
        };
        put(&[BEGIN, b"log", self.edit_log.as_os_str().as_bytes()]);
        put(&[b"transaction", self.transaction.as_bytes()]);
        for FolderTree { root, unique, inside } in &self.trees {
            put(&[b"tree", root.as_os_str().as_bytes(), unique.as_bytes()]);
            for folder in inside {
                put(&[b"inside", folder.as_os_str().as_bytes()]);
            }
        }
        for folder in &self.removed_folders {
            put(&[b"unmade", folder.as_os_str().as_bytes()]);
        }
        for FileSwap { real, unique, before, after } in &self.swaps {
            let before =
                before.as_ref().map(|before| format!("{} {}", to_text(&before.content), before.inode));
            let (before, after) =
                (before.unwrap_or_default(), after.as_ref().map(to_text).unwrap_or_default());
            put(&[
                b"file",
                real.as_os_str().as_bytes(),
                unique.as_bytes(),
                before.as_bytes(),
                after.as_bytes(),
            ]);
        }
        let checksum = to_hex(&sha256_of(&bytes));
        bytes.extend([b"end\0", checksum.as_bytes(), b"\0"].concat());
        bytes
    }
}

/// Serializes the directories that were made, to append them to the log.
pub(super) fn made_to_bytes(made: &[MadeFolder]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for MadeFolder { real, inode } in made {
        bytes.extend(b"made\0");
        bytes.extend(real.as_os_str().as_bytes());
        bytes.extend(format!("\0{inode}\0").as_bytes());
    }
    bytes
}

/// Parses a log.
pub(super) fn parse(bytes: &[u8]) -> ParsedLog {
    let mut fields = LogFieldParser { bytes, at: 0 };
    match fields.next() {
        Some(BEGIN) => fields.change().map_or(ParsedLog::Torn, ParsedLog::Complete),
        Some(BEGIN_BEFORE_CHECKSUMS) => ParsedLog::WithoutChecksums(fields.files_before_checksums()),
        Some(other) if is_later_version(other) => ParsedLog::LaterVersion,
        Some(_) | None => ParsedLog::Torn,
    }
}

fn is_later_version(header: &[u8]) -> bool {
    let version = header.strip_prefix(b"windlass change ");
    version.is_some_and(|version| !version.is_empty() && version.iter().all(u8::is_ascii_digit))
}

struct LogFieldParser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> LogFieldParser<'a> {
    /// Returns the next field; `None` for one without its NUL, which was cut by a crash.
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == 0)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.next().map(|field| OsString::from_vec(field.to_vec()).into())
    }

    fn text(&mut self) -> Option<&'a str> {
        self.next().and_then(|field| str::from_utf8(field).ok())
    }

    fn change(mut self) -> Option<LoggedChange> {
        let mut change = LoggedChange::default();
        loop {
            let here = self.at;
            match self.next()? {
                b"log" => change.edit_log = self.path()?,
                b"transaction" => self.text()?.clone_into(&mut change.transaction),
                b"tree" => {
                    let (root, unique) = (self.path()?, self.text()?.to_owned());
                    change.trees.push(FolderTree { root, unique, inside: Vec::new() });
                }
                b"inside" => change.trees.last_mut()?.inside.push(self.path()?),
                b"unmade" => change.removed_folders.push(self.path()?),
                b"file" => {
                    let (real, unique) = (self.path()?, self.text()?.to_owned());
                    let (before, after) = (self.text()?, self.text()?);
                    let before = match before.rsplit_once(' ') {
                        Some((content, inode)) => {
                            Some(BeforeId { content: from_text(content)?, inode: inode.parse().ok()? })
                        }
                        None => None,
                    };
                    let after = if after.is_empty() { None } else { Some(from_text(after)?) };
                    change.swaps.push(FileSwap { real, unique, before, after });
                }
                b"end" if self.text()? == to_hex(&sha256_of(&self.bytes[..here])) => break,
                _ => return None,
            }
        }
        while let Some(made) = self.made() {
            change.made.push(made);
        }
        Some(change)
    }

    fn made(&mut self) -> Option<MadeFolder> {
        self.next().filter(|tag| *tag == b"made")?;
        Some(MadeFolder { real: self.path()?, inode: self.text()?.parse().ok()? })
    }

    fn files_before_checksums(mut self) -> Vec<(PathBuf, [PathBuf; 2])> {
        let mut files = Vec::new();
        while let Some(tag) = self.next() {
            match tag {
                b"folder" => drop(self.next()),
                b"file" => {
                    let (Some(real), Some(staged), Some(saved)) = (self.path(), self.path(), self.path())
                    else {
                        break;
                    };
                    let beside = [staged, saved].map(|name| real.with_file_name(name));
                    files.push((real, beside));
                }
                _ => break,
            }
        }
        files
    }
}

fn to_text(content: &ContentId) -> String {
    format!("{} {}", to_hex(&content.sha256), content.size_bytes)
}

fn from_text(text: &str) -> Option<ContentId> {
    let (hex, size) = text.split_once(' ')?;
    Some(ContentId { sha256: from_hex(hex)?, size_bytes: size.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change() -> LoggedChange {
        let content =
            |text: &str| ContentId { sha256: sha256_of(text.as_bytes()), size_bytes: text.len() as u64 };
        let before = |text: &str| BeforeId { content: content(text), inode: 7 };
        let swap = |at: usize, before, after| FileSwap {
            real: format!("/w/{at}").into(),
            unique: format!("x-{at}"),
            before,
            after,
        };
        LoggedChange {
            transaction: "x".into(),
            edit_log: "/home/log".into(),
            trees: vec![FolderTree { root: "/w/a".into(), unique: "x-0".into(), inside: vec!["b".into()] }],
            removed_folders: vec!["/w/c".into()],
            swaps: vec![
                swap(0, Some(before("a")), Some(content("b"))),
                swap(1, None, Some(content("b"))),
                swap(2, Some(before("a")), None),
            ],
            made: vec![MadeFolder { real: "/w/a".into(), inode: 2 }],
        }
    }

    #[test]
    fn a_log_is_read_as_it_was_written_and_torn_wherever_it_is_cut() {
        let change = change();
        let whole = change.to_bytes();
        let with_made = [whole.clone(), made_to_bytes(&change.made)].concat();
        assert_eq!(parse(&with_made), ParsedLog::Complete(change.clone()));
        let without = ParsedLog::Complete(LoggedChange { made: Vec::new(), ..change });
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]), ParsedLog::Torn, "cut at {cut}");
            // A file system may leave zeros where the rest should be.
            let zeros = [&whole[..cut], &vec![0; whole.len() - cut]].concat();
            assert!(matches!(parse(&zeros), ParsedLog::Torn) || zeros == whole, "zeros from {cut}");
        }
        for cut in whole.len()..with_made.len() {
            assert_eq!(parse(&with_made[..cut]), without, "cut at {cut}");
        }
    }

    #[test]
    fn a_log_of_an_earlier_version_names_its_files_and_of_a_later_one_nothing() {
        let bytes = b"windlass change 1\0folder\0/w/d\0file\0/w/a\0.s\0.o\0ready\x0012\0";
        let beside = [PathBuf::from("/w/.s"), PathBuf::from("/w/.o")];
        assert_eq!(parse(bytes), ParsedLog::WithoutChecksums(vec![("/w/a".into(), beside)]));
        assert_eq!(parse(b"windlass change 3\0x\0"), ParsedLog::LaterVersion);
    }
}

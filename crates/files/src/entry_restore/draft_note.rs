//! The note about drafts beside files, which the next start reads if this process dies before it
//! has removed them.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
};

use windlass_contract::snapshot::EntryContent;

use super::entry_draft::EntryDraft;
use crate::{
    CommitRecovery,
    commit::unique,
    crash_note::{CrashNote, for_each_abandoned},
    sha256::{from_hex, to_hex},
};

const BEGIN: &[u8] = b"windlass restore 1";
const END: &[u8] = b"end";
const DIRECTORY: &[u8] = b"directory";
const EXTENSION: &str = "restore";

/// Writes which drafts an undo will make.
pub(super) fn create_draft_note(directory: &Path, drafts: &[&EntryDraft]) -> io::Result<CrashNote> {
    CrashNote::create(directory, &unique(), EXTENSION, &to_bytes(drafts))
}

/// Removes the drafts that undos of dead processes have left beside files. `directory` holds the
/// notes.
#[expect(clippy::disallowed_methods, reason = "the note is in a directory of Windlass itself")]
pub fn recover_restores(directory: &Path) -> io::Result<Vec<CommitRecovery>> {
    let mut recovered = Vec::new();
    for_each_abandoned(directory, EXTENSION, |note, bytes| {
        // A note of a later version is left for that version.
        let mut is_settled = bytes.starts_with(BEGIN);
        for trace in parse(bytes).unwrap_or_default() {
            match trace.settle() {
                Ok(None) => {}
                Ok(before) => recovered.push(CommitRecovery::Conflict { path: trace.path, before }),
                Err(source) => {
                    is_settled = false;
                    recovered.push(CommitRecovery::Failed { path: trace.path, source });
                }
            }
        }
        if is_settled { fs::remove_file(note) } else { Ok(()) }
    })?;
    Ok(recovered)
}

fn to_bytes(drafts: &[&EntryDraft]) -> Vec<u8> {
    let mut fields = vec![BEGIN.to_vec()];
    for EntryDraft { path, name, before, after } in drafts {
        fields.extend([path.as_os_str().as_bytes().to_vec(), name.as_bytes().to_vec()]);
        fields.extend([to_field(before.as_ref()), to_field(after.as_ref())]);
    }
    fields.push(END.to_vec());
    fields.join(&0)
}

fn to_field(content: Option<&EntryContent>) -> Vec<u8> {
    match content {
        None => Vec::new(),
        Some(EntryContent::Directory) => DIRECTORY.to_vec(),
        Some(EntryContent::File(digest)) => format!("file {}", to_hex(digest)).into_bytes(),
        Some(EntryContent::Symlink(target)) => [b"link ", target.as_os_str().as_bytes()].concat(),
    }
}

/// Parses a note; `None` if it is incomplete or of another version.
fn parse(bytes: &[u8]) -> Option<Vec<EntryDraft>> {
    let fields: Vec<_> = bytes.split(|byte| *byte == 0).collect();
    let [BEGIN, drafts @ .., END] = &fields[..] else { return None };
    let text = |field: &[u8]| OsString::from_vec(field.to_vec());
    let draft = |fields: &[&[u8]]| {
        let [path, name, before, after] = fields else { return None };
        let (before, after) = (from_field(before).ok()?, from_field(after).ok()?);
        Some(EntryDraft { path: text(path).into(), name: text(name), before, after })
    };
    drafts.chunks(4).map(draft).collect()
}

fn from_field(field: &[u8]) -> io::Result<Option<EntryContent>> {
    if field.is_empty() {
        return Ok(None);
    }
    if field == DIRECTORY {
        return Ok(Some(EntryContent::Directory));
    }
    if let Some(target) = field.strip_prefix(b"link ") {
        return Ok(Some(EntryContent::Symlink(OsString::from_vec(target.to_vec()).into())));
    }
    let digest = field.strip_prefix(b"file ").and_then(|hex| from_hex(str::from_utf8(hex).ok()?));
    digest.map(|digest| Some(EntryContent::File(digest))).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_all_about_its_drafts_and_a_torn_one_nothing() {
        let link = EntryContent::Symlink(OsString::from_vec(b"to \xff".to_vec()).into());
        let one = EntryDraft::new("/w/a".into(), Some(EntryContent::File([0xab; 32])), None);
        let other = EntryDraft::new("/w/b\nc".into(), Some(EntryContent::Directory), Some(link));
        let bytes = to_bytes(&[&one, &other]);
        assert_eq!(parse(&bytes), Some(vec![one, other]));
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), None, "{end}");
        }
    }
}

//! The input in an editor of the person's choice.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{self, Command},
    time::SystemTime,
};

/// Maximum size of a text that is read back.
const MAX_TEXT_BYTES: u64 = 1024 * 1024;

/// The editor of the person's choice.
#[derive(Debug, Clone)]
pub struct ExternalEditor {
    /// The value of `VISUAL` or `EDITOR`.
    pub command: Option<OsString>,
    /// The directory for the text.
    pub directory: PathBuf,
}

impl ExternalEditor {
    /// Opens a text, and returns it as it was left.
    pub(crate) fn edit(&self, text: &str) -> io::Result<String> {
        let none = || io::Error::other("set VISUAL or EDITOR to the editor of your choice");
        edit_with(self.command.as_ref().ok_or_else(none)?, text, &self.directory)
    }
}

fn edit_with(editor: &OsStr, text: &str, directory: &Path) -> io::Result<String> {
    let file = InputFile::create(directory, text)?;
    // The value may have arguments, so a shell splits it, as for other programs.
    let mut line = editor.to_owned();
    line.push(" \"$1\"");
    let status = Command::new("/bin/sh").arg("-c").arg(&line).arg("sh").arg(&file.0).status()?;
    if !status.success() {
        let editor = editor.to_string_lossy();
        return Err(io::Error::other(format!("the editor `{editor}` failed, the input is unchanged")));
    }
    let mut edited = String::new();
    fs::File::open(&file.0)?.take(MAX_TEXT_BYTES).read_to_string(&mut edited)?;
    // Editors end a file with a line break.
    let end = edited.strip_suffix('\n').map_or(edited.len(), |rest| rest.trim_end_matches('\r').len());
    edited.truncate(end);
    Ok(edited)
}

/// A file that only the person can read. Removed when it is dropped.
struct InputFile(PathBuf);

impl InputFile {
    fn create(directory: &Path, text: &str) -> io::Result<Self> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("windlass-{}-{}.md", process::id(), time.as_nanos());
        let path = directory.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let created = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(created)
    }
}

impl Drop for InputFile {
    fn drop(&mut self) {
        // The editor may have moved it away.
        let _gone = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_text_goes_through_a_private_file_that_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("editor");
        fs::write(&script, "#!/bin/sh\nstat -c %a \"$2\" > mode\ncat \"$2\" > seen\necho more >> \"$2\"\n")
            .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
        let editor = format!("cd {} && ./editor --wait", directory.path().display());
        let place = tempfile::tempdir().unwrap();
        assert_eq!(edit_with(editor.as_ref(), "one\ntwo", place.path()).unwrap(), "one\ntwomore");
        assert_eq!(fs::read_to_string(directory.path().join("mode")).unwrap(), "600\n");
        assert_eq!(fs::read_to_string(directory.path().join("seen")).unwrap(), "one\ntwo");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let failed = edit_with("false".as_ref(), "one", place.path()).unwrap_err();
        assert!(failed.to_string().contains("`false` failed"), "{failed}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

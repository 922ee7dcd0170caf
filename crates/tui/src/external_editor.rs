//! The input in an editor of the person's choice.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{self, Child, Command},
    thread,
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal};

/// Maximum size of a text that is read back.
const MAX_TEXT_BYTES: u64 = 1024 * 1024;

/// Time between two looks at a running editor.
const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Time that an editor gets to end. The session itself is ended soon after the signal.
const MAX_EDITOR_END: Duration = Duration::from_millis(100);

/// The editor of the person's choice.
#[derive(Debug, Clone)]
pub struct ExternalEditor {
    /// The value of `VISUAL` or `EDITOR`.
    pub command: Option<OsString>,
    /// The directory for the text.
    pub directory: PathBuf,
}

impl ExternalEditor {
    /// Opens a text, and returns it as it was left. The editor is ended when `is_ending` says so:
    /// the session must not leave it or its file behind.
    pub(crate) fn edit(&self, text: &str, is_ending: impl Fn() -> bool) -> io::Result<String> {
        let none = || io::Error::other("set VISUAL or EDITOR to the editor of your choice");
        edit_with(self.command.as_ref().ok_or_else(none)?, text, &self.directory, is_ending)
    }
}

fn edit_with(
    editor: &OsStr,
    text: &str,
    directory: &Path,
    is_ending: impl Fn() -> bool,
) -> io::Result<String> {
    let folder = InputFolder::create(directory)?;
    let file = folder.0.join("message.md");
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?.write_all(text.as_bytes())?;
    // The value may have arguments, so a shell splits it, as for other programs.
    let mut line = editor.to_owned();
    line.push(" \"$1\"");
    let mut shell = Command::new("/bin/sh").arg("-c").arg(&line).arg("sh").arg(&file).spawn()?;
    let status = loop {
        if let Some(status) = shell.try_wait()? {
            break status;
        }
        if is_ending() {
            end(&mut shell);
            return Err(io::Error::other("the editor was ended, the input is unchanged"));
        }
        thread::sleep(POLL_INTERVAL);
    };
    if !status.success() {
        let editor = editor.to_string_lossy();
        return Err(io::Error::other(format!("the editor `{editor}` failed, the input is unchanged")));
    }
    let mut edited = String::new();
    fs::File::open(&file)?.take(MAX_TEXT_BYTES).read_to_string(&mut edited)?;
    // Editors end a file with a line break.
    let end = edited.strip_suffix('\n').map_or(edited.len(), |rest| rest.trim_end_matches('\r').len());
    edited.truncate(end);
    Ok(edited)
}

/// Ends a shell and the editor that it runs. Editors restore the terminal if they get the time.
fn end(shell: &mut Child) {
    let mut pids = vec![shell.id()];
    let mut at = 0;
    // A shell does not pass a signal on, and its group is also ours.
    while let Some(pid) = pids.get(at) {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        pids.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        at += 1;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            // It may have ended.
            let _gone = rustix::process::kill_process(pid, signal);
        }
        thread::sleep(MAX_EDITOR_END);
    }
    let _status = shell.wait();
}

/// A folder that only the person can read. Removed when it is dropped, with the copies that an
/// editor makes beside its file.
struct InputFolder(PathBuf);

impl InputFolder {
    fn create(directory: &Path) -> io::Result<Self> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let path = directory.join(format!("windlass-{}-{}", process::id(), time.as_nanos()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for InputFolder {
    fn drop(&mut self) {
        // If it cannot be removed, there is nothing else to do with it.
        let _gone = fs::remove_dir_all(&self.0);
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
        assert_eq!(edit_with(editor.as_ref(), "one\ntwo", place.path(), || false).unwrap(), "one\ntwomore");
        assert_eq!(fs::read_to_string(directory.path().join("mode")).unwrap(), "600\n");
        assert_eq!(fs::read_to_string(directory.path().join("seen")).unwrap(), "one\ntwo");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let failed = edit_with("false".as_ref(), "one", place.path(), || false).unwrap_err();
        assert!(failed.to_string().contains("`false` failed"), "{failed}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_editor_is_ended_with_the_session_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let pid_file = place.path().join("pid");
        // A shell of its own, which ignores the polite signal, and a copy beside the file.
        let editor = format!(
            "cd {} && sh -c 'trap \"\" TERM; touch \"$1~\"; echo $$ > pid; while :; do sleep 1; done' sh",
            place.path().display()
        );
        let folder = tempfile::tempdir().unwrap();
        let is_ending = || fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n'));
        let ended = edit_with(editor.as_ref(), "one", folder.path(), is_ending).unwrap_err();
        assert!(ended.to_string().contains("was ended"), "{ended}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let pid = fs::read_to_string(&pid_file).unwrap();
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}

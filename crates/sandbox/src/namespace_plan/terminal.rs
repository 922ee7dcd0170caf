//! The terminal of a command, where its programs look for it.
//!
//! A session's terminal comes from the host's devpts, and the sandbox has a devpts of its own, in
//! which no name can be made for it. So the one device is bound to `/dev/console`, as containers
//! do: `ttyname` searches `/dev` and finds it there. The command has the terminal open anyway.

use std::{
    ffi::{CStr, CString},
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, MetadataExt},
        },
    },
    path::Path,
};

use super::{MAX_HELD_TREES, MountStep, NamespacePlan, WritablePath};

const CONSOLE: &CStr = c"/dev/console";

impl NamespacePlan {
    /// Shows the terminal that a command gets as its input, if it is one. What cannot be shown is
    /// not: the command only misses its name.
    pub(crate) fn show_terminal(&mut self, input: &OwnedFd) {
        let is_held =
            |step: &&MountStep| matches!(step, MountStep::CloneTree { .. } | MountStep::CloneRoot { .. });
        let slot = self.steps.iter().filter(is_held).count();
        let place = |wanted: fn(&MountStep) -> bool| self.steps.iter().position(wanted);
        let sealed = place(|step| matches!(step, MountStep::AllReadOnly));
        let terminals = place(|step| matches!(step, MountStep::Devpts { .. }));
        let (Some(sealed), Some(terminals), Ok(Some(path))) = (sealed, terminals, pts_path(input)) else {
            return;
        };
        if slot >= MAX_HELD_TREES || terminals < sealed {
            return;
        }
        let console = CONSOLE.to_owned();
        // From the last place to the first, which keeps those before it where they are.
        self.steps.insert(terminals, MountStep::Attach { slot, path: console.clone() });
        self.steps.insert(terminals, MountStep::File { path: console.clone(), mode: 0o600 });
        self.steps.insert(sealed, MountStep::CloneTree { path, slot });
        self.writable.push(WritablePath { path: console, is_directory: false });
    }
}

/// The path of a terminal on the host's devpts, if that is what the descriptor is.
fn pts_path(input: &OwnedFd) -> io::Result<Option<CString>> {
    let path = fs::read_link(format!("/proc/self/fd/{}", input.as_raw_fd()))?;
    let number = path.strip_prefix("/dev/pts").ok().and_then(Path::to_str);
    if !number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())) {
        return Ok(None);
    }
    let (named, open) =
        (fs::symlink_metadata(&path)?, File::from(input.as_fd().try_clone_to_owned()?).metadata()?);
    let is_same =
        named.file_type().is_char_device() && (named.dev(), named.ino()) == (open.dev(), open.ino());
    Ok(is_same.then(|| CString::new(path.as_os_str().as_bytes())).transpose()?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use super::*;
    use crate::sys::terminal::{PtyPair, WindowSize};

    #[test]
    fn only_a_terminal_has_a_path() {
        let pipe = io::pipe().unwrap();
        assert_eq!(pts_path(&pipe.0.into()).unwrap(), None);
        let null = File::open("/dev/null").unwrap();
        assert_eq!(pts_path(&null.into()).unwrap(), None);
        let terminal = PtyPair::open(WindowSize { rows: 24, columns: 80 }).unwrap();
        let path = pts_path(&terminal.theirs).unwrap().unwrap();
        assert!(path.as_bytes().starts_with(b"/dev/pts/"), "{path:?}");
    }
}

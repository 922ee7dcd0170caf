//! The copy of a settings file of git that a command writes instead of the file itself.
//!
//! Git replaces its settings by renaming a new file over them, which a mount on the file would
//! forbid. So in the sandbox a symbolic link is mounted on the file: git follows it, and renames in
//! the directory it leads to.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use windlass_files::DirHandle;
use windlass_sandbox::{PrivateFile, PrivateTmp, ProtectedPaths};

use super::{
    check::{Findings, dropped_settings},
    git_config::{GitConfigChange, MAX_CONFIG_BYTES},
    git_program::GitProgram,
    roots::WorkspaceRoot,
};

/// The name of every copy. Git writes `config.lock` beside it.
const CONFIG_NAME: &str = "config";

/// A settings file, and the directory with the copy of it.
#[derive(Debug, Clone)]
pub(crate) struct PrivateConfig {
    /// The file of the repository.
    pub(super) path: PathBuf,
    /// The directory on the host that only this command may write.
    directory: PathBuf,
    base: Vec<u8>,
}

impl PrivateConfig {
    /// Copies the settings of every repository for one command, into a directory that no other
    /// command uses meanwhile.
    pub(super) fn prepare(
        protected: &ProtectedPaths,
        store: &PrivateTmp,
        slot: &str,
    ) -> io::Result<Vec<Self>> {
        let mut copies = Vec::new();
        if protected.git_configs.is_empty() {
            return Ok(copies);
        }
        let top = store.path()?.join(slot);
        for (number, path) in protected.git_configs.iter().enumerate() {
            let failed = |error| io::Error::other(format!("`{}`: {error}", path.display()));
            let base = read(path).map_err(failed)?;
            let directory = top.join(number.to_string());
            if !holds_only(&directory, &base) {
                write_anew(&directory, &base)?;
            }
            copies.push(Self { path: path.clone(), directory, base });
        }
        Ok(copies)
    }

    /// Tells whether the command has written to its copy, or made it unreadable.
    pub(super) fn is_changed(&self) -> bool {
        match self.read_copy() {
            Ok(copy) => copy != self.base,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns the copy as the sandbox takes it.
    pub(crate) fn as_private_file(&self) -> PrivateFile<'_> {
        let Self { path, directory, .. } = self;
        PrivateFile { path, directory, name: OsStr::new(CONFIG_NAME) }
    }

    /// Reads what the command left in the copy.
    pub(super) fn read_copy(&self) -> io::Result<Vec<u8>> {
        DirHandle::open(&self.directory)?.read_file(OsStr::new(CONFIG_NAME), MAX_CONFIG_BYTES)
    }

    /// Takes over what may be kept of what the command wrote.
    pub(super) fn check(&self, roots: &[&WorkspaceRoot], git: &mut impl GitProgram, findings: &mut Findings) {
        match self.read_copy() {
            Ok(copy) if copy == self.base => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(copy) => {
                if let Err(reason) = self.take_over(&copy, roots, git, findings) {
                    findings.tell(
                        &self.path,
                        format!("the command's changes to git's settings are not kept: {reason}"),
                    );
                }
            }
            Err(error) => {
                findings.tell(
                    &self.path,
                    format!("the command's changes to git's settings are not kept: {error}"),
                );
            }
        }
    }

    fn take_over(
        &self,
        copy: &[u8],
        roots: &[&WorkspaceRoot],
        git: &mut impl GitProgram,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let change = GitConfigChange::between(&git.list(&self.base)?, &git.list(copy)?);
        if !change.dropped.is_empty() {
            findings.tell(&self.path, dropped_settings(&change.dropped));
        }
        if change.edits.is_empty() {
            return Ok(());
        }
        let root = roots.iter().find(|root| self.path.starts_with(&root.path)).ok_or("its root is gone")?;
        let above =
            self.path.parent().and_then(|above| above.strip_prefix(&root.path).ok()).ok_or("no directory")?;
        let name = self.path.file_name().ok_or("no name")?;
        let failed = |error: io::Error| error.to_string();
        let directory = root.handle.open_dir(above).map_err(failed)?;
        let current = directory.read_file(name, MAX_CONFIG_BYTES).map_err(failed)?;
        let is_plain = change.dropped.is_empty() && current == self.base;
        let edited = if is_plain { copy.to_vec() } else { git.edit(&current, &change.edits)? };
        // After all edits, only allowed settings may differ from the current file.
        let result = GitConfigChange::between(&git.list(&current)?, &git.list(&edited)?);
        if !result.dropped.is_empty() {
            return Err("they cannot be told apart from others".to_owned());
        }
        let permissions = directory.stat_entry(name).map_err(failed)?.permissions;
        directory.replace_file(name, &edited, permissions).map_err(failed)?;
        findings.has_acted = true;
        Ok(())
    }
}

/// Tells whether a directory holds a copy as it was made, and nothing else.
fn holds_only(directory: &Path, base: &[u8]) -> bool {
    let name = OsStr::new(CONFIG_NAME);
    DirHandle::open(directory).is_ok_and(|directory| {
        directory.list(1).is_ok_and(|names| names == [name])
            && directory.read_file(name, MAX_CONFIG_BYTES).is_ok_and(|bytes| bytes == base)
    })
}

fn write_anew(directory: &Path, base: &[u8]) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(directory)?,
    }
    fs::write(directory.join(CONFIG_NAME), base)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (above, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    DirHandle::open(above)?.read_file(name, MAX_CONFIG_BYTES)
}

//! Collects the files in the workspace that git's settings name: hooks, programs, and included
//! settings.
//!
//! Decided by the value, not by the key: git has many settings that name a program, and gets more.
//! A word of any value that is a file in the workspace is protected, unless the key is known to
//! name none.

use std::path::{Path, PathBuf};

use windlass_files::{DirHandle, EntryKind};
use windlass_sandbox::links;

use super::{
    super::{
        git_config::{GitSetting, MAX_CONFIG_BYTES},
        git_program::GitProgram,
    },
    ProtectedPathCollector,
};

/// Maximum number of settings files read for one repository: an included one may include others.
const MAX_INCLUDED: usize = 16;

/// Maximum number of words of a command line in git's settings that are checked.
const MAX_WORDS: usize = 32;

/// Maximum number of words of all settings that are looked up in each working tree.
const MAX_WORDS_IN_ALL: usize = 256;

/// The owner of the settings in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsSource {
    /// The user's or the system's. A word of theirs that is no path is hardly ever meant for a file
    /// of this workspace.
    Global,
    Repository,
}

impl<G: GitProgram> ProtectedPathCollector<'_, G> {
    /// Protects what the user's and the system's settings lead to.
    pub(super) fn global_settings(&mut self) {
        let home = self.git.home();
        let own =
            home.iter().flat_map(|home| [".gitconfig", ".config/git/config"].map(|name| home.join(name)));
        for file in [PathBuf::from("/etc/gitconfig")].into_iter().chain(own) {
            self.settings_lead(&file, SettingsSource::Global);
        }
    }

    /// Protects files that settings include, and takes note of the hooks and programs they name.
    pub(super) fn settings_lead(&mut self, file: &Path, source: SettingsSource) {
        let mut files = vec![file.to_owned()];
        let mut at = 0;
        while let Some(file) = files.get(at).filter(|_| at < MAX_INCLUDED).cloned() {
            at += 1;
            for setting in self.leading_settings(&file) {
                let value = setting.value.as_ref().and_then(|value| std::str::from_utf8(value).ok());
                let Some(value) = value else { continue };
                if setting.names_hooks() {
                    self.hooks_path(value);
                } else if setting.is_include() {
                    let included = self.expand(value, file.parent());
                    files.extend(included.filter(|included| !files.contains(included)));
                } else {
                    self.programs(value, (source, setting.names_program()));
                }
            }
        }
        files.iter().skip(1).take(MAX_INCLUDED).for_each(|file| self.way(links::follow(file)));
    }

    /// Returns the path that a setting names, relative to a directory or to the home directory.
    fn expand(&self, value: &str, directory: Option<&Path>) -> Option<PathBuf> {
        match value.strip_prefix("~/") {
            Some(rest) => Some(self.git.home()?.join(rest)),
            None if value.starts_with(['~', '%']) => None,
            None => Some(directory?.join(value)),
        }
    }

    /// Takes note of a directory of hooks: an absolute one is protected, a relative one in every
    /// working tree.
    fn hooks_path(&mut self, value: &str) {
        match self.expand(value, Some(Path::new(""))) {
            Some(hooks) if hooks.is_absolute() => self.way(links::follow(&husky_directory(hooks))),
            Some(hooks) => drop(self.found.hook_paths.insert(husky_directory(hooks))),
            None => {}
        }
    }

    /// Takes note of the files that a command line in git's settings may name. The first word of a
    /// setting that is there to name a program must not appear, either.
    fn programs(&mut self, line: &str, (source, names_program): (SettingsSource, bool)) {
        let words = line.split(|char: char| char.is_whitespace() || "'\"!;&|(){}<>$`=,:".contains(char));
        let words = words.filter(|word| !word.is_empty()).take(MAX_WORDS);
        for (number, word) in words.enumerate() {
            // An option may have its value right behind it, as in `-F./file`.
            let word =
                if word.starts_with('-') { word.trim_start_matches(|c| c != '.' && c != '/') } else { word };
            let Some(path) = self.expand(word, Some(Path::new(""))).filter(|_| !word.is_empty()) else {
                continue;
            };
            let is_program = names_program && number == 0 && word.contains('/');
            if path.is_absolute() {
                self.program(&path, is_program);
            } else if is_program {
                self.found.program_paths.insert(path);
            } else if source == SettingsSource::Repository || word.contains('/') {
                self.add_word(path);
            }
            // `$(git rev-parse --show-toplevel)/FILE`, `$PWD/FILE`.
            let behind_variable =
                word.split_once('/').filter(|(_, rest)| line.contains('$') && !rest.is_empty());
            if let Some((_, rest)) = behind_variable {
                self.add_word(rest.into());
            }
        }
    }

    /// Takes note of a word that may be a path below the top of a working tree.
    fn add_word(&mut self, path: PathBuf) {
        if self.words.len() < MAX_WORDS_IN_ALL && path.is_relative() {
            self.words.insert(path);
        }
    }

    /// Protects a file that a setting names, and no directory: all kinds of things may be in one.
    /// Returns whether there is such a file.
    fn program(&mut self, path: &Path, is_program: bool) -> bool {
        let Some(way) = links::follow(path) else { return false };
        let Some((above, name)) = way.end.parent().zip(way.end.file_name()) else { return false };
        let found = DirHandle::open(above).and_then(|directory| directory.stat_entry(name));
        let is_file = found.as_ref().is_ok_and(|found| found.kind != EntryKind::Directory);
        if is_file || is_program && found.is_err() {
            self.way(Some(way));
        }
        is_file
    }

    /// Protects what relative paths in settings lead to, in every working tree.
    pub(super) fn programs_of_worktrees(&mut self) {
        let (worktrees, words) = (std::mem::take(&mut self.worktrees), std::mem::take(&mut self.words));
        for top in &worktrees {
            for hooks in self.found.hook_paths.clone() {
                self.way(links::follow(&top.join(hooks)));
            }
            for program in self.found.program_paths.clone() {
                self.program(&top.join(program), true);
            }
        }
        for word in words {
            let is_found = |top: &PathBuf| self.program(&top.join(&word), false);
            if worktrees.iter().map(is_found).fold(false, |any, found| any | found) {
                // A program of one working tree must not be another file in a new one.
                self.found.program_paths.insert(word);
            }
        }
    }

    /// Lists the settings of a file that may lead to others, to hooks or to programs.
    fn leading_settings(&mut self, file: &Path) -> Vec<GitSetting> {
        let content = file.parent().zip(file.file_name()).and_then(|(above, name)| {
            // The directory may be reached through links of the user's: what is found there only
            // narrows.
            let way = links::follow(&above.join(name))?;
            DirHandle::open(way.end.parent()?).ok()?.read_file(way.end.file_name()?, MAX_CONFIG_BYTES).ok()
        });
        content.map_or_else(Vec::new, |content| self.git.leading_settings(&content))
    }
}

/// The hooks that husky makes call those of the same names beside them.
fn husky_directory(hooks: PathBuf) -> PathBuf {
    match hooks.parent() {
        Some(around) if hooks.ends_with("_") => around.to_owned(),
        _ => hooks,
    }
}

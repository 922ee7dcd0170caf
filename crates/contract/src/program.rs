//! Lookup of the file that runs under a program's name.

use std::path::{Path, PathBuf};

/// Finds programs as commands would, and knows which commands run. Implemented by the host, called
/// by the gate before anything runs. It must not start anything.
pub trait ProgramFinder: Send + Sync {
    /// Looks up a name as a command started in this directory would.
    fn find_program(&self, name: &str, cwd: &Path) -> ProgramSearch;

    /// Returns a variable of the environment of commands.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the reason that no program may be started outside the sandbox without a question
    /// now. Either a command that may write these directories still runs, or the directories
    /// include the home directory, with the settings of programs.
    fn obstacle_outside(&self, writable: &[PathBuf]) -> Option<String>;
}

/// Result of a search for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramSearch {
    /// An executable file.
    Found(ProgramFile),
    /// No program has this name.
    Missing,
    /// A shell may resolve the name otherwise, or the file has hard links that may be anywhere.
    Unknown,
}

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its absolute path. No directory on the way is a link.
    pub path: PathBuf,
    /// The links that lead from there to the file, and that file. Empty if the path is not a link.
    pub leads_to: Vec<PathBuf>,
}

impl ProgramFile {
    /// Returns true if all of it is outside these directories. A file inside may be another program
    /// the next time.
    pub fn is_outside<'a>(&self, mut directories: impl Iterator<Item = &'a Path>) -> bool {
        let inside = |directory: &Path| {
            self.path.starts_with(directory) || self.leads_to.iter().any(|path| path.starts_with(directory))
        };
        !directories.any(inside)
    }
}

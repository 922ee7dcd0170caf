//! The file that the name of a program stands for.

use std::path::{Path, PathBuf};

/// Finds programs as commands would, and knows which commands run. Implemented by the host, asked
/// by the gate before anything runs. Must not start anything.
pub trait ProgramFinder: Send + Sync {
    /// Looks a name up as a command that starts in this directory would.
    fn find_program(&self, name: &str, cwd: &Path) -> ProgramSearch;

    /// Returns a variable of the environment of commands.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the reason why no program may be started outside of the sandbox without a question
    /// now, if sandboxed commands may write these directories: one of them still runs, or they can
    /// write the home directory, with the settings of programs.
    fn obstacle_outside(&self, writable: &[PathBuf]) -> Option<String>;
}

/// What a search for a program found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramSearch {
    /// A file that can be executed.
    Found(ProgramFile),
    /// There is none of that name.
    Missing,
    /// A shell may know the name otherwise, or the file has other names that may be anywhere.
    Unknown,
}

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its absolute path, in a directory with no link on the way to it.
    pub path: PathBuf,
    /// The links that lead from there to the file itself, and that file: empty if it is no link.
    pub leads_to: Vec<PathBuf>,
}

impl ProgramFile {
    /// Whether all of it is outside of these directories: what is inside may be another program the next time.
    pub fn is_outside<'a>(&self, mut directories: impl Iterator<Item = &'a Path>) -> bool {
        let inside = |directory: &Path| {
            self.path.starts_with(directory) || self.leads_to.iter().any(|path| path.starts_with(directory))
        };
        !directories.any(inside)
    }
}

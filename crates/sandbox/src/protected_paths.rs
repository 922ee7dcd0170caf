//! The paths in writable directories that must not change while a command runs. The host finds
//! them.

use std::{collections::BTreeSet, path::PathBuf};

/// Paths that must not change, by what keeps them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedPaths {
    /// Exist, and must stay as they are: a read-only mount each.
    pub read_only: BTreeSet<PathBuf>,
    /// Must stay where they are, though what is in them may change: a mount of each on itself.
    pub pinned: BTreeSet<PathBuf>,
    /// Settings of git. A command writes a copy of each, which is checked afterwards.
    pub git_configs: BTreeSet<PathBuf>,
    /// The index of each git directory, files it refers to, and lists of other directories of
    /// objects (`alternates`): checked if a command has written one.
    pub git_indexes: BTreeSet<PathBuf>,
    /// Directories of hooks that settings name relative to the top of each working tree.
    pub hook_paths: BTreeSet<PathBuf>,
    /// Programs that settings name relative to the top of each working tree.
    pub program_paths: BTreeSet<PathBuf>,
    /// Links, with where they lead. No mount can be put on a link; they are put back afterwards.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Names below a root that do not exist and must not afterwards.
    pub absent: BTreeSet<PathBuf>,
    /// Home directories, in which every name with a dot is protected.
    pub homes: BTreeSet<PathBuf>,
    /// Directories of an unfinished rebase, cherry-pick or revert: checked after every command.
    pub sequencers: BTreeSet<PathBuf>,
    /// Exist, but are more than mounts are made for: put back afterwards.
    pub unmounted: BTreeSet<PathBuf>,
    /// Lines for the receipt.
    pub not_covered: Vec<String>,
}

impl ProtectedPaths {
    /// Protects nothing.
    pub const fn nothing() -> Self {
        Self {
            read_only: BTreeSet::new(),
            pinned: BTreeSet::new(),
            git_configs: BTreeSet::new(),
            git_indexes: BTreeSet::new(),
            hook_paths: BTreeSet::new(),
            program_paths: BTreeSet::new(),
            links: Vec::new(),
            absent: BTreeSet::new(),
            homes: BTreeSet::new(),
            sequencers: BTreeSet::new(),
            unmounted: BTreeSet::new(),
            not_covered: Vec::new(),
        }
    }
}

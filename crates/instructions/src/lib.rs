//! Instruction files: the documents of a project for agents (`AGENTS.md`), skills (`SKILL.md`) and
//! prompts (`/NAME`).
//!
//! Files of a project are found beneath an open directory. A link is followed only to a Markdown
//! file of the same project. Everything has a maximum size, and characters that are not shown are
//! removed. A file that cannot be used is left out, with an [`InstructionFault`] that says why.
//! Nothing here decides about trust: skills and prompts of a project come with the digests of their
//! files, and the program compares them with what its user agreed to.
//!
//! ```
//! use windlass_instructions::{DocumentSettings, ProjectDocuments, SearchPlace};
//!
//! # fn main() -> std::io::Result<()> {
//! # let place = tempfile::tempdir()?;
//! # let root = place.path().canonicalize()?;
//! std::fs::write(root.join("AGENTS.md"), "Run `make check` before you are done.")?;
//! let place = SearchPlace { root: &root, cwd: &root };
//! let documents = ProjectDocuments::find(place, &root.join("home"), &DocumentSettings::default());
//! assert!(documents.message(&root).is_some_and(|text| text.contains("make check")));
//! # Ok(())
//! # }
//! ```

mod front_matter;
mod project_documents;
mod prompt_file;
mod skill;
mod skill_files;
mod skill_list;
mod text_tree;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

pub use project_documents::{DocumentSettings, InstructionDocument, ProjectDocuments};
pub use prompt_file::{FoundPrompts, PromptFile, find_prompts};
pub use skill::{FoundSkills, Skill, find_skills, mentioned_skills, skill_message};
pub use skill_list::{SkillList, skill_list};

/// The directories in which files of a project are searched.
#[derive(Debug, Clone, Copy)]
pub struct SearchPlace<'a> {
    /// The root of the project, without links.
    pub root: &'a Path,
    /// The working directory: the root, or a directory beneath it.
    pub cwd: &'a Path,
}

impl SearchPlace<'_> {
    /// Returns the directories from the root to the working directory, relative to the root.
    fn downwards(&self) -> Vec<PathBuf> {
        let below = self.cwd.strip_prefix(self.root).unwrap_or(Path::new(""));
        let mut directories: Vec<_> = below.ancestors().map(Path::to_owned).collect();
        directories.reverse();
        directories
    }

    /// Returns the directories from the working directory to the root, relative to the root.
    fn upwards(&self) -> Vec<PathBuf> {
        let mut directories = self.downwards();
        directories.reverse();
        directories
    }
}

/// The origin of an instruction file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionScope {
    /// The user's own directories.
    User,
    /// The project.
    Project,
}

impl InstructionScope {
    /// Returns the name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// The digests (SHA-256) of files, by their paths relative to the root of the project.
pub type FileDigests = BTreeMap<PathBuf, String>;

/// A file that is left out, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFault {
    /// The file or directory.
    pub path: PathBuf,
    /// The reason: what is wrong, and what would be right.
    pub reason: String,
}

impl fmt::Display for InstructionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

//! The skills and prompts of a project, which are used only after its user has agreed to them.

use std::path::{Path, PathBuf};

use windlass::instructions::{
    FileDigests, InstructionScope, PromptFile, SearchPlace, Skill, find_prompts, find_skills,
};

use crate::policy;

/// Skills and prompts, before anyone has decided about them.
pub(crate) struct ProjectTexts {
    /// The directory of the project.
    pub(crate) root: PathBuf,
    pub(crate) skills: Vec<Skill>,
    pub(crate) prompts: Vec<PromptFile>,
}

impl ProjectTexts {
    /// Reads those that a session in a directory would have. Files that cannot be used are left
    /// out; the session says why.
    pub(crate) fn read(cwd: &Path, home: &Path) -> Self {
        let root = policy::project_root(cwd);
        let place = SearchPlace { root, cwd };
        let (mut skills, mut prompts) = (find_skills(place, None).skills, find_prompts(place, home).prompts);
        skills.retain(|skill| skill.scope == InstructionScope::Project);
        prompts.retain(|prompt| prompt.scope == InstructionScope::Project);
        Self { root: root.to_owned(), skills, prompts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.prompts.is_empty()
    }

    /// Returns the digests of each skill and each prompt.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &FileDigests> {
        let skills = self.skills.iter().map(|skill| &skill.files);
        skills.chain(self.prompts.iter().map(|prompt| &prompt.files))
    }

    /// Returns the digests of all files that a decision is bound to.
    pub(crate) fn files(&self) -> FileDigests {
        self.parts().flatten().map(|(path, digest)| (path.clone(), digest.clone())).collect()
    }
}

//! Skills that a message names as `$NAME`, for the model.

use std::path::PathBuf;

use windlass::{
    MentionLoader,
    instructions::{Skill, mentioned_skills, skill_message},
};

use super::{InstructionFiles, fault_text};

/// The skills of a session.
#[derive(Debug)]
pub(crate) struct SkillMentions {
    skills: Vec<Skill>,
    root: PathBuf,
}

impl SkillMentions {
    pub(crate) fn new(files: InstructionFiles) -> Self {
        Self { skills: files.skills.skills, root: files.root }
    }
}

impl MentionLoader for SkillMentions {
    fn load(&self, message: &str) -> Vec<Result<String, String>> {
        let load = |skill: &Skill| {
            let fault = |fault| format!("the skill `{}` is not used: {}", skill.name, fault_text(&fault));
            skill_message(skill, &self.root).map_err(fault)
        };
        mentioned_skills(message, &self.skills).into_iter().map(load).collect()
    }
}

//! The instruction files of a session: documents of the project, skills and prompts. Those of a
//! project that its user has not agreed to are left out, and a note says how to get them.

mod listing;
mod mentions;
mod prompts;
mod skills;
mod slash;

pub(crate) use self::{
    mentions::SkillMentions,
    slash::{expanded_request, offered_prompts, slash_message},
};

use std::{num::NonZeroU64, path::PathBuf};

use windlass::instructions::{
    FileDigests, FoundPrompts, FoundSkills, InstructionFault, InstructionScope, ProjectDocuments, PromptFile,
    SearchPlace, Skill, SkillList, find_prompts, find_skills, skill_list,
};

use crate::{
    args::{CommonOptions, InstructionsOptions, PromptsCommand, SkillsCommand},
    exit::ProgramExit,
    note, policy,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    trust::{ProjectTrust, TextTrust, TrustStore},
};

/// The share of the context window that the list of skills may take, in percent. Other agents use
/// the same share.
const SKILL_LIST_PERCENT: u64 = 2;

/// The limits of that share, in bytes.
const MIN_SKILL_LIST_BYTES: u64 = 400;
const MAX_SKILL_LIST_BYTES: u64 = 8000;

/// Bytes of a token, about.
const TOKEN_BYTES: u64 = 4;

/// Maximum number of names in a note.
const MAX_NAMES: usize = 6;

/// The instruction files of a session.
#[derive(Debug)]
pub(crate) struct InstructionFiles {
    pub(crate) documents: ProjectDocuments,
    pub(crate) skills: FoundSkills,
    pub(crate) prompts: FoundPrompts,
    /// Skills and prompts of the project that are not used.
    pub(crate) left_out: UntrustedTexts,
    /// The root of the project.
    pub(crate) root: PathBuf,
}

/// Skills and prompts that the user has not agreed to, each with its state.
#[derive(Debug, Default)]
pub(crate) struct UntrustedTexts {
    pub(crate) skills: Vec<(Skill, ProjectTrust)>,
    pub(crate) prompts: Vec<(PromptFile, ProjectTrust)>,
    /// The decisions cannot be read.
    problem: Option<String>,
}

impl InstructionFiles {
    /// Finds the files for a working directory.
    pub(crate) fn of(setup: &ProgramSetup) -> Self {
        let root = policy::project_root(&setup.cwd);
        let place = SearchPlace { root, cwd: &setup.cwd };
        // A relative home directory would be one of the project.
        let user_home = std::env::home_dir().filter(|home| home.is_absolute());
        let mut files = Self {
            documents: ProjectDocuments::find(place, &setup.home, &setup.config().document_settings()),
            skills: find_skills(place, user_home.as_deref()),
            prompts: find_prompts(place, &setup.home),
            left_out: UntrustedTexts::default(),
            root: root.to_owned(),
        };
        files.leave_out_untrusted(setup);
        files
    }

    fn leave_out_untrusted(&mut self, setup: &ProgramSetup) {
        let of_project = |scope| scope == InstructionScope::Project;
        let has_any = self.skills.skills.iter().any(|skill| of_project(skill.scope))
            || self.prompts.prompts.iter().any(|prompt| of_project(prompt.scope));
        if !has_any {
            return;
        }
        let trust = match TrustStore::new(&setup.home).texts(&self.root) {
            Ok(trust) => trust,
            Err(error) => {
                self.left_out.problem = Some(error.to_string());
                TextTrust::none()
            }
        };
        let state = |scope, files: &FileDigests| match scope {
            InstructionScope::User => ProjectTrust::Trusted,
            InstructionScope::Project => trust.state(files),
        };
        let Self { skills, prompts, left_out, .. } = self;
        left_out.skills = take_untrusted(&mut skills.skills, |skill| state(skill.scope, &skill.files));
        left_out.prompts = take_untrusted(&mut prompts.prompts, |prompt| state(prompt.scope, &prompt.files));
    }

    /// Returns the messages at the start of a session with a model of this context window.
    pub(crate) fn messages(&self, setup: &ProgramSetup, window: Option<NonZeroU64>) -> Vec<String> {
        let documents = self.documents.message(&setup.cwd);
        let skills = self.skill_list(window).map(|list| list.text);
        documents.into_iter().chain(skills).collect()
    }

    /// Returns the list of skills for a model of this context window.
    fn skill_list(&self, window: Option<NonZeroU64>) -> Option<SkillList> {
        let share = window.map_or(MAX_SKILL_LIST_BYTES, |window| {
            window.get().saturating_mul(TOKEN_BYTES * SKILL_LIST_PERCENT) / 100
        });
        let bytes = share.clamp(MIN_SKILL_LIST_BYTES, MAX_SKILL_LIST_BYTES);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        skill_list(&self.skills.skills, bytes)
    }

    /// Returns what a person should know at the start of a session, one line each.
    fn notes(&self) -> Vec<String> {
        let faults = self.faults().map(|fault| format!("left out {}", fault_text(fault)));
        let cut = self.documents.documents.iter().filter(|document| document.is_cut);
        let cut = cut.map(|document| {
            let (path, bytes) = (visible_path(&document.path), document.file_bytes);
            format!("{path} is cut: it has {bytes} bytes (`project_doc_max_bytes`)")
        });
        faults.chain(cut).chain(self.left_out.problem.clone()).chain(self.trust_note()).collect()
    }

    /// Returns all files that cannot be used.
    fn faults(&self) -> impl Iterator<Item = &InstructionFault> {
        let Self { documents, skills, prompts, .. } = self;
        documents.faults.iter().chain(&skills.faults).chain(&prompts.faults)
    }

    /// Names what is left out for want of trust, unless the user decided so.
    fn trust_note(&self) -> Option<String> {
        let UntrustedTexts { skills, prompts, .. } = &self.left_out;
        let skills = skills.iter().map(|(skill, state)| (skill.name.clone(), *state));
        let prompts = prompts.iter().map(|(prompt, state)| (format!("/{}", prompt.name), *state));
        let all = skills.chain(prompts).filter(|(_, state)| *state != ProjectTrust::Declined);
        let (names, states): (Vec<_>, Vec<_>) = all.unzip();
        let why = if states.contains(&ProjectTrust::Changed) {
            "not trusted, or changed since"
        } else {
            "not trusted"
        };
        let more = names.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let count = match names.len() {
            1 => "1 skill or prompt".to_owned(),
            count => format!("{count} skills and prompts"),
        };
        let listed = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
        let root = visible_path(&self.root);
        (!names.is_empty()).then(|| {
            format!(
                "left out {count} of {root} ({}{more}): {why}; `windlass trust {root}` shows and allows them",
                visible(&listed)
            )
        })
    }
}

/// Removes what is not trusted from a list.
fn take_untrusted<T>(list: &mut Vec<T>, state: impl Fn(&T) -> ProjectTrust) -> Vec<(T, ProjectTrust)> {
    let taken = list.extract_if(.., |each| state(each) != ProjectTrust::Trusted);
    taken.map(|each| (state(&each), each)).map(|(state, each)| (each, state)).collect()
}

/// Prints what a person should know about the files of a session.
pub(crate) fn report(setup: &ProgramSetup) {
    InstructionFiles::of(setup).notes().iter().for_each(|text| note(&format!("note: {text}")));
}

/// Describes a file that is left out.
fn fault_text(fault: &InstructionFault) -> String {
    format!("{}: {}", visible_path(&fault.path), visible(&fault.reason))
}

/// Runs `windlass instructions`.
pub(crate) fn run(common: &CommonOptions, options: &InstructionsOptions) -> Result<ProgramExit, CliProblem> {
    listing::run(&ProgramSetup::for_default_session(common)?, options)
}

/// Runs `windlass skills`.
pub(crate) fn run_skills(common: &CommonOptions, command: &SkillsCommand) -> Result<ProgramExit, CliProblem> {
    skills::run(&ProgramSetup::for_default_session(common)?, command)
}

/// Runs `windlass prompts`.
pub(crate) fn run_prompts(
    common: &CommonOptions,
    command: &PromptsCommand,
) -> Result<ProgramExit, CliProblem> {
    prompts::run(&ProgramSetup::for_default_session(common)?, command)
}

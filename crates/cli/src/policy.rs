//! `windlass policy`: what would happen to a command, and why.

mod answers;
mod classify;
mod explain;
mod files;
mod kept;
mod redacted_rule;
mod suggest;
mod table;

pub(crate) use answers::Answers;
pub(crate) use files::{project_root, rules};

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use windlass::{
    ApprovalPolicy, CommandLine, OutwardEffect, ProgramFile, ProgramSearch, SandboxMode,
    host::find_program,
    policy::{Class, Judgement, Rules, Ruling, Surroundings, Wish, judge, judge_in, ruling, ruling_outward},
};

use crate::{
    args::{Common, Policy},
    exit::Exit,
    problem::Problem,
    screen::visible,
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: Policy) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?;
    match args {
        Policy::Explain { command, json } => explain::run(&setup, &command, json),
        Policy::Classify { jsonl: _ } => classify::run(&setup),
        Policy::Test { file } => table::run(&setup, &file),
        Policy::Suggest(wanted) => suggest::run(&setup, &wanted),
        Policy::Rules { json } => kept::list(&setup, json),
        Policy::Revoke { id, yes } => kept::revoke(&setup, &id, yes),
    }
}

/// What is needed to decide about a line.
struct Judge {
    rules: Rules,
    approval: ApprovalPolicy,
    sandbox: SandboxMode,
    ask_before: Vec<OutwardEffect>,
    /// Where programs are looked up, and what commands in the sandbox may write.
    environment: BTreeMap<String, String>,
    writable: Vec<PathBuf>,
}

impl Judge {
    fn new(setup: &Setup) -> Result<Self, Problem> {
        let rules = rules(setup)?;
        rules.notes().iter().for_each(|text| crate::note(&format!("note: {}", visible(text))));
        let config = &setup.loaded.config;
        let writable = setup.policy(config.approval_policy).walls.writable;
        Ok(Self {
            rules,
            approval: config.approval_policy,
            sandbox: config.sandbox_mode,
            ask_before: config.ask_before.clone(),
            environment: setup.environment()?,
            writable,
        })
    }

    /// Without rules, asking about everything that is not safe.
    #[cfg(test)]
    fn for_tests() -> Self {
        Self {
            rules: Rules::default(),
            approval: ApprovalPolicy::Untrusted,
            sandbox: SandboxMode::ReadOnly,
            ask_before: Vec::new(),
            environment: BTreeMap::new(),
            writable: Vec::new(),
        }
    }

    /// Decides about a line of shell in some project: where it runs is not said.
    fn line(&self, line: &str) -> (Ruling, Judgement) {
        self.ruled(judge(&CommandLine { argv: shell(line), cwd: None }, &self.rules))
    }

    /// Decides about a line of shell in this project.
    fn line_in(&self, workspace: &Path, line: &str) -> (Ruling, Judgement) {
        let command = CommandLine { argv: shell(line), cwd: Some(workspace.to_owned()) };
        let found = |name: &str| find_program(name, &self.environment, workspace);
        let is_settled = |file: &ProgramFile| {
            file.is_outside(self.writable.iter().map(PathBuf::as_path).chain([workspace]))
        };
        let programs = |name: &str| match found(name) {
            ProgramSearch::Found(file) => is_settled(&file).then_some(file.path),
            ProgramSearch::Missing | ProgramSearch::Unknown => None,
        };
        let replaceable = |name: &str| match found(name) {
            ProgramSearch::Found(file) => !is_settled(&file),
            ProgramSearch::Missing => false,
            ProgramSearch::Unknown => true,
        };
        let is_held = matches!(self.sandbox, SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite);
        let surroundings = Surroundings {
            workspace: Some(workspace),
            programs: &programs,
            replaceable: if is_held { None } else { Some(&replaceable) },
        };
        self.ruled(judge_in(&surroundings, &command, &self.rules))
    }

    fn ruled(&self, judgement: Judgement) -> (Ruling, Judgement) {
        let usual = ruling(self.approval, self.sandbox, judgement.class, Wish::Contained);
        let is_asked = judgement.outward.iter().any(|effect| self.ask_before.contains(effect));
        let ruling = if is_asked { ruling_outward(self.approval, judgement.class, usual) } else { usual };
        (ruling, judgement)
    }
}

/// A line as the shell tools run it.
fn shell(line: &str) -> Vec<String> {
    ["bash", "-c", line].map(str::to_owned).to_vec()
}

/// The reason for a decision: of a question that only an effect beyond the machine brings, the gravest effect.
fn why(ruling: Ruling, judgement: &Judgement) -> String {
    let outward = judgement.outward.iter().max();
    match outward.filter(|_| ruling == Ruling::Ask && judgement.class == Class::Ordinary) {
        Some(effect) => format!("it {} (effect `{}`)", effect.in_words(), effect.name()),
        None => judgement.why.clone(),
    }
}

/// A decision as tables of commands spell it.
fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Run => "safe",
        Ruling::Ask | Ruling::AskToLeave => "prompt",
        Ruling::Refuse | Ruling::RefuseWish => "forbidden",
    }
}

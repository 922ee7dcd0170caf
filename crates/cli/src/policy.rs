//! `windlass policy`: shows what would happen to a command, and why.

mod allow;
mod allowing_rule;
mod answers;
mod classify;
mod explain;
mod files;
mod redacted_rule;
mod rule_list;
mod suggest;
mod table;

pub(crate) use allowing_rule::{RefusedCommands, is_forbidden};
pub(crate) use answers::RuleWriter;
pub(crate) use files::{project_root, rules};
pub(crate) use rule_list::kept_rules;

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
    args::{CommonOptions, PolicyCommand},
    exit::ProgramExit,
    problem::CliProblem,
    screen::visible,
    setup::ProgramSetup,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: PolicyCommand) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    match args {
        PolicyCommand::Explain { command, json } => explain::run(&setup, &command, json),
        PolicyCommand::Classify { jsonl: _ } => classify::run(&setup),
        PolicyCommand::Test { file } => table::run(&setup, &file),
        PolicyCommand::Suggest(wanted) => suggest::run(&setup, &wanted),
        PolicyCommand::Rules { json } => rule_list::list(&setup, json),
        PolicyCommand::Revoke { id, yes } => rule_list::revoke(&setup, &id, yes),
        PolicyCommand::Allow(rule) => allow::allow(&setup, &rule),
        PolicyCommand::Deny(rule) => allow::deny(&setup, &rule),
    }
}

/// The rules and the policy that decide about a line.
struct LineJudge {
    rules: Rules,
    approval: ApprovalPolicy,
    sandbox: SandboxMode,
    ask_before: Vec<OutwardEffect>,
    /// The search path of programs, and the directories that commands in the sandbox may write.
    environment: BTreeMap<String, String>,
    writable: Vec<PathBuf>,
}

impl LineJudge {
    fn new(setup: &ProgramSetup) -> Result<Self, CliProblem> {
        let judge = Self::quiet(setup)?;
        judge.rules.notes().iter().for_each(|text| crate::note(&format!("note: {}", visible(text))));
        Ok(judge)
    }

    /// Creates a judge without notes about the rules.
    fn quiet(setup: &ProgramSetup) -> Result<Self, CliProblem> {
        let rules = rules(setup)?;
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

    /// Creates a judge without rules that asks about everything that is not safe.
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

    /// Decides about a shell line in an unknown project.
    fn line(&self, line: &str) -> (Ruling, Judgement) {
        self.ruled(judge(&CommandLine { argv: shell(line), cwd: None }, &self.rules))
    }

    /// Decides about a shell line in this project.
    fn line_in(&self, workspace: &Path, line: &str) -> (Ruling, Judgement) {
        self.command_in(workspace, &CommandLine { argv: shell(line), cwd: Some(workspace.to_owned()) })
    }

    /// Decides about a command in this project.
    fn command_in(&self, workspace: &Path, command: &CommandLine) -> (Ruling, Judgement) {
        let judgement =
            self.in_surroundings(workspace, |surroundings| judge_in(surroundings, command, &self.rules));
        self.ruled(judgement)
    }

    /// Calls `ask` with what is known about this project and its programs.
    fn in_surroundings<T>(&self, workspace: &Path, ask: impl FnOnce(&Surroundings<'_>) -> T) -> T {
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
        ask(&Surroundings {
            workspace: Some(workspace),
            programs: &programs,
            replaceable: if is_held { None } else { Some(&replaceable) },
        })
    }

    fn ruled(&self, judgement: Judgement) -> (Ruling, Judgement) {
        let usual = ruling(self.approval, self.sandbox, judgement.class, Wish::Contained);
        let is_asked = judgement.outward.iter().any(|effect| self.ask_before.contains(effect));
        let ruling = if is_asked { ruling_outward(self.approval, judgement.class, usual) } else { usual };
        (ruling, judgement)
    }
}

/// Returns a line as the shell tools run it.
fn shell(line: &str) -> Vec<String> {
    ["bash", "-c", line].map(str::to_owned).to_vec()
}

/// Returns the reason for a decision. If only an effect beyond the machine causes a question, that
/// is the gravest effect.
fn why(ruling: Ruling, judgement: &Judgement) -> String {
    let outward = judgement.outward.iter().max();
    match outward.filter(|_| ruling == Ruling::Ask && judgement.class == Class::Ordinary) {
        Some(effect) => format!("it {} (effect `{}`)", effect.in_words(), effect.name()),
        None => judgement.why.clone(),
    }
}

/// Returns a decision as tables of commands spell it.
fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Run => "safe",
        Ruling::Ask | Ruling::AskToLeave => "prompt",
        Ruling::Refuse | Ruling::RefuseWish => "forbidden",
    }
}

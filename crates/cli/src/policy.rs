//! `windlass policy`: what would happen to a command, and why.

mod answers;
mod classify;
mod explain;
mod files;
mod suggest;
mod table;

pub(crate) use answers::Answers;
pub(crate) use files::{project_root, rules};

use std::path::Path;

use windlass::{
    ApprovalPolicy, CommandLine, SandboxMode,
    policy::{Judgement, Rules, Ruling, Wish, judge, judge_in, ruling},
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
    }
}

/// What is needed to decide about a line.
struct Judge {
    rules: Rules,
    approval: ApprovalPolicy,
    sandbox: SandboxMode,
}

impl Judge {
    fn new(setup: &Setup) -> Result<Self, Problem> {
        let rules = rules(setup)?;
        rules.notes().iter().for_each(|text| crate::note(&format!("note: {}", visible(text))));
        let config = &setup.loaded.config;
        Ok(Self { rules, approval: config.approval_policy, sandbox: config.sandbox_mode })
    }

    /// Decides about a line of shell in some project: where it runs is not said.
    fn line(&self, line: &str) -> (Ruling, Judgement) {
        self.ruled(judge(&CommandLine { argv: shell(line), cwd: None }, &self.rules))
    }

    /// Decides about a line of shell in this project.
    fn line_in(&self, workspace: &Path, line: &str) -> (Ruling, Judgement) {
        let command = CommandLine { argv: shell(line), cwd: Some(workspace.to_owned()) };
        self.ruled(judge_in(workspace, &command, &self.rules))
    }

    fn ruled(&self, judgement: Judgement) -> (Ruling, Judgement) {
        (ruling(self.approval, self.sandbox, judgement.class, Wish::Contained), judgement)
    }
}

/// A line as the shell tools run it.
fn shell(line: &str) -> Vec<String> {
    ["bash", "-c", line].map(str::to_owned).to_vec()
}

/// A decision as tables of commands spell it.
fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Run => "safe",
        Ruling::Ask | Ruling::AskToLeave => "prompt",
        Ruling::Refuse | Ruling::RefuseWish => "forbidden",
    }
}

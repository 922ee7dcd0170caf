//! `windlass policy`: what would happen to a command, and why.

mod classify;
mod explain;
mod files;
mod suggest;
mod table;

pub(crate) use files::rules;

use std::io::{self, Write};

use windlass::{
    ApprovalPolicy, CommandLine,
    policy::{Decision, Judgement, Rules, judge},
};

use crate::{
    args::{Common, Policy},
    exit::Exit,
    problem::Problem,
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: Policy) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?;
    match args {
        Policy::Explain { command, json } => explain::run(&setup, &command, json),
        Policy::Classify { jsonl: _ } => classify::run(&setup),
        Policy::Test { file } => table::run(&setup, &file),
        Policy::Suggest { session, json } => suggest::run(&setup, session.as_deref(), json),
    }
}

/// What is needed to decide about a line.
struct Judge {
    rules: Rules,
    approval: ApprovalPolicy,
}

impl Judge {
    fn new(setup: &Setup) -> Result<Self, Problem> {
        let rules = rules(setup)?;
        rules.notes().iter().for_each(|text| crate::note(&format!("note: {text}")));
        Ok(Self { rules, approval: setup.loaded.config.approval_policy })
    }

    /// Decides about a line of shell in some project: where it runs is not said.
    fn line(&self, line: &str) -> (Decision, Judgement) {
        self.decide(&CommandLine { argv: shell(line), cwd: None })
    }

    fn decide(&self, command: &CommandLine) -> (Decision, Judgement) {
        let judgement = judge(command, &self.rules);
        (judgement.class.decide(self.approval), judgement)
    }
}

/// A line as the shell tools run it.
fn shell(line: &str) -> Vec<String> {
    ["bash", "-c", line].map(str::to_owned).to_vec()
}

/// A decision as tables of commands spell it.
fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Run => "safe",
        Decision::Ask => "prompt",
        Decision::Refuse => "forbidden",
    }
}

fn print(text: &str) -> Result<(), Problem> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| Problem::failed(format!("cannot write the answer: {error}")))
}

//! The program: commands, configuration, questions, screen. The only crate that prints.

mod apply_patch;
mod args;
mod ask;
mod audit;
mod blanks;
mod brought;
mod call;
mod calls;
mod cleaning;
mod colour;
mod config;
mod confirm;
mod doctor;
mod exec;
mod exit;
mod feedback;
mod hidden_characters;
mod history;
mod interrupts;
mod jsonl;
mod logging;
mod look_alikes;
mod models;
mod output;
mod paths;
mod policy;
mod preview;
mod problem;
mod profile;
mod redact;
mod sandbox;
mod screen;
mod sessions;
mod settings;
mod setup;
mod show;
mod spelling;
mod stats;
mod table;
mod telemetry;
mod tools;
mod undo;
mod usage;
mod visible;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    args::{Cli, Command},
    problem::Problem,
};

fn main() -> ExitCode {
    // Before anything starts a thread.
    windlass::host::grow_descriptor_table();
    let Cli { common, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(error),
    };
    // A command in the sandbox has the output that we were given, and may do without.
    if !matches!(command, Command::Sandbox(_))
        && let Err(problem) = output::check()
    {
        return finish(Err::<exit::Exit, _>(problem));
    }
    let _telemetry = telemetry::start();
    let end = match command {
        Command::Exec(exec) => exec::run(&common, *exec),
        Command::Call(call) => call::run(&common, &call),
        Command::ApplyPatch { patch } => return finish(apply_patch::run(&common, patch)),
        Command::Undo(undo) => undo::run(&common, &undo),
        Command::Redo(redo) => undo::run(&common, &redo.into()),
        Command::Tools(tools) => tools::run(&common, tools),
        Command::Models(models) => models::run(&common, &models),
        Command::Config(config) => settings::run(&common, &config),
        Command::Policy(policy) => policy::run(&common, policy),
        Command::Stats(stats) => stats::run(&common, &stats),
        Command::History(history) => history::run(&common, &history),
        Command::Show { call, json } => show::run(&common, &call, json),
        Command::Sessions(sessions) => sessions::run(&common, &sessions),
        Command::Feedback(feedback) => feedback::run(&common, &feedback),
        Command::Audit(audit) => audit::run(&common, &audit),
        Command::Redact(redact) => redact::run(&common, &redact),
        Command::Doctor { json } => doctor::run(&common, json),
        Command::Sandbox(args) => return finish(sandbox::run(&common, &args)),
    };
    finish(end)
}

/// Says what went wrong, if something has.
fn finish(end: Result<impl Into<ExitCode>, Problem>) -> ExitCode {
    match end {
        Ok(exit) => exit.into(),
        Err(problem) => {
            note(&format!("error: {}", problem.message));
            problem.exit.into()
        }
    }
}

/// One line for a person, on stderr, without secrets: an address in an error may hold a password. Nothing in it can give
/// the terminal orders. Where text from outside stands in it, the caller makes its line breaks visible, too.
pub(crate) fn note(text: &str) {
    let text = format!("{}\n", screen::visible_lines(&redact::own().clean(text)));
    // Nobody to tell if stderr is gone.
    let _gone = io::stderr().lock().write_all(text.as_bytes());
}

/// Waiting is all this program does, so one thread is enough for it.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Problem> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Problem::failed(format!("cannot start: {error}")))
}

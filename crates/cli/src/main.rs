//! The program: commands, configuration, questions, screen. The only crate that prints.

mod allow_hints;
mod apply_patch;
mod args;
mod ask;
mod audit;
mod call;
mod calls;
mod colour;
mod completions;
mod config;
mod confirm;
mod context;
mod credentials;
mod doctor;
mod earlier_conversation;
mod exec;
mod exit;
mod feedback;
mod fork;
mod hidden_prompt;
mod history;
mod hooks;
mod ids;
mod init;
mod instructions;
mod interactive;
mod interrupts;
mod jsonl;
mod logging;
mod login;
mod mcp;
mod model_sources;
mod models;
mod output;
mod paths;
mod policy;
mod preview;
mod private_file;
mod problem;
mod profile;
mod progress_terminal;
mod prompt_history;
mod redact;
mod resumed_directory;
mod retention_thread;
mod rewind;
mod sandbox;
mod screen;
mod session_agents;
mod session_theme;
mod sessions;
mod settings;
mod setup;
mod show;
mod spelling;
mod stats;
mod streamed_text;
mod table;
mod telemetry;
mod tools;
mod trust;
mod undo;
mod usage;
mod user_tools;
mod welcome;
mod wrap;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    args::{CliArgs, CliCommand, CommonOptions},
    problem::CliProblem,
};

fn main() -> ExitCode {
    // Before anything starts a thread.
    windlass::host::grow_descriptor_table();
    let CliArgs { common, command } = match CliArgs::parse_words(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => match interactive::parse_without_command() {
            Some(cli) => cli,
            None => return usage::report(error),
        },
    };
    // A command in the sandbox inherits our stdout, and may not need it.
    if !matches!(command, CliCommand::Sandbox(_))
        && let Err(problem) = output::check()
    {
        return finish(Err::<exit::ProgramExit, _>(problem));
    }
    let _telemetry = telemetry::start();
    dispatch(&common, command)
}

/// Runs a command, and reports its problem.
fn dispatch(common: &CommonOptions, command: CliCommand) -> ExitCode {
    let end = match command {
        CliCommand::Chat(chat) => interactive::run(common, *chat),
        CliCommand::Resume(resume) => interactive::resume(common, &resume),
        CliCommand::Fork(options) => fork::run(common, &options),
        CliCommand::Rewind(options) => rewind::run(common, &options),
        CliCommand::Exec(exec) => exec::run(common, *exec),
        CliCommand::Call(call) => call::run(common, &call),
        CliCommand::ApplyPatch { patch } => return finish(apply_patch::run(common, patch)),
        CliCommand::Undo(undo) => undo::run(common, &undo),
        CliCommand::Redo(redo) => undo::run(common, &redo.into()),
        CliCommand::Tools(tools) => tools::run(common, tools),
        CliCommand::Models(models) => models::run(common, &models),
        CliCommand::Config(config) => settings::run(common, &config),
        CliCommand::Instructions(options) => instructions::run(common, &options),
        CliCommand::Skills(command) => instructions::run_skills(common, &command),
        CliCommand::Prompts(command) => instructions::run_prompts(common, &command),
        CliCommand::Trust(options) => trust::run(common, &options),
        CliCommand::Hooks(command) => hooks::run(common, &command),
        CliCommand::Mcp(command) => mcp::run(common, command),
        CliCommand::Policy(policy) => policy::run(common, policy),
        CliCommand::Stats(stats) => stats::run(common, &stats),
        CliCommand::History(history) => history::run(common, &history),
        CliCommand::Show { call, json } => show::run(common, &call, json),
        CliCommand::Sessions(sessions) => sessions::run(common, &sessions),
        CliCommand::Context(options) => context::run(common, &options),
        CliCommand::Compact(options) => context::compact(common, &options),
        CliCommand::Feedback(feedback) => feedback::run(common, &feedback),
        CliCommand::Audit(audit) => audit::run(common, &audit),
        CliCommand::Redact(redact) => redact::run(common, &redact),
        CliCommand::Init(init) => init::run(common, &init),
        CliCommand::Login(login) => login::run(common, &login),
        CliCommand::Logout(logout) => login::log_out(common, &logout),
        CliCommand::Doctor(doctor) => doctor::run(common, &doctor),
        CliCommand::Completions(completions) => completions::run(&completions),
        CliCommand::Man(man) => completions::run_man(&man),
        CliCommand::Version => completions::print_version(),
        CliCommand::Sandbox(args) => return finish(sandbox::run(common, &args)),
    };
    finish(end)
}

/// Reports the problem, if there is one.
fn finish(end: Result<impl Into<ExitCode>, CliProblem>) -> ExitCode {
    match end {
        Ok(exit) => exit.into(),
        Err(problem) => {
            note(&format!("error: {}", problem.message));
            problem.exit.into()
        }
    }
}

/// Prints one line for a person on stderr, without secrets: a URL in an error may hold a password.
/// Control sequences are escaped. If the text contains foreign text, the caller escapes its line
/// breaks, too.
pub(crate) fn note(text: &str) {
    let text = format!("{}\n", screen::visible_lines(&redact::own().clean(text)));
    // If stderr is gone, there is no place to report it.
    let _gone = io::stderr().lock().write_all(wrap::wrap_for_stderr(&text).as_bytes());
}

/// Creates the runtime. This program mostly waits, so one thread is enough.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliProblem> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| CliProblem::failed(format!("cannot start: {error}")))
}

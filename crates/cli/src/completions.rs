//! `windlass completions`, `windlass man` and `windlass version`: made from the definition of the
//! command line.

use std::fs;

use clap::{Arg, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    args::{self, CompletionsOptions, ManOptions},
    exit::ProgramExit,
    note,
    output::print,
    problem::CliProblem,
    screen::visible_path,
};

const NAME: &str = "windlass";

/// Runs `completions`.
pub(crate) fn run(options: &CompletionsOptions) -> Result<ProgramExit, CliProblem> {
    print(&script(options.shell))
}

fn script(shell: Shell) -> String {
    let mut command = args::command();
    command.build();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_part(&command), NAME, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Runs `man`.
pub(crate) fn run_man(options: &ManOptions) -> Result<ProgramExit, CliProblem> {
    let Some(directory) = &options.dir else {
        let mut page = Vec::new();
        let rendered = Man::new(args::command()).render(&mut page);
        rendered.map_err(|error| CliProblem::failed(format!("cannot make the manual: {error}")))?;
        return print(&String::from_utf8_lossy(&page));
    };
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(args::command(), directory))
        .map_err(|error| CliProblem::file("cannot write the manual to", directory, &error))?;
    note(&format!("wrote the manual to {}", visible_path(directory)));
    Ok(ProgramExit::Done)
}

/// Runs `version`.
pub(crate) fn print_version() -> Result<ProgramExit, CliProblem> {
    print(&format!("{NAME} {}\n", env!("CARGO_PKG_VERSION")))
}

/// Copies the visible part of a command: scripts would complete hidden commands and options, too.
fn visible_part(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set()).map(completed);
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
    Command::new(command.get_name().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .visible_aliases(command.get_visible_aliases().map(str::to_owned))
        .about(command.get_about().cloned().unwrap_or_default())
        .args(arguments)
        .subcommands(inner.map(visible_part))
}

/// Copies what scripts need of an option, without its relations to others, which may be hidden.
fn completed(arg: &Arg) -> Arg {
    let copy = Arg::new(arg.get_id().to_string())
        .action(arg.get_action().clone())
        .help(arg.get_help().cloned().unwrap_or_default())
        .value_parser(arg.get_value_parser().clone())
        .value_hint(arg.get_value_hint());
    let copy = match arg.get_long() {
        Some(long) => copy.long(long.to_owned()),
        None => copy,
    };
    let copy = match arg.get_short() {
        Some(short) => copy.short(short),
        None => copy,
    };
    match (arg.get_value_names(), arg.get_num_args()) {
        (Some(names), Some(count)) if count.takes_values() => {
            copy.value_names(names.to_vec()).num_args(count)
        }
        (None, Some(count)) if count.takes_values() => copy.num_args(count),
        _ => copy,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_has_a_script_without_hidden_names() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for shown in ["history", "workspace-write", "completions", "config"] {
                assert!(script.contains(shown), "{shell}: no {shown}");
            }
            for hidden in ["apply_patch", "skip-git-repo-check", "experimental-json", "yolo"] {
                assert!(!script.contains(hidden), "{shell}: {hidden}");
            }
        }
    }

    #[test]
    fn an_option_is_completed_only_where_it_has_an_effect() {
        let script = script(Shell::Bash);
        let options = |command: &str| {
            let (_, rest) = script.split_once(&format!("        windlass__subcmd__{command})\n")).unwrap();
            rest.lines().next().unwrap().to_owned()
        };
        assert!(options("exec").contains("--sandbox"), "{}", options("exec"));
        assert!(options("redact").contains("--report") && !options("redact").contains("--sandbox"));
    }
}

//! `windlass config`: prints the configuration and the source of each value.

use crate::{
    args::{CommonOptions, ConfigCommand},
    config::{self, ConfigFormat},
    exit::ProgramExit,
    output::print,
    problem::CliProblem,
    setup::{self, ProgramSetup},
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &ConfigCommand) -> Result<ProgramExit, CliProblem> {
    let shown = match args {
        ConfigCommand::Show { origin, json } => {
            let format = match (*json, *origin) {
                (true, _) => ConfigFormat::Json,
                (false, false) => ConfigFormat::Toml,
                (false, true) => ConfigFormat::TomlWithOrigins,
            };
            config::show(&ProgramSetup::for_tools(common)?.loaded, format)
        }
        ConfigCommand::Schema => format!("{:#}\n", config::schema()),
        ConfigCommand::Path => format!("{}\n", config::file(&setup::home()?).display()),
    };
    print(&shown)
}

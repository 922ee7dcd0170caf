//! `windlass config`: what the configuration is and where it comes from.

use crate::{
    args::{Common, Config},
    config::{self, Format},
    exit::Exit,
    output::print,
    problem::Problem,
    setup::{self, Setup},
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Config) -> Result<Exit, Problem> {
    let shown = match args {
        Config::Show { origin, json } => {
            let format = match (*json, *origin) {
                (true, _) => Format::Json,
                (false, false) => Format::Toml,
                (false, true) => Format::TomlWithOrigins,
            };
            config::show(&Setup::for_tools(common)?.loaded, format)
        }
        Config::Schema => format!("{:#}\n", config::schema()),
        Config::Path => format!("{}\n", config::file(&setup::home()?).display()),
    };
    print(&shown)
}

//! `windlass config`: what the configuration is and where it comes from.

use std::io::{self, Write};

use crate::{
    args::{Common, Config},
    config::{self, Format},
    exit::Exit,
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
    let written = io::stdout().lock().write_all(shown.as_bytes());
    written.map_err(|error| Problem::failed(format!("cannot write the configuration: {error}")))?;
    Ok(Exit::Done)
}

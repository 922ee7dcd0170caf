//! `windlass config`: prints and changes the configuration.

mod edit;

use crate::{
    args::{CommonOptions, ConfigCommand},
    config::{self, ConfigEditor, ConfigFormat},
    exit::ProgramExit,
    note,
    output::{print, print_text},
    private_file,
    problem::CliProblem,
    screen::visible_path,
    setup::{self, ProgramSetup},
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &ConfigCommand) -> Result<ProgramExit, CliProblem> {
    match args {
        ConfigCommand::Show { origin, json } => {
            let format = if *json { ConfigFormat::Json } else { text_format(*origin) };
            let shown = config::show(&ProgramSetup::for_tools(common)?.loaded, format);
            if *json { print(&shown) } else { print_text(&shown) }
        }
        ConfigCommand::Get { key, origin } => get(common, key, text_format(*origin)),
        ConfigCommand::Set { key, value } => {
            change(|editor| editor.set(key, value).map(|()| true)).map(|_| ProgramExit::Done)
        }
        ConfigCommand::Unset { key } => {
            let was_there = change(|editor| editor.remove(key))?;
            if was_there {
                return Ok(ProgramExit::Done);
            }
            note(&format!("`{key}` is not in {}", visible_path(&config::file(&setup::home()?))));
            Ok(ProgramExit::Failed)
        }
        ConfigCommand::Edit => edit::run(&setup::home()?),
        ConfigCommand::Schema => print(&format!("{:#}\n", config::schema())),
        ConfigCommand::Path => print(&format!("{}\n", config::file(&setup::home()?).display())),
    }
}

fn text_format(origin: bool) -> ConfigFormat {
    if origin { ConfigFormat::TomlWithOrigins } else { ConfigFormat::Toml }
}

fn get(common: &CommonOptions, key: &str, format: ConfigFormat) -> Result<ProgramExit, CliProblem> {
    let loaded = ProgramSetup::for_tools(common)?.loaded;
    let shown = config::show_key(&loaded, key, format).map_err(|error| usage(&error))?;
    if let Some(shown) = shown {
        return print(&shown);
    }
    note(&format!("`{key}` is not set"));
    Ok(ProgramExit::Failed)
}

/// Changes the configuration file, and reports what was written. Returns false if there was nothing
/// to change.
pub(crate) fn change(
    change: impl FnOnce(&mut ConfigEditor) -> Result<bool, config::ConfigError>,
) -> Result<bool, CliProblem> {
    let home = setup::home()?;
    let path = config::file(&home);
    let cannot = |error: std::io::Error| CliProblem::file("cannot change", &path, &error);
    let _lock = private_file::lock(&path).map_err(cannot)?;
    let mut editor = ConfigEditor::open(&home).map_err(|error| usage(&error))?;
    if !change(&mut editor).map_err(|error| usage(&error))? {
        return Ok(false);
    }
    let remaining = editor.write(&home).map_err(|error| usage(&error))?;
    note(&format!("wrote {}", visible_path(&path)));
    if let Some(remaining) = remaining {
        note(&format!("warning: it has other problems:\n{remaining}"));
    }
    Ok(true)
}

fn usage(error: &config::ConfigError) -> CliProblem {
    CliProblem::usage(error.to_string())
}

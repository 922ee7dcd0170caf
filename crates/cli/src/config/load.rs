//! Merges all sources into one configuration.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{Table, Value};

use super::{
    WindlassConfig,
    key::ConfigKey,
    known::KnownKeys,
    layer::{
        ConfigSetting, ReadSettings, SettingOrigin, flattened, from_file, from_flags, from_overrides,
        from_variables,
    },
    problem::{ConfigError, ConfigProblem},
};

/// The sources of a configuration.
pub(crate) struct ConfigSources<'a> {
    /// The home directory of Windlass, from [`home`].
    pub(crate) home: &'a Path,
    /// The base of relative paths outside the file.
    pub(crate) cwd: &'a Path,
    /// The environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The texts after `-c`, in order.
    pub(crate) overrides: &'a [String],
    /// Other options that stand for a key.
    pub(crate) flags: &'a [ConfigFlag],
}

/// An option that stands for a key.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFlag {
    /// The option, as in `--sandbox`.
    pub(crate) name: &'static str,
    /// The key.
    pub(crate) key: &'static str,
    /// The value for the key.
    pub(crate) value: Value,
}

/// A valid configuration.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: WindlassConfig,
    /// The sources of the values that were set; the rest are defaults.
    origins: BTreeMap<ConfigKey, SettingOrigin>,
}

impl LoadedConfig {
    /// Returns the same with another configuration, which has the same sources.
    pub(crate) fn with_config(&self, config: WindlassConfig) -> Self {
        Self { config, origins: self.origins.clone() }
    }

    /// Returns the source of a value.
    pub(super) fn origin(&self, key: &ConfigKey) -> &SettingOrigin {
        self.origins.get(key).unwrap_or(&SettingOrigin::Default)
    }

    /// Returns the source of the first value of a table.
    pub(crate) fn first_origin(&self, table: &ConfigKey) -> &SettingOrigin {
        let is_inside = |key: &ConfigKey| key.names().starts_with(table.names());
        let found = self.origins.iter().find(|(key, _)| is_inside(key));
        found.map_or(&SettingOrigin::Default, |(_, origin)| origin)
    }
}

/// Returns the home directory of Windlass: `WINDLASS_HOME`, or `.windlass` in the user's own.
pub(crate) fn home(variable: &dyn Fn(&str) -> Option<String>, cwd: &Path) -> Result<PathBuf, ConfigError> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let home = set("WINDLASS_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(set("HOME")?).join(".windlass")));
    home.map(|home| cwd.join(home)).ok_or_else(|| {
        let message = "neither WINDLASS_HOME nor HOME is set; set one of them".to_owned();
        ConfigProblem { source: "WINDLASS_HOME".to_owned(), excerpt: None, message }.into()
    })
}

/// Returns the configuration file of a home directory.
pub(crate) fn file(home: &Path) -> PathBuf {
    home.join("config.toml")
}

/// Merges the sources key by key; the more important ones override the others.
pub(crate) fn load(sources: &ConfigSources<'_>) -> Result<LoadedConfig, ConfigError> {
    let read = [
        from_file(&file(sources.home)),
        from_variables(sources.variable),
        from_overrides(sources.overrides),
        from_flags(sources.flags),
    ];
    merge(read.into_iter().flatten(), |setting| sources.absolute(setting))
}

/// Checks the settings of one source.
pub(super) fn check_settings(read: ReadSettings) -> Result<(), ConfigError> {
    merge(read.into_iter(), |setting| setting).map(drop)
}

fn merge(
    read: impl Iterator<Item = Result<ConfigSetting, ConfigProblem>>,
    finished: impl Fn(ConfigSetting) -> ConfigSetting,
) -> Result<LoadedConfig, ConfigError> {
    let known = KnownKeys::new();
    let mut merged = MergedConfig::defaults()?;
    let mut problems = Vec::new();
    for setting in read {
        let checked = setting.and_then(|setting| match known.check(&setting.key, &setting.value) {
            Ok(()) => Ok(setting),
            Err(complaint) => Err(setting.problem(complaint)),
        });
        match checked {
            Ok(setting) => merged.put(finished(setting)),
            // A table with a wrong name is reported once, not once for each key in it.
            Err(problem) if problems.contains(&problem) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { merged.finish() } else { Err(ConfigError::new(problems)) }
}

/// The settings so far.
#[derive(Default)]
struct MergedConfig {
    values: Table,
    origins: BTreeMap<ConfigKey, SettingOrigin>,
}

impl MergedConfig {
    /// Returns the defaults, with the built-in providers, so that one key of theirs can be changed
    /// alone.
    fn defaults() -> Result<Self, ConfigError> {
        let defaults = Value::try_from(WindlassConfig::default()).map_err(|error| inconsistent(&error))?;
        let mut merged = Self::default();
        for setting in flattened(ConfigKey::root(), defaults, &SettingOrigin::Default) {
            merged.put(setting);
        }
        Ok(merged)
    }

    fn put(&mut self, ConfigSetting { key, value, origin, .. }: ConfigSetting) {
        // A shorthand for the address of the provider `openai`; the full key in a more important
        // source still wins.
        if key == ConfigKey::from(["openai_base_url"]) {
            self.set(
                ConfigKey::from(["model_providers", "openai", "base_url"]),
                value.clone(),
                origin.clone(),
            );
        }
        self.set(key, value, origin);
    }

    fn set(&mut self, key: ConfigKey, value: Value, origin: SettingOrigin) {
        let Some((name, tables)) = key.names().split_last() else { return };
        let mut table = &mut self.values;
        for name in tables {
            // Each setting was checked against the schema, so a table in one is a table in all.
            let Value::Table(inner) = table.entry(name).or_insert_with(|| Table::new().into()) else {
                return;
            };
            table = inner;
        }
        if !value.is_table() || !table.contains_key(name) {
            table.insert(name.clone(), value);
        }
        self.origins.insert(key, origin);
    }

    fn finish(self) -> Result<LoadedConfig, ConfigError> {
        let config = WindlassConfig::deserialize(self.values).map_err(|error| inconsistent(&error))?;
        let loaded = LoadedConfig { config, origins: self.origins };
        if let Some(message) = loaded.config.unknown_provider() {
            let source = loaded.origin(&ConfigKey::from(["model_provider"])).to_string();
            return Err(ConfigProblem { source, excerpt: None, message }.into());
        }
        if let Err(error) = loaded.config.hooks.check() {
            let source = loaded.first_origin(&ConfigKey::from(["hooks"])).to_string();
            return Err(ConfigProblem { source, excerpt: None, message: error.to_string() }.into());
        }
        if let Some((name, message)) = loaded.config.faulty_server() {
            let source = loaded.first_origin(&ConfigKey::from(["mcp_servers", name])).to_string();
            return Err(ConfigProblem { source, excerpt: None, message }.into());
        }
        Ok(loaded)
    }
}

/// Reports an error that cannot happen while every default is valid and every setting is checked;
/// tests ensure both.
fn inconsistent(error: &dyn std::error::Error) -> ConfigError {
    ConfigProblem { source: "configuration".to_owned(), excerpt: None, message: error.to_string() }.into()
}

/// Keys that hold paths; `*` is a user-chosen name.
const PATHS: [&[&str]; 8] = [
    &["mcp_servers", "*", "cwd"],
    &["mcp_servers", "*", "unix_socket"],
    &["mcp_servers", "*", "writable"],
    &["model_instructions_file"],
    &["model_providers", "*", "ca_file"],
    &["model_providers", "*", "script"],
    &["readable_secrets"],
    &["sandbox_workspace_write", "writable_roots"],
];

impl ConfigSources<'_> {
    /// Makes paths absolute. In the file they are relative to its directory. Relative to the
    /// working directory, any repository could supply the file.
    fn absolute(&self, mut setting: ConfigSetting) -> ConfigSetting {
        let names = setting.key.names();
        let fits = |path: &&[&str]| {
            path.len() == names.len() && path.iter().zip(names).all(|(one, name)| *one == "*" || one == name)
        };
        if PATHS.iter().any(fits) {
            let base =
                if matches!(setting.origin, SettingOrigin::File { .. }) { self.home } else { self.cwd };
            self.make_absolute(&mut setting.value, base);
        }
        setting
    }

    fn make_absolute(&self, value: &mut Value, base: &Path) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.make_absolute(value, base)),
            Value::String(text) => {
                let below_home = |rest| Some(Path::new(&(self.variable)("HOME")?).join(rest));
                let path = text.strip_prefix("~/").and_then(below_home).unwrap_or_else(|| base.join(&*text));
                *text = path.to_string_lossy().into_owned();
            }
            _ => {}
        }
    }
}

//! From all sources to one configuration.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{Table, Value};

use super::{
    Config,
    key::Key,
    known::Known,
    layer::{Origin, Setting, flattened, from_file, from_flags, from_overrides, from_variables},
    problem::{ConfigError, Problem},
};

/// What a configuration is made from.
pub(crate) struct Sources<'a> {
    /// The home directory of Windlass, from [`home`].
    pub(crate) home: &'a Path,
    /// Where relative paths outside the file begin.
    pub(crate) cwd: &'a Path,
    /// The environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The texts after `-c`, in order.
    pub(crate) overrides: &'a [String],
    /// Other options that stand for a key.
    pub(crate) flags: &'a [Flag],
}

/// An option that stands for a key.
#[derive(Debug, Clone)]
pub(crate) struct Flag {
    /// The option, as in `--sandbox`.
    pub(crate) name: &'static str,
    /// The key.
    pub(crate) key: &'static str,
    /// What it sets the key to.
    pub(crate) value: Value,
}

/// A configuration that makes sense.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// Where what was set comes from; the rest are defaults.
    origins: BTreeMap<Key, Origin>,
}

impl Loaded {
    /// Where a value comes from.
    pub(super) fn origin(&self, key: &Key) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }
}

/// The home directory of Windlass: `WINDLASS_HOME`, or `.windlass` in the user's own.
pub(crate) fn home(variable: &dyn Fn(&str) -> Option<String>, cwd: &Path) -> Result<PathBuf, ConfigError> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let home = set("WINDLASS_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(set("HOME")?).join(".windlass")));
    home.map(|home| cwd.join(home)).ok_or_else(|| {
        let message = "neither WINDLASS_HOME nor HOME is set; set one of them".to_owned();
        Problem { source: "WINDLASS_HOME".to_owned(), excerpt: None, message }.into()
    })
}

/// The configuration file of a home directory.
pub(crate) fn file(home: &Path) -> PathBuf {
    home.join("config.toml")
}

/// Puts the sources together, the more important ones over the others, key by key.
pub(crate) fn load(sources: &Sources<'_>) -> Result<Loaded, ConfigError> {
    let read = [
        from_file(&file(sources.home)),
        from_variables(sources.variable),
        from_overrides(sources.overrides),
        from_flags(sources.flags),
    ];
    let known = Known::new();
    let mut merged = Merged::defaults()?;
    let mut problems = Vec::new();
    for setting in read.into_iter().flatten() {
        let checked = setting.and_then(|setting| match known.check(&setting.key, &setting.value) {
            Ok(()) => Ok(setting),
            Err(complaint) => Err(setting.problem(complaint)),
        });
        match checked {
            Ok(setting) => merged.put(sources.absolute(setting)),
            // A table with a wrong name is reported once, not once for each key in it.
            Err(problem) if problems.contains(&problem) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { merged.finish() } else { Err(ConfigError::new(problems)) }
}

/// What has been set so far.
#[derive(Default)]
struct Merged {
    values: Table,
    origins: BTreeMap<Key, Origin>,
}

impl Merged {
    /// The built-in providers are among them, so that one key of theirs can be changed alone.
    fn defaults() -> Result<Self, ConfigError> {
        let defaults = Value::try_from(Config::default()).map_err(|error| inconsistent(&error))?;
        let mut merged = Self::default();
        for setting in flattened(Key::root(), defaults, &Origin::Default) {
            merged.put(setting);
        }
        Ok(merged)
    }

    fn put(&mut self, Setting { key, value, origin, .. }: Setting) {
        // A short way to say where the provider `openai` is; what a more important source says in full still wins.
        if key == Key::from(["openai_base_url"]) {
            self.set(Key::from(["model_providers", "openai", "base_url"]), value.clone(), origin.clone());
        }
        self.set(key, value, origin);
    }

    fn set(&mut self, key: Key, value: Value, origin: Origin) {
        let Some((name, tables)) = key.names().split_last() else { return };
        let mut table = &mut self.values;
        for name in tables {
            // Each setting was checked against the schema, so what is a table for one is a table for all.
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

    fn finish(self) -> Result<Loaded, ConfigError> {
        let config = Config::deserialize(self.values).map_err(|error| inconsistent(&error))?;
        let loaded = Loaded { config, origins: self.origins };
        match loaded.config.unknown_provider() {
            None => Ok(loaded),
            Some(message) => {
                let source = loaded.origin(&Key::from(["model_provider"])).to_string();
                Err(Problem { source, excerpt: None, message }.into())
            }
        }
    }
}

/// For what cannot happen while every default is valid and every setting is checked; the tests see to that.
fn inconsistent(error: &dyn std::error::Error) -> ConfigError {
    Problem { source: "configuration".to_owned(), excerpt: None, message: error.to_string() }.into()
}

/// Keys that hold paths; `*` is a name of the user's choice.
const PATHS: [&[&str]; 4] = [
    &["model_instructions_file"],
    &["model_providers", "*", "script"],
    &["readable_secrets"],
    &["sandbox_workspace_write", "writable_roots"],
];

impl Sources<'_> {
    /// Makes paths absolute. In the file they begin where the file is: were it the working directory, any repository
    /// could bring the file that is meant.
    fn absolute(&self, mut setting: Setting) -> Setting {
        let names = setting.key.names();
        let fits = |path: &&[&str]| {
            path.len() == names.len() && path.iter().zip(names).all(|(one, name)| *one == "*" || one == name)
        };
        if PATHS.iter().any(fits) {
            let base = if matches!(setting.origin, Origin::File { .. }) { self.home } else { self.cwd };
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

//! Sources of settings: the file, variables, `-c`, other options.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{
    Spanned, Value,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    key::ConfigKey,
    known::{SettingFault, SettingPart},
    load::ConfigFlag,
    problem::{ConfigProblem, LineExcerpt},
    show::is_secret,
};
use crate::screen::visible_path;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    /// The default.
    Default,
    /// The configuration file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
    /// `-c`.
    Override,
    /// Another option.
    Flag(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", visible_path(path)),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::Override => f.write_str("-c"),
        }
    }
}

/// One key with its value, from one source.
#[derive(Debug)]
pub(super) struct ConfigSetting {
    pub(super) key: ConfigKey,
    pub(super) value: Value,
    pub(super) origin: SettingOrigin,
    /// The position of each name in the file.
    marks: Option<SettingExcerpts>,
}

#[derive(Debug)]
struct SettingExcerpts {
    names: Vec<LineExcerpt>,
    value: LineExcerpt,
}

/// The settings of a source, and its malformed parts.
pub(super) type ReadSettings = Vec<Result<ConfigSetting, ConfigProblem>>;

impl ConfigSetting {
    /// Turns a fault of this setting into a problem of its source.
    pub(super) fn problem(&self, SettingFault { about, message }: SettingFault) -> ConfigProblem {
        let excerpt = self.marks.as_ref().and_then(|marks| match about {
            SettingPart::Name(at) => marks.names.get(at).cloned(),
            SettingPart::Value => Some(marks.value.clone()).filter(|_| !is_secret(&self.key)),
        });
        let source = match (&self.origin, &excerpt) {
            // The excerpt shows the line.
            (SettingOrigin::File { path, .. }, Some(_)) => visible_path(path),
            (other, _) => other.to_string(),
        };
        ConfigProblem { source, excerpt, message }
    }
}

/// Reads the configuration file. A missing one has no settings.
pub(super) fn from_file(path: &Path) -> ReadSettings {
    match fs::read_to_string(path) {
        Ok(text) => from_text(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let message = format!("cannot be read: {error}");
            vec![Err(ConfigProblem { source: visible_path(path), excerpt: None, message })]
        }
    }
}

/// Reads a text as the contents of the configuration file.
pub(super) fn from_text(path: &Path, text: &str) -> ReadSettings {
    match DeTable::parse(text) {
        Ok(table) => {
            let mut document = ConfigDocument { path, text, settings: Vec::new() };
            document.table(table.get_ref(), &ConfigKey::root(), &[]);
            document.settings
        }
        Err(error) => {
            let excerpt = error.span().map(|span| LineExcerpt::new(text, &span));
            let message = error.message().to_owned();
            vec![Err(ConfigProblem { source: visible_path(path), excerpt, message })]
        }
    }
}

struct ConfigDocument<'a> {
    path: &'a Path,
    text: &'a str,
    settings: ReadSettings,
}

impl ConfigDocument<'_> {
    /// Reads every key of a table. `key` leads to it, and `names` are the positions of its names.
    fn table(&mut self, table: &DeTable<'_>, key: &ConfigKey, names: &[LineExcerpt]) {
        for (name, value) in table {
            let mark = LineExcerpt::new(self.text, &name.span());
            let names: Vec<_> = names.iter().cloned().chain([mark]).collect();
            let key = key.child(name.get_ref().as_ref());
            match value.get_ref() {
                DeValue::Table(inner) if !inner.is_empty() => self.table(inner, &key, &names),
                _ => self.leaf(value, key, names),
            }
        }
    }

    fn leaf(&mut self, value: &Spanned<DeValue<'_>>, key: ConfigKey, names: Vec<LineExcerpt>) {
        let line = names.last().map_or(1, |name| name.line);
        let mark = LineExcerpt::new(self.text, &value.span());
        let parsed = Value::deserialize(ValueDeserializer::from(value.clone()));
        self.settings.push(match parsed {
            Ok(value) => Ok(ConfigSetting {
                key,
                value,
                origin: SettingOrigin::File { path: self.path.to_owned(), line },
                marks: Some(SettingExcerpts { names, value: mark }),
            }),
            // The text is valid TOML; the only possible error is a number that is too large.
            Err(_) => Err(ConfigProblem {
                source: visible_path(self.path),
                excerpt: Some(mark),
                message: format!("`{key}`: the number is out of range"),
            }),
        });
    }
}

/// Variables that stand for a key.
const VARIABLES: [(&str, &str); 5] = [
    ("OPENAI_BASE_URL", "openai_base_url"),
    ("WINDLASS_APPROVAL_POLICY", "approval_policy"),
    ("WINDLASS_MODEL", "model"),
    ("WINDLASS_MODEL_PROVIDER", "model_provider"),
    ("WINDLASS_SANDBOX_MODE", "sandbox_mode"),
];

/// Reads the environment. An empty variable is ignored.
pub(super) fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> ReadSettings {
    let set = |(name, key): (&'static str, &str)| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        let (key, value, origin) =
            (ConfigKey::from([key]), Value::String(value), SettingOrigin::Variable(name));
        Some(Ok(ConfigSetting { key, value, origin, marks: None }))
    };
    VARIABLES.into_iter().filter_map(set).collect()
}

/// Reads the texts after `-c`.
pub(super) fn from_overrides(overrides: &[String]) -> ReadSettings {
    overrides.iter().flat_map(|text| from_override(text)).collect()
}

fn from_override(text: &str) -> ReadSettings {
    let problem = |message| vec![Err(ConfigProblem { source: "-c".to_owned(), excerpt: None, message })];
    let Some((name, _)) = text.split_once('=') else {
        return problem(format!("`{text}` has no value; write KEY=VALUE"));
    };
    // The first `=` may be inside a quoted name.
    let mut splits = text.match_indices('=').map(|(at, _)| (&text[..at], text[at + 1..].trim()));
    let Some((key, value)) = splits.find_map(|(key, value)| Some((ConfigKey::parse(key)?, value))) else {
        let hint = r#"write names with dots between them and odd ones in quotes, as in a."b c".d"#;
        return problem(format!("`{name}` is not a key; {hint}"));
    };
    // A value that is not TOML is a string, so that `-c model="o3"` needs no extra quotes in the
    // shell.
    let value = value.parse().unwrap_or_else(|_| Value::from(value));
    flattened(key, value, &SettingOrigin::Override).into_iter().map(Ok).collect()
}

/// Reads other options.
pub(super) fn from_flags(flags: &[ConfigFlag]) -> ReadSettings {
    let set = |flag: &ConfigFlag| {
        flattened(ConfigKey::from([flag.key]), flag.value.clone(), &SettingOrigin::Flag(flag.name))
            .into_iter()
            .map(Ok)
    };
    flags.iter().flat_map(set).collect()
}

/// Splits a table into one setting for each of its keys. An empty one stays: it may be a provider
/// with only defaults.
pub(super) fn flattened(key: ConfigKey, value: Value, origin: &SettingOrigin) -> Vec<ConfigSetting> {
    match value {
        Value::Table(table) if !table.is_empty() => {
            let inner = |(name, value): (String, Value)| flattened(key.child(name), value, origin);
            table.into_iter().flat_map(inner).collect()
        }
        value => vec![ConfigSetting { key, value, origin: origin.clone(), marks: None }],
    }
}

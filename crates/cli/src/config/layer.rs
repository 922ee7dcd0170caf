//! Where settings come from: the file, variables, `-c`, other options.

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
    key::Key,
    known::{Complaint, Part},
    load::Flag,
    problem::{Excerpt, Problem},
    show::is_secret,
};
use crate::screen::visible_path;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File {
        /// Which.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
    /// `-c`.
    Override,
    /// Another option.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", visible_path(path)),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::Override => f.write_str("-c"),
        }
    }
}

/// One key with its value, as someone gave it.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) key: Key,
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// Where it is in the file, name by name.
    marks: Option<Marks>,
}

#[derive(Debug)]
struct Marks {
    names: Vec<Excerpt>,
    value: Excerpt,
}

/// What a source says: settings, and what in it makes no sense.
pub(super) type Read = Vec<Result<Setting, Problem>>;

impl Setting {
    /// The complaint about this setting as a problem of its source.
    pub(super) fn problem(&self, Complaint { about, message }: Complaint) -> Problem {
        let excerpt = self.marks.as_ref().and_then(|marks| match about {
            Part::Name(at) => marks.names.get(at).cloned(),
            Part::Value => Some(marks.value.clone()).filter(|_| !is_secret(&self.key)),
        });
        let source = match (&self.origin, &excerpt) {
            // The excerpt says which line.
            (Origin::File { path, .. }, Some(_)) => visible_path(path),
            (other, _) => other.to_string(),
        };
        Problem { source, excerpt, message }
    }
}

/// The configuration file. A missing one says nothing.
pub(super) fn from_file(path: &Path) -> Read {
    let problem = |excerpt, message| vec![Err(Problem { source: visible_path(path), excerpt, message })];
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return problem(None, format!("cannot be read: {error}")),
    };
    match DeTable::parse(&text) {
        Ok(table) => {
            let mut document = Document { path, text: &text, settings: Vec::new() };
            document.table(table.get_ref(), &Key::root(), &[]);
            document.settings
        }
        Err(error) => {
            let excerpt = error.span().map(|span| Excerpt::new(&text, &span));
            problem(excerpt, error.message().to_owned())
        }
    }
}

struct Document<'a> {
    path: &'a Path,
    text: &'a str,
    settings: Read,
}

impl Document<'_> {
    /// Takes every key of a table. `key` leads to it, and `names` are the places where that is written.
    fn table(&mut self, table: &DeTable<'_>, key: &Key, names: &[Excerpt]) {
        for (name, value) in table {
            let mark = Excerpt::new(self.text, &name.span());
            let names: Vec<_> = names.iter().cloned().chain([mark]).collect();
            let key = key.child(name.get_ref().as_ref());
            match value.get_ref() {
                DeValue::Table(inner) if !inner.is_empty() => self.table(inner, &key, &names),
                _ => self.leaf(value, key, names),
            }
        }
    }

    fn leaf(&mut self, value: &Spanned<DeValue<'_>>, key: Key, names: Vec<Excerpt>) {
        let line = names.last().map_or(1, |name| name.line);
        let mark = Excerpt::new(self.text, &value.span());
        let parsed = Value::deserialize(ValueDeserializer::from(value.clone()));
        self.settings.push(match parsed {
            Ok(value) => Ok(Setting {
                key,
                value,
                origin: Origin::File { path: self.path.to_owned(), line },
                marks: Some(Marks { names, value: mark }),
            }),
            // The text is TOML already; all that can go wrong is a number larger than TOML has.
            Err(_) => Err(Problem {
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

/// The environment. An empty variable says nothing.
pub(super) fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Read {
    let set = |(name, key): (&'static str, &str)| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        let (key, value, origin) = (Key::from([key]), Value::String(value), Origin::Variable(name));
        Some(Ok(Setting { key, value, origin, marks: None }))
    };
    VARIABLES.into_iter().filter_map(set).collect()
}

/// What was said with `-c`.
pub(super) fn from_overrides(overrides: &[String]) -> Read {
    overrides.iter().flat_map(|text| from_override(text)).collect()
}

fn from_override(text: &str) -> Read {
    let problem = |message| vec![Err(Problem { source: "-c".to_owned(), excerpt: None, message })];
    let Some((name, _)) = text.split_once('=') else {
        return problem(format!("`{text}` has no value; write KEY=VALUE"));
    };
    // The first `=` may be inside a quoted name.
    let mut splits = text.match_indices('=').map(|(at, _)| (&text[..at], text[at + 1..].trim()));
    let Some((key, value)) = splits.find_map(|(key, value)| Some((Key::parse(key)?, value))) else {
        let hint = r#"write names with dots between them and odd ones in quotes, as in a."b c".d"#;
        return problem(format!("`{name}` is not a key; {hint}"));
    };
    // What is no TOML is meant as text: nobody wants to quote the quotes of `-c model="o3"` for the shell.
    let value = value.parse().unwrap_or_else(|_| Value::from(value));
    flattened(key, value, &Origin::Override).into_iter().map(Ok).collect()
}

/// What other options said.
pub(super) fn from_flags(flags: &[Flag]) -> Read {
    let set = |flag: &Flag| {
        flattened(Key::from([flag.key]), flag.value.clone(), &Origin::Flag(flag.name)).into_iter().map(Ok)
    };
    flags.iter().flat_map(set).collect()
}

/// A table as one setting for each of its keys. An empty one stays: it may be a provider that is all default.
pub(super) fn flattened(key: Key, value: Value, origin: &Origin) -> Vec<Setting> {
    match value {
        Value::Table(table) if !table.is_empty() => {
            let inner = |(name, value): (String, Value)| flattened(key.child(name), value, origin);
            table.into_iter().flat_map(inner).collect()
        }
        value => vec![Setting { key, value, origin: origin.clone(), marks: None }],
    }
}

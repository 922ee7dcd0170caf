//! API keys that `windlass login` keeps: a file below the home directory of Windlass.
//!
//! Sandboxed commands and file tools cannot read that directory, and the redaction knows the keys.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use windlass::model::{Provider, Secret};

use crate::{private_file, problem::CliProblem, screen::visible_path};

const FIRST_LINE: &str = "# API keys, kept by `windlass login`. Do not share this file.\n";

/// Maximum size of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Maximum length of a key.
const MAX_KEY_BYTES: usize = 16 * 1024;

/// API keys, by the id of their provider.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredKeys {
    providers: BTreeMap<String, StoredKey>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKey {
    api_key: Secret,
}

/// Returns the file of a home directory.
pub(crate) fn file(home: &Path) -> PathBuf {
    home.join("credentials.toml")
}

impl StoredKeys {
    /// Reads the keys. A missing file has none. A malformed file, or one that others can read, is
    /// an error that says how to fix it.
    pub(crate) fn load(home: &Path) -> Result<Self, CliProblem> {
        let path = file(home);
        let shown = visible_path(&path);
        let (text, mode) = match read(&path) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CliProblem::file("cannot read the API keys in", &path, &error)),
        };
        if mode & 0o077 != 0 {
            let mode = mode & 0o777;
            return Err(CliProblem::usage(format!(
                "others can read the API keys in `{shown}` (mode {mode:o}); run `chmod 600 {shown}`"
            )));
        }
        toml::from_str(&text).map_err(|error| {
            // The message of the parser would quote the line with the key.
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            CliProblem::usage(format!(
                "`{shown}`, line {line}: not a list of API keys; correct it, or remove the file and run `windlass login` again"
            ))
        })
    }

    /// Returns the key of a provider.
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        self.providers.get(id).map(|key| key.api_key.reveal())
    }

    /// Returns the ids of providers with a key.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }

    /// Returns the key for a variable of this provider, to be used if the variable is not set.
    pub(crate) fn for_variable(&self, id: &str, provider: &Provider, variable: &str) -> Option<String> {
        self.get(id).filter(|_| provider.key_variable() == Some(variable)).map(str::to_owned)
    }
}

/// Changes the file of a home directory. Returns what the change returns.
pub(crate) fn change<T>(home: &Path, change: impl FnOnce(&mut StoredKeys) -> T) -> Result<T, CliProblem> {
    let path = file(home);
    let cannot = |error: &io::Error| {
        CliProblem::failed(format!("cannot write the API keys to `{}`: {error}", visible_path(&path)))
    };
    let _lock = private_file::lock(&path).map_err(|error| cannot(&error))?;
    let mut keys = StoredKeys::load(home)?;
    let result = change(&mut keys);
    let written = if keys.providers.is_empty() {
        fs::remove_file(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    } else {
        let text = toml::to_string(&keys).map_err(|error| CliProblem::failed(error.to_string()))?;
        private_file::replace(&path, &format!("{FIRST_LINE}{text}"))
    };
    written.map(|()| result).map_err(|error| cannot(&error))
}

impl StoredKeys {
    /// Keeps a key. Returns true if it replaces another.
    pub(crate) fn insert(&mut self, id: &str, key: &ApiKey) -> bool {
        let stored = StoredKey { api_key: key.0.as_str().into() };
        self.providers.insert(id.to_owned(), stored).is_some()
    }

    /// Removes a key. Returns true if there was one.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.providers.remove(id).is_some()
    }
}

/// A key that can be sent in a header.
pub(crate) struct ApiKey(String);

impl ApiKey {
    /// Checks a key as it was typed or piped. Messages never repeat it.
    pub(crate) fn parse(text: &str) -> Result<Self, CliProblem> {
        let key = text.trim();
        if key.is_empty() {
            return Err(CliProblem::usage("the API key is empty; nothing was changed"));
        }
        if key.len() > MAX_KEY_BYTES || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(CliProblem::usage(
                "this is not an API key: a key is one word of ASCII characters; nothing was changed",
            ));
        }
        Ok(Self(key.to_owned()))
    }
}

/// Returns the keys for the redaction. One that cannot be read cannot be used either.
pub(crate) fn secrets(home: &Path) -> Vec<(String, String)> {
    let Ok(keys) = StoredKeys::load(home) else { return Vec::new() };
    let named = |(id, key): (String, StoredKey)| {
        (format!("{}_API_KEY", id.to_uppercase()), key.api_key.reveal().to_owned())
    };
    keys.providers.into_iter().map(named).collect()
}

fn read(path: &Path) -> io::Result<(String, u32)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err(io::Error::other("it is not a small file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok((text, about.permissions().mode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(text: &str, mode: u32) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::write(file(home.path()), text).unwrap();
        fs::set_permissions(file(home.path()), fs::Permissions::from_mode(mode)).unwrap();
        home
    }

    #[test]
    fn a_key_is_kept_in_a_private_file_until_it_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let key = ApiKey::parse(" sk-\"1\n").unwrap();
        assert!(!change(home.path(), |keys| keys.insert("llama.cpp", &key)).unwrap());
        assert!(change(home.path(), |keys| keys.insert("llama.cpp", &key)).unwrap());
        assert_eq!(StoredKeys::load(home.path()).unwrap().get("llama.cpp"), Some("sk-\"1"));
        let mode = fs::metadata(file(home.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(change(home.path(), |keys| keys.remove("llama.cpp")).unwrap());
        assert!(!file(home.path()).exists());
        assert!(!change(home.path(), |keys| keys.remove("llama.cpp")).unwrap());
    }

    #[test]
    fn a_broken_file_is_an_error_that_does_not_quote_it() {
        for text in ["[openai]\napi_key = sk-hush", "[openai]\nkey = 'sk-hush'", "openai = 'sk-hush'", "="] {
            let home = home_with(text, 0o600);
            let problem = StoredKeys::load(home.path()).unwrap_err().message;
            assert!(problem.contains("line ") && problem.contains("windlass login"), "{problem}");
            assert!(!problem.contains("hush"), "{problem}");
            let key = ApiKey::parse("new").unwrap();
            assert!(change(home.path(), |keys| keys.insert("x", &key)).is_err());
            assert_eq!(fs::read_to_string(file(home.path())).unwrap(), text);
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_the_remedy() {
        let home = home_with("[x]\napi_key = 'y'\n", 0o640);
        let problem = StoredKeys::load(home.path()).unwrap_err().message;
        assert!(problem.contains("(mode 640); run `chmod 600 "), "{problem}");
    }

    #[test]
    fn only_one_word_is_a_key() {
        for text in ["", " \n", "a b", "a\nb", "schlüssel", "a\u{7}"] {
            assert!(ApiKey::parse(text).is_err(), "{text:?}");
        }
    }
}

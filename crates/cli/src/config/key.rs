//! The name of a setting: `sandbox_mode`, `model_providers."llama.cpp".base_url`.

use std::fmt;

use toml::{Table, Value};

/// A path of names through tables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConfigKey(Vec<String>);

impl ConfigKey {
    /// Parses a key as TOML spells it: names with dots between them, unusual ones in quotes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // The TOML parser does the work; a line break in `text` would add more than a key.
        let document: Table = toml::from_str(&format!("{text} = 0")).ok().filter(|_| !text.contains('\n'))?;
        let mut names = Vec::new();
        let mut value = Value::Table(document);
        while let Value::Table(table) = value {
            let (name, inner) = table.into_iter().next()?;
            names.push(name);
            value = inner;
        }
        Some(Self(names))
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the first names of the key.
    pub(crate) fn up_to(&self, names: usize) -> Self {
        Self(self.0.iter().take(names).cloned().collect())
    }

    /// Returns a key below this one.
    pub(crate) fn child(&self, name: impl Into<String>) -> Self {
        Self(self.0.iter().cloned().chain([name.into()]).collect())
    }

    /// Returns the empty key.
    pub(crate) fn root() -> Self {
        Self(Vec::new())
    }
}

impl<const N: usize> From<[&str; N]> for ConfigKey {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
    }
}

impl fmt::Display for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            let bare =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            if bare {
                write!(f, "{dot}{name}")?
            } else {
                write!(f, "{dot}{}", serde_json::Value::from(name.as_str()))?
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_it_is_written() {
        for text in ["model", "a.b-c.d_1", r#"model_providers."llama.cpp".base_url"#, r#"set."with \"quote""#]
        {
            let shown = ConfigKey::parse(text).unwrap().to_string();
            assert_eq!(ConfigKey::parse(&shown), ConfigKey::parse(text), "{shown}");
        }
        assert_eq!(ConfigKey::parse(r#"a."b.c".'d'"#).unwrap().names(), ["a", "b.c", "d"]);
        assert_eq!(ConfigKey::parse(" a . b ").unwrap().to_string(), "a.b");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", ".", "a.", "a b", "a\nb", "a = 1\nb", "[a]", "ü"] {
            assert_eq!(ConfigKey::parse(text), None, "{text}");
        }
    }
}

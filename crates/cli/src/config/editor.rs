//! Changes a configuration file key by key. Comments and the order of keys stay.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use toml::Value;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};

use super::{
    key::ConfigKey,
    known::KnownKeys,
    layer::{SettingOrigin, flattened, from_text},
    load::{check_settings, file},
    problem::{ConfigError, ConfigProblem},
};
use crate::{private_file, screen::visible_path};

/// The first lines of a new file.
pub(crate) const NEW_FILE: &str = "# Configuration of Windlass. `windlass config show` prints all keys, docs/configuration.md explains them.\n";

/// A configuration file that is being changed.
pub(crate) struct ConfigEditor {
    path: PathBuf,
    before: String,
    /// Comments at the beginning that belong to no key.
    first_lines: String,
    document: DocumentMut,
}

/// Reads the configuration file of a home directory, or the beginning of a new one.
pub(crate) fn read_or_new(home: &Path) -> Result<String, ConfigError> {
    let path = file(home);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(NEW_FILE.to_owned()),
        Err(error) => Err(problem(visible_path(&path), format!("cannot be read: {error}"))),
    }
}

/// Returns all problems that a text would have as the configuration file.
pub(crate) fn check_text(home: &Path, text: &str) -> Result<(), ConfigError> {
    check_settings(from_text(&file(home), text))
}

impl ConfigEditor {
    /// Opens the file of a home directory; a missing one is created by [`write`](Self::write).
    pub(crate) fn open(home: &Path) -> Result<Self, ConfigError> {
        let before = read_or_new(home)?;
        let path = file(home);
        let parsed = before.parse::<DocumentMut>();
        let mut document = parsed.map_err(|error| match check_text(home, &before) {
            Err(problems) => problems,
            Ok(()) => problem(visible_path(&path), error.message().to_owned()),
        })?;
        // In a file without keys they would end up below the first key.
        let trailing = document.trailing().as_str().filter(|_| document.is_empty());
        let first_lines = trailing.unwrap_or_default().to_owned();
        if !first_lines.is_empty() {
            document.set_trailing("");
        }
        Ok(Self { path, before, first_lines, document })
    }

    /// Sets a key to a value as it was typed: TOML, or text where text is expected.
    pub(crate) fn set(&mut self, name: &str, typed: &str) -> Result<(), ConfigError> {
        let key = parse_key(name)?;
        let parsed: Option<Value> = typed.trim().parse().ok();
        let text = Value::from(typed);
        let known = KnownKeys::new();
        let fault = |value: &Value| {
            let settings = flattened(key.clone(), value.clone(), &SettingOrigin::Override);
            settings.iter().find_map(|setting| known.check(&setting.key, &setting.value).err())
        };
        let value = match parsed {
            Some(value) => match fault(&value) {
                None => value,
                Some(_) if fault(&text).is_none() => text,
                Some(fault) => return Err(problem(String::new(), fault.message)),
            },
            None => match fault(&text) {
                None => text,
                Some(fault) => return Err(problem(String::new(), fault.message)),
            },
        };
        flattened(key, value, &SettingOrigin::Override)
            .iter()
            .try_for_each(|setting| self.put(&setting.key, &setting.value))
    }

    /// Sets a key to a text, whatever it looks like.
    pub(crate) fn set_text(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        self.put(&parse_key(name)?, &Value::from(text))
    }

    /// Sets all keys of a table, in its order.
    pub(crate) fn set_table(
        &mut self,
        table: &ConfigKey,
        values: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<(), ConfigError> {
        let settings = values
            .into_iter()
            .flat_map(|(name, value)| flattened(table.child(name), value, &SettingOrigin::Override));
        settings.into_iter().try_for_each(|setting| self.put(&setting.key, &setting.value))
    }

    /// Returns true if a key or a table is in the file.
    pub(crate) fn has(&self, key: &ConfigKey) -> bool {
        let Some((name, tables)) = key.names().split_last() else { return true };
        let mut table: &dyn TableLike = self.document.as_table();
        for name in tables {
            match table.get(name).and_then(Item::as_table_like) {
                Some(inner) => table = inner,
                None => return false,
            }
        }
        table.contains_key(name)
    }

    fn put(&mut self, key: &ConfigKey, value: &Value) -> Result<(), ConfigError> {
        let inconsistent =
            || problem(key.to_string(), "cannot be set here; use `windlass config edit`".to_owned());
        let Some((name, tables)) = key.names().split_last() else { return Err(inconsistent()) };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        let mut is_inline = false;
        for name in tables {
            let new = if is_inline { Item::Value(InlineTable::new().into()) } else { implicit_table() };
            let item = table.entry(name).or_insert(new);
            is_inline = item.is_value();
            table = item.as_table_like_mut().ok_or_else(inconsistent)?;
        }
        let mut value: toml_edit::Value = value.to_string().parse().map_err(|_| inconsistent())?;
        match table.get_mut(name) {
            Some(Item::Value(old)) => {
                // A comment behind the value stays.
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            Some(_) => return Err(inconsistent()),
            None => drop(table.insert(name, Item::Value(value))),
        }
        Ok(())
    }

    /// Removes a key, or a whole table. Returns false if it is not there.
    pub(crate) fn remove(&mut self, name: &str) -> Result<bool, ConfigError> {
        let key = parse_key(name)?;
        let Some((name, tables)) = key.names().split_last() else { return Ok(false) };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for name in tables {
            match table.get_mut(name).and_then(Item::as_table_like_mut) {
                Some(inner) => table = inner,
                None => return Ok(false),
            }
        }
        let comments = comments_above(table, name);
        let next = table.iter().skip_while(|(each, _)| each != name).nth(1);
        let next = next.filter(|(_, item)| item.is_value()).map(|(each, _)| each.to_owned());
        let is_first = tables.is_empty() && table.iter().next().is_some_and(|(first, _)| first == name);
        if table.remove(name).is_none() {
            return Ok(false);
        }
        // Comments may be about the next key or the whole file.
        if let Some(mut next) = next.and_then(|next| table.key_mut(&next)) {
            let own = next.leaf_decor().prefix().and_then(|own| own.as_str()).unwrap_or_default().to_owned();
            next.leaf_decor_mut().set_prefix(format!("{comments}{own}"));
        } else if is_first {
            self.first_lines.push_str(&comments);
        }
        Ok(true)
    }

    /// Returns the file with its changes.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.first_lines, self.document)
    }

    /// Writes the file, unless a change made it wrong. Returns older problems, which stay.
    pub(crate) fn write(self, home: &Path) -> Result<Option<ConfigError>, ConfigError> {
        let text = self.text();
        let old = check_text(home, &self.before).err();
        let new = check_text(home, &text).err();
        if let Some(new) = &new
            && !new.is_part_of(old.as_ref())
        {
            return Err(new.clone());
        }
        private_file::replace(&self.path, &text)
            .map_err(|error| problem(visible_path(&self.path), format!("cannot be written: {error}")))?;
        Ok(new)
    }
}

/// Returns the comments directly above a key.
fn comments_above(table: &dyn TableLike, name: &str) -> String {
    let prefix = table.key(name).and_then(|key| key.leaf_decor().prefix()?.as_str());
    prefix.filter(|prefix| prefix.contains('#')).unwrap_or_default().to_owned()
}

fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Parses a key as it was typed.
pub(super) fn parse_key(name: &str) -> Result<ConfigKey, ConfigError> {
    ConfigKey::parse(name).ok_or_else(|| {
        let hint = r#"write names with dots between them and odd ones in quotes, as in a."b c".d"#;
        problem(String::new(), format!("`{name}` is not a key; {hint}"))
    })
}

/// Creates a problem without an excerpt.
pub(super) fn problem(source: String, message: String) -> ConfigError {
    ConfigProblem { source, excerpt: None, message }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# first\nmodel = \"a\" # my model\n\n# about tables\n[limits] # caps\nprocesses = 5\n\n\
                        [model_providers]\nmine = { base_url = \"http://x/v1\" } # inline\n";

    fn edited(
        text: &str,
        edit: impl FnOnce(&mut ConfigEditor) -> Result<(), ConfigError>,
    ) -> Result<String, String> {
        let home = tempfile::tempdir().unwrap();
        fs::write(file(home.path()), text).unwrap();
        let mut editor = ConfigEditor::open(home.path()).map_err(|error| error.to_string())?;
        edit(&mut editor).map_err(|error| error.to_string())?;
        editor.write(home.path()).map_err(|error| error.to_string())?;
        Ok(fs::read_to_string(file(home.path())).unwrap())
    }

    fn set(text: &str, key: &str, value: &str) -> Result<String, String> {
        edited(text, |editor| editor.set(key, value))
    }

    #[test]
    fn a_change_keeps_comments_and_order() {
        assert_eq!(set(FILE, "model", "b").unwrap(), FILE.replace("\"a\"", "\"b\""));
        assert_eq!(set(FILE, "limits.processes", "7").unwrap(), FILE.replace('5', "7"));
        assert_eq!(
            set(FILE, "limits.open_files", "9").unwrap(),
            FILE.replace("processes = 5\n", "processes = 5\nopen_files = 9\n")
        );
        assert_eq!(
            set(FILE, "sandbox_mode", "read-only").unwrap(),
            FILE.replace("# my model\n", "# my model\nsandbox_mode = \"read-only\"\n")
        );
        let inline = set(FILE, "model_providers.mine.http_headers.x", "y").unwrap();
        assert!(inline.contains("http_headers = { x = \"y\" }") && inline.contains("# inline"), "{inline}");
        let new = set(FILE, "model_providers.\"a.b\".name", "n").unwrap();
        assert_eq!(new, format!("{FILE}\n[model_providers.\"a.b\"]\nname = \"n\"\n"));
    }

    #[test]
    fn the_first_key_of_a_file_stands_below_its_first_lines() {
        for (key, expected) in [
            ("model", "# first\nmodel = \"5\"\n"),
            ("limits.processes", "# first\n[limits]\nprocesses = 5\n"),
            ("model_providers.x.name", "# first\n[model_providers.x]\nname = \"5\"\n"),
        ] {
            assert_eq!(set("# first\n", key, "5").unwrap(), expected);
        }
    }

    #[test]
    fn a_value_is_toml_or_text_where_text_is_expected() {
        assert_eq!(set("", "model", "4").unwrap(), "model = \"4\"\n");
        assert_eq!(set("", "ask_before", "[\"push\"]").unwrap(), "ask_before = [\"push\"]\n");
        assert_eq!(set("", "limits", "{ processes = 1, open_files = 2 }").unwrap().lines().count(), 3);
        for (key, value, expected) in [
            ("modle", "x", "unknown key `modle`; did you mean `model`?"),
            ("include_plan_tool", "yes", "must be true or false; found string \"yes\""),
            ("limits.processes", "many", "must be a whole number, at least 0"),
            ("a b", "x", "`a b` is not a key"),
            ("model_provider", "olama", "there is no provider `olama`; did you mean `ollama`?"),
        ] {
            let problem = set("", key, value).unwrap_err();
            assert!(problem.contains(expected), "{key}: {problem}");
        }
    }

    #[test]
    fn removing_the_first_key_keeps_the_first_lines() {
        let text = "# first\nmodel = 'a'\nsandbox_mode = 'read-only'\n";
        let removed = edited(text, |editor| editor.remove("model").map(|was_there| assert!(was_there)));
        assert_eq!(removed.unwrap(), "# first\nsandbox_mode = 'read-only'\n");
        let alone = edited(FILE, |editor| editor.remove("model").map(drop)).unwrap();
        assert_eq!(alone, FILE.replace("model = \"a\" # my model\n", ""));
        let absent = edited(text, |editor| editor.remove("limits.x").map(|was_there| assert!(!was_there)));
        assert_eq!(absent.unwrap(), text);
    }

    #[test]
    fn a_broken_file_can_be_mended_but_not_made_worse() {
        let text = "modle = 'x'\n";
        assert_eq!(edited(text, |editor| editor.remove("modle").map(drop)).unwrap(), "");
        assert_eq!(set(text, "model", "y").unwrap(), "modle = 'x'\nmodel = \"y\"\n");
        assert!(set("model = \n", "model", "y").unwrap_err().contains("config.toml:1:"));
    }
}

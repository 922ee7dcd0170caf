//! The existing keys, taken from the schema of [`WindlassConfig`], so that nothing is listed twice.

use schemars::schema_for;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::{WindlassConfig, key::ConfigKey, show::is_secret};
use crate::spelling::nearness;

/// Returns the JSON Schema of the configuration file.
pub(crate) fn schema() -> Json {
    let mut schema = schema_for!(WindlassConfig).to_value();
    drop_null_defaults(&mut schema);
    schema
}

/// Removes defaults of null, which TOML does not have: a key without a default is absent.
fn drop_null_defaults(schema: &mut Json) {
    if let Json::Object(map) = schema {
        map.retain(|key, value| key != "default" || !value.is_null());
        map.values_mut().for_each(drop_null_defaults);
    }
}

/// The schema of all keys.
pub(super) struct KnownKeys {
    schema: Json,
}

/// A fault of a setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SettingFault {
    pub(super) about: SettingPart,
    pub(super) message: String,
}

/// The part of a setting that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SettingPart {
    /// The name at this position of its key.
    Name(usize),
    /// The value.
    Value,
}

impl KnownKeys {
    pub(super) fn new() -> Self {
        Self { schema: schema() }
    }

    /// Checks that a key exists.
    pub(super) fn find(&self, key: &ConfigKey) -> Result<&Json, SettingFault> {
        let mut at = self.resolve(&self.schema);
        for (depth, name) in key.names().iter().enumerate() {
            let Some(table) = TableSchema::from_schema(at) else { return Err(not_a_table(key, depth)) };
            at = match table.child(name) {
                Some(child) => self.resolve(child),
                None => return Err(self.unknown(key, depth)),
            };
        }
        Ok(at)
    }

    /// Checks that a key exists and may have this value.
    pub(super) fn check(&self, key: &ConfigKey, value: &Value) -> Result<(), SettingFault> {
        let at = self.find(key)?;
        let fits = match (TableSchema::from_schema(at), value) {
            (Some(_), Value::Table(_)) => true,
            (Some(_), _) => false,
            (None, _) => WindlassConfig::deserialize(nested(key, value)).is_ok(),
        };
        if fits { Ok(()) } else { Err(wrong_value(key, value, &self.expected(at))) }
    }

    fn unknown(&self, key: &ConfigKey, depth: usize) -> SettingFault {
        let name = &key.names()[depth];
        let table = self.pattern(&key.up_to(depth));
        let near = self.all().into_iter().filter_map(|(other_table, other)| {
            let is_elsewhere = other_table != table;
            // A key of another table counts only if its spelling is very close.
            let is_part = !is_elsewhere && is_word_of(name, &other);
            // Within a table, a word of a key says more than the same key elsewhere.
            let of_part = if depth == 0 { name.len() } else { 0 };
            let letters = nearness(name, &other).or_else(|| is_part.then_some(of_part))?;
            Some((letters + usize::from(is_elsewhere), other_table.child(other)))
        });
        let nearest = near.min_by_key(|(letters, _)| *letters);
        let hint = nearest.map(|(_, key)| format!("; did you mean `{key}`?"));
        let message = format!("unknown key `{}`{}", key.up_to(depth + 1), hint.unwrap_or_default());
        SettingFault { about: SettingPart::Name(depth), message }
    }

    /// Returns every key, as its table and its name.
    pub(super) fn all(&self) -> Vec<(ConfigKey, String)> {
        let mut found = Vec::new();
        let mut tables = vec![(ConfigKey::root(), self.resolve(&self.schema))];
        while let Some((key, schema)) = tables.pop() {
            let Some(shape) = TableSchema::from_schema(schema) else { continue };
            for (name, child) in shape.properties.into_iter().flatten() {
                found.push((key.clone(), name.clone()));
                tables.push((key.child(name), self.resolve(child)));
            }
            tables.extend(shape.any.map(|child| (key.child(ANY), self.resolve(child))));
        }
        found
    }

    /// Returns a key with user-chosen names replaced by a placeholder.
    fn pattern(&self, key: &ConfigKey) -> ConfigKey {
        let mut at = self.resolve(&self.schema);
        let mut pattern = ConfigKey::root();
        for name in key.names() {
            let shape = TableSchema::from_schema(at);
            let free = shape.as_ref().is_some_and(|shape| shape.any.is_some());
            pattern = pattern.child(if free { ANY } else { name });
            at = shape.and_then(|shape| shape.child(name)).map_or(at, |child| self.resolve(child));
        }
        pattern
    }

    /// Follows references, and skips the null of an optional key.
    fn resolve<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let target = schema.get("$ref").and_then(Json::as_str).and_then(|path| path.strip_prefix('#'));
        if let Some(target) = target.and_then(|path| self.schema.pointer(path)) {
            return self.resolve(target);
        }
        let choices = schema.get("anyOf").and_then(Json::as_array);
        let real = choices.and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"));
        real.map_or(schema, |choice| self.resolve(choice))
    }

    /// Describes the expected value.
    fn expected(&self, schema: &Json) -> String {
        let choices = schema.get("oneOf").or(schema.get("enum")).and_then(Json::as_array);
        if let Some(choices) = choices {
            let names = choices.iter().filter_map(|choice| choice.get("const").unwrap_or(choice).as_str());
            return format!(
                "one of {}",
                names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
            );
        }
        let is = |kind: &str| match &schema["type"] {
            Json::Array(kinds) => kinds.iter().any(|each| each == kind),
            one => one == kind,
        };
        let bound = |name: &str| schema.get(name).and_then(Json::as_u64);
        match bound("minimum") {
            _ if is("array") => {
                format!("a list, each entry {}", self.expected(self.resolve(&schema["items"])))
            }
            _ if is("object") => "a table".to_owned(),
            _ if is("boolean") => "true or false".to_owned(),
            Some(least) if is("integer") => match bound("maximum") {
                Some(most) => format!("a whole number from {least} to {most}"),
                None => format!("a whole number, at least {least}"),
            },
            _ if is("integer") => "a whole number".to_owned(),
            _ if is("number") => "a number".to_owned(),
            _ => "text in quotes".to_owned(),
        }
    }
}

/// Stands for a user-chosen name, such as a provider's.
const ANY: &str = "NAME";

/// The schema of a table.
struct TableSchema<'a> {
    /// Its keys.
    properties: Option<&'a Map<String, Json>>,
    /// The schema of any other name.
    any: Option<&'a Json>,
}

impl<'a> TableSchema<'a> {
    /// Returns `None` if this is not a table.
    fn from_schema(schema: &'a Json) -> Option<Self> {
        let properties = schema.get("properties").and_then(Json::as_object);
        let any = schema.get("additionalProperties").filter(|any| any.is_object());
        (properties.is_some() || any.is_some()).then_some(Self { properties, any })
    }

    fn child(&self, name: &str) -> Option<&'a Json> {
        self.properties.and_then(|known| known.get(name)).or(self.any)
    }
}

/// Returns a document with one setting.
pub(super) fn nested(key: &ConfigKey, value: &Value) -> Value {
    let wrap = |inner: Value, name: &String| Value::Table(Table::from_iter([(name.clone(), inner)]));
    key.names().iter().rev().fold(value.clone(), wrap)
}

fn not_a_table(key: &ConfigKey, depth: usize) -> SettingFault {
    let message = format!("`{}` is a single value and has no key `{}`", key.up_to(depth), key.names()[depth]);
    SettingFault { about: SettingPart::Name(depth), message }
}

fn wrong_value(key: &ConfigKey, value: &Value, expected: &str) -> SettingFault {
    /// Maximum length of a value that a message repeats.
    const MAX_SHOWN_CHARS: usize = 60;
    let kind = value.type_str();
    let shown = value.to_string();
    let secret = is_secret(key);
    let found = if secret || shown.chars().count() > MAX_SHOWN_CHARS {
        kind.to_owned()
    } else {
        format!("{kind} {shown}")
    };
    SettingFault { about: SettingPart::Value, message: format!("`{key}` must be {expected}; found {found}") }
}

/// Finds `network` in `network_access`, and `ode` nowhere.
fn is_word_of(name: &str, other: &str) -> bool {
    format!("_{other}_").contains(&format!("_{}_", name.to_lowercase().replace('-', "_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(setting: &str) -> String {
        let (key, value) = setting.split_once('=').unwrap();
        let key = ConfigKey::parse(key).unwrap();
        let value = value.trim().parse().unwrap();
        KnownKeys::new()
            .check(&key, &value)
            .map_or_else(|complaint| complaint.message, |()| "fine".to_owned())
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_nearest_one() {
        for (setting, expected) in [
            ("modle = 1", "unknown key `modle`; did you mean `model`?"),
            ("sandbox-mode = 1", "unknown key `sandbox-mode`; did you mean `sandbox_mode`?"),
            (
                "sandbox_workspace_write.network = true",
                "unknown key `sandbox_workspace_write.network`; did you mean `sandbox_workspace_write.network_access`?",
            ),
            (
                "model_providers.mine.base_ulr = 1",
                "unknown key `model_providers.mine.base_ulr`; did you mean `model_providers.NAME.base_url`?",
            ),
            (
                "mcp_servers.x.comand = 'a'",
                "unknown key `mcp_servers.x.comand`; did you mean `mcp_servers.NAME.command`?",
            ),
            (
                "network_access = true",
                "unknown key `network_access`; did you mean `sandbox_workspace_write.network_access`?",
            ),
            ("base_url = 1", "unknown key `base_url`; did you mean `model_providers.NAME.base_url`?"),
        ] {
            assert_eq!(complaint(setting), expected);
        }
    }

    #[test]
    fn a_wrong_value_is_answered_with_what_is_expected() {
        for (setting, expected) in [
            ("model = 4", "`model` must be text in quotes; found integer 4"),
            (
                "sandbox_mode = 'none'",
                r#"`sandbox_mode` must be one of "read-only", "workspace-write", "danger-full-access", "external-sandbox"; found string "none""#,
            ),
            (
                "model_verbosity = true",
                r#"`model_verbosity` must be one of "low", "medium", "high"; found boolean true"#,
            ),
            (
                "sandbox_workspace_write.network_access = 'yes'",
                r#"`sandbox_workspace_write.network_access` must be true or false; found string "yes""#,
            ),
            ("sandbox_workspace_write = 3", "`sandbox_workspace_write` must be a table; found integer 3"),
            (
                "sandbox_workspace_write.writable_roots = '/a'",
                "`sandbox_workspace_write.writable_roots` must be a list, each entry text in quotes; found string \"/a\"",
            ),
            (
                "turn_token_limit = 0",
                "`turn_token_limit` must be a whole number, at least 1; found integer 0",
            ),
            (
                "model_providers.x.stream_max_retries = -1",
                "`model_providers.x.stream_max_retries` must be a whole number, at least 0; found integer -1",
            ),
            ("model.name = 'x'", "`model` is a single value and has no key `name`"),
        ] {
            assert_eq!(complaint(setting), expected);
        }
    }

    #[test]
    fn what_may_be_a_secret_is_not_repeated() {
        assert_eq!(
            complaint("model_providers.x.experimental_bearer_token = 12345"),
            "`model_providers.x.experimental_bearer_token` must be text in quotes; found integer"
        );
    }

    #[test]
    fn tables_with_names_of_ones_own_take_any_name() {
        assert_eq!(complaint("shell_environment_policy.set.ANYTHING = 'x'"), "fine");
        assert_eq!(complaint("model_providers.x = {}"), "fine");
        assert_eq!(complaint("model_providers.x.http_headers.x-y = 'z'"), "fine");
    }

    #[test]
    fn a_key_that_is_far_from_all_others_gets_no_suggestion() {
        for key in ["foo", "x", "ode", "profile", "projects"] {
            assert_eq!(complaint(&format!("{key} = 1")), format!("unknown key `{key}`"));
        }
        assert_eq!(complaint("plugins.x.command = 'a'"), "unknown key `plugins`");
    }
}

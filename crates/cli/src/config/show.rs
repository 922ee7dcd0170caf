//! What is in effect, for people and programs. Secrets are not shown.

use serde_json::{Map, Value as Json, json};
use toml::Value;
use windlass::clean::is_secret_name;

use super::{
    Loaded,
    key::Key,
    layer::{Origin, Setting, flattened},
};

/// How a configuration is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// TOML, one line for each key.
    Toml,
    /// The same, with a comment that says where the value comes from.
    TomlWithOrigins,
    /// An object with the value and the origin of each key.
    Json,
}

/// Every value in effect, defaults included, sorted by key.
pub(crate) fn show(loaded: &Loaded, format: Format) -> String {
    let mut settings = effective(loaded);
    settings.sort_by(|one, other| one.key.cmp(&other.key));
    match format {
        Format::Toml | Format::TomlWithOrigins => {
            settings.iter().fold(String::new(), |text, setting| text + &line(loaded, setting, format))
        }
        Format::Json => {
            let entry = |setting: &Setting| {
                let origin = loaded.origin(&setting.key).to_string();
                (setting.key.to_string(), json!({"value": setting.value, "origin": origin}))
            };
            let all: Map<String, Json> = settings.iter().map(entry).collect();
            format!("{:#}\n", Json::Object(all))
        }
    }
}

fn effective(loaded: &Loaded) -> Vec<Setting> {
    // A configuration came from TOML, so it can be written as TOML; what could not would be shown as nothing.
    let whole = Value::try_from(&loaded.config).unwrap_or_else(|_| Value::Table(toml::Table::new()));
    let mut settings = flattened(Key::root(), whole, &Origin::Default);
    settings.iter_mut().for_each(hide);
    settings
}

/// One line of TOML. Of the values there are, each is also TOML when written as JSON, and then takes one line only.
fn line(loaded: &Loaded, Setting { key, value, .. }: &Setting, format: Format) -> String {
    let value = json!(value);
    match format {
        Format::TomlWithOrigins => format!("{key} = {value}  # {}\n", loaded.origin(key)),
        Format::Toml | Format::Json => format!("{key} = {value}\n"),
    }
}

fn hide(setting: &mut Setting) {
    if is_secret(&setting.key) {
        setting.value = Value::from(HIDDEN);
    } else if let Some(url) = setting.value.as_str().and_then(without_password) {
        setting.value = Value::from(url);
    }
}

const HIDDEN: &str = "<hidden>";

/// A URL that holds a password, without it.
fn without_password(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (_, host) = authority.rsplit_once('@')?;
    Some(format!("{scheme}://{HIDDEN}@{host}{path}"))
}

/// Whether a value is not for everyone's eyes: keys of providers, whatever is sent along with requests, and variables
/// for programs that are called like a secret.
pub(super) fn is_secret(key: &Key) -> bool {
    let names: Vec<_> = key.names().iter().map(String::as_str).collect();
    match names[..] {
        ["model_providers", _, "experimental_bearer_token" | "http_headers" | "query_params", ..] => true,
        ["shell_environment_policy", "set", name] => is_secret_name(name),
        _ => false,
    }
}

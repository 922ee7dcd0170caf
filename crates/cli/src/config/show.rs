//! Prints the configuration in effect, for people and programs. Secrets are not shown.

use serde_json::{Map, Value as Json, json};
use toml::Value;
use windlass::clean::is_secret_name;

use super::{
    LoadedConfig,
    editor::{parse_key, problem},
    key::ConfigKey,
    known::KnownKeys,
    layer::{ConfigSetting, SettingOrigin, flattened},
    problem::ConfigError,
};
use crate::screen::visible;

/// The output format of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFormat {
    /// TOML, one line for each key.
    Toml,
    /// The same, with a comment that names the source of the value.
    TomlWithOrigins,
    /// An object with the value and the origin of each key.
    Json,
}

/// Formats every value in effect, defaults included, sorted by key.
pub(crate) fn show(loaded: &LoadedConfig, format: ConfigFormat) -> String {
    let mut settings = effective(loaded);
    settings.sort_by(|one, other| one.key.cmp(&other.key));
    match format {
        ConfigFormat::Toml | ConfigFormat::TomlWithOrigins => {
            settings.iter().fold(String::new(), |text, setting| text + &line(loaded, setting, format))
        }
        ConfigFormat::Json => {
            let entry = |setting: &ConfigSetting| {
                let origin = loaded.origin(&setting.key).to_string();
                (setting.key.to_string(), json!({"value": setting.value, "origin": origin}))
            };
            let all: Map<String, Json> = settings.iter().map(entry).collect();
            format!("{:#}\n", Json::Object(all))
        }
    }
}

/// Formats the value of one key, or of all keys of a table. Text is printed without quotes, unless
/// it is in a table. Returns `None` if nothing is set.
pub(crate) fn show_key(
    loaded: &LoadedConfig,
    name: &str,
    format: ConfigFormat,
) -> Result<Option<String>, ConfigError> {
    let key = parse_key(name)?;
    KnownKeys::new().find(&key).map_err(|fault| problem(String::new(), fault.message))?;
    let mut settings = effective(loaded);
    settings.retain(|setting| setting.key.names().starts_with(key.names()));
    settings.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(match &settings[..] {
        [] => None,
        [setting] if setting.key == key => {
            let value = setting.value.as_str().map_or_else(|| json!(setting.value).to_string(), visible);
            let origin = match format {
                ConfigFormat::TomlWithOrigins => format!("  # {}", loaded.origin(&key)),
                ConfigFormat::Toml | ConfigFormat::Json => String::new(),
            };
            Some(format!("{value}{origin}\n"))
        }
        several => Some(several.iter().map(|setting| line(loaded, setting, format)).collect()),
    })
}

fn effective(loaded: &LoadedConfig) -> Vec<ConfigSetting> {
    // A configuration came from TOML, so it can be written as TOML.
    let whole = Value::try_from(&loaded.config).unwrap_or_else(|_| Value::Table(toml::Table::new()));
    let mut settings = flattened(ConfigKey::root(), whole, &SettingOrigin::Default);
    settings.iter_mut().for_each(hide);
    settings
}

/// Formats one line of TOML. Every value here is valid TOML when written as JSON, and then takes
/// only one line.
fn line(
    loaded: &LoadedConfig,
    ConfigSetting { key, value, .. }: &ConfigSetting,
    format: ConfigFormat,
) -> String {
    let value = json!(value);
    match format {
        ConfigFormat::TomlWithOrigins => format!("{key} = {value}  # {}\n", loaded.origin(key)),
        ConfigFormat::Toml | ConfigFormat::Json => format!("{key} = {value}\n"),
    }
}

fn hide(setting: &mut ConfigSetting) {
    if is_secret(&setting.key) {
        setting.value = Value::from(HIDDEN);
    } else if let Some(url) = setting.value.as_str().and_then(without_password) {
        setting.value = Value::from(url);
    }
}

const HIDDEN: &str = "<hidden>";

/// Returns a URL without its password, if it has one.
fn without_password(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (_, host) = authority.rsplit_once('@')?;
    Some(format!("{scheme}://{HIDDEN}@{host}{path}"))
}

/// Returns true if a value must not be shown: keys of providers, data sent along with requests, and
/// variables for programs with the name of a secret.
pub(super) fn is_secret(key: &ConfigKey) -> bool {
    let names: Vec<_> = key.names().iter().map(String::as_str).collect();
    match names[..] {
        ["model_providers", _, "experimental_bearer_token" | "http_headers" | "query_params", ..]
        | ["mcp_servers", _, "http_headers", ..] => true,
        ["shell_environment_policy", "set", name] | ["mcp_servers", _, "env", name] => is_secret_name(name),
        _ => false,
    }
}

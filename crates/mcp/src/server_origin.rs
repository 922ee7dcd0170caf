//! The program or address behind a server: shown to people, compared with pins, and checked for
//! packages without a version.

use ring::digest::{SHA256, digest};
use serde_json::json;
use windlass_contract::{secret_names::is_secret_name, wording::shell_quote};

use crate::{catalogue::hex, config::McpServerConfig, untrusted_text::visible_line};

/// Replacement for a value that may be a secret.
const HIDDEN: &str = "***";
/// Maximum size of the shown form.
const MAX_SHOWN_BYTES: usize = 2000;

/// Returns the hash of the command line or address of a server, with its working directory.
pub(crate) fn origin_hash(config: &McpServerConfig) -> String {
    let McpServerConfig { command, args, cwd, url, unix_socket, .. } = config;
    let described = json!([command, args, cwd, url, unix_socket]);
    hex(digest(&SHA256, described.to_string().as_bytes()).as_ref())
}

/// Returns the command line or address of a server as one line, without values of options that
/// hold secrets.
pub(crate) fn shown_origin(config: &McpServerConfig) -> String {
    let mut line = match (&config.command, &config.url) {
        (Some(command), _) => {
            let words = std::iter::once(command.clone()).chain(shown_arguments(&config.args));
            words.map(|word| shell_quote(&word)).collect::<Vec<_>>().join(" ")
        }
        (None, Some(url)) => shown_address(url),
        (None, None) => String::new(),
    };
    if let Some(socket) = &config.unix_socket {
        line = format!("{line} (through {})", socket.display());
    }
    if let Some(directory) = &config.cwd {
        line = format!("{line} (in {})", directory.display());
    }
    visible_line(&line, MAX_SHOWN_BYTES)
}

/// Returns arguments with the values of secret options hidden: `--token X`, `--token=X`,
/// `API_KEY=X`, `Authorization: X`, and passwords in addresses.
pub(crate) fn shown_arguments(args: &[String]) -> Vec<String> {
    let mut is_value = false;
    let shown = args.iter().map(|arg| {
        let hides = std::mem::take(&mut is_value) && !arg.starts_with('-');
        if hides {
            return HIDDEN.to_owned();
        }
        match (arg.split_once('='), arg.split_once(':')) {
            (_, Some((name, _))) if is_secret_header(name) => format!("{name}: {HIDDEN}"),
            (Some((name, _)), _) if !name.contains("://") && is_secret_name(name) => {
                format!("{name}={HIDDEN}")
            }
            (with_value, _) => {
                is_value = with_value.is_none() && arg.starts_with('-') && is_secret_name(arg);
                shown_address(arg)
            }
        }
    });
    shown.collect()
}

/// Returns true for the names of HTTP headers that identify a person or program, also after
/// `--header=`.
fn is_secret_header(name: &str) -> bool {
    let name = name.rsplit_once('=').map_or(name, |(_, name)| name).to_ascii_lowercase();
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_name && (is_secret_name(&name) || matches!(name.as_str(), "authorization" | "cookie"))
}

/// Hides the user information and the query of an address. Any other text stays as it is.
fn shown_address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (address, has_query) = match rest.split_once('?') {
        Some((address, _)) => (address, true),
        None => (rest, false),
    };
    let (authority, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => authority.to_owned(),
    };
    let query = if has_query { format!("?{HIDDEN}") } else { String::new() };
    format!("{scheme}://{authority}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: serde_json::Value) -> McpServerConfig {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn secrets_in_a_command_line_are_hidden() {
        let server = config(json!({
            "command": "srv",
            "args": ["--token", "s1", "--api-key=s2", "DB_PASS=s3", "postgres://u:s4@db/x?key=s5", "--verbose", "a b",
                "--header", "Authorization: Bearer s7", "--header=X-Api-Key: s8"],
            "cwd": "/work",
        }));
        assert_eq!(
            shown_origin(&server),
            "srv --token '***' '--api-key=***' 'DB_PASS=***' 'postgres://***@db/x?***' --verbose 'a b' \
             --header 'Authorization: ***' '--header=X-Api-Key: ***' (in /work)"
        );
        let remote = config(json!({"url": "https://h.example/mcp?token=s6", "unix_socket": "/run/s"}));
        assert_eq!(shown_origin(&remote), "https://h.example/mcp?*** (through /run/s)");
    }

    #[test]
    fn every_part_of_the_command_line_counts() {
        let servers = [
            json!({"command": "a"}),
            json!({"command": "a", "args": ["b"]}),
            json!({"command": "a", "args": ["b", ""]}),
            json!({"command": "a b"}),
            json!({"command": "a", "cwd": "/b"}),
            json!({"url": "a"}),
            json!({"url": "a", "unix_socket": "/b"}),
        ];
        let hashes: std::collections::BTreeSet<_> =
            servers.iter().map(|server| origin_hash(&config(server.clone()))).collect();
        assert_eq!(hashes.len(), servers.len());
        let more = config(json!({"command": "a", "env": {"A": "b"}, "tool_timeout_sec": 5.0}));
        assert!(hashes.contains(&origin_hash(&more)), "other settings do not count");
    }
}

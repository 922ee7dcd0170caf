//! The servers that are configured, each with its source.

use std::collections::BTreeMap;

use windlass::mcp::config::McpServerConfig;

use crate::{
    config::ConfigKey, problem::CliProblem, screen::visible, setup::ProgramSetup, spelling::did_you_mean,
};

/// All servers, by name.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredServers {
    pub(crate) servers: BTreeMap<String, ConfiguredServer>,
}

/// A server and the place that configures it.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredServer {
    pub(crate) config: McpServerConfig,
    /// The file and the line, or the option.
    pub(crate) source: String,
}

impl ConfiguredServers {
    /// Returns the servers of the user.
    pub(crate) fn of(setup: &ProgramSetup) -> Self {
        let server = |(name, config): (&String, &McpServerConfig)| {
            let key = ConfigKey::from(["mcp_servers", name]);
            let source = setup.loaded.first_origin(&key).to_string();
            (name.clone(), ConfiguredServer { config: config.clone(), source })
        };
        Self { servers: setup.config().mcp_servers.iter().map(server).collect() }
    }

    /// Returns a server by its name.
    pub(crate) fn get(&self, name: &str) -> Result<&ConfiguredServer, CliProblem> {
        self.servers.get(name).ok_or_else(|| self.unknown(name))
    }

    /// Describes a name that no server has.
    pub(crate) fn unknown(&self, name: &str) -> CliProblem {
        let hint = did_you_mean(name, self.servers.keys().map(String::as_str));
        let hint = hint.unwrap_or_else(|| "`windlass mcp list` lists them".to_owned());
        CliProblem::usage(format!("there is no MCP server `{}`; {hint}", visible(name)))
    }
}

impl ConfiguredServer {
    /// Returns the kind of its transport.
    pub(crate) fn transport(&self) -> &'static str {
        match (&self.config.command, &self.config.unix_socket) {
            (Some(_), _) => "stdio",
            (None, Some(_)) => "unix",
            (None, None) => "http",
        }
    }

    /// Returns the command line or the address.
    pub(crate) fn target(&self) -> String {
        match (&self.config.command, &self.config.url) {
            (Some(command), _) => {
                let words = std::iter::once(command).chain(&self.config.args);
                words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            (None, url) => url.clone().unwrap_or_default(),
        }
    }
}

/// Returns a word as it is typed into a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_shown_as_it_is_typed() {
        let config = McpServerConfig {
            command: Some("npx".to_owned()),
            args: ["-y", "a b", "it's", ""].map(str::to_owned).to_vec(),
            ..McpServerConfig::default()
        };
        let server = ConfiguredServer { config, source: String::new() };
        assert_eq!(server.target(), r"npx -y 'a b' 'it'\''s' ''");
    }
}

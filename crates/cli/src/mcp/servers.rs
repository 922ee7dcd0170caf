//! The servers that are configured, each with its source.

use std::collections::BTreeMap;

use windlass::mcp::{ServerSandbox, config::McpServerConfig};

use crate::{
    config::ConfigKey,
    policy,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    spelling::did_you_mean,
    trust::{ProjectConfiguration, ProjectTrust, TrustStore},
};

/// All servers, by name.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredServers {
    pub(crate) servers: BTreeMap<String, ConfiguredServer>,
    /// Servers of the project that are not used, because nobody trusts it.
    pub(crate) untrusted: BTreeMap<String, ConfiguredServer>,
    /// Messages for the user: parts of the project's configuration that are not used.
    pub(crate) notes: Vec<String>,
}

/// The use of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerUse {
    Enabled,
    Disabled,
    /// It is configured by a project that nobody trusts.
    Untrusted,
}

/// A server and the place that configures it.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredServer {
    pub(crate) config: McpServerConfig,
    /// The file and the line, or the option.
    pub(crate) source: String,
}

impl ConfiguredServers {
    /// Returns the servers of the user, and those of the project if the user trusts it. A server of
    /// the user wins over one of the same name in the project.
    pub(crate) fn of(setup: &ProgramSetup) -> Self {
        let mut all = Self::of_project(setup);
        for (name, config) in &setup.config().mcp_servers {
            let key = ConfigKey::from(["mcp_servers", name]);
            let source = setup.loaded.first_origin(&key).to_string();
            all.untrusted.remove(name);
            all.servers.insert(name.clone(), ConfiguredServer { config: config.clone(), source });
        }
        all
    }

    fn of_project(setup: &ProgramSetup) -> Self {
        let unused = |note: String| Self { notes: vec![note], ..Self::default() };
        let root = policy::project_root(&setup.cwd);
        let project = match ProjectConfiguration::read(root) {
            Ok(None) => return Self::default(),
            Ok(Some(project)) => project,
            Err(fault) => return unused(format!("ignored {fault}")),
        };
        let state = match TrustStore::new(&setup.home).state(&project) {
            Ok(state) => state,
            Err(error) => return unused(error.to_string()),
        };
        let (file, names) = (visible_path(&project.path), names(&project.servers));
        let why = match state {
            ProjectTrust::Trusted => {
                let (servers, notes) = project.expanded(&|name| std::env::var(name).ok());
                return Self { servers, notes, untrusted: BTreeMap::new() };
            }
            // The user knows.
            ProjectTrust::Declined => None,
            ProjectTrust::Unknown => Some("is not trusted"),
            ProjectTrust::Changed => Some("has changed since it was decided about"),
        };
        let note = |why| {
            let root = visible_path(&project.root);
            format!(
                "ignored the MCP servers of {file} ({names}): it {why}; `windlass trust {root}` allows them"
            )
        };
        Self {
            notes: why.filter(|_| !project.servers.is_empty()).map(note).into_iter().collect(),
            untrusted: project.servers,
            servers: BTreeMap::new(),
        }
    }

    /// Returns every server with its use.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &ConfiguredServer, ServerUse)> {
        let of_server = |server: &ConfiguredServer| {
            if server.config.is_enabled() { ServerUse::Enabled } else { ServerUse::Disabled }
        };
        let used = self.servers.iter().map(move |(name, server)| (name.as_str(), server, of_server(server)));
        used.chain(self.untrusted.iter().map(|(name, server)| (name.as_str(), server, ServerUse::Untrusted)))
    }

    /// Returns a server that may be started.
    pub(crate) fn usable(&self, name: &str) -> Result<&ConfiguredServer, CliProblem> {
        if self.untrusted.contains_key(name) {
            let message = format!("the project of `{}` is not trusted; see `windlass trust`", visible(name));
            return Err(CliProblem::usage(message));
        }
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

    /// Describes the confinement.
    pub(crate) fn confinement(&self) -> String {
        if self.config.command.is_none() {
            return "another program, reached through its address".to_owned();
        }
        let profile = self.config.profile();
        let network = if profile.network { "with network" } else { "without network" };
        match profile.sandbox {
            ServerSandbox::None => "a program without a sandbox".to_owned(),
            ServerSandbox::ReadOnly => format!("a program in the sandbox `read-only`, {network}"),
            ServerSandbox::WorkspaceWrite => format!("a program in the sandbox `workspace-write`, {network}"),
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

fn names(servers: &BTreeMap<String, ConfiguredServer>) -> String {
    servers.keys().map(|name| visible(name)).collect::<Vec<_>>().join(", ")
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

//! Finds servers whose command line runs the newest version of a package at each start.
//!
//! Such a server can become another program from one start to the next, without a change of its
//! command line or of its tools.

use serde::Serialize;
use serde_json::json;

use crate::{config::McpServerConfig, listing::ServerListing, server_origin::shown_arguments};

mod command_line;
mod package;

use self::{command_line::PackageRequest, package::PackageSpec};

/// A command line that does not say which version it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpinnedRunner {
    /// The package or image, as the command line names it.
    pub package: String,
    /// The same with a version. If the version is not known, it has the placeholder `VERSION`.
    pub pinned: String,
    /// The line of the configuration to use, without secrets.
    pub line: String,
    /// A command that prints the version to use, if the line has a placeholder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_command: Option<String>,
}

impl UnpinnedRunner {
    /// Checks the command line of a server. The listing tells the version that runs now, if the
    /// server is called like the package.
    pub fn find(config: &McpServerConfig, listing: Option<&ServerListing>) -> Option<Self> {
        let request = PackageRequest::parse(config.command.as_deref()?, &config.args)?;
        let package = config.args.get(request.argument)?;
        let (option, text) = package.split_at(request.offset);
        let spec = PackageSpec::parse(request.registry, text)?;
        if spec.is_pinned() {
            return None;
        }
        let version = listing.and_then(|listing| spec.version_of(listing));
        let pinned = spec.pinned(version.as_deref().unwrap_or(spec.placeholder()));
        let mut args = shown_arguments(&config.args);
        args[request.argument] = format!("{option}{pinned}");
        let version_command = if version.is_none() { spec.version_command() } else { None };
        Some(Self {
            package: text.to_owned(),
            pinned,
            line: format!("args = {}", json!(args)),
            version_command,
        })
    }

    /// Returns the warning as one line.
    pub fn warning(&self, server: &str) -> String {
        let Self { package, line, version_command, .. } = self;
        let version = version_command.iter().map(|command| format!(" (`{command}` prints the version)"));
        format!(
            "MCP server `{server}` runs whichever version of `{package}` is the newest when it starts; pin it with \
             `{line}`{}",
            version.collect::<String>()
        )
    }
}

#[cfg(test)]
mod tests;

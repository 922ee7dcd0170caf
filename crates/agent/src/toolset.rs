//! Which built-in tools a session has, and which of them the model is told about.

use std::path::PathBuf;

use windlass_contract::WebSearch;
use windlass_runtime::RegistryBuilder;

use crate::ShellKind;

/// The choice of built-in tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// The shell tool on offer.
    pub shell: ShellKind,
    /// The program that runs a `shell_command`.
    pub shell_program: PathBuf,
    /// Whether the model's server may search the web.
    pub web_search: Option<WebSearch>,
}

impl Default for Toolset {
    fn default() -> Self {
        Self { shell: ShellKind::ShellCommand, shell_program: "/bin/sh".into(), web_search: None }
    }
}

impl Toolset {
    /// Adds the tools in the order models of this family expect. What is not on offer stays callable, except that no
    /// shell means no shell under any name.
    pub(crate) fn register(&self, mut registry: RegistryBuilder) -> RegistryBuilder {
        for tool in windlass_tools::builtin(&self.shell_program, self.web_search) {
            let name = tool.name();
            registry = match (name.as_str(), self.shell) {
                (
                    "shell" | "shell_command" | "local_shell" | "exec_command" | "write_stdin",
                    ShellKind::Disabled,
                ) => registry,
                ("shell", ShellKind::Shell)
                | ("shell_command", ShellKind::ShellCommand)
                | ("local_shell", ShellKind::LocalShell)
                | ("exec_command" | "write_stdin", ShellKind::UnifiedExec) => registry.tool(tool),
                (
                    "shell" | "shell_command" | "local_shell" | "exec_command" | "write_stdin"
                    | "test_sync_tool",
                    _,
                ) => registry.hidden(tool),
                _ => registry.tool(tool),
            };
        }
        registry
    }
}

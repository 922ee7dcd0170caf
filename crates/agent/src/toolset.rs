//! The built-in tools of a session, and their exposure to the model.

use std::{collections::BTreeSet, path::PathBuf};

use windlass_contract::spec::WebSearch;
use windlass_runtime::RegistryBuilder;
use windlass_tools::{CommandSessions, Needs, OutputPlace, PatchForm, UserInput, builtin};

use crate::{EditTools, FileTools, ShellKind, described_tools::PolicyTraits};

/// The parts of a session that built-in tools need.
#[derive(Clone, Copy)]
pub(crate) struct ToolsetParts<'a> {
    /// The directory of long outputs, if they are kept.
    pub(crate) outputs: Option<&'a OutputPlace>,
    /// The commands that run across calls.
    pub(crate) sessions: &'a CommandSessions,
    /// The way to the person.
    pub(crate) user_input: &'a UserInput,
    /// The policy, for the descriptions.
    pub(crate) traits: PolicyTraits,
}

/// The choice of built-in tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolset {
    /// The shell tool on offer.
    pub shell: ShellKind,
    /// The program that runs a `shell_command`.
    pub shell_program: PathBuf,
    /// The tools that read files.
    pub files: FileTools,
    /// Offers images to the model.
    pub shows_images: bool,
    /// The tools for changing files on offer.
    pub edits: EditTools,
    /// Lets the model's server search the web.
    pub web_search: Option<WebSearch>,
    /// Built-in tools that are turned off, by name. By default the one for tests of parallelism.
    pub disabled: BTreeSet<&'static str>,
}

impl Default for Toolset {
    fn default() -> Self {
        Self {
            shell: ShellKind::ShellCommand,
            shell_program: "/bin/sh".into(),
            files: FileTools::Offered,
            shows_images: true,
            edits: EditTools::Strings,
            web_search: None,
            disabled: BTreeSet::from(["test_sync_tool"]),
        }
    }
}

impl Toolset {
    /// Adds the tools in the order that models of this family expect. Tools that are not offered
    /// can still be called, unless the shell or the file tools are disabled.
    pub(crate) fn register(&self, mut registry: RegistryBuilder, parts: ToolsetParts<'_>) -> RegistryBuilder {
        let ToolsetParts { outputs, sessions, user_input, traits } = parts;
        let patch = match self.edits {
            EditTools::FreeformPatch => PatchForm::Freeform,
            EditTools::Patch | EditTools::Strings | EditTools::Disabled => PatchForm::Function,
        };
        let strings = self.edits == EditTools::Strings;
        let (shell, search) = (&*self.shell_program, self.web_search);
        let shows_images = self.shows_images;
        let needs = Needs { shell, patch, search, shows_images, outputs, sessions, user_input };
        for tool in builtin(&needs) {
            let name = tool.name();
            if self.disabled.contains(name.as_str()) {
                continue;
            }
            let tool = traits.describe(tool);
            if let "read_file" | "grep_files" | "list_dir" | "view_image" = name.as_str() {
                registry = match self.reads_files_with(name.as_str()) {
                    FileTools::Offered => registry.tool(tool),
                    FileTools::Callable => registry.hidden(tool),
                    FileTools::Disabled => registry,
                };
                continue;
            }
            registry = match (name.as_str(), self.shell) {
                (
                    "shell" | "shell_command" | "local_shell" | "exec_command" | "write_stdin" | "run_tests"
                    | "run_command",
                    ShellKind::Disabled,
                ) => registry,
                ("run_command", _) => registry.fallback(tool),
                // It runs commands and reads files; a model that was trained on a shell alone needs
                // neither.
                ("run_tests", _) => match self.files {
                    FileTools::Offered => registry.tool(tool),
                    FileTools::Callable => registry.hidden(tool),
                    FileTools::Disabled => registry,
                },
                ("shell", ShellKind::Shell)
                | ("shell_command", ShellKind::ShellCommand)
                | ("local_shell", ShellKind::LocalShell)
                | ("exec_command" | "write_stdin", ShellKind::UnifiedExec) => registry.tool(tool),
                (
                    "shell" | "shell_command" | "local_shell" | "exec_command" | "write_stdin"
                    | "test_sync_tool",
                    _,
                ) => registry.hidden(tool),
                ("apply_patch" | "edit_file" | "write_file", _) if self.edits == EditTools::Disabled => {
                    registry
                }
                // Calls of it are refused with a reason.
                ("request_user_input", _) if user_input.elicitor.is_none() => registry.hidden(tool),
                ("apply_patch", _) if strings => registry.hidden(tool),
                ("edit_file" | "write_file", _) if !strings => registry.hidden(tool),
                _ => registry.tool(tool),
            };
        }
        registry
    }

    /// Returns the tools for a preview: only those that run commands which end, since others do not
    /// use its layer.
    pub(crate) fn for_preview(self) -> Self {
        let shell = match self.shell {
            ShellKind::UnifiedExec | ShellKind::LocalShell => ShellKind::ShellCommand,
            other => other,
        };
        Self { shell, files: FileTools::Disabled, edits: EditTools::Disabled, ..self }
    }

    /// Returns the tools for a wire protocol, with a warning if it does not support a choice. Only
    /// the Responses API has tools without a schema.
    pub fn for_wire(self, wire: &str) -> (Self, Option<String>) {
        let has_hosted_tools = matches!(wire, "responses" | "scripted");
        if has_hosted_tools || self.shell != ShellKind::LocalShell {
            return (self, None);
        }
        let warning = format!(
            "the tool `local_shell` exists only with `wire_api = \"responses\"`, and this model is reached by \
             `{wire}`; it is offered `shell_command` instead"
        );
        (Self { shell: ShellKind::ShellCommand, ..self }, Some(warning))
    }

    /// Returns the exposure of a file tool. A shell cannot show images, so `view_image` is offered
    /// to every model that supports them.
    fn reads_files_with(&self, tool: &str) -> FileTools {
        match (tool, self.files) {
            ("view_image", FileTools::Offered | FileTools::Callable) if self.shows_images => {
                FileTools::Offered
            }
            ("view_image", FileTools::Offered) => FileTools::Callable,
            (_, files) => files,
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_runtime::{Policy, Registry};

    use super::*;

    fn names(toolset: &Toolset) -> Vec<String> {
        let traits = PolicyTraits::new(&Policy::default(), false);
        let (sessions, user_input) = (&CommandSessions::default(), &UserInput::default());
        let parts = ToolsetParts { outputs: None, sessions, user_input, traits };
        let registry = toolset.register(Registry::builder(), parts).build().unwrap();
        registry.specs().iter().map(|spec| spec.name.to_string()).collect()
    }

    #[test]
    fn what_is_disabled_is_not_there() {
        let all = names(&Toolset::default());
        assert!(
            ["update_plan", "view_image", "write_file"]
                .iter()
                .all(|name| all.iter().any(|each| each == name))
        );
        let disabled = BTreeSet::from(["update_plan", "view_image"]);
        let some = names(&Toolset { disabled, ..Toolset::default() });
        assert_eq!(some.len() + 2, all.len());
        assert!(!some.iter().any(|name| name == "update_plan" || name == "view_image"), "{some:?}");
    }

    #[test]
    fn a_shell_the_wire_does_not_have_is_replaced_and_told() {
        let local = || Toolset { shell: ShellKind::LocalShell, ..Toolset::default() };
        let (toolset, warning) = local().for_wire("chat");
        assert_eq!(toolset.shell, ShellKind::ShellCommand);
        assert!(
            warning.is_some_and(|warning| warning.contains("`local_shell`") && warning.contains("`chat`"))
        );
        assert_eq!(local().for_wire("responses"), (local(), None));
        assert_eq!(Toolset::default().for_wire("chat"), (Toolset::default(), None));
    }
}

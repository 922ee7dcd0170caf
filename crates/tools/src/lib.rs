//! The built-in tools, one file each. A new one is a `mod` line and a line in [`builtin`].
//!
//! ```
//! use windlass_tools::{CommandSessions, Needs, PatchForm, UserInput, builtin};
//!
//! let (shell, patch) = ("/bin/bash".as_ref(), PatchForm::Freeform);
//! let (sessions, user_input) = (&CommandSessions::default(), &UserInput::default());
//! let (search, outputs) = (None, None);
//! let needs = Needs { shell, patch, search, shows_images: false, outputs, sessions, user_input };
//! let names: Vec<String> = builtin(&needs).iter().map(|tool| tool.name().to_string()).collect();
//! assert_eq!(names[..3], ["shell", "local_shell", "shell_command"]);
//! ```

mod apply_patch;
mod change;
mod command;
mod edit_file;
mod exec_command;
#[cfg(test)]
mod fakes;
mod file_error;
mod grep_files;
mod list_dir;
mod local_shell;
mod picture;
mod program;
mod read_file;
mod read_output;
mod request_user_input;
mod run_command;
mod run_tests;
mod sessions;
mod shell;
mod shell_command;
mod test_sync_tool;
mod update_plan;
mod view_image;
mod web_search;
mod write_file;
mod write_stdin;

use std::{path::Path, sync::Arc};

use windlass_contract::{AnyTool, erase, spec::WebSearch};

pub use apply_patch::PatchForm;
pub use change::diff::TurnDiff;
pub use picture::image_url;
pub use program::program;
pub use read_output::OutputPlace;
pub use request_user_input::UserInput;
pub use sessions::running::{CommandSessions, RunningCommand};

/// Settings of the built-in tools.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// Shell for the lines given to `shell_command`.
    pub shell: &'a Path,
    /// Form in which `apply_patch` is offered.
    pub patch: PatchForm,
    /// Search that the model's server is offered.
    pub search: Option<WebSearch>,
    /// True if the model can be shown images.
    pub shows_images: bool,
    /// Directory of long outputs, if they are kept.
    pub outputs: Option<&'a OutputPlace>,
    /// Commands that run across calls.
    pub sessions: &'a CommandSessions,
    /// The way to the person.
    pub user_input: &'a UserInput,
}

/// Returns all built-in tools, in the order in which models of this family list them.
pub fn builtin(needs: &Needs<'_>) -> Vec<Arc<dyn AnyTool>> {
    let Needs { shell, patch, search, shows_images, outputs, sessions, user_input } = *needs;
    let sessions = sessions.table();
    let tools = [
        Some(erase(shell::ShellProgram)),
        Some(local_shell::local_shell()),
        Some(erase(shell_command::ShellCommand::new(shell))),
        Some(erase(exec_command::ExecCommand::new(shell, sessions))),
        Some(erase(write_stdin::WriteStdin::new(sessions))),
        Some(erase(update_plan::UpdatePlan)),
        Some(apply_patch::apply_patch(patch)),
        Some(erase(edit_file::EditFile)),
        Some(erase(write_file::WriteFile)),
        Some(erase(grep_files::GrepFiles)),
        Some(erase(read_file::ReadFile { shows_images })),
        Some(erase(list_dir::ListDir)),
        Some(erase(test_sync_tool::TestSync::default())),
        search.map(web_search::web_search),
        Some(erase(view_image::ViewImage { shows_images })),
        Some(run_tests::run_tests()),
        outputs.map(|place| erase(read_output::ReadOutput { place: Arc::clone(place) })),
        Some(erase(run_command::RunCommand::new(shell))),
        Some(erase(request_user_input::RequestUserInput(user_input.clone()))),
    ];
    tools.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Input,
        meta::{AliasMeaning, Category, Format},
        spec::SpecKind,
    };

    use super::*;

    fn with(search: Option<WebSearch>) -> Vec<Arc<dyn AnyTool>> {
        let (shell, patch, outputs) = (Path::new("/bin/sh"), PatchForm::Function, OutputPlace::default());
        let (outputs, sessions) = (Some(&outputs), &CommandSessions::default());
        let user_input = &UserInput::default();
        builtin(&Needs { shell, patch, search, shows_images: true, outputs, sessions, user_input })
    }

    fn all() -> Vec<Arc<dyn AnyTool>> {
        with(Some(WebSearch::Live))
    }

    #[test]
    fn the_order_never_changes_because_prompts_are_cached() {
        let names: Vec<_> = all().iter().map(|tool| tool.name().to_string()).collect();
        assert_eq!(
            names,
            [
                "shell",
                "local_shell",
                "shell_command",
                "exec_command",
                "write_stdin",
                "update_plan",
                "apply_patch",
                "edit_file",
                "write_file",
                "grep_files",
                "read_file",
                "list_dir",
                "test_sync_tool",
                "web_search",
                "view_image",
                "run_tests",
                "read_output",
                "run_command",
                "request_user_input"
            ]
        );
        let without = with(None);
        assert!(without.iter().all(|tool| tool.name().as_str() != "web_search"));
    }

    #[test]
    fn every_tool_says_what_it_is_for_and_its_examples_work() {
        for tool in all() {
            let (name, meta, spec) = (tool.name(), tool.meta(), tool.spec().unwrap());
            assert!(!spec.description.is_empty(), "{name} has no description");
            assert!(meta.category != Category::Other && !meta.returns.is_empty(), "{name} says too little");
            assert!(
                !meta.examples.is_empty() || matches!(spec.kind, SpecKind::WebSearch(_)),
                "{name}: no example"
            );
            for example in meta.examples {
                let input = Input::Json(example.input.to_owned());
                assert!(Arc::clone(&tool).prepare(&input).is_ok(), "{name}: {}", example.input);
                if let SpecKind::Function { parameters } = &spec.kind {
                    let value = serde_json::from_str(example.input).unwrap();
                    assert_eq!(parameters.check(&value), Vec::<String>::new(), "{name}");
                }
            }
        }
    }

    #[test]
    fn every_tool_says_in_both_languages_what_it_is_asked_for_with() {
        for tool in all().iter().filter(|tool| tool.meta().category != Category::Testing) {
            let requests = tool.meta().requests;
            let chinese = requests.iter().filter(|request| !request.is_ascii()).count();
            let english = requests.len() - chinese;
            assert!(english >= 3 && chinese >= 3 && requests.len() >= 6, "{}: {requests:?}", tool.name());
        }
    }

    #[test]
    fn commands_and_edits_may_change_something_and_only_commands_have_a_form_of_their_own() {
        for tool in all() {
            let (name, meta) = (tool.name(), tool.meta());
            let expected = match name.as_str() {
                "shell" | "local_shell" => (Category::Execution, Format::Structured, false),
                "shell_command" | "run_command" => (Category::Execution, Format::Freeform, false),
                "exec_command" | "write_stdin" => (Category::Execution, Format::Session, false),
                "run_tests" => (Category::Execution, Format::Tests, false),
                "update_plan" | "request_user_input" => (Category::Planning, Format::Plain, false),
                "apply_patch" | "edit_file" | "write_file" => (Category::Files, Format::Plain, true),
                "web_search" => (Category::Web, Format::Plain, false),
                "grep_files" | "read_file" | "list_dir" | "view_image" | "read_output" => {
                    (Category::Files, Format::Plain, true)
                }
                _ => (Category::Testing, Format::Plain, true),
            };
            assert_eq!((meta.category, meta.format, meta.parallel), expected, "{name}");
            for example in meta.examples {
                let ready = Arc::clone(&tool).prepare(&Input::Json(example.input.to_owned())).unwrap();
                // The effects of typed input depend on its session; those of tests depend on the
                // project.
                let edits = ["apply_patch", "edit_file", "write_file"].contains(&name.as_str());
                let later = ["write_stdin", "run_tests"].contains(&name.as_str());
                let acts = edits || meta.category == Category::Execution && !later;
                assert_eq!(ready.effects().may_change(), acts, "{name}");
            }
        }
    }

    #[test]
    fn old_names_are_answered_to() {
        let tools = all();
        let aliases: Vec<_> = tools.iter().flat_map(|tool| tool.meta().aliases).collect();
        for name in
            ["container.exec", "applypatch", "Bash", "Read", "Edit", "Write", "Grep", "LS", "search_code"]
        {
            assert!(aliases.contains(&name), "{name}");
        }
        let names: Vec<_> = tools.iter().map(|tool| tool.name().to_string()).collect();
        for (at, alias) in aliases.iter().enumerate() {
            assert!(!aliases[..at].contains(alias) && !names.contains(&(*alias).to_owned()), "{alias}");
        }
    }

    #[test]
    fn other_names_of_parameters_lead_to_parameters_that_exist_and_to_no_two() {
        for tool in all() {
            let (name, spec) = (tool.name(), tool.spec().unwrap());
            let SpecKind::Function { parameters } = spec.kind else { continue };
            let is_known = |wanted: &str| parameters.properties().any(|(known, _)| known == wanted);
            let aliases = tool.meta().parameter_aliases;
            for (at, alias) in aliases.iter().enumerate() {
                assert!(aliases[..at].iter().all(|other| other.name != alias.name), "{name}: {}", alias.name);
            }
            let means_one = aliases.iter().any(|alias| match alias.means {
                AliasMeaning::Parameter(parameter) | AliasMeaning::Switch(parameter, _) => {
                    is_known(parameter)
                }
                AliasMeaning::AlwaysSo(_) | AliasMeaning::Remark => true,
            });
            assert!(aliases.is_empty() || means_one, "{name}");
        }
    }
}

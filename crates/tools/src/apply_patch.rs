//! `apply_patch`: changes files as a patch says, all of them or none.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    AnyTool, BoxFuture, Content, Cx, Effects, Input, Meta, Output, ParsedCall, Ready, Tool, ToolError,
    ToolName, ToolSpec, erase,
    meta::{Example, ParameterAlias},
    spec::{Grammar, SpecKind},
};
use windlass_patch::{FileOperation, ParsedPatch, grammar, parse};
use windlass_schema::SchemaError;

use crate::change;

mod plan;

const NAME: &str = "apply_patch";

/// Form in which a model is offered the tool. Both kinds of call are accepted in either form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchForm {
    /// Text that fits a grammar.
    Freeform,
    /// A function with the text as its only argument.
    Function,
}

/// Makes the tool.
pub(crate) fn apply_patch(form: PatchForm) -> Arc<dyn AnyTool> {
    Arc::new(ApplyPatch { form, function: erase(ApplyPatchFunction) })
}

struct ApplyPatch {
    form: PatchForm,
    function: Arc<dyn AnyTool>,
}

/// Change files with a patch: add, update, move and delete any number of them in one call. All of
/// it is done, or nothing.
///
/// The patch is text of this form:
///
/// ```text
/// *** Begin Patch
/// *** Add File: path/of/a/new/file
/// +every line of it, with a plus in front
/// *** Update File: path/of/another
/// *** Move to: its/new/path (only to move or rename it)
/// @@ a line above the change, such as the head of a function (only if the lines below are not unique)
///  an unchanged line, with a space in front
/// -a line to remove
/// +a line to add
/// *** Delete File: path/of/a/third
/// *** End Patch
/// ```
///
/// Paths are relative to the workspace. Give about three unchanged lines before and after each
/// change, exactly as the file has them; several changes of one file are blocks that each begin
/// with @@, in the order of the file. Name a file only once. A line *** End of File after a block
/// says that it ends the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyPatchArgs {
    /// The whole patch.
    // In addition to the tool's aliases: no schema checks a function call of the freeform tool.
    #[serde(alias = "patch")]
    input: String,
}

struct ApplyPatchFunction;

impl Tool for ApplyPatchFunction {
    const NAME: &'static str = NAME;
    type Args = ApplyPatchArgs;

    fn effects(&self, args: &ApplyPatchArgs) -> Effects {
        args.patching().effects()
    }

    async fn call(&self, args: &ApplyPatchArgs, cx: &Cx) -> Result<Output, ToolError> {
        args.patching().apply(cx).await
    }
}

impl ApplyPatchArgs {
    fn patching(&self) -> PatchCall {
        PatchCall { text: self.input.clone(), workdir: None }
    }
}

impl AnyTool for ApplyPatch {
    fn name(&self) -> ToolName {
        NAME.into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        match self.form {
            PatchForm::Function => self.function.spec(),
            PatchForm::Freeform => {
                let grammar = Grammar { syntax: "lark".to_owned(), definition: grammar().to_owned() };
                let description = "Use the `apply_patch` tool to change files. It takes the patch as plain text: do \
                                   not wrap it in JSON. All of a patch is done, or nothing.";
                let (name, description) = (self.name(), description.to_owned());
                Ok(ToolSpec { name, description, kind: SpecKind::Custom { grammar } })
            }
        }
    }

    fn meta(&self) -> Meta {
        let example = match self.form {
            PatchForm::Freeform => "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch",
            PatchForm::Function => {
                r#"{"input":"*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch"}"#
            }
        };
        let examples = vec![Example { request: "make a file that says hello", input: example }];
        let parameter_aliases = ParameterAlias::of("input", &["patch", "patch_text", "diff"]);
        let requests = [
            "apply this patch",
            "apply the diff",
            "make these changes to several files at once",
            "add a function to a file and change another",
            "应用这个补丁",
            "打补丁",
            "按照这个 diff 修改文件",
        ]
        .map(str::to_owned)
        .into();
        Meta { examples, requests, aliases: vec!["applypatch", "patch"], parameter_aliases, ..change::meta() }
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        match input {
            // Some models send the text itself in a function call.
            Input::Json(text) if !text.trim_start().starts_with("***") => {
                Arc::clone(&self.function).prepare(input)
            }
            Input::Text(text) | Input::Json(text) | Input::Search(text) => {
                let patching = PatchCall { text: text.clone(), workdir: None };
                patching.parsed()?;
                Ok(ParsedCall::runs(patching))
            }
        }
    }
}

/// A patch, and the directory it applies to.
#[derive(Debug)]
pub(crate) struct PatchCall {
    pub(crate) text: String,
    /// Base of its paths, if not the workspace.
    pub(crate) workdir: Option<PathBuf>,
}

impl PatchCall {
    fn parsed(&self) -> Result<ParsedPatch<'_>, ToolError> {
        parse(&self.text).map_err(|error| ToolError::bad_input(unverified(&error.to_string())))
    }

    fn place(&self, path: &str) -> PathBuf {
        self.workdir.as_deref().map_or_else(|| PathBuf::from(path), |workdir| workdir.join(path))
    }

    /// Applies the patch. The first text lists the changes, the others are notes for the model.
    pub(crate) async fn apply(&self, cx: &Cx) -> Result<Output, ToolError> {
        let patch = self.parsed()?;
        if patch.operations.is_empty() {
            return Err(ToolError::bad_input(unverified("No files were modified.")));
        }
        let plan = plan::plan(self, &patch, cx).await?;
        let notes = plan.notes;
        let more = change::commit(cx, plan.changes, plan.files).await?;
        let texts = [summary(&patch)].into_iter().chain(notes).chain(more);
        Ok(Output { content: texts.map(Content::Text).collect(), ..Output::default() })
    }
}

impl Ready for PatchCall {
    fn effects(&self) -> Effects {
        let Ok(patch) = parse(&self.text) else { return Effects::none() };
        let paths = patch.operations.iter().flat_map(|each| [Some(each.path()), each.move_to()]).flatten();
        let writes: Vec<_> = paths.map(|path| self.place(path)).collect();
        Effects { reads: writes.clone(), writes, ..Effects::none() }
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(self.apply(cx))
    }
}

/// Returns an error in the wording that models of this family know.
fn unverified(problem: &str) -> String {
    format!("apply_patch verification failed: {problem}")
}

/// Lists the changed files in the wording that models of this family know: paths as written, by
/// kind of change.
fn summary(patch: &ParsedPatch<'_>) -> String {
    let mut lines = vec!["Success. Updated the following files:".to_owned()];
    let paths = |wanted: fn(&FileOperation<'_>) -> bool| {
        patch
            .operations
            .iter()
            .filter(move |each| wanted(each))
            .map(|each| each.move_to().unwrap_or(each.path()))
    };
    lines.extend(paths(|each| matches!(each, FileOperation::Add { .. })).map(|path| format!("A {path}")));
    lines.extend(paths(|each| matches!(each, FileOperation::Update { .. })).map(|path| format!("M {path}")));
    lines.extend(paths(|each| matches!(each, FileOperation::Delete { .. })).map(|path| format!("D {path}")));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns true if two paths of a patch are spelled differently but are the same.
fn is_same(one: &Path, other: &Path) -> bool {
    one.components().eq(other.components())
}

#[cfg(test)]
mod tests;

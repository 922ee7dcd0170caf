//! `windlass prompts`: the prompts of a session that are files.

use serde_json::{Value, json};
use windlass::instructions::PromptFile;

use super::{InstructionFiles, fault_text, slash_message};
use crate::{
    args::PromptsCommand,
    exit::ProgramExit,
    note,
    output::{print, print_text},
    paths::PathDisplay,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
    trust::clean,
};

pub(super) fn run(setup: &ProgramSetup, command: &PromptsCommand) -> Result<ProgramExit, CliProblem> {
    match command {
        PromptsCommand::List { json } => list(setup, &InstructionFiles::of(setup), *json),
        PromptsCommand::Show { name, arguments } => show(setup, name, arguments),
    }
}

fn all(files: &InstructionFiles) -> Vec<(&PromptFile, &'static str)> {
    let used = files.prompts.prompts.iter().map(|prompt| (prompt, "enabled"));
    let left_out = files.left_out.prompts.iter().map(|(prompt, state)| (prompt, state.name()));
    let hidden = files.prompts.hidden.iter().map(|(prompt, _)| (prompt, "hidden"));
    used.chain(left_out).chain(hidden).collect()
}

fn list(setup: &ProgramSetup, files: &InstructionFiles, is_json: bool) -> Result<ProgramExit, CliProblem> {
    let prompts = all(files);
    if is_json {
        let faults = files.prompts.faults.iter();
        let faults = faults.map(|fault| json!({"file": fault.path, "reason": clean(&fault.reason)}));
        let prompts: Vec<_> = prompts.into_iter().map(object).collect();
        return print(&format!("{:#}\n", json!({"prompts": prompts, "faults": faults.collect::<Vec<_>>()})));
    }
    if prompts.is_empty() {
        print("there are no prompts; `windlass prompts --help` says where they are looked for\n")?;
    } else {
        let paths = PathDisplay::seen_from(&setup.cwd);
        let row = |(prompt, state): &(&PromptFile, &'static str)| {
            let hint = prompt.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
            let name = visible(&format!("/{}{hint}", prompt.name));
            [name, (*state).to_owned(), paths.show(&prompt.path), visible(&clean(&prompt.description))]
        };
        let table = TextTable {
            titles: ["PROMPT", "STATE", "FILE", "DESCRIPTION"],
            expendable: &["FILE"],
            last: LastColumn::Cut,
            rows: prompts.iter().map(row).collect(),
        };
        print(&table.text())?;
    }
    for (prompt, by) in &files.prompts.hidden {
        note(&format!("note: {} is hidden by {}", visible_path(&prompt.path), visible_path(by)));
    }
    for fault in &files.prompts.faults {
        note(&format!("warning: left out {}", fault_text(fault)));
    }
    files.trust_note().iter().for_each(|text| note(&format!("note: {text}")));
    Ok(ProgramExit::Done)
}

fn object((prompt, state): (&PromptFile, &'static str)) -> Value {
    json!({
        "name": prompt.name,
        "state": state,
        "description": clean(&prompt.description),
        "argument_hint": prompt.argument_hint,
        "scope": prompt.scope.name(),
        "file": prompt.path,
    })
}

/// Shows the message that a prompt stands for, also one that is not trusted yet.
fn show(setup: &ProgramSetup, name: &str, arguments: &[String]) -> Result<ProgramExit, CliProblem> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let arguments: Vec<_> = arguments.iter().map(|word| quoted(word)).collect();
    let arguments = arguments.join(" ");
    let files = InstructionFiles::of(setup);
    let untrusted = files.left_out.prompts.iter().find(|(prompt, _)| prompt.name == name);
    let text = match untrusted {
        Some((prompt, state)) => {
            note(&format!("note: this prompt is {}", state.name()));
            prompt.expand(&arguments)
        }
        None => slash_message(setup, name, &arguments)?,
    };
    print_text(&format!("{}\n", clean(&text)))
}

/// Returns a word so that it stays one.
fn quoted(word: &str) -> String {
    match (word.contains(char::is_whitespace) || word.is_empty(), word.contains('"')) {
        (false, _) => word.to_owned(),
        (true, false) => format!("\"{word}\""),
        (true, true) => format!("'{word}'"),
    }
}

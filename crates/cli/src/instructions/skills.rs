//! `windlass skills`: the skills of a session.

use std::path::Path;

use serde_json::{Value, json};
use windlass::instructions::{Skill, skill_message};

use super::{InstructionFiles, fault_text};
use crate::{
    args::SkillsCommand,
    exit::ProgramExit,
    note,
    output::{print, print_text},
    paths::PathDisplay,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    spelling::did_you_mean,
    table::{LastColumn, TextTable},
    trust::clean,
};

/// A skill with its state.
type SkillState<'a> = (&'a Skill, &'static str, Option<&'a Path>);

pub(super) fn run(setup: &ProgramSetup, command: &SkillsCommand) -> Result<ProgramExit, CliProblem> {
    let files = InstructionFiles::of(setup);
    match command {
        SkillsCommand::List { json } => list(setup, &files, *json),
        SkillsCommand::Show { name, json } => show(&files, name, *json),
    }
}

/// Returns every skill: `enabled`, `hidden` by another of its name, or the state of its trust.
fn all(files: &InstructionFiles) -> Vec<SkillState<'_>> {
    let used = files.skills.skills.iter().map(|skill| (skill, "enabled", None));
    let left_out = files.left_out.skills.iter().map(|(skill, state)| (skill, state.name(), None));
    let hidden = files.skills.hidden.iter().map(|(skill, by)| (skill, "hidden", Some(by.as_path())));
    used.chain(left_out).chain(hidden).collect()
}

fn list(setup: &ProgramSetup, files: &InstructionFiles, is_json: bool) -> Result<ProgramExit, CliProblem> {
    let skills = all(files);
    if is_json {
        let faults = files.skills.faults.iter();
        let faults = faults.map(|fault| json!({"file": fault.path, "reason": clean(&fault.reason)}));
        let skills: Vec<_> = skills.into_iter().map(object).collect();
        return print(&format!("{:#}\n", json!({"skills": skills, "faults": faults.collect::<Vec<_>>()})));
    }
    if skills.is_empty() {
        print("there are no skills; `windlass skills --help` says where they are looked for\n")?;
    } else {
        let paths = PathDisplay::seen_from(&setup.cwd);
        let row = |(skill, state, _): &SkillState<'_>| {
            let description = visible(&clean(&skill.description));
            [skill.name.clone(), (*state).to_owned(), paths.show(&skill.path), description]
        };
        let table = TextTable {
            titles: ["NAME", "STATE", "FILE", "DESCRIPTION"],
            expendable: &["FILE"],
            last: LastColumn::Cut,
            rows: skills.iter().map(row).collect(),
        };
        print(&table.text())?;
    }
    notes(files);
    Ok(ProgramExit::Done)
}

fn notes(files: &InstructionFiles) {
    for (skill, by) in &files.skills.hidden {
        note(&format!("note: {} is hidden by {}", visible_path(&skill.path), visible_path(by)));
    }
    for fault in &files.skills.faults {
        note(&format!("warning: left out {}", fault_text(fault)));
    }
    files.left_out.problem.iter().chain(&files.trust_note()).for_each(|text| note(&format!("note: {text}")));
}

fn object((skill, state, by): SkillState<'_>) -> Value {
    json!({
        "name": skill.name,
        "state": state,
        "description": clean(&skill.description),
        "scope": skill.scope.name(),
        "file": skill.path,
        "bytes": skill.bytes,
        "allowed_tools": skill.allowed_tools,
        "hidden_by": by,
    })
}

/// Shows a skill as the model gets it if a message names it, also one that is not trusted yet: a
/// person reads it to decide.
fn show(files: &InstructionFiles, name: &str, is_json: bool) -> Result<ProgramExit, CliProblem> {
    let name = name.strip_prefix('$').unwrap_or(name);
    let skills = all(files);
    let found = skills.iter().find(|(skill, ..)| skill.name == name);
    let Some(found @ (skill, state, _)) = found else {
        let hint = did_you_mean(name, skills.iter().map(|(skill, ..)| skill.name.as_str()));
        let hint = hint.unwrap_or_else(|| "`windlass skills list` shows all".to_owned());
        let fault = files.skills.faults.iter().find(|fault| has_name(&fault.path, name));
        let hint = fault.map_or(hint, |fault| format!("left out {}", fault_text(fault)));
        return Err(CliProblem::usage(format!("there is no skill `{}`; {hint}", visible(name))));
    };
    let text = skill_message(skill, &files.root).map_err(|fault| CliProblem::failed(fault_text(&fault)))?;
    let text = clean(&text);
    if is_json {
        let mut object = object(*found);
        object["text"] = text.into();
        return print(&format!("{object:#}\n"));
    }
    if *state != "enabled" {
        note(&format!("note: this skill is {state}"));
    }
    if !skill.allowed_tools.is_empty() {
        let tools = visible(&skill.allowed_tools.join(", "));
        note(&format!("note: `allowed-tools` ({tools}) is a wish: calls are decided about as always"));
    }
    print_text(&format!("{text}\n"))
}

/// Returns true for a file in a directory of this name.
fn has_name(file: &Path, name: &str) -> bool {
    file.parent().and_then(Path::file_name).is_some_and(|directory| directory == name)
}

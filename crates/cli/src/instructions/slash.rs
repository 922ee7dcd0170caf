//! Messages that begin with the name of a prompt or a skill: `/NAME ARGUMENTS`.

use std::path::Path;

use windlass_tui::OfferedPrompt;

use super::{InstructionFiles, UntrustedTexts};
use crate::{problem::CliProblem, screen::visible, setup::ProgramSetup, spelling::did_you_mean};

/// The prefix that other agents put before the name of a prompt.
const PREFIX: &str = "prompts:";

/// Returns the prompts and skills that a session offers.
pub(crate) fn offered_prompts(files: &InstructionFiles) -> Vec<OfferedPrompt> {
    let prompts = files.prompts.prompts.iter().map(|prompt| {
        let hint = prompt.argument_hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        OfferedPrompt { name: prompt.name.clone(), help: format!("{}{hint}", prompt.description) }
    });
    let skills = files.skills.skills.iter().map(|skill| OfferedPrompt {
        name: skill.name.clone(),
        help: format!("skill: {}", skill.description),
    });
    let mut offered: Vec<OfferedPrompt> = prompts.collect();
    for skill in skills {
        if offered.iter().all(|prompt| prompt.name != skill.name) {
            offered.push(skill);
        }
    }
    offered
}

/// Returns the message that a prompt or a skill stands for. The files are read again, so that an
/// edited prompt counts at once, and one that is no longer trusted does not.
pub(crate) fn slash_message(setup: &ProgramSetup, name: &str, arguments: &str) -> Result<String, CliProblem> {
    let files = InstructionFiles::of(setup);
    find(&files, name, arguments).unwrap_or_else(|| Err(unknown(&files, name)))
}

/// Returns the request that a prompt of `exec` stands for. Text that only begins like one, such as
/// a path, stays as it is.
pub(crate) fn expanded_request(setup: &ProgramSetup, text: String) -> Result<String, CliProblem> {
    let Some(rest) = text.strip_prefix('/') else { return Ok(text) };
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() || name.contains('/') {
        return Ok(text);
    }
    let files = InstructionFiles::of(setup);
    if let Some(found) = find(&files, name, arguments) {
        return found;
    }
    let is_path = Path::new("/").join(name).exists();
    let is_alone = arguments.trim().is_empty();
    // A typing error must not cost a request to a model.
    if !is_path && (is_alone || similar(&files, name).is_some() || name.starts_with(PREFIX)) {
        return Err(unknown(&files, name));
    }
    Ok(text)
}

/// Finds a prompt or a skill. One that is not trusted is an error.
fn find(files: &InstructionFiles, name: &str, arguments: &str) -> Option<Result<String, CliProblem>> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    if let Some(prompt) = files.prompts.prompts.iter().find(|prompt| prompt.name == name) {
        return Some(Ok(prompt.expand(arguments)));
    }
    if files.skills.skills.iter().any(|skill| skill.name == name) {
        // The agent adds the skill to any message that names it so.
        return Some(Ok(format!("${name} {arguments}").trim_end().to_owned()));
    }
    let UntrustedTexts { skills, prompts, .. } = &files.left_out;
    let is_left_out = skills.iter().any(|(skill, _)| skill.name == name)
        || prompts.iter().any(|(prompt, _)| prompt.name == name);
    is_left_out.then(|| {
        let root = visible(&files.root.to_string_lossy());
        let message = format!(
            "`/{}` belongs to a project that is not trusted; `windlass trust {root}` shows and allows it",
            visible(name)
        );
        Err(CliProblem::usage(message))
    })
}

fn names(files: &InstructionFiles) -> impl Iterator<Item = &str> {
    let prompts = files.prompts.prompts.iter().map(|prompt| prompt.name.as_str());
    prompts.chain(files.skills.skills.iter().map(|skill| skill.name.as_str()))
}

fn similar(files: &InstructionFiles, name: &str) -> Option<String> {
    did_you_mean(name, names(files))
}

fn unknown(files: &InstructionFiles, name: &str) -> CliProblem {
    let hint = similar(files, name).unwrap_or_else(|| {
        "`windlass prompts list` and `windlass skills list` show all; a blank before the slash sends the text as \
         it is"
            .to_owned()
    });
    CliProblem::usage(format!("there is no prompt or skill `/{}`; {hint}", visible(name)))
}

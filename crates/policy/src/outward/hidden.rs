//! Commands whose program the text does not name for certain: `$x`, `$(…)`, a shell that reads the
//! output of another program. If the program comes from the text, the text names it somewhere.

use std::collections::BTreeSet;

use windlass_contract::effects::OutwardEffect;

use super::{
    CommandContext, git,
    name::{ToolCommand, tool_name},
    network, table,
};
use crate::{
    shell::{RedirectKind, ShellWord},
    wrapper::{self, base_name, is_shell},
};

/// Maximum number of words after the name of a program that may be its arguments.
const MAX_FOLLOWING: usize = 6;

/// Maximum number of words of a text in which the words of a command count in any order.
const MAX_SCATTERED: usize = 64;

/// Returns true if the first word of a command does not name a program.
pub(crate) fn hides_program(words: &[ShellWord]) -> bool {
    let Some(program) = words.first() else { return false };
    let name = base_name(&program.text);
    let has_no_name = program.text.starts_with(":::") || program.glob;
    let is_open = name.contains(['$', '`', '{', '}', '(', ')', '%', '<']);
    has_no_name || program.unclear.is_some() && (is_open || !name.contains(char::is_alphanumeric))
}

/// Returns true if the program of a command is not the one that its first word names.
pub(super) fn is_hidden(context: CommandContext<'_>, words: &[ShellWord]) -> bool {
    let Some(program) = words.first() else { return false };
    let name = base_name(&program.text);
    if hides_program(words) {
        return true;
    }
    let simple = context.script.commands.get(context.at);
    let reads = simple.is_some_and(wrapper::reads_input);
    let is_given = context.via.iter().any(|program| matches!(program.as_str(), "xargs" | "parallel"));
    let is_sourced = matches!(name, "source" | ".") || is_shell(name);
    let substituted = words.iter().skip(1).any(|word| word.text.starts_with("<("));
    reads || is_shell(name) && is_given || is_sourced && substituted || is_written(context, words)
}

/// Returns true if the program, or the script of a shell, is a file that the same text writes.
fn is_written(context: CommandContext<'_>, words: &[ShellWord]) -> bool {
    let commands = &context.script.commands;
    let redirects = commands.iter().flat_map(|simple| &simple.redirects);
    let targets =
        redirects.filter(|redirect| matches!(redirect.kind, RedirectKind::Write | RedirectKind::Append));
    let tees =
        commands.iter().filter(|simple| simple.program() == Some("tee")).flat_map(|simple| &simple.words);
    let written: Vec<_> =
        targets.map(|redirect| &redirect.target).chain(tees).map(|file| base_name(&file.text)).collect();
    let is_run = |word: &ShellWord| written.contains(&base_name(&word.text));
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = base_name(&program.text);
    let runs_file =
        is_shell(name) || matches!(name, "source" | "." | "python" | "python3" | "perl" | "node" | "ruby");
    !written.is_empty() && (is_run(program) && name != "tee" || runs_file && arguments.iter().any(is_run))
}

/// Returns the effects of every command that a text names, anywhere in it.
pub(super) fn named_in(text: &str) -> BTreeSet<OutwardEffect> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./:@+=".contains(c);
    let words: Vec<_> = text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let mut found = BTreeSet::new();
    for at in 0..words.len() {
        // `g=git`, `x:git` and `${x:-git}` name it, too.
        let named = words[at].rsplit(['=', ':']).next().unwrap_or_default().trim_start_matches(['-', '+']);
        if table::same_kind(&tool_name(named).0).is_none() {
            continue;
        }
        let following = words.iter().skip(at + 1).take(MAX_FOLLOWING);
        let command: Vec<_> =
            std::iter::once(&named).chain(following).map(|word| ShellWord::literal(word)).collect();
        if let Some(call) = ToolCommand::new(&command).filter(|call| !call.only_shows()) {
            found.extend(table::effects_of_phrase(&call));
            found.extend(git::alias(&call));
            found.extend((call.tool == "curl" && network::curl(&call)).then_some(OutwardEffect::Send));
        }
    }
    found
}

/// Returns the effects of every command whose words occur somewhere in a text, in any order and
/// with anything between them: `set -- publish npm; $2 $1`, `IFS=-; x=npm-publish; $x`.
pub(super) fn scattered_in(text: &str) -> BTreeSet<OutwardEffect> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // In a long text they come together by chance.
    let is_short = words.clone().nth(MAX_SCATTERED).is_none();
    if is_short { table::effects_of_scattered(&words.collect()) } else { BTreeSet::new() }
}

/// Returns the effect that a word expresses by itself, for any program.
pub(super) fn verb_effect(word: &str) -> Option<OutwardEffect> {
    // `push-docs` may push anything anywhere; `docker-push` names its program.
    let mut parts = word.split([':', '-', '_', '.']);
    if parts.clone().next_back() == Some("push") {
        return Some(OutwardEffect::Push);
    }
    parts.find_map(|part| match part {
        "deploy" | "undeploy" | "rollback" => Some(OutwardEffect::Deploy),
        "publish" | "upload" => Some(OutwardEffect::Publish),
        _ => None,
    })
}

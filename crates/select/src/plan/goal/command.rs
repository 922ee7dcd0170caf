//! Requests that run something.

use super::Goal;
use crate::plan::{phrases::Phrase, reading::Reading, words::Word};

/// Programs by which a command is recognised that is not between backticks.
const PROGRAMS: &str = " awk basename bun cargo cat cmake cp curl cut date deno df diff dirname docker du echo env file find git go gradle grep \
    head id java javac jq just kubectl ls make mkdir mvn mv node npm npx perl php pip pip3 pnpm printenv printf ps pwd pytest python python3 rg rm ruby \
    rustc rustup sed seq sh bash sleep sort stat tail tar test touch tr tree true false uname uniq wc which whoami xargs yarn zip ";

/// What may stand between the verb and the command.
const BETWEEN: [&str; 12] = [
    "the command",
    "this command",
    "command",
    "this",
    "please",
    "命令",
    "指令",
    "一下",
    "以下",
    "：",
    ":",
    "下",
];

/// Verbs a command is given by.
const VERBS: [&str; 7] = ["run ", "execute ", "execute:", "exec ", "运行", "执行", "run:"];

/// A command that is spelled out.
pub(super) fn run(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Run, &[Word::Show, Word::Find, Word::Search, Word::Count]) {
        return None;
    }
    if let [command] = reading.quoted().as_slice() {
        return Some(Goal::Run { command: (*command).to_owned() });
    }
    let lower = reading.text.to_ascii_lowercase();
    let rest = VERBS.iter().find_map(|verb| lower.find(verb).map(|at| &reading.text[at + verb.len()..]))?;
    let mut command = rest.trim();
    while let Some(after) = BETWEEN.iter().find_map(|word| command.strip_prefix(word)) {
        command = after.trim_start();
    }
    let program = command.split_whitespace().next()?;
    let known = PROGRAMS.contains(&format!(" {program} ")) || program.starts_with("./");
    known.then(|| Goal::Run { command: command.trim_end_matches(['。', '？', '！']).to_owned() })
}

/// The tests of the project.
pub(super) fn test(reading: &Reading) -> Option<Goal> {
    let wanted = reading.has(Word::Test) && reading.has_any(&[Word::Run, Word::Outcome]);
    if !wanted || reading.has_any(&[Word::Count, Word::Commit]) {
        return None;
    }
    let code =
        reading.has(Word::Show) && reading.has_any(&[Word::Code, Word::Failure]) && reading.has(Word::Run);
    let filter = reading.terms().first().map(|term| (*term).to_owned());
    Some(Goal::Test { filter, code })
}

/// Something is to be run, but it is not said what.
pub(super) fn which(reading: &Reading) -> Option<Goal> {
    reading.has(Word::Run).then_some(Goal::Say(Phrase::WhichCommand))
}

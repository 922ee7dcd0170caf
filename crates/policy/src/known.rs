//! Commands that are known to be harmless in any context: they change nothing and show no secrets.
//!
//! `commands.txt` is the list. A command that is not on it, or has an option that is not, may be
//! harmless all the same; it is just not known.

mod awk;
mod endless;
mod find;
mod git;
mod grammar;
mod ps;
mod secret_search;
mod sed;
mod special;
mod table;

use grammar::{DirectoryRecursion, FileDisclosure, OperandTrait, OptionGrammar, SortedArguments};

use crate::{path::WorkingDirectories, secret, shell::ShellWord};

/// Directories that hold only programs of the system. Not `/usr/local/bin`: on some systems any
/// user may write there.
const SYSTEM: &[&str] = &["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"];

/// Programs that may be asked for their version. Programs that first look for another version of
/// themselves are left out (cargo, rustc, go): a file in the working directory names it. So are
/// scripts of the project.
const VERSIONED: &[&str] = &[
    "node",
    "npm",
    "python",
    "python3",
    "ruby",
    "perl",
    "php",
    "gcc",
    "g++",
    "cc",
    "clang",
    "make",
    "cmake",
    "ninja",
    "bash",
    "zsh",
    "docker",
    "curl",
    "wget",
    "tar",
    "openssl",
    "ssh",
    "awk",
    "gawk",
    "sqlite3",
    "psql",
    "deno",
    "bun",
    "lua",
    "ghc",
    "gh",
    "kubectl",
    "helm",
    "terraform",
];

/// Returns an error that says why a command is not known to be harmless. All its words must be
/// clear.
pub(crate) fn check(words: &[ShellWord], places: &WorkingDirectories) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let name = system_name(program)
        .ok_or_else(|| format!("`{}` is not in a directory of the system", program.text))?;
    if let [only] = arguments
        && asks_about_itself(name, &only.text)
    {
        return Ok(());
    }
    if name == "git" {
        return git::check(arguments, places);
    }
    let grammar =
        table::find(name).ok_or_else(|| format!("`{name}` is not on the list of harmless programs"))?;
    run_through(grammar, name, arguments, places)
}

/// Returns true if two commands of a program differ only in options that are known to be harmless:
/// all options of both are listed, and their operands are the same.
pub(crate) fn differ_in_harmless_options(name: &str, approved: &[String], words: &[ShellWord]) -> bool {
    let approved: Vec<_> = approved.iter().map(|word| ShellWord::literal(word)).collect();
    // For git the first word selects the grammar.
    let (grammar, approved, words) = match (name, approved.split_first(), words.split_first()) {
        ("git", Some((own, approved)), Some((other, words))) if own.text == other.text => {
            (table::find(&format!("git {}", own.text)), approved, words)
        }
        ("git", ..) => return false,
        _ => (table::find(name), &approved[..], words),
    };
    let Some(grammar) = grammar.filter(|grammar| !grammar.operands.are(OperandTrait::Check)) else {
        return false;
    };
    let operands = |words| -> Option<Vec<String>> {
        let sorted = grammar.sort(words).ok()?;
        let valued = sorted.options.iter().any(|(_, value)| value.is_some());
        (!valued).then(|| sorted.operands.iter().map(|word| word.text.clone()).collect())
    };
    operands(approved).is_some_and(|own| operands(words) == Some(own))
}

/// Returns the name of a program that is looked up in `PATH`, or is in a directory of the system.
pub(crate) fn system_name(program: &ShellWord) -> Option<&str> {
    let text = program.text.as_str();
    if program.glob || program.home || program.unclear.is_some() {
        return None;
    }
    let name = SYSTEM.iter().find_map(|directory| text.strip_prefix(directory)).unwrap_or(text);
    (!name.contains('/')).then_some(name)
}

/// Returns true for `--version` and `--help`, alone.
fn asks_about_itself(name: &str, argument: &str) -> bool {
    let external = || table::find(name).is_some_and(|grammar| !grammar.operands.are(OperandTrait::Words));
    match argument {
        "--version" => external() || name == "git" || VERSIONED.contains(&name),
        "--help" => external(),
        "-v" => matches!(name, "node" | "npm" | "gcc" | "ruby"),
        "-version" => name == "java",
        "-V" => matches!(name, "python" | "python3"),
        _ => false,
    }
}

/// Parses arguments by their grammar and checks each.
fn run_through(
    grammar: &OptionGrammar,
    name: &str,
    words: &[ShellWord],
    places: &WorkingDirectories,
) -> Result<(), String> {
    let arguments = grammar.sort(words)?;
    let operands = &grammar.operands;
    if let Some(max) = operands.max {
        let wildcard = arguments.operands.iter().any(|word| word.glob);
        if arguments.operands.len() > max || wildcard {
            return Err(format!("it has more than the {max} operands that are harmless"));
        }
    }
    for word in &arguments.operands {
        let text = word.text.as_str();
        if operands.are(OperandTrait::Plus) && !text.starts_with('+') {
            return Err(format!("`{text}` would be set"));
        }
        if operands.are(OperandTrait::NoAt) && (text.starts_with('@') || word.could_be_an_option()) {
            return Err(format!("`{text}` stands for the contents of a file"));
        }
    }
    secrets(grammar, &arguments, places)?;
    searches(grammar, name, &arguments)?;
    endless::check(name, &arguments)?;
    if operands.are(OperandTrait::Check) { special::check(name, &arguments, places) } else { Ok(()) }
}

/// Refuses searches for secrets: in file contents, and in the history of a repository.
fn searches(grammar: &OptionGrammar, name: &str, arguments: &SortedArguments<'_>) -> Result<(), String> {
    if grammar.operands.shows != FileDisclosure::Contents && !name.starts_with("git ") {
        return Ok(());
    }
    let operands = arguments.operands.iter().map(|word| word.text.as_str());
    let values = arguments.options.iter().filter_map(|(_, value)| *value);
    match operands.chain(values).find(|text| secret_search::looks_for_secrets(text)) {
        Some(text) => Err(format!("`{text}` looks for secrets")),
        None => Ok(()),
    }
}

/// Refuses arguments that may name a file with secrets.
fn secrets(
    grammar: &OptionGrammar,
    arguments: &SortedArguments<'_>,
    places: &WorkingDirectories,
) -> Result<(), String> {
    let operands = &grammar.operands;
    let found = |secret: Option<String>| secret.map_or(Ok(()), Err);
    let look = |text: &str, glob: bool| match operands.shows {
        // `rg --files` only lists file names.
        FileDisclosure::Contents if arguments.has(&["files"]) => found(secret::kept_in(text, glob, places)),
        FileDisclosure::Contents => found(secret::in_contents(text, glob, places)),
        FileDisclosure::Names => found(secret::in_names(text, places)),
        // A program that shows its arguments shows the names that a wildcard matches.
        FileDisclosure::Nothing if glob => found(secret::in_names(text, places)),
        FileDisclosure::Nothing => Ok(()),
    };
    let pattern_given = arguments.has(&["e", "regexp", "expression", "files", "type-list"]);
    let files = &arguments.operands[..];
    let files = if operands.pattern && !pattern_given { files.get(1..).unwrap_or_default() } else { files };
    files.iter().try_for_each(|word| look(&word.text, word.glob))?;
    let values = arguments.options.iter().filter(|(name, _)| !matches!(*name, "e" | "regexp" | "expression"));
    values.filter_map(|(_, value)| *value).try_for_each(|value| look(value, false))?;
    let sweeps = match &operands.sweep {
        DirectoryRecursion::Never => false,
        DirectoryRecursion::Always => true,
        DirectoryRecursion::With(options) => arguments.has(options),
    };
    if !sweeps {
        return Ok(());
    }
    if files.is_empty() {
        return found(secret::in_everything_below(".", places));
    }
    files.iter().try_for_each(|word| found(secret::in_everything_below(&word.text, places)))
}

#[cfg(test)]
mod tests;

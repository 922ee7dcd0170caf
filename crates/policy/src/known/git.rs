//! `git`: subcommands that only show something, in the repository they are called in.
//!
//! git runs programs that its configuration names (`core.fsmonitor`, filters, `diff.external`,
//! textconv). That configuration is the user's own and the repository's `.git/config`. The sandbox
//! keeps commands from writing it, and no file of a checkout can set it. So these commands are
//! harmless in the directory they start in. They are not known to be harmless once another
//! repository or configuration is chosen: by an option before the subcommand, a variable, or a
//! `cd`.

use windlass_contract::secret_names::is_secret_name;

use super::{grammar::SortedArguments, run_through, table};
use crate::{path::WorkingDirectories, shell::ShellWord};

/// Returns an error that says why a `git` command is not harmless.
pub(super) fn check(words: &[ShellWord], places: &WorkingDirectories) -> Result<(), String> {
    if places.have_changed() {
        return Err("git obeys the configuration of the repository it is in, and there was a `cd`".to_owned());
    }
    let globals =
        words.iter().take_while(|word| matches!(word.text.as_str(), "--no-pager" | "--no-optional-locks"));
    let words = words.get(globals.count()..).unwrap_or_default();
    let (subcommand, arguments) = words.split_first().ok_or("it has no subcommand")?;
    let name = format!("git {}", subcommand.text);
    let grammar =
        table::find(&name).ok_or_else(|| format!("`{name}` is not on the list of harmless programs"))?;
    let says = |what: &str| arguments.iter().any(|word| word.text.contains(what));
    let is_of_refs = matches!(name.as_str(), "git for-each-ref" | "git branch" | "git tag");
    if says("%G") || is_of_refs && says("signature") {
        return Err("a signature in a format or an order runs gpg".to_owned());
    }
    run_through(grammar, &name, arguments, places)
}

/// Checks subcommands that list, or change something, depending on their operands.
pub(super) fn check_operands(name: &str, arguments: &SortedArguments<'_>) -> Result<(), String> {
    let operands: Vec<_> = arguments.operands.iter().map(|word| word.text.as_str()).collect();
    let listing = match name {
        "git branch" => operands.is_empty() || arguments.has(&["list"]),
        "git tag" => operands.is_empty() || arguments.has(&["l", "list"]),
        "git remote" => matches!(operands[..], [] | ["get-url", _]),
        "git stash" => matches!(operands[..], ["list" | "show", ..]),
        "git worktree" => operands == ["list"],
        "git reflog" => !matches!(operands[..], ["expire" | "delete" | "drop" | "write" | "exists", ..]),
        "git config" => match operands[..] {
            [key] | ["get", key] => return harmless_key(key),
            _ => false,
        },
        _ => false,
    };
    if listing { Ok(()) } else { Err("with these operands it may change something".to_owned()) }
}

/// Accepts configuration keys that hold no secret.
fn harmless_key(key: &str) -> Result<(), String> {
    const SECTIONS: &[&str] =
        &["user.", "core.", "branch.", "remote.", "init.", "pull.", "push.", "merge.", "color."];
    // A header or the address of a proxy may hold a secret as well.
    const HOLDERS: &[&str] = &["header", "proxy"];
    let key = key.to_lowercase();
    let known = SECTIONS.iter().any(|section| key.starts_with(section));
    let secret = is_secret_name(&key) || HOLDERS.iter().any(|holder| key.contains(holder));
    if known && !secret { Ok(()) } else { Err(format!("`{key}` may be a secret")) }
}

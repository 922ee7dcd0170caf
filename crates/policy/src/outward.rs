//! Commands with effects beyond this machine: what is pushed, published, deployed, sent, done on another machine, or
//! installed from elsewhere. No sandbox can take that back, so the approval policy can ask about it where there is none.
//! Found by suspicion, as dangers are.

use std::{collections::HashMap, sync::LazyLock};

use windlass_contract::effects::OutwardEffect;

use crate::{danger::Call, path::Places, shell::Word};

/// Words of the command line by which nothing happens elsewhere.
const ONLY_SHOWS: &[&str] =
    &["--dry-run", "--dryrun", "--help", "--version", "--just-print", "--whatif", "--no-push"];

/// How many values of options may come before a subcommand.
const MAX_BEFORE: usize = 2;

/// The effect of a command beyond this machine, by its own words.
pub(crate) fn of_command(words: &[Word], places: &Places) -> Option<OutwardEffect> {
    let call = Call::new(words, places)?;
    if call
        .texts()
        .any(|text| ONLY_SHOWS.contains(&text) || text.starts_with("--dry-run=") && text != "--dry-run=none")
    {
        return None;
    }
    in_table(&call).or_else(|| in_code(&call))
}

/// A line of the table.
struct Entry {
    /// Each with its alternatives.
    words: Vec<Vec<&'static str>>,
    needs: Vec<&'static str>,
    effect: OutwardEffect,
}

fn in_table(call: &Call<'_>) -> Option<OutwardEffect> {
    static TABLE: LazyLock<HashMap<&str, Vec<Entry>>> =
        LazyLock::new(|| read(include_str!("outward/commands.txt")));
    let entries = TABLE.get(call.program)?;
    let operands: Vec<_> = call.operands().collect();
    let values = leading_values(call);
    entries.iter().filter(|entry| entry.fits(call, &operands, values)).map(|entry| entry.effect).max()
}

/// How many operands at the beginning may be values of options: each follows one, as in `git -C dir push`.
fn leading_values(call: &Call<'_>) -> usize {
    let (mut values, mut after_option) = (0, false);
    for text in call.texts() {
        let is_option = text.len() > 1 && text.starts_with('-');
        if !is_option && !after_option {
            break;
        }
        values += usize::from(!is_option);
        after_option = is_option;
    }
    values.min(MAX_BEFORE)
}

impl Entry {
    fn fits(&self, call: &Call<'_>, operands: &[&str], values: usize) -> bool {
        let fits_at = |at: usize| {
            let words = operands.get(at..at + self.words.len());
            words.is_some_and(|words| self.words.iter().zip(words).all(|(any, word)| any.contains(word)))
        };
        (0..=values).any(fits_at) && (self.needs.is_empty() || call.has_any(&self.needs))
    }
}

fn read(text: &'static str) -> HashMap<&'static str, Vec<Entry>> {
    let mut table: HashMap<_, Vec<_>> = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((program, entry)) = entry(line) {
            table.entry(program).or_default().push(entry);
        }
    }
    table
}

fn entry(line: &'static str) -> Option<(&'static str, Entry)> {
    let (command, effect) = line.split_once('|')?;
    let effect = OutwardEffect::from_name(effect.trim())?;
    let (command, needs) = command.split_once('+').unwrap_or((command, ""));
    let needs = needs.trim().split(',').filter(|need| !need.is_empty()).collect();
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let words = words.map(|word| word.split('/').collect()).collect();
    Some((program, Entry { words, needs, effect }))
}

/// Programs whose options or operands say more than words of a table can.
fn in_code(call: &Call<'_>) -> Option<OutwardEffect> {
    let operands: Vec<_> = call.operands().collect();
    match call.program {
        "curl" => curl(call).then_some(OutwardEffect::Send),
        "wget" => call
            .has_any(&["--post-data", "--post-file", "--body-data", "--body-file", "--method"])
            .then_some(OutwardEffect::Send),
        "http" | "https" | "xh" | "httpie" => httpie(&operands).then_some(OutwardEffect::Send),
        "ssh" | "autossh" | "plink" | "rsh" | "rexec" => Some(OutwardEffect::Remote),
        "scp" | "rsync" | "rcp" | "pscp" => {
            // From another machine to here changes nothing there.
            operands.last().filter(|to| is_remote_place(to)).map(|_| OutwardEffect::Remote)
        }
        "aws" | "gcloud" | "az" | "oci" | "ibmcloud" | "aliyun" | "bq" => {
            cloud(&operands).then_some(OutwardEffect::Deploy)
        }
        "python" | "python3" | "py" => module(call),
        // Alone it installs.
        "yarn" if operands.is_empty() => Some(OutwardEffect::Install),
        "make" | "gmake" | "just" | "task" | "rake" | "invoke" | "nx" | "turbo" => {
            operands.iter().find_map(|word| by_name(word))
        }
        "npm" | "pnpm" | "yarn" | "bun" => {
            let script = operands.iter().find(|word| !matches!(**word, "run" | "run-script"))?;
            let releases = || script.split([':', '-', '_']).any(|part| part == "release");
            by_name(script).or_else(|| releases().then_some(OutwardEffect::Publish))
        }
        _ => None,
    }
}

/// Tasks that say by their name what they do: `make deploy`, `npm run publish`.
fn by_name(word: &str) -> Option<OutwardEffect> {
    let mut parts = word.split([':', '-', '_', '.']);
    parts.find_map(|part| match part {
        "deploy" | "undeploy" | "rollback" => Some(OutwardEffect::Deploy),
        "publish" | "upload" => Some(OutwardEffect::Publish),
        "push" => Some(OutwardEffect::Push),
        _ => None,
    })
}

/// Data, a file or a method that changes something. `-G` makes a query of the data.
fn curl(call: &Call<'_>) -> bool {
    const SENDS: &[&str] = &[
        "-d",
        "--data",
        "--data-raw",
        "--data-binary",
        "--data-urlencode",
        "--data-ascii",
        "--json",
        "-F",
        "--form",
        "--form-string",
        "-T",
        "--upload-file",
        "--mail-from",
        "--mail-rcpt",
        "-Q",
        "--quote",
    ];
    let mut texts = call.texts().peekable();
    let mut method = None;
    while let Some(text) = texts.next() {
        if text == "-X" || text == "--request" {
            method = texts.peek().copied();
        } else if let Some(value) = text.strip_prefix("--request=") {
            method = Some(value);
        } else if let Some((_, value)) = text.split_once('X').filter(|(before, _)| is_bundle(before)) {
            method = Some(if value.is_empty() { texts.peek().copied().unwrap_or_default() } else { value });
        }
    }
    let reads = |method: &str| matches!(method.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "OPTIONS");
    let is_query = call.has("-G") || call.has("--get");
    method.is_some_and(|method| !reads(method)) || (!is_query && sends_data(call, SENDS))
}

fn is_bundle(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// Whether an option that sends is given; a letter may stand in a bundle, behind letters without a value.
fn sends_data(call: &Call<'_>, options: &[&str]) -> bool {
    const ALONE: &str = "sSLfkivgIlnNqRjO0146";
    call.texts().any(|text| {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let bundle = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let letter = bundle.and_then(|rest| rest.chars().find(|letter| !ALONE.contains(*letter)));
        options.contains(&name) || letter.is_some_and(|letter| "dFTQ".contains(letter))
    })
}

/// A method that changes something, or fields of a form.
fn httpie(operands: &[&str]) -> bool {
    let changes =
        |word: &&str| matches!(word.to_ascii_uppercase().as_str(), "POST" | "PUT" | "PATCH" | "DELETE");
    let is_field = |word: &&str| {
        let key = word.split(['=', '@']).next().unwrap_or_default();
        (word.contains('=') || word.contains('@')) && !key.contains(['/', ':']) && !word.contains("==")
    };
    operands.first().is_some_and(changes) || operands.iter().skip(1).any(is_field)
}

/// `host:path`, `user@host:path`, `rsync://host/path`; no path has a colon before its first slash.
fn is_remote_place(text: &str) -> bool {
    let host = text.split('/').next().unwrap_or_default();
    text.contains("://") || host.contains(':')
}

/// Anything but what only shows.
fn cloud(operands: &[&str]) -> bool {
    const READS: &[&str] = &[
        "list",
        "ls",
        "get",
        "describe",
        "show",
        "help",
        "head",
        "search",
        "lookup",
        "query",
        "scan",
        "tail",
        "wait",
        "read",
        "view",
        "info",
        "version",
        "login",
        "configure",
        "config",
        "sts",
        "filter",
        "batch-get",
        "select",
        "estimate",
        "check",
        "preview",
        "explain",
        "print-access-token",
        "account",
        "presign",
        "auth",
        "interactive",
    ];
    let reads = |word: &&str| {
        READS
            .iter()
            .any(|verb| word == verb || word.strip_prefix(verb).is_some_and(|rest| rest.starts_with('-')))
    };
    // `aws s3 cp s3://bucket/key .` only brings something here.
    if let ["s3" | "storage", "cp" | "sync", .., to] = operands {
        return to.contains("://");
    }
    !operands.is_empty() && !operands.iter().take(5).any(reads)
}

/// `python3 -m pip install`, `python3 -m twine upload`.
fn module(call: &Call<'_>) -> Option<OutwardEffect> {
    let mut texts = call.texts().skip_while(|text| *text != "-m").skip(1);
    let (module, verb) = (texts.next()?, texts.find(|text| !text.starts_with('-')).unwrap_or_default());
    match (module, verb) {
        ("pip" | "pipx", "install" | "download" | "wheel" | "run" | "upgrade" | "inject") => {
            Some(OutwardEffect::Install)
        }
        ("ensurepip" | "easy_install", _) => Some(OutwardEffect::Install),
        ("twine", "upload") | ("build" | "flit" | "hatch" | "poetry", "publish") => {
            Some(OutwardEffect::Publish)
        }
        ("smtplib", _) => Some(OutwardEffect::Send),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{Dialect, Script};

    fn effect(line: &str) -> Option<OutwardEffect> {
        let script = Script::parse(line, Dialect::Bash);
        of_command(&script.commands[0].words, &Places::starting(None))
    }

    #[test]
    fn every_line_of_the_table_makes_sense() {
        let lines = include_str!("outward/commands.txt").lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            assert!(entry(line).is_some(), "{line}");
        }
    }

    #[test]
    fn what_leaves_the_machine_is_known_by_its_words() {
        for line in include_str!("outward/cases.txt").lines().filter(|line| !line.is_empty()) {
            let (name, command) = line.split_once(": ").unwrap();
            let found = effect(command).map_or("none", OutwardEffect::name);
            assert_eq!(found, name, "{command}");
        }
    }
}

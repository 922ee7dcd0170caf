//! Commands that need more checks than the grammar of their options.

use super::{awk, endless, find, git, grammar::SortedArguments, ps, sed};
use crate::{path::WorkingDirectories, secret};

/// Runs the check that the grammar of a command cannot express. The table marks such a `name` with
/// `check`.
pub(super) fn check(
    name: &str,
    arguments: &SortedArguments<'_>,
    places: &WorkingDirectories,
) -> Result<(), String> {
    match name {
        "find" => find::check(&arguments.operands, places),
        "sed" => sed::check(arguments),
        "awk" | "gawk" | "mawk" => awk::check(arguments),
        "printenv" => printenv(arguments),
        "printf" => printf(arguments),
        "sleep" => sleep(arguments),
        "test" => test(&texts(arguments)),
        "[" => match texts(arguments).split_last() {
            Some((&"]", expression)) => test(expression),
            _ => Err("`[` without `]`".to_owned()),
        },
        "cd" => cd(arguments, places),
        "command" => {
            if arguments.has(&["v", "V"]) {
                Ok(())
            } else {
                Err("it runs another program".to_owned())
            }
        }
        "grep" | "egrep" | "fgrep" | "rg" => search(arguments),
        "jq" => jq(arguments),
        "ps" => ps::check(&texts(arguments)),
        _ => git::check_operands(name, arguments),
    }
}

fn texts<'a>(arguments: &SortedArguments<'a>) -> Vec<&'a str> {
    arguments.operands.iter().map(|word| word.text.as_str()).collect()
}

/// Accepts conversions of text, and conversions of numbers if the values are plain: zsh evaluates
/// expressions there.
fn printf(arguments: &SortedArguments<'_>) -> Result<(), String> {
    let words = texts(arguments);
    let (format, values) = words.split_first().ok_or("it has no format")?;
    if format.starts_with('-') {
        return Err("`-v` sets a variable".to_owned());
    }
    let is_wild = |at: usize| arguments.operands.get(at).is_some_and(|word| word.glob);
    if is_wild(0) {
        return Err("its format is not known".to_owned());
    }
    let mut conversions = format.split('%').skip(1);
    while let Some(conversion) = conversions.next() {
        let kind = conversion.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.'".contains(c));
        if conversion.len() - kind.len() > 5 {
            return Err(format!("its conversion `%{conversion}` prints more than anyone reads"));
        }
        match kind.chars().next() {
            // `%%`: the next piece is plain text.
            None if conversion.is_empty() => drop(conversions.next()),
            Some('s' | 'b' | 'q' | 'c') => {}
            Some('d' | 'i' | 'u' | 'o' | 'x' | 'X' | 'f' | 'F' | 'e' | 'g') => {
                if !values.iter().enumerate().all(|(at, value)| is_plain(value) && !is_wild(at + 1)) {
                    return Err("a number in its format may compute what it is given".to_owned());
                }
            }
            _ => return Err(format!("its conversion `%{conversion}` is not known to be harmless")),
        }
    }
    Ok(())
}

/// Accepts variables that hold no secret.
fn printenv(arguments: &SortedArguments<'_>) -> Result<(), String> {
    const HARMLESS: &[&str] =
        &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];
    match texts(arguments)[..] {
        [] => Err("it shows the environment".to_owned()),
        ref names => match names.iter().find(|name| !HARMLESS.contains(name)) {
            Some(name) => Err(format!("`{name}` may hold a secret")),
            None => Ok(()),
        },
    }
}

/// Accepts at most 9999 seconds.
fn sleep(arguments: &SortedArguments<'_>) -> Result<(), String> {
    let short = |text: &&str| {
        let seconds = text.strip_suffix('s').unwrap_or(text);
        seconds.len() <= 4
            && !seconds.is_empty()
            && seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    if texts(arguments).iter().all(short) { Ok(()) } else { Err("it waits too long".to_owned()) }
}

/// Returns true if a shell has nothing to evaluate in a value.
fn is_plain(value: &str) -> bool {
    !value.contains(['[', '$', '`', '('])
}

/// Accepts tests of files and strings. `-v` and `-R` look a variable up, and run commands in the
/// subscript of its name.
fn test(words: &[&str]) -> Result<(), String> {
    const UNARY: &str = "-b -c -d -e -f -g -h -k -L -n -p -r -s -S -u -w -x -z -O -G -N";
    const BINARY: &str = "= == != -nt -ot -ef -a -o ! ( )";
    const NUMBERS: &str = "-eq -ne -lt -le -gt -ge";
    let is = |list: &str, word: &str| list.split(' ').any(|each| each == word);
    for (at, word) in words.iter().enumerate() {
        if is(NUMBERS, word) {
            let number = |at: usize| words.get(at).is_some_and(|side| side.parse::<i64>().is_ok());
            if at == 0 || !number(at - 1) || !number(at + 1) {
                return Err(format!("`{word}` may compute what it is given"));
            }
        } else if word.starts_with('-')
            && !is(UNARY, word)
            && !is(BINARY, word)
            && word.parse::<i64>().is_err()
        {
            return Err(format!("its operator `{word}` is not known to be harmless"));
        }
    }
    Ok(())
}

/// Accepts one literal directory without secrets.
fn cd(arguments: &SortedArguments<'_>, places: &WorkingDirectories) -> Result<(), String> {
    match arguments.operands[..] {
        [] => Ok(()),
        [word] if word.glob || word.text.starts_with(['-', '+']) => {
            Err(format!("where `{}` leads is not known", word.text))
        }
        [word] => secret::kept_in(&word.text, false, places).map_or(Ok(()), Err),
        _ => Err("it has more than one directory".to_owned()),
    }
}

/// Refuses to print all files, hidden ones included: an empty pattern is not a search.
fn search(arguments: &SortedArguments<'_>) -> Result<(), String> {
    const ALL: &[&str] = &["", ".", ".*", "^", "$", "..*", ".+", "^.*$"];
    let hidden =
        ["r", "R", "recursive", "dereference-recursive", ".", "u", "hidden", "unrestricted", "no-ignore"];
    if !arguments.has(&hidden) {
        return Ok(());
    }
    let given = arguments.options.iter().filter(|(name, _)| matches!(*name, "e" | "regexp"));
    let mut patterns: Vec<_> = given.filter_map(|(_, value)| *value).collect();
    if patterns.is_empty() {
        patterns.extend(arguments.operands.first().map(|word| word.text.as_str()));
    }
    let found = patterns.into_iter().find(|pattern| ALL.contains(pattern));
    found.map_or(Ok(()), |pattern| Err(format!("`{pattern}` looks for secrets")))
}

/// Refuses programs of jq that read the environment or other files.
fn jq(arguments: &SortedArguments<'_>) -> Result<(), String> {
    const READS: &[&str] =
        &["env", "ENV", "import", "include", "modulemeta", "input_filename", "get_search_list"];
    let filter = arguments.operands.first().map(|word| word.text.as_str()).unwrap_or_default();
    if arguments.operands.first().is_some_and(|word| word.glob) {
        return Err("its filter is not known".to_owned());
    }
    let names = filter.split(|c: char| !c.is_alphanumeric() && c != '_');
    match names.into_iter().find(|name| READS.contains(name)) {
        Some(name) => Err(format!("`{name}` in its filter may read more than the input")),
        None => endless::jq(filter),
    }
}

//! `sed`: a language. Only its plain part is accepted: print, delete, quit, substitute. It can also
//! write files (`w`) and run programs (`e`).

use super::grammar::SortedArguments;

/// Returns an error that says why a `sed` command is not harmless.
pub(super) fn check(arguments: &SortedArguments<'_>) -> Result<(), String> {
    let given = arguments.options.iter().filter(|(name, _)| matches!(*name, "e" | "expression"));
    let mut scripts: Vec<_> = given.filter_map(|(_, value)| *value).collect();
    if scripts.is_empty() {
        let script = arguments.operands.first().ok_or("it has no script")?;
        if script.glob {
            return Err("its script is not known".to_owned());
        }
        scripts.push(&script.text);
    }
    match scripts.into_iter().find(|script| !is_plain(script)) {
        Some(script) => Err(format!("its script `{script}` does more than print, delete and substitute")),
        None => Ok(()),
    }
}

/// Returns true if every command of a script is accepted.
fn is_plain(script: &str) -> bool {
    // In a bracket expression, `;` and the delimiter of a substitution may be literal.
    let ambiguous = script.contains(['[', '\\']) && script.contains(';');
    !ambiguous && !script.contains('\n') && script.split(';').all(|command| is_plain_command(command.trim()))
}

fn is_plain_command(command: &str) -> bool {
    let Some(rest) = after_addresses(command) else { return false };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('!').unwrap_or(rest).trim_start();
    match rest.strip_prefix('s') {
        Some(substitution) => is_plain_substitution(substitution),
        None => matches!(
            rest,
            "p" | "P" | "d" | "D" | "q" | "Q" | "=" | "l" | "n" | "N" | "g" | "G" | "h" | "H" | "x"
        ),
    }
}

/// Accepts `/old/new/flags` with exactly three delimiters, so that every parser sees the same three
/// parts.
fn is_plain_substitution(text: &str) -> bool {
    let Some(sign) = text.chars().next().filter(|c| "/|#,:@!%".contains(*c)) else { return false };
    let parts: Vec<_> = text.split(sign).collect();
    match parts[..] {
        ["", old, new, flags] => {
            // A backslash before the delimiter would make it part of the text.
            let escaped = old.ends_with('\\') || new.ends_with('\\');
            !escaped && flags.bytes().all(|byte| b"gpiI0123456789".contains(&byte))
        }
        _ => false,
    }
}

/// Returns the text after the addresses `3`, `$`, `/text/`, `1~2`, or two of them with a comma
/// between.
fn after_addresses(command: &str) -> Option<&str> {
    let Some(rest) = after_address(command)? else { return Some(command) };
    match rest.trim_start().strip_prefix(',') {
        None => Some(rest),
        Some(second) => {
            let second = second.trim_start();
            after_address(second.strip_prefix(['+', '~']).unwrap_or(second))?
        }
    }
}

/// Returns the text after one address: `None` if it is malformed, `Some(None)` if there is no
/// address.
#[expect(clippy::option_option, reason = "broken, absent and present are three things")]
fn after_address(text: &str) -> Option<Option<&str>> {
    let after_digits =
        |text: &'_ str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if let Some(rest) = text.strip_prefix('$') {
        return Some(Some(rest));
    }
    if let Some(regex) = text.strip_prefix('/') {
        let (regex, rest) = regex.split_once('/')?;
        let whole_sets = !regex.contains('[') || regex.contains(']');
        return (whole_sets && !regex.ends_with('\\')).then(|| Some(rest.strip_prefix('I').unwrap_or(rest)));
    }
    match after_digits(text) {
        0 => Some(None),
        digits => {
            let rest = text.get(digits..)?;
            match rest.strip_prefix('~') {
                Some(step) => Some(step.get(after_digits(step)..)),
                None => Some(Some(rest)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_deleting_and_substituting_is_plain() {
        for script in [
            "p",
            "5p",
            "1,5p",
            "$p",
            "$!d",
            "10,20p;30,40p",
            "1~2p",
            "/foo/p",
            "/a/,/b/p",
            "/a/,+3p",
            "/foo/Ip",
            "1d",
            "=",
            "$=",
            "10q",
            "s/a/b/",
            "s/a/b/g",
            "s|/usr|/opt|gp",
            "/x/s/a/b/2",
            "s/^[ \t]*//",
            r"s/\.rs$//",
            "1!G;h;$!d",
        ] {
            assert!(is_plain(script), "{script}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for script in [
            "1e id",
            "e",
            "e id",
            "w out",
            "1w out",
            "r /etc/shadow",
            "R f",
            "W f",
            "s/a/b/e",
            "s/a/b/w out",
            "s/a/b/gew x",
            "s/a/b/;s/x/y/e",
            "s/a\\/b/c/e",
            "s/[/]/;s/e/",
            "y/a/b/",
            "a\\\ntext",
            "1,5p\ne id",
            "{p;e id}",
            "s,a,b,e",
            "/a\\/e id/p",
            "b",
            "x;e id",
            "\\,a,e id",
            "sxaxbxe",
            "0~3w f",
            "",
            "s/a/b/m;e",
            "/[/]e/p",
        ] {
            assert!(!is_plain(script), "{script}");
        }
    }
}

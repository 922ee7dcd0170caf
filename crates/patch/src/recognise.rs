//! Finds a patch inside a command: models trained on shells write `apply_patch <<'EOF' …`.
//!
//! Strict on purpose: a command that is not exactly such a call runs as an ordinary command.

use crate::parse;

const NAMES: [&str; 2] = ["apply_patch", "applypatch"];

/// A patch found in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchInvocation<'a> {
    /// The directory of a leading `cd`, relative to the working directory of the command.
    pub workdir: Option<&'a str>,
    /// The text of the patch, not parsed yet.
    pub patch: &'a str,
}

/// The error for a patch that is the command itself, without the name of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("patch detected without explicit call to apply_patch. Rerun as [\"apply_patch\", \"<patch>\"]")]
pub struct ImplicitInvocation;

/// Returns the patch if a command is a call of `apply_patch` and nothing else.
pub fn recognise(argv: &[String]) -> Option<Result<PatchInvocation<'_>, ImplicitInvocation>> {
    match argv {
        [patch] if is_patch(patch) => Some(Err(ImplicitInvocation)),
        [name, patch] if NAMES.contains(&name.as_str()) => Some(Ok(PatchInvocation { workdir: None, patch })),
        _ => match script(argv)? {
            script if is_patch(script) => Some(Err(ImplicitInvocation)),
            script => call(script).map(Ok),
        },
    }
}

fn is_patch(text: &str) -> bool {
    text.trim_start().starts_with("*** Begin Patch") && parse(text).is_ok()
}

/// Returns the script that a shell is called with.
fn script(argv: &[String]) -> Option<&str> {
    let (program, arguments) = argv.split_first()?;
    let program = program.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (program.strip_suffix(".exe").unwrap_or(&program), arguments.as_slice()) {
        ("bash" | "zsh" | "sh", ["-lc" | "-c", script]) => Some(script),
        ("powershell" | "pwsh", [flags @ .., command, script])
            if command.eq_ignore_ascii_case("-Command")
                && flags.iter().all(|flag| flag.eq_ignore_ascii_case("-NoProfile")) =>
        {
            Some(script)
        }
        ("cmd", [flag, script]) if flag.eq_ignore_ascii_case("/c") => Some(script),
        _ => None,
    }
}

/// Parses `apply_patch <<EOF …`, with or without `cd DIRECTORY &&` before it.
fn call(script: &str) -> Option<PatchInvocation<'_>> {
    let mut rest = script.trim_start();
    let mut workdir = None;
    if let Some(after) = rest.strip_prefix("cd").filter(|after| after.starts_with([' ', '\t'])) {
        let (directory, after) = word(blanks(after))?;
        workdir = Some(directory);
        rest = blanks(after).strip_prefix("&&")?.trim_start();
    }
    let after = NAMES.iter().find_map(|name| rest.strip_prefix(name))?;
    let patch = heredoc(blanks(after).strip_prefix("<<")?)?;
    Some(PatchInvocation { workdir, patch })
}

/// Splits off a word that a shell would not expand.
fn word(text: &str) -> Option<(&str, &str)> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            let (inner, after) = rest.split_once(quote)?;
            let is_plain = quote == '\'' || !inner.contains(['$', '`', '\\']);
            let ends = after.starts_with([' ', '\t', '&']);
            return (is_plain && ends && !inner.is_empty() && !inner.starts_with('-'))
                .then_some((inner, after));
        }
    }
    let (word, after) = text.split_at(text.find([' ', '\t', '\n', '&'])?);
    let is_plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@' | '%' | '=')
    };
    (!word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain)).then_some((word, after))
}

/// Returns the body of a here-document at the end of the script. Nothing in it is expanded, because
/// a patch is meant literally.
fn heredoc(text: &str) -> Option<&str> {
    let (first, body) = text.split_once('\n')?;
    let first = first.trim();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let quoted = |quote| first.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    let name = quoted('\'').or_else(|| quoted('"')).unwrap_or(first);
    if !is_name(name) {
        return None;
    }
    // The first line that equals the delimiter ends it; only whitespace may follow.
    let mut end = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == name {
            return body[end + line.len()..].trim().is_empty().then(|| &body[..end]);
        }
        end += line.len();
    }
    None
}

fn blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: foo\n+hi\n*** End Patch";

    fn shell(script: &str) -> Vec<String> {
        ["bash", "-lc", script].map(str::to_owned).to_vec()
    }

    fn found(argv: &[String]) -> Option<(Option<String>, String)> {
        let invocation = recognise(argv)?.ok()?;
        Some((invocation.workdir.map(str::to_owned), invocation.patch.trim_end().to_owned()))
    }

    fn heredoc_after(start: &str) -> String {
        format!("{start} <<'EOF'\n{PATCH}\nEOF")
    }

    #[test]
    fn a_direct_call_is_recognised() {
        for name in NAMES {
            assert_eq!(found(&[name.into(), PATCH.into()]), Some((None, PATCH.into())));
        }
        assert_eq!(found(&["apply_patch".into(), "not a patch".into()]), Some((None, "not a patch".into())));
    }

    #[test]
    fn a_here_document_is_recognised() {
        for script in [
            heredoc_after("apply_patch"),
            heredoc_after("applypatch"),
            heredoc_after("  apply_patch "),
            format!("apply_patch <<PATCH\n{PATCH}\nPATCH\n\n"),
            format!("apply_patch << \"END\"\n{PATCH}\nEND"),
            format!("apply_patch<<'EOF'\n{PATCH}\nEOF\n"),
        ] {
            assert_eq!(found(&shell(&script)), Some((None, PATCH.into())), "{script}");
        }
    }

    #[test]
    fn a_leading_cd_is_the_working_directory() {
        for (start, directory) in [
            ("cd foo && apply_patch", "foo"),
            ("cd /a/b-c.d &&apply_patch", "/a/b-c.d"),
            ("cd foo&& apply_patch", "foo"),
            ("cd \"foo bar\" && apply_patch", "foo bar"),
            ("cd 'foo $bar' && applypatch", "foo $bar"),
            ("cd foo &&\napply_patch", "foo"),
        ] {
            assert_eq!(
                found(&shell(&heredoc_after(start))),
                Some((Some(directory.into()), PATCH.into())),
                "{start}"
            );
        }
    }

    #[test]
    fn every_shell_and_way_to_call_it_counts() {
        let script = heredoc_after("apply_patch");
        for before in [
            &["/bin/sh", "-c"][..],
            &["zsh", "-lc"],
            &["powershell.exe", "-NoProfile", "-Command"],
            &["pwsh", "-command"],
            &["cmd", "/c"],
        ] {
            let argv: Vec<String> =
                before.iter().copied().chain([script.as_str()]).map(str::to_owned).collect();
            assert_eq!(found(&argv), Some((None, PATCH.into())), "{before:?}");
        }
        for before in [&["python", "-c"][..], &["bash", "-x"], &["bash", "-l", "-c"], &["fish", "-c"]] {
            let argv: Vec<String> =
                before.iter().copied().chain([script.as_str()]).map(str::to_owned).collect();
            assert_eq!(recognise(&argv), None, "{before:?}");
        }
    }

    #[test]
    fn anything_more_is_a_command_like_any_other() {
        for start in [
            "cd foo; apply_patch",
            "cd foo || apply_patch",
            "cd foo | apply_patch",
            "cd foo & apply_patch",
            "echo foo && apply_patch",
            "echo foo; apply_patch",
            "cd foo && cd bar && apply_patch",
            "cd bar baz && apply_patch",
            "cd && apply_patch",
            "cd - && apply_patch",
            "cd '-P' && apply_patch",
            "cd $HOME && apply_patch",
            "cd ~/x && apply_patch",
            "cd \"$x\" && apply_patch",
            "cd a\"b\" && apply_patch",
            "cd 'a'b && apply_patch",
            "cd a* && apply_patch",
            "cd foo\n&& apply_patch",
            "apply_patch foo",
            "apply_patch_more",
            "FOO=1 apply_patch",
            "sudo apply_patch",
            "(apply_patch",
        ] {
            assert_eq!(recognise(&shell(&heredoc_after(start))), None, "{start}");
        }
        for script in [
            format!("apply_patch <<'EOF' && echo done\n{PATCH}\nEOF"),
            format!("apply_patch <<'EOF' > out\n{PATCH}\nEOF"),
            format!("apply_patch <<'EOF'\n{PATCH}\nEOF\necho done"),
            format!("apply_patch <<'EOF'\n{PATCH}\nEOF && echo done"),
            format!("apply_patch <<-EOF\n{PATCH}\nEOF"),
            format!("apply_patch <<'EOF'\n{PATCH}\n"),
            format!("apply_patch <<'EOF'\n{PATCH}\nEOF\nEOF\nx"),
            format!("echo '{PATCH}' | apply_patch"),
            format!("apply_patch '{PATCH}'"),
            String::new(),
        ] {
            assert_eq!(recognise(&shell(&script)), None, "{script}");
        }
        assert_eq!(recognise(&[]), None);
        assert_eq!(recognise(&["apply_patch".into(), PATCH.into(), "more".into()]), None);
    }

    #[test]
    fn a_bare_patch_is_told_to_name_the_program() {
        assert_eq!(recognise(&[PATCH.into()]), Some(Err(ImplicitInvocation)));
        assert_eq!(recognise(&shell(PATCH)), Some(Err(ImplicitInvocation)));
        assert_eq!(recognise(&["*** Begin Patch".into()]), None);
        assert!(
            ImplicitInvocation
                .to_string()
                .starts_with("patch detected without explicit call to apply_patch.")
        );
    }
}

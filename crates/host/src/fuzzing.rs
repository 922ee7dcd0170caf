//! Properties of the parsers of git's files that commands write, for the fuzz targets in `fuzz` and
//! for the tests below.
//!
//! Each takes any input, reads it once with the parser and once with a model of what git does, and
//! panics if they differ to the worse: what we take for harmless must be harmless to git.

use std::os::unix::ffi::OsStrExt;

use crate::workspace_guard::{
    git_config::{self, GitSetting},
    git_directory::{is_harmless_strategy, is_harmless_todo},
    roots::gitfile_target,
};

/// A `.git` file: a path that we read there is what git reads there, and what git would have
/// written.
pub fn git_file(content: &[u8]) {
    let Some(target) = gitfile_target(content) else { return };
    let target = target.as_os_str().as_bytes();
    assert_eq!(Some(target), git_reads_git_file(content));
    let written = [b"gitdir: ", target].concat();
    assert!(content == written || content == [&written[..], b"\n"].concat());
}

/// `read_gitfile_gently` of git: what is behind the word, without newlines at the end, up to a
/// zero.
fn git_reads_git_file(content: &[u8]) -> Option<&[u8]> {
    let end = content.iter().rposition(|byte| !b"\r\n".contains(byte))? + 1;
    let path = content[..end].strip_prefix(b"gitdir: ")?;
    path.split(|byte| *byte == 0).next().filter(|path| !path.is_empty())
}

/// The list of steps of an unfinished rebase, and the name of a merge strategy.
pub fn rebase_state(content: &[u8]) {
    if is_harmless_todo(content) {
        let mut steps = content.split(|byte| *byte == b'\n').map(git_reads_step);
        assert!(!steps.any(|command| command == Some("exec")));
    }
    if is_harmless_strategy(content) {
        // Git runs `git merge-NAME` for a name that is not its own.
        let name = content.trim_ascii();
        assert!(!name.iter().any(|byte| b"/ \t\n".contains(byte)));
        assert!(name.is_empty() == content.is_empty());
    }
}

/// `parse_insn_line` and `is_command` of git: the command of a step.
fn git_reads_step(line: &[u8]) -> Option<&'static str> {
    const COMMANDS: [(&str, u8); 14] = [
        ("pick", b'p'),
        ("revert", 0),
        ("edit", b'e'),
        ("reword", b'r'),
        ("fixup", b'f'),
        ("squash", b's'),
        ("exec", b'x'),
        ("break", b'b'),
        ("label", b'l'),
        ("reset", b't'),
        ("merge", b'm'),
        ("update-ref", b'u'),
        ("noop", 0),
        ("drop", b'd'),
    ];
    let blanks = line.iter().take_while(|byte| b" \t".contains(byte)).count();
    let line = &line[blanks..];
    let ends = |rest: &[u8]| matches!(rest.first(), None | Some(b' ' | b'\t' | b'\n' | b'\r' | 0));
    let is = |(name, letter): &(&str, u8)| {
        let rest = line.strip_prefix(name.as_bytes());
        let rest = rest.or_else(|| line.strip_prefix(&[*letter]).filter(|_| *letter != 0));
        rest.is_some_and(ends)
    };
    COMMANDS.iter().find(|command| is(command)).map(|command| command.0)
}

/// A list of settings as `git config --list -z` prints it: it says what was read, what is allowed
/// runs nothing, and what is written from it says the same again.
pub fn git_settings(listed: &[u8]) {
    let Some(settings) = GitSetting::parse_list(listed) else { return };
    let printed: Vec<_> = settings.iter().flat_map(print).collect();
    assert_eq!(printed, listed);
    for setting in settings.iter().filter(|setting| setting.is_allowed()) {
        let key = setting.key.to_ascii_lowercase();
        let section = key.split(|byte| *byte == b'.').next().unwrap_or_default();
        assert!(
            [&b"branch"[..], b"remote", b"submodule", b"core", b"user", b"extensions"].contains(&section)
        );
        let ends = |name: &[u8]| key.ends_with(name);
        assert!(
            ![&b".fsmonitor"[..], b".hookspath", b".sshcommand", b".uploadpack", b".update", b".path"]
                .into_iter()
                .any(ends)
        );
        if ends(b".url") || ends(b"remote") {
            assert!(!setting.value.as_deref().is_none_or(git_runs_helper));
        }
    }
    let text = git_config::write(&settings);
    assert_eq!(read_back(&text), Some(settings), "{}", text.escape_ascii());
}

/// Prints a setting as git lists it.
fn print(setting: &GitSetting) -> Vec<u8> {
    let value = setting.value.as_ref().map(|value| [b"\n", &value[..]].concat());
    [&setting.key[..], &value.unwrap_or_default(), b"\0"].concat()
}

/// `transport_get` of git: an address with `::` behind a scheme names a helper.
fn git_runs_helper(address: &[u8]) -> bool {
    let is_scheme = |(at, byte): &(usize, &u8)| {
        byte.is_ascii_alphabetic() || *at > 0 && (byte.is_ascii_digit() || b"+-.".contains(byte))
    };
    let scheme = address.iter().enumerate().take_while(is_scheme).count();
    address[scheme..].starts_with(b"::")
}

/// Reads settings in the form in which we write them; git's own reading is compared in the tests of
/// `git_config`.
fn read_back(text: &[u8]) -> Option<Vec<GitSetting>> {
    let (mut settings, mut section) = (Vec::new(), Vec::new());
    for line in
        text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
    {
        if let Some(header) = line.strip_prefix(b"[") {
            section = read_section(header.strip_suffix(b"]")?)?;
            continue;
        }
        let line = line.strip_prefix(b"\t")?;
        let name_end = line.windows(3).position(|part| part == b" = ").unwrap_or(line.len());
        let value = line.get(name_end + 3..).map(read_value);
        let key = [&section[..], b".", &line[..name_end]].concat();
        settings.push(GitSetting { key, value: value.map_or(Some(None), |value| value.map(Some))? });
    }
    Some(settings)
}

fn read_section(header: &[u8]) -> Option<Vec<u8>> {
    let Some(blank) = header.iter().position(|byte| *byte == b' ') else { return Some(header.to_vec()) };
    let mut section = [&header[..blank], b"."].concat();
    let mut subsection = header[blank + 1..].strip_prefix(b"\"")?.strip_suffix(b"\"")?.iter();
    while let Some(byte) = subsection.next() {
        section.push(*if *byte == b'\\' { subsection.next()? } else { byte });
    }
    Some(section)
}

fn read_value(written: &[u8]) -> Option<Vec<u8>> {
    let Some(quoted) = written.strip_prefix(b"\"") else {
        let is_safe = !written.is_empty() && written.trim_ascii() == written;
        let has_special = written.iter().any(|byte| b"\"\\#;".contains(byte));
        return (is_safe && !has_special).then(|| written.to_vec());
    };
    let (mut value, mut rest) = (Vec::new(), quoted.strip_suffix(b"\"")?.iter());
    while let Some(byte) = rest.next() {
        value.push(match (byte, byte == &b'\\') {
            (b'"', _) => return None,
            (byte, false) => *byte,
            (_, true) => match rest.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                b'b' => 8,
                other @ (b'"' | b'\\') => *other,
                _ => return None,
            },
        });
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes, and words that the parser knows, in any order.
    fn text(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
        let word = prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec());
        let part = prop_oneof![word, prop::collection::vec(any::<u8>(), 0..4)];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn a_git_file_is_read_as_git_reads_it(
            content in text(&["gitdir: ", "../x", "/a b", "\n", "\r\n", " ", "\0"]),
        ) {
            git_file(&content);
            git_file(&[b"gitdir: ", &content[..]].concat());
        }

        #[test]
        fn no_step_that_runs_a_program_passes_for_another(
            content in text(&["exec", "x", "pick", "p", " ", "\t", "\r", "\n", "\x0b", "\x0c", "#", "evil", "ort"]),
        ) {
            rebase_state(&content);
        }

        #[test]
        fn settings_are_what_git_listed_and_stay_so(
            content in text(&[
                "core", "remote", ".", "url", "\n", "\0", "ext::x", "\"", "\\", " ", "#", ";", "\r\n", "branch.a.remote",
            ]),
        ) {
            git_settings(&content);
            git_settings(&[&content[..], b"\0"].concat());
        }
    }
}

//! Settings of git that a command has written: which of them may stay.
//!
//! Git itself says what a file holds (`git config --file - --no-includes --list -z`, see [`GitProgram`](super::GitProgram)); here is
//! decided which keys are kept, and a file is written from nothing but those. No file of git's is parsed here.

use std::collections::BTreeSet;

/// The largest settings file that is looked at.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Keys that may stay, by section; `true` for sections with a subsection, as in `branch.main.remote`.
/// None of them makes git run a program, read other settings, or write outside its own directory.
#[rustfmt::skip]
const ALLOWED: &[(&str, bool, &[&str])] = &[
    ("branch", true, &["remote", "merge", "rebase", "pushremote", "description"]),
    // A partial or tagless clone is broken without what it says about itself.
    ("remote", true, &["url", "fetch", "promisor", "partialclonefilter", "tagopt"]),
    ("submodule", true, &["url", "active", "branch"]),
    // The last three are written by `git init` itself on file systems that need them.
    ("core", false, &["repositoryformatversion", "filemode", "bare", "logallrefupdates", "autocrlf", "sparsecheckout",
                      "sparsecheckoutcone", "ignorecase", "precomposeunicode", "symlinks"]),
    ("user", false, &["name", "email"]),
    ("pull", false, &["rebase", "ff"]),
    ("index", false, &["sparse"]),
    // How objects and references are stored: without it, a repository cannot be read.
    ("extensions", false, &["objectformat", "worktreeconfig", "refstorage", "partialclone"]),
];

/// What the names of settings are, or hold, that lead git to hooks, to programs, or to more settings. In lower case.
#[rustfmt::skip]
pub(super) const LEADING_NAMES: &[&str] = &[
    "hookspath", "include", "alias", "fsmonitor", "sshcommand", "gitproxy", "askpass", "editor", "pager", "textconv",
    "command", "cmd", "clean", "smudge", "process", "driver", "program", "helper", "uploadpack", "receivepack", "difftool",
    "external",
];

/// One setting as git lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GitSetting {
    /// Section and name in lower case, the subsection between them as it is.
    pub(crate) key: Vec<u8>,
    /// Absent for a key without `=`, which stands for `true`.
    pub(crate) value: Option<Vec<u8>>,
}

/// The parts of a key.
struct KeyParts<'a> {
    section: &'a [u8],
    subsection: Option<&'a [u8]>,
    name: &'a [u8],
}

impl GitSetting {
    /// Reads what `git config --list -z` prints. Nothing, if it is not of that form.
    pub(crate) fn parse_list(output: &[u8]) -> Option<Vec<Self>> {
        let Some(entries) = output.strip_suffix(b"\0") else { return output.is_empty().then(Vec::new) };
        entries.split(|byte| *byte == 0).map(Self::parse).collect()
    }

    fn parse(entry: &[u8]) -> Option<Self> {
        // Neither a section nor a name can hold a newline, and git refuses one in a subsection.
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let key = parts.next()?.to_vec();
        let setting = Self { key, value: parts.next().map(<[u8]>::to_vec) };
        setting.parts().is_some().then_some(setting)
    }

    fn parts(&self) -> Option<KeyParts<'_>> {
        let first = self.key.iter().position(|byte| *byte == b'.')?;
        let last = self.key.iter().rposition(|byte| *byte == b'.')?;
        let (section, name) = (&self.key[..first], &self.key[last + 1..]);
        let is_word = |word: &[u8]| {
            !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        };
        let subsection = (first < last).then(|| &self.key[first + 1..last]);
        (is_word(section) && is_word(name)).then_some(KeyParts { section, subsection, name })
    }

    /// Tells whether a setting may be kept whoever wrote it.
    pub(crate) fn is_allowed(&self) -> bool {
        let Some(KeyParts { section, subsection, name }) = self.parts() else { return false };
        let is = |word: &[u8], known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        let is_listed = ALLOWED.iter().any(|(known, with_subsection, names)| {
            is(section, known)
                && *with_subsection == subsection.is_some()
                && names.iter().any(|own| is(name, own))
        });
        // A branch may have an address where others have the name of a remote.
        let is_address = ["url", "remote", "pushremote"].iter().any(|address| is(name, address));
        is_listed && !(is_address && self.value.as_deref().is_none_or(is_command_address))
    }

    /// Tells whether a setting names hooks, programs or a file with more settings.
    pub(super) fn leads_elsewhere(&self) -> bool {
        self.parts().is_some_and(|KeyParts { section, name, .. }| match section {
            b"include" | b"includeif" => name == b"path",
            b"alias" => true,
            _ => LEADING_NAMES.iter().any(|known| name == known.as_bytes()),
        })
    }

    /// Tells whether a setting names a file with more settings.
    pub(super) fn is_include(&self) -> bool {
        self.parts().is_some_and(|parts| matches!(parts.section, b"include" | b"includeif"))
    }

    /// The key as text, for a report.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }
}

/// Tells whether git would run a helper for an address (`HELPER::ADDRESS`), or might take it for an option.
fn is_command_address(url: &[u8]) -> bool {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let scheme = url.iter().take_while(|byte| is_scheme(byte)).count();
    url[scheme..].starts_with(b"::") || url.starts_with(b"-") || url.windows(4).any(|part| part == b"://-")
}

/// A change to the values of one key: all of them are replaced by these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitSettingEdit {
    pub(super) key: Vec<u8>,
    pub(super) values: Vec<Option<Vec<u8>>>,
}

/// What a command did to a settings file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitConfigChange {
    /// Changes that may be kept.
    pub(super) edits: Vec<GitSettingEdit>,
    /// Keys whose change is dropped.
    pub(super) dropped: Vec<String>,
}

impl GitConfigChange {
    /// Compares the settings before and after a command.
    pub(super) fn between(before: &[GitSetting], after: &[GitSetting]) -> Self {
        let keys: BTreeSet<_> = before.iter().chain(after).map(|setting| &setting.key).collect();
        let mut change = Self::default();
        for key in keys {
            let of = |settings: &[GitSetting]| -> Vec<GitSetting> {
                settings.iter().filter(|setting| setting.key == *key).cloned().collect()
            };
            let (old, new) = (of(before), of(after));
            if old == new {
                continue;
            }
            // Removing a setting that only the user could have made is dropped, too.
            if old.iter().chain(&new).all(GitSetting::is_allowed) {
                let values = new.into_iter().map(|setting| setting.value).collect();
                change.edits.push(GitSettingEdit { key: key.clone(), values });
            } else {
                let name = old.iter().chain(&new).next().map(GitSetting::name);
                change.dropped.extend(name);
            }
        }
        change
    }
}

/// Writes a settings file, in the form git itself uses.
pub(crate) fn write(settings: &[GitSetting]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut current = None;
    for setting in settings {
        let Some(KeyParts { section, subsection, name }) = setting.parts() else { continue };
        if current != Some((section, subsection)) {
            text.push(b'[');
            text.extend_from_slice(section);
            if let Some(subsection) = subsection {
                text.extend_from_slice(b" \"");
                for byte in subsection {
                    // In a section's name, unlike in a value, a backslash stands for the next character only.
                    text.extend_from_slice(if b"\"\\".contains(byte) { b"\\" } else { b"" });
                    text.push(*byte);
                }
                text.push(b'"');
            }
            text.extend_from_slice(b"]\n");
            current = Some((section, subsection));
        }
        text.push(b'\t');
        text.extend_from_slice(name);
        if let Some(value) = &setting.value {
            text.extend_from_slice(b" = ");
            push_value(&mut text, value);
        }
        text.push(b'\n');
    }
    text
}

fn push_value(text: &mut Vec<u8>, value: &[u8]) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\#;".contains(byte);
    let needs_quotes =
        !value.iter().all(|byte| is_plain(byte) || *byte == b' ') || value.trim_ascii() != value;
    if needs_quotes || value.is_empty() {
        text.push(b'"');
        push_escaped(text, value);
        text.push(b'"');
    } else {
        text.extend_from_slice(value);
    }
}

fn push_escaped(text: &mut Vec<u8>, value: &[u8]) {
    for byte in value {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\t' => text.extend_from_slice(b"\\t"),
            8 => text.extend_from_slice(b"\\b"),
            _ => text.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests;

//! Settings of git by what they can do: those that a command may write, and those that name
//! programs.

use super::KeyParts;

/// The values that a setting may have.
#[derive(Debug, Clone, Copy)]
enum AllowedValue {
    Text,
    /// An address, or the name of a remote: none for which git runs a helper.
    Address,
    /// A boolean of git's, or one of these words.
    BooleanOr(&'static [&'static str]),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

use AllowedValue::{Address, BooleanOr, OneOf, Text};

/// A key and its allowed values. `branch.main.remote` has a subsection, `core.bare` has none.
type AllowedKey = (&'static str, AllowedValue);

const BOOLEAN: AllowedValue = BooleanOr(&[]);
const REBASE: AllowedValue = BooleanOr(&["merges", "m", "interactive", "i"]);

/// Keys that may stay, by section; `true` for sections with a subsection.
/// None of them makes git run a program, read other settings, or write outside its own directory.
#[rustfmt::skip]
const ALLOWED: &[(&str, bool, &[AllowedKey])] = &[
    ("branch", true, &[("remote", Address), ("merge", Text), ("rebase", REBASE), ("pushremote", Address), ("description", Text)]),
    // A partial or tagless clone is broken without what it says about itself.
    ("remote", true, &[("url", Address), ("fetch", Text), ("promisor", BOOLEAN), ("partialclonefilter", Text),
                       ("tagopt", OneOf(&["--tags", "--no-tags"])), ("mirror", BOOLEAN)]),
    ("submodule", true, &[("url", Address), ("active", BOOLEAN), ("branch", Text)]),
    // The last three are written by `git init` itself on file systems that need them.
    ("core", false, &[("repositoryformatversion", OneOf(&["0", "1"])), ("filemode", BOOLEAN), ("bare", BOOLEAN),
                      ("logallrefupdates", BooleanOr(&["always"])), ("autocrlf", BooleanOr(&["input"])),
                      ("sparsecheckout", BOOLEAN), ("sparsecheckoutcone", BOOLEAN),
                      ("ignorecase", BOOLEAN), ("precomposeunicode", BOOLEAN), ("symlinks", BOOLEAN)]),
    ("user", false, &[("name", Text), ("email", Text)]),
    ("pull", false, &[("rebase", REBASE), ("ff", BooleanOr(&["only"]))]),
    ("push", false, &[("default", OneOf(&["nothing", "current", "upstream", "tracking", "simple", "matching"])),
                      ("autosetupremote", BOOLEAN)]),
    ("merge", false, &[("conflictstyle", OneOf(&["merge", "diff3", "zdiff3"]))]),
    ("diff", false, &[("algorithm", OneOf(&["default", "myers", "minimal", "patience", "histogram"]))]),
    ("commit", false, &[("verbose", BooleanOr(&["2"]))]),
    ("rerere", false, &[("enabled", BOOLEAN)]),
    ("index", false, &[("sparse", BOOLEAN)]),
    // The storage format of objects and references: without it, a repository cannot be read.
    ("extensions", false, &[("objectformat", OneOf(&["sha1", "sha256"])), ("worktreeconfig", BOOLEAN),
                            ("refstorage", OneOf(&["files", "reftable"])), ("partialclone", Text)]),
];

/// Keys that a command may not write, but whose values name nothing that git runs or trusts.
#[rustfmt::skip]
const HARMLESS: &[(&str, bool, &[&str])] = &[
    ("remote", true, &["pushurl", "push"]),
    ("core", false, &["worktree", "excludesfile", "editorconfig"]),
    ("blame", false, &["ignorerevsfile"]),
    ("commit", false, &["template"]),
    ("diff", false, &["orderfile"]),
    ("fetch", false, &["prune"]),
    ("mailmap", false, &["file"]),
    ("safe", false, &["directory"]),
];

/// Substrings of the names of settings that name a program.
#[rustfmt::skip]
const PROGRAM_NAMES: &[&str] = &[
    "command", "cmd", "program", "helper", "hook", "pager", "editor", "filter", "tunnel", "fsmonitor", "textconv", "driver",
    "gitproxy", "askpass", "clean", "smudge", "process", "external", "uploadpack", "receivepack", "update", "tool", "path",
];

/// Sections whose settings are all command lines.
const PROGRAM_SECTIONS: &[&str] = &["alias", "pager", "man", "browser", "web"];

/// Schemes of addresses that git itself knows. For any other it runs `git-remote-SCHEME`.
const SCHEMES: &[&str] = &["https", "http", "ssh", "git", "file", "ftp", "ftps", "git+ssh", "ssh+git"];

fn is(word: &[u8], known: &str) -> bool {
    word.eq_ignore_ascii_case(known.as_bytes())
}

fn allowed_value(parts: &KeyParts<'_>) -> Option<AllowedValue> {
    let has_subsection = parts.subsection.is_some();
    let section = |known: &&(&str, bool, &'static [AllowedKey])| {
        is(parts.section, known.0) && known.1 == has_subsection
    };
    let (_, _, keys) = ALLOWED.iter().find(section)?;
    keys.iter().find(|(name, _)| is(parts.name, name)).map(|(_, value)| *value)
}

/// Returns true if a setting may be kept even if a command wrote it.
pub(super) fn is_allowed(parts: &KeyParts<'_>, value: Option<&[u8]>) -> bool {
    allowed_value(parts).is_some_and(|allowed| allowed.holds(value))
}

/// Tells whether no value of a setting can name a program, hooks or a file of settings.
pub(super) fn is_harmless(parts: &KeyParts<'_>) -> bool {
    let has_subsection = parts.subsection.is_some();
    let is_listed = HARMLESS.iter().any(|(section, with_subsection, names)| {
        is(parts.section, section)
            && *with_subsection == has_subsection
            && names.iter().any(|name| is(parts.name, name))
    });
    is_listed || allowed_value(parts).is_some()
}

/// Tells whether a setting is there to name a program.
pub(super) fn names_program(parts: &KeyParts<'_>, value: Option<&[u8]>) -> bool {
    let name = parts.name.to_ascii_lowercase();
    let holds = |known: &&str| name.windows(known.len()).any(|part| part == known.as_bytes());
    // `submodule.NAME.update` is a word, unless it begins so.
    let is_command = value.is_some_and(|value| value.starts_with(b"!"));
    let in_section = PROGRAM_SECTIONS.iter().any(|section| is(parts.section, section));
    !is_harmless(parts) && (is_command || in_section || PROGRAM_NAMES.iter().any(holds))
}

impl AllowedValue {
    /// Tells whether a value is one of these. A key without a value stands for `true`.
    fn holds(self, value: Option<&[u8]>) -> bool {
        let is_word = |words: &[&str]| value.is_some_and(|value| words.iter().any(|word| is(value, word)));
        match self {
            Text => value.is_some(),
            Address => value.is_some_and(|value| !is_command_address(value)),
            BooleanOr(words) => {
                value.is_none()
                    || is_word(&["true", "yes", "on", "1", "false", "no", "off", "0", ""])
                    || is_word(words)
            }
            OneOf(words) => is_word(words),
        }
    }
}

/// Tells whether git would run a helper for an address (`HELPER::ADDRESS`, or a scheme that is not
/// its own), or might take it for an option.
fn is_command_address(url: &[u8]) -> bool {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let length = url.iter().take_while(|byte| is_scheme(byte)).count();
    let (scheme, rest) = url.split_at(length);
    let is_helper =
        rest.starts_with(b"::") || rest.starts_with(b"://") && !SCHEMES.iter().any(|known| is(scheme, known));
    is_helper || url.starts_with(b"-") || url.windows(4).any(|part| part == b"://-")
}

/// Returns true if a settings file is written as git writes it and holds only harmless settings.
/// Returns false in doubt; then git is asked.
pub(in super::super) fn is_plainly_harmless(config: &[u8]) -> bool {
    let mut section: Option<(&[u8], Option<&[u8]>)> = None;
    config.split(|byte| *byte == b'\n').all(|line| {
        if line.is_empty() {
            return true;
        }
        if let Some(header) = plain_header(line) {
            section = Some(header);
            return true;
        }
        let (Some((section, subsection)), Some(name)) = (section, plain_name(line)) else { return false };
        is_harmless(&KeyParts { section, subsection, name })
    })
}

fn is_plain_word(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Reads `[section]` or `[section "subsection"]`.
fn plain_header(line: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let inside = line.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let Some(space) = inside.iter().position(|byte| *byte == b' ') else {
        return is_plain_word(inside).then_some((inside, None));
    };
    let subsection = inside[space + 1..].strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./ ".contains(byte);
    (is_plain_word(&inside[..space]) && subsection.iter().all(is_plain))
        .then_some((&inside[..space], Some(subsection)))
}

/// Reads the name in `<tab>name = value`, where the value has neither quotes nor escapes nor
/// comments.
fn plain_name(line: &[u8]) -> Option<&[u8]> {
    let inside = line.strip_prefix(b"\t")?;
    let end = inside.windows(3).position(|part| part == b" = ")?;
    let is_plain = |byte: &u8| (byte.is_ascii_graphic() || *byte == b' ') && !b"\"\\#;".contains(byte);
    (is_plain_word(&inside[..end]) && inside[end..].iter().all(is_plain)).then_some(&inside[..end])
}

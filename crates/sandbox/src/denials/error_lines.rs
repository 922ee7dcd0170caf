//! Finds error messages in output that report a refused system call. They name candidates, which
//! prove nothing.

/// Maximum number of bytes read from the end of an output. Programs print errors last.
const MAX_READ_BYTES: usize = 16 * 1024;

/// Maximum number of error lines that are checked, the last ones first.
const MAX_ERROR_LINES: usize = 32;

/// Maximum number of candidates of one error line.
const MAX_CANDIDATES: usize = 12;

/// Maximum number of lines before an error line that may name its path, as in `failed to open:
/// PATH`, `Caused by:`, `EROFS`.
const MAX_LINES_BEFORE: usize = 4;

/// Maximum length of a path.
const MAX_PATH_BYTES: usize = 4096;

/// The error that a line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// `EROFS`.
    ReadOnly,
    /// The program asked first (`access`), or does not say which error it was.
    Unwritable,
    /// `EACCES` and `EPERM`.
    Refused,
    /// `EBUSY`.
    Busy,
}

/// Texts that programs print for each error, in lower case.
const SIGNS: [(&str, ErrorClass); 16] = [
    ("read-only file system", ErrorClass::ReadOnly),
    ("erofs", ErrorClass::ReadOnly),
    ("os error 30)", ErrorClass::ReadOnly),
    ("errno 30]", ErrorClass::ReadOnly),
    ("readonly database", ErrorClass::ReadOnly),
    ("unable to open database", ErrorClass::Unwritable),
    ("not writable", ErrorClass::Unwritable),
    ("n't writable", ErrorClass::Unwritable),
    ("not writeable", ErrorClass::Unwritable),
    ("permission denied", ErrorClass::Refused),
    ("eacces", ErrorClass::Refused),
    ("os error 13)", ErrorClass::Refused),
    ("operation not permitted", ErrorClass::Refused),
    ("eperm", ErrorClass::Refused),
    ("os error 1)", ErrorClass::Refused),
    ("device or resource busy", ErrorClass::Busy),
];

/// Texts that programs print if the network is unreachable, in lower case.
const NETWORK_SIGNS: [&str; 11] = [
    "network is unreachable",
    "could not resolve host",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "failed to resolve",
    "failed to lookup address",
    "eai_again",
    "getaddrinfo enotfound",
    "address family not supported",
];

/// A line that reports a refused system call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ErrorLine {
    pub(super) class: ErrorClass,
    /// Paths that it may refer to, the likeliest first.
    pub(super) candidates: Vec<String>,
    /// Words that may be paths as well as words of a sentence.
    pub(super) words: Vec<String>,
    /// Paths in the lines before it.
    pub(super) earlier: Vec<String>,
    /// The error ends its sentence, as where a program prints what the system said.
    pub(super) is_last: bool,
}

/// Returns the error lines about files at the end of an output, the last one first.
pub(super) fn error_lines(output: &[u8]) -> Vec<ErrorLine> {
    let text = end_of(output);
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().enumerate().rev().filter_map(|(number, line)| {
        let lower = line.to_ascii_lowercase();
        let (at, sign, class) =
            SIGNS.iter().find_map(|(sign, class)| Some((lower.find(sign)?, *sign, *class)))?;
        let rest = lower[at + sign.len()..].trim_start();
        let is_last = rest.is_empty()
            || rest.starts_with([')', ',', '.', ':', ';', '(', '@'])
            || rest.starts_with("at ");
        let (before, after) = line.split_at_checked(at)?;
        let before_it = lines[number.saturating_sub(MAX_LINES_BEFORE)..number].iter().rev();
        let earlier = before_it.flat_map(|earlier| {
            let quoted = quoted(earlier).into_iter().rev().filter(|text| text.contains('/'));
            quoted.chain(words_with_slash(earlier).into_iter().rev()).collect::<Vec<_>>()
        });
        Some(ErrorLine {
            class,
            candidates: usable(named_in(before, after)),
            words: usable(words_beside(before, after)),
            earlier: usable(earlier.collect()),
            is_last,
        })
    });
    found.take(MAX_ERROR_LINES).collect()
}

/// Returns the host that the last error about the network names, or an empty text if there is such
/// an error without a host.
pub(super) fn unreachable_host(output: &[u8]) -> Option<String> {
    let text = end_of(output);
    let end_of_sign = |line: &str| {
        let lower = line.to_ascii_lowercase();
        let found = NETWORK_SIGNS.iter().filter_map(|sign| Some((lower.find(sign)?, sign.len())));
        found.min().map(|(at, length)| at + length)
    };
    let mut complains = false;
    for line in text.lines().rev() {
        let Some(end) = end_of_sign(line) else { continue };
        complains = true;
        let after = line.get(end..).and_then(|after| words(after).find_map(host_in));
        let address = || words(line).filter(|word| word.contains("://")).find_map(host_in);
        if let Some(host) = after.or_else(address) {
            return Some(host);
        }
    }
    complains.then(String::new)
}

/// Returns the host of the first address (`https://HOST/`, `git@HOST:`) among arguments.
pub(super) fn host_of_address(arguments: &[String]) -> Option<String> {
    let has_host = |word: &&str| word.contains("://") || word.contains('@');
    arguments.iter().flat_map(|argument| words(argument)).filter(has_host).find_map(host_in)
}

fn end_of(output: &[u8]) -> String {
    String::from_utf8_lossy(&output[output.len().saturating_sub(MAX_READ_BYTES)..]).into_owned()
}

/// Returns what may be a path in a line, the likeliest first: in quotes, with a slash, alone
/// between colons, next to the error.
fn named_in(before: &str, after: &str) -> Vec<String> {
    let mut found: Vec<String> = quoted(before).into_iter().rev().collect();
    found.extend(quoted(after));
    found.extend(words_with_slash(before).into_iter().rev());
    found.extend(words_with_slash(after));
    // The first field is the program that speaks.
    let fields = before.split(':').map(str::trim).filter(|field| !field.is_empty()).skip(1);
    // Some shells give the number of a line alone.
    let is_number = |field: &str| field.bytes().all(|byte| byte.is_ascii_digit());
    let alone: Vec<&str> =
        fields.filter(|field| !field.contains(char::is_whitespace) && !is_number(field)).collect();
    found.extend(alone.into_iter().rev().map(str::to_owned));
    found
}

/// Returns the words beside an error, as in `cannot open output file a.out: ERROR` and
/// `ERROR @ rb_sysopen - FILE`.
fn words_beside(before: &str, after: &str) -> Vec<String> {
    let behind = after.rsplit_once(" - ").and_then(|(_, rest)| bare_words(rest).next());
    bare_words(before).next_back().into_iter().chain(behind).collect()
}

/// Returns what stands in quotes, in order.
fn quoted(text: &str) -> Vec<String> {
    const PAIRS: [(char, char); 5] =
        [('\'', '\''), ('"', '"'), ('`', '`'), ('\u{2018}', '\u{2019}'), ('\u{201c}', '\u{201d}')];
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, close)) = rest.char_indices().find_map(|(at, char)| {
        let pair = PAIRS.iter().find(|(open, _)| *open == char)?;
        Some((at + char.len_utf8(), pair.1))
    }) {
        rest = &rest[at..];
        // Some programs open with a grave accent and close with an apostrophe.
        let Some(end) = rest.find(|char: char| char == close || close == '`' && char == '\'') else { break };
        found.push(rest[..end].to_owned());
        let mut behind = rest[end..].chars();
        behind.next();
        rest = behind.as_str();
    }
    found
}

/// Returns the words that look like paths, in order; not the name of the program that speaks, as in
/// `/bin/sh: line 1: x`.
fn words_with_slash(text: &str) -> Vec<String> {
    let is_speaker = |word: &str| {
        let rest = text.strip_prefix(word).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|rest| !rest.trim().is_empty())
    };
    words(text)
        .filter(|word| word.contains('/') && !word.contains("://") && !is_speaker(word))
        .map(str::to_owned)
        .collect()
}

fn bare_words(text: &str) -> impl DoubleEndedIterator<Item = String> + '_ {
    words(text)
        .filter(|word| word.starts_with(|first: char| first.is_alphanumeric() || "._-~".contains(first)))
        .map(str::to_owned)
}

/// Returns the words of a line without what programs put around them.
fn words(line: &str) -> impl DoubleEndedIterator<Item = &str> {
    let around = |char: char| {
        char.is_whitespace() || "'\"`()[]<>,;\\".contains(char) || "\u{2018}\u{2019}".contains(char)
    };
    line.split(around).map(|word| word.trim_end_matches([':', '.'])).filter(|word| !word.is_empty())
}

fn usable(candidates: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for candidate in candidates {
        let is_path = candidate.contains(char::is_alphanumeric)
            && candidate.len() <= MAX_PATH_BYTES
            && !candidate.contains(|char: char| char.is_control() || char == char::REPLACEMENT_CHARACTER);
        if is_path && !kept.contains(&candidate) && kept.len() < MAX_CANDIDATES {
            kept.push(candidate);
        }
    }
    kept
}

/// Returns the host of an address, or a word that has the form of a host name.
fn host_in(word: &str) -> Option<String> {
    let word = word.rsplit("://").next().unwrap_or(word).split(['/', '?']).next()?;
    let word = word.rsplit(['@', '=']).next()?.split(':').next()?;
    let (rest, top) = word.rsplit_once('.')?;
    let is_name = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let fits = top.len() >= 2
        && top.bytes().all(|byte| byte.is_ascii_alphabetic())
        && rest.split('.').all(|part| !part.is_empty() && is_name(part))
        && word.len() <= 253;
    fits.then(|| word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(line: &str) -> Option<String> {
        let ErrorLine { candidates, words, earlier, .. } = error_lines(line.as_bytes()).into_iter().next()?;
        candidates.into_iter().chain(words).chain(earlier).next()
    }

    #[test]
    fn the_likeliest_path_of_a_complaint_comes_first() {
        for (line, path) in [
            ("touch: cannot touch 'm2': Read-only file system", "m2"),
            ("/bin/bash: line 1: f: Read-only file system", "f"),
            ("mkdir: cannot create directory \u{2018}d e\u{2019}: Read-only file system", "d e"),
            ("fatal: could not create work tree dir 'b': Read-only file system", "b"),
            ("fatal: Unable to create '/w/.git/index.lock': Read-only file system", "/w/.git/index.lock"),
            ("tar: x.txt: Cannot open: Read-only file system", "x.txt"),
            ("/usr/bin/ld: cannot open output file a.out: Read-only file system", "a.out"),
            ("OSError: [Errno 30] Read-only file system: 'out.txt'", "out.txt"),
            ("Error: EROFS: read-only file system, mkdir '/w/node_modules'", "/w/node_modules"),
            ("open build/x: read-only file system", "build/x"),
            ("java.io.FileNotFoundException: f.txt (Read-only file system)", "f.txt"),
            (
                "-e:1:in 'File#initialize': Read-only file system @ rb_sysopen - f (Errno::EROFS)",
                "File#initialize",
            ),
            ("cp: cannot copy /w/a to '/etc/x': Permission denied", "/etc/x"),
            ("/etc/x: Permission denied", "/etc/x"),
            ("tee: out/x: Read-only file system", "out/x"),
            ("sh: 1: cannot create q: Read-only file system", "q"),
            (
                "E: Could not open lock file /var/lib/dpkg/lock - open (30: Read-only file system)",
                "/var/lib/dpkg/lock",
            ),
        ] {
            assert_eq!(first(line).as_deref(), Some(path), "{line}");
        }
        let ruby = error_lines(b"in 'initialize': Read-only file system @ rb_sysopen - f (Errno::EROFS)");
        assert!(ruby[0].words.contains(&"f".to_owned()), "{ruby:?}");
    }

    #[test]
    fn a_path_may_stand_in_the_lines_before() {
        let said =
            "error: failed to open `/h/.cargo/x.lock`\n\nCaused by:\n  Read-only file system (os error 30)\n";
        assert_eq!(first(said).as_deref(), Some("/h/.cargo/x.lock"));
    }

    #[test]
    fn ordinary_failures_are_no_complaints() {
        for line in ["ls: cannot access 'x': No such file or directory", "test failed", "", "2 tests passed"]
        {
            assert_eq!(error_lines(line.as_bytes()), [], "{line}");
        }
    }

    #[test]
    fn the_host_of_a_network_complaint_is_found() {
        for (line, host) in [
            ("curl: (6) Could not resolve host: example.com", "example.com"),
            (
                "fatal: unable to access 'https://git.example.org/a/': Could not resolve host: git.example.org",
                "git.example.org",
            ),
            (
                "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
                "registry.npmjs.org",
            ),
            ("socket.gaierror: [Errno -3] Temporary failure in name resolution", ""),
            ("Failed to resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)", "pypi.org"),
            ("ssh: Could not resolve hostname host.example: Name or service not known", "host.example"),
        ] {
            assert_eq!(unreachable_host(line.as_bytes()).as_deref(), Some(host), "{line}");
        }
        assert_eq!(unreachable_host(b"404 Not Found at example.com"), None);
    }
}

//! Git's settings without those that make git run programs.

/// Sections and keys that are kept in a repository a command has made; everything else may run something.
#[rustfmt::skip]
const HARMLESS: &[(&str, &[&str])] = &[
    ("core", &["repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
               "symlinks", "autocrlf", "eol", "safecrlf", "abbrev", "quotepath", "worktree", "sparsecheckout",
               "sparsecheckoutcone"]),
    ("extensions", &["objectformat", "refstorage"]),
    ("user", &["name", "email", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("remote", &["url", "pushurl", "fetch", "push", "tagopt", "prune"]),
    ("branch", &["remote", "merge", "pushremote", "rebase", "description", "autosetuprebase", "autosetupmerge"]),
    ("submodule", &["url", "active", "branch"]),
    ("push", &["default", "autosetupremote"]),
    ("pull", &["rebase", "ff"]),
    ("fetch", &["prune"]),
    ("merge", &["ff", "conflictstyle"]),
    ("rebase", &["autostash", "autosquash"]),
    ("commit", &["verbose"]),
    ("color", &["ui"]),
    ("gc", &["auto"]),
];

/// Forms of an address that are commands.
const RUNNING_ADDRESSES: [&str; 4] = ["ext::", "fd::", "ssh://-", "::"];

/// The same settings, line by line, as far as they are known to be harmless.
pub(crate) fn harmless(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let mut section = String::new();
    let mut kept = String::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let mut whole = line.to_owned();
        // A line that ends in a backslash goes on in the next.
        while whole.trim_end_matches(['\n', '\r']).ends_with('\\') {
            match lines.next() {
                Some(next) => whole.push_str(next),
                None => break,
            }
        }
        if keep(&whole, &mut section) {
            kept.push_str(&whole);
        }
    }
    kept.into_bytes()
}

/// What settings say about where git looks for more that it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leads {
    /// The last `core.hooksPath`.
    pub(crate) hooks: Option<String>,
    /// Every `include.path` and `includeIf.*.path`, whatever its condition: that may come true later.
    pub(crate) included: Vec<String>,
}

/// Reads them as far as they are written plainly, each on one line, alone or behind the head of its section.
pub(crate) fn leads(text: &str) -> Leads {
    let mut section = String::new();
    let mut leads = Leads::default();
    for line in text.lines().map(str::trim) {
        let mut setting = line;
        if let Some(head) = line.strip_prefix('[') {
            let name: String = head.chars().take_while(char::is_ascii_alphanumeric).collect();
            section = name.to_ascii_lowercase();
            setting = end_of_head(head).map_or("", |end| &head[end + 1..]);
        }
        let Some((key, value)) = setting.split_once('=') else { continue };
        match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
            ("core", "hookspath") => leads.hooks = Some(plain(value)),
            ("include" | "includeif", "path") => leads.included.push(plain(value)),
            _ => {}
        }
    }
    leads
}

/// A value without quotes, escapes, and what is said about it behind it.
fn plain(value: &str) -> String {
    let mut plain = String::new();
    let (mut quoted, mut kept) = (false, 0);
    let mut rest = value.trim().chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => plain.extend(rest.next()),
            _ => plain.push(c),
        }
        if quoted || !c.is_whitespace() {
            kept = plain.len();
        }
    }
    plain.truncate(kept);
    plain
}

/// Whether a line may stay. A section's head changes the section.
fn keep(line: &str, section: &mut String) -> bool {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return true;
    }
    let setting = match line.strip_prefix('[') {
        None => line,
        Some(head) => {
            let Some(end) = end_of_head(head) else {
                section.clear();
                return false;
            };
            let name: String = head.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            *section = name.to_ascii_lowercase();
            let rest = head[end + 1..].trim();
            if rest.is_empty() || rest.starts_with(['#', ';']) {
                return HARMLESS.iter().any(|(known, _)| known == section);
            }
            rest
        }
    };
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.trim().to_ascii_lowercase();
    let known = HARMLESS.iter().any(|(known, keys)| known == section && keys.contains(&key.as_str()));
    known && !setting.contains('\\') && !RUNNING_ADDRESSES.iter().any(|form| value.contains(form))
}

/// Where the bracket is that ends a section's head; one inside quotes does not.
fn end_of_head(head: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in head.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        String::from_utf8(harmless(text.as_bytes())).unwrap()
    }

    #[test]
    fn what_git_writes_by_itself_stays() {
        let usual = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = /a/b\n\t\
                     fetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\t\
                     merge = refs/heads/main\n[user]\n\tname = me\n";
        assert_eq!(cleaned(usual), usual);
    }

    #[test]
    fn where_settings_lead_is_read_as_git_does() {
        let text = "[core]\n\thooksPath = old\n[Core] HooksPath = \"a b\" ; why\n[include]\npath=../x # y\n\
                    [includeIf \"gitdir:/]x\"] path = \"p#q\"\n[other]\npath = no\n[include \"sub\"]\n path = a\\\\b \n";
        let included = ["../x", "p#q", "a\\b"].map(str::to_owned).to_vec();
        assert_eq!(leads(text), Leads { hooks: Some("a b".to_owned()), included });
    }

    #[test]
    fn whatever_may_run_a_program_goes() {
        for (text, left) in [
            ("[core]\n\tfsmonitor = ./evil\n", "[core]\n"),
            ("[core]\n\tFSMonitor=./evil\n\tbare = false\n", "[core]\n\tbare = false\n"),
            ("[core] hooksPath = x\n", ""),
            ("[include]\n\tpath = evil\n", ""),
            ("[includeIf \"gitdir:/\"]\n\tpath = evil\n", ""),
            ("[alias]\n\tst = !evil\n", ""),
            ("[filter \"x]\"] clean = evil\n", ""),
            ("[diff \"x\"]\n\ttextconv = evil\n", ""),
            ("[remote \"o\"]\n\turl = ext::sh -c evil\n", "[remote \"o\"]\n"),
            ("[remote \"o\"]\n\tuploadpack = evil\n", "[remote \"o\"]\n"),
            ("[submodule \"s\"]\n\tupdate = !evil\n", "[submodule \"s\"]\n"),
            ("[user]\n\tname = a\\\n[core]\n\tfsmonitor = evil\n", "[user]\n"),
            ("[core\n\tfsmonitor = evil\n", ""),
            ("fsmonitor = evil\n", ""),
        ] {
            assert_eq!(cleaned(text), left, "{text}");
        }
    }
}

//! Prompts of one's own: Markdown files that a person sends as `/NAME ARGUMENTS`.

use std::path::{Path, PathBuf};

use windlass_contract::untrusted_text::{visible_line, visible_text};

use crate::{
    FileDigests, InstructionFault, InstructionScope, SearchPlace,
    front_matter::FrontMatter,
    text_tree::{TextTree, markdown_stem, sha256},
};

/// The directory of prompts in the home directory of Windlass.
const USER_DIRECTORY: &str = "prompts";

/// The directory of prompts in a directory of a project.
const PROJECT_DIRECTORY: &str = ".agents/prompts";

/// Maximum size of a prompt.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum length of a name.
const MAX_NAME_CHARS: usize = 64;

/// Maximum size of a description.
const MAX_DESCRIPTION_BYTES: usize = 1024;

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// The name of its file without the ending.
    pub name: String,
    /// One line about it: `description` of its front matter, or its first line.
    pub description: String,
    /// The arguments it takes, in words (`argument-hint` of its front matter).
    pub argument_hint: Option<String>,
    /// Its file.
    pub path: PathBuf,
    /// Its origin.
    pub scope: InstructionScope,
    /// The digest of its file, if it belongs to the project.
    pub files: FileDigests,
    body: String,
}

/// The prompts of a place.
#[derive(Debug, Default)]
pub struct FoundPrompts {
    /// Each name once.
    pub prompts: Vec<PromptFile>,
    /// Prompts whose name another one has, with the file of the other one.
    pub hidden: Vec<(PromptFile, PathBuf)>,
    /// Files that cannot be used.
    pub faults: Vec<InstructionFault>,
}

/// Finds prompts: those of the user in the home directory of Windlass, then those of the project
/// from the working directory upwards. Of several with one name, the first counts.
pub fn find_prompts(place: SearchPlace<'_>, home: &Path) -> FoundPrompts {
    let mut found = FoundPrompts::default();
    found.add_directory(&TextTree::own(home), Path::new(USER_DIRECTORY), InstructionScope::User);
    match TextTree::project(place.root) {
        Ok(tree) => {
            for directory in place.upwards() {
                found.add_directory(&tree, &directory.join(PROJECT_DIRECTORY), InstructionScope::Project);
            }
        }
        Err(error) => found.fault(place.root.to_owned(), error.to_string()),
    }
    found
}

impl FoundPrompts {
    fn add_directory(&mut self, tree: &TextTree, directory: &Path, scope: InstructionScope) {
        let names = match tree.list(directory) {
            Ok(names) => names,
            Err(error) => return self.fault(tree.path(directory), error.to_string()),
        };
        for name in names {
            let Some(stem) = markdown_stem(&name) else { continue };
            let file = directory.join(&name);
            let stem = stem.to_string_lossy();
            let read = check_name(&stem).and_then(|()| {
                let bytes = tree.read(&file, MAX_BYTES).map_err(|error| error.to_string())?;
                parse(&stem, &bytes)
            });
            match read {
                Ok((prompt, digest)) => {
                    let project = (scope == InstructionScope::Project).then(|| (file.clone(), digest));
                    let files = project.into_iter().collect();
                    self.add(PromptFile { path: tree.path(&file), scope, files, ..prompt });
                }
                Err(reason) => self.fault(tree.path(&file), reason),
            }
        }
    }

    fn add(&mut self, prompt: PromptFile) {
        match self.prompts.iter().find(|other| other.name == prompt.name) {
            Some(other) => {
                let other = other.path.clone();
                self.hidden.push((prompt, other));
            }
            None => self.prompts.push(prompt),
        }
    }

    fn fault(&mut self, path: PathBuf, reason: String) {
        self.faults.push(InstructionFault { path, reason });
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_allowed);
    if is_name {
        return Ok(());
    }
    let name = visible_line(name, MAX_NAME_CHARS);
    Err(format!("the name `{name}` must have 1 to {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`"))
}

fn parse(name: &str, bytes: &[u8]) -> Result<(PromptFile, String), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text: {error}"))?;
    let (front, body) = FrontMatter::split(text).map_err(|error| error.to_string())?;
    let body = visible_text(body.trim());
    if body.is_empty() {
        return Err("it has no text".to_owned());
    }
    let first_line = body.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    let description = front.text("description").unwrap_or(first_line);
    let prompt = PromptFile {
        name: name.to_owned(),
        description: visible_line(description, MAX_DESCRIPTION_BYTES),
        argument_hint: front.text("argument-hint").map(|hint| visible_line(hint, MAX_DESCRIPTION_BYTES)),
        path: PathBuf::new(),
        scope: InstructionScope::User,
        files: FileDigests::new(),
        body,
    };
    Ok((prompt, sha256(bytes)))
}

impl PromptFile {
    /// Returns the text with its arguments: `$1` to `$9` are single words (quotes group),
    /// `$ARGUMENTS` is all of them as they were written, and `$$` is `$`. If the text has no place
    /// for arguments, they follow it.
    pub fn expand(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words = words(arguments);
        let (mut text, mut rest, mut has_place) = (String::new(), self.body.as_str(), false);
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            let next = after.chars().next();
            if let Some(number) = next.and_then(|c| c.to_digit(10)).filter(|number| *number > 0) {
                has_place = true;
                text.push_str(words.get(number as usize - 1).map_or("", String::as_str));
                rest = &after[1..];
            } else if let Some(after) = after.strip_prefix("ARGUMENTS") {
                has_place = true;
                text.push_str(arguments);
                rest = after;
            } else {
                text.push('$');
                rest = after.strip_prefix('$').unwrap_or(after);
            }
        }
        text.push_str(rest);
        if !has_place && !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        text
    }
}

/// Splits a text into words. Quotes group; there are no escapes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn expanded(body: &str, arguments: &str) -> String {
        let (prompt, _) = parse("p", body.as_bytes()).unwrap();
        prompt.expand(arguments)
    }

    #[test]
    fn arguments_take_their_places() {
        for (body, arguments, expected) in [
            ("Review $1 for $2.", "src 'bad names' rest", "Review src for bad names."),
            ("$ARGUMENTS: $1$2|$3", "a b", "a b: ab|"),
            ("Cost: $$5 and $x, $", "", "Cost: $5 and $x, $"),
            ("Fix it.", "all of it", "Fix it.\n\nall of it"),
            ("$1", "$2 $ARGUMENTS", "$2"),
            ("$10 $0", "a", "a0 $0"),
            ("---\ndescription: d\n---\n\nHi $1\n", "there", "Hi there"),
        ] {
            assert_eq!(expanded(body, arguments), expected, "{body}");
        }
    }

    #[test]
    fn prompts_are_found_by_name_and_bad_ones_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (root, home) = (top.join("project"), top.join("home"));
        fs::create_dir_all(root.join("a/.agents/prompts")).unwrap();
        fs::create_dir_all(root.join(".agents/prompts")).unwrap();
        fs::create_dir_all(home.join("prompts/sub.md")).unwrap();
        for (path, text) in [
            ("home/prompts/review.md", "---\ndescription: Review\nargument-hint: FILE\n---\nReview $1"),
            ("home/prompts/notes.txt", "no prompt"),
            ("home/prompts/b\u{7}.md", "control character"),
            ("home/prompts/empty.md", "---\ndescription: x\n---\n"),
            ("project/a/.agents/prompts/test.md", "# Nearest\n\ntext"),
            ("project/.agents/prompts/test.md", "farther"),
            ("project/.agents/prompts/review.md", "of the project"),
        ] {
            fs::write(top.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/hostname", root.join(".agents/prompts/out.md")).unwrap();
        let found = find_prompts(SearchPlace { root: &root, cwd: &root.join("a") }, &home);
        let shown =
            |prompt: &PromptFile| (prompt.name.clone(), prompt.description.clone(), prompt.files.len());
        let expected = [("review", "Review", 0), ("test", "Nearest", 1)];
        let expected = expected.map(|(name, line, files)| (name.to_owned(), line.to_owned(), files));
        assert_eq!(found.prompts.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(found.hidden.len(), 2);
        let mut faults: Vec<_> = found.faults.iter().map(ToString::to_string).collect();
        faults.sort();
        let said = ["must have 1 to 64", "it has no text", "it is not a file", "leads out of the project"];
        assert_eq!(faults.len(), said.len(), "{faults:?}");
        for said in said {
            assert!(faults.iter().any(|fault| fault.contains(said)), "{said}: {faults:?}");
        }
    }
}

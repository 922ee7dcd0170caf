//! Skills: directories with a `SKILL.md`, which a model reads when a task needs it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use windlass_contract::{
    program_message::SKILL_START,
    untrusted_text::{visible_line, visible_text},
};

use crate::{
    FileDigests, InstructionFault, InstructionScope, SearchPlace,
    front_matter::FrontMatter,
    skill_files,
    text_tree::{TextTree, sha256},
};

/// The file of a skill.
const FILE: &str = "SKILL.md";

/// The directories of skills in a directory of a project, from the first to the last choice.
const PROJECT_DIRECTORIES: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The directory of skills in the home directory of the user.
const USER_DIRECTORY: &str = ".agents/skills";

/// Maximum size of a `SKILL.md`.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum length of a name.
const MAX_NAME_CHARS: usize = 64;

/// Maximum size of a description. The standard allows 1024 characters.
const MAX_DESCRIPTION_BYTES: usize = 4096;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name: lower-case letters, digits and hyphens, the same as its directory.
    pub name: String,
    /// One line that says what it does and when to use it.
    pub description: String,
    /// The tools that it asks for. It does not get them by that: the policy decides as always.
    pub allowed_tools: Vec<String>,
    /// Its file.
    pub path: PathBuf,
    /// Its origin.
    pub scope: InstructionScope,
    /// The size of its file.
    pub bytes: usize,
    /// The digests of its Markdown files, if it belongs to the project.
    pub files: FileDigests,
}

/// The skills of a place.
#[derive(Debug, Default)]
pub struct FoundSkills {
    /// Each name once.
    pub skills: Vec<Skill>,
    /// Skills whose name another one has, with the file of the other one.
    pub hidden: Vec<(Skill, PathBuf)>,
    /// Skills that cannot be used.
    pub faults: Vec<InstructionFault>,
}

/// Finds skills: those of the user, then those of the project from the working directory upwards.
/// Of several with one name, the first counts.
pub fn find_skills(place: SearchPlace<'_>, user_home: Option<&Path>) -> FoundSkills {
    let mut found = FoundSkills::default();
    // Below the root of a project, the directory belongs to the project: commands may write it.
    let own = user_home.filter(|home| !home.join(USER_DIRECTORY).starts_with(place.root));
    if let Some(home) = own {
        found.add_directory(&TextTree::own(home), Path::new(USER_DIRECTORY), InstructionScope::User);
    }
    match TextTree::project(place.root) {
        Ok(tree) => {
            for directory in place.upwards() {
                for skills in PROJECT_DIRECTORIES {
                    found.add_directory(&tree, &directory.join(skills), InstructionScope::Project);
                }
            }
        }
        Err(error) => found.fault(place.root.to_owned(), error.to_string()),
    }
    found
}

impl FoundSkills {
    fn add_directory(&mut self, tree: &TextTree, directory: &Path, scope: InstructionScope) {
        let names = match tree.list(directory) {
            Ok(names) => names,
            Err(error) => return self.fault(tree.path(directory), error.to_string()),
        };
        for name in names {
            let file = directory.join(&name).join(FILE);
            let bytes = match tree.read(&file, MAX_BYTES) {
                Ok(bytes) => bytes,
                // A file beside the skills, or a directory with something else.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    continue;
                }
                Err(error) => {
                    self.fault(tree.path(&file), error.to_string());
                    continue;
                }
            };
            match parse(tree, &file, &bytes, scope) {
                Ok(skill) => self.add(skill),
                Err(reason) => self.fault(tree.path(&file), reason),
            }
        }
    }

    fn add(&mut self, skill: Skill) {
        match self.skills.iter().find(|other| other.name == skill.name) {
            Some(other) if is_same_file(&other.path, &skill.path) => {}
            Some(other) => {
                let other = other.path.clone();
                self.hidden.push((skill, other));
            }
            None => self.skills.push(skill),
        }
    }

    fn fault(&mut self, path: PathBuf, reason: String) {
        self.faults.push(InstructionFault { path, reason });
    }
}

/// Returns true if two paths lead to one file, as when `.claude/skills` is a link.
fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn parse(tree: &TextTree, file: &Path, bytes: &[u8], scope: InstructionScope) -> Result<Skill, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text: {error}"))?;
    let (front, _body) = FrontMatter::split(text).map_err(|error| error.to_string())?;
    if front.is_empty() {
        return Err(
            "it has no front matter: lines `name: …` and `description: …` between two lines `---`".to_owned()
        );
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    let directory_name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Some agents do not need a name.
    let name = front.text("name").unwrap_or(directory_name);
    check_name(name, directory_name)?;
    let description = visible_line(front.text("description").unwrap_or_default(), MAX_DESCRIPTION_BYTES);
    if description.is_empty() {
        return Err("it has no `description`, which says when to use it".to_owned());
    }
    let mut files = FileDigests::new();
    if scope == InstructionScope::Project {
        files = skill_files::digests(tree, directory).map_err(|error| error.to_string())?;
        // It may have been reached through a link, or changed since it was read.
        files.insert(file.to_owned(), sha256(bytes));
    }
    Ok(Skill {
        name: name.to_owned(),
        description,
        allowed_tools: front.list("allowed-tools").iter().map(|tool| visible_line(tool, 256)).collect(),
        path: tree.path(file),
        scope,
        bytes: bytes.len(),
        files,
    })
}

fn check_name(name: &str, directory: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let shown = visible_line(name, MAX_NAME_CHARS);
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_allowed) {
        return Err(format!(
            "the name `{shown}` must have 1 to {MAX_NAME_CHARS} lower-case letters, digits and hyphens"
        ));
    }
    if name != directory {
        let directory = visible_line(directory, MAX_NAME_CHARS);
        return Err(format!("the name `{shown}` must be that of its directory, `{directory}`"));
    }
    Ok(())
}

/// Returns the skills that a message names as `$NAME`, each once.
pub fn mentioned_skills<'a>(message: &str, skills: &'a [Skill]) -> Vec<&'a Skill> {
    let mut mentioned: Vec<&Skill> = Vec::new();
    for (at, _) in message.match_indices('$') {
        if message[..at].chars().next_back().is_some_and(char::is_alphanumeric) {
            continue;
        }
        let rest = &message[at + 1..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
        let named = skills.iter().find(|skill| skill.name == rest[..end]);
        mentioned.extend(named.filter(|skill| !mentioned.contains(skill)));
    }
    mentioned
}

/// Reads a skill as a message for the model. A skill of a project must still have the content that
/// its digest was made of.
pub fn skill_message(skill: &Skill, root: &Path) -> Result<String, InstructionFault> {
    let fault = |reason: String| InstructionFault { path: skill.path.clone(), reason };
    let (tree, file) = match skill.scope {
        InstructionScope::User => (TextTree::own(Path::new("/")), skill.path.as_path()),
        InstructionScope::Project => {
            let tree = TextTree::project(root).map_err(|error| fault(error.to_string()))?;
            (tree, skill.path.strip_prefix(root).unwrap_or(&skill.path))
        }
    };
    let bytes = tree.read(file, MAX_BYTES).map_err(|error| fault(error.to_string()))?;
    if skill.scope == InstructionScope::Project && skill.files.get(file) != Some(&sha256(&bytes)) {
        return Err(fault("it has changed since the session began".to_owned()));
    }
    let text = visible_text(String::from_utf8_lossy(&bytes).trim()).replace("</skill>", "<\\/skill>");
    let (name, path) = (&skill.name, skill.path.display());
    Ok(format!("{SKILL_START}<name>{name}</name>\n<path>{path}</path>\n{text}\n</skill>"))
}

#[cfg(test)]
mod tests;

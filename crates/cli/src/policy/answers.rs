//! Files for the rules that answers create: the user's, for all projects or for one.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::{ffi::OsStringExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use jiff::{Timestamp, Unit};
use windlass::{
    Offer, Reach, Rulebook,
    policy::{CommandRule, RuleFile, Rules, Trust},
};

use super::files::whole;
use crate::screen::{visible, visible_path};

/// The name of the file in its directory, beside rules that a person writes.
pub(super) const NAME: &str = "answers.toml";

const FIRST_LINE: &str =
    "# Rules created by your answers to questions and by `windlass policy allow`. You can edit them.\n";

/// Maximum length of the part of a project's path in its directory name.
const MAX_NAME_BYTES: usize = 180;

/// Writes rules to these files.
pub(crate) struct RuleWriter {
    everywhere: PathBuf,
    project: PathBuf,
    root: PathBuf,
}

impl RuleWriter {
    /// Creates a writer for a home directory of Windlass and the current project.
    pub(crate) fn new(home: &Path, root: &Path) -> Self {
        Self {
            everywhere: user_directory(home),
            project: project_directory(home, root),
            root: root.to_owned(),
        }
    }
}

impl RuleWriter {
    /// Returns the file for rules of this reach.
    pub(super) fn path(&self, reach: Reach) -> PathBuf {
        match reach {
            Reach::Everywhere => self.everywhere.join(NAME),
            Reach::Project => self.project.join(NAME),
        }
    }
}

/// Returns the directory of rules for all projects.
pub(super) fn user_directory(home: &Path) -> PathBuf {
    home.join("rules")
}

/// Returns the directory of the user's own rules for a project. It is not in the project, which
/// others can write.
pub(super) fn project_directory(home: &Path, root: &Path) -> PathBuf {
    home.join("projects").join(directory_name(root)).join("rules")
}

/// Returns the project whose rules of the user are in a file; none for other files, and if its path
/// was too long to be a name.
pub(super) fn project_of(file: &Path) -> Option<PathBuf> {
    let directory = file.parent().filter(|directory| directory.ends_with("rules"))?.parent()?;
    let name = directory.file_name()?.to_str()?;
    if !directory.parent()?.ends_with("projects") || !name.starts_with("%2F") {
        return None;
    }
    let mut pieces = name.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(OsString::from_vec(bytes).into())
}

/// Returns a path as one name, different for different paths.
fn directory_name(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let name: String = bytes
        .iter()
        .map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    // FNV-1a, the same in every build: it distinguishes long paths with the same end.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let end = name.len() - MAX_NAME_BYTES;
    format!("{hash:016x}-{}", name.get(end..).unwrap_or_default())
}

impl Rulebook for RuleWriter {
    fn keep(&self, reach: Reach, rule: &Offer) -> Result<(), String> {
        let (directory, about) = match reach {
            Reach::Everywhere => (&self.everywhere, String::new()),
            Reach::Project => {
                (&self.project, format!("# They apply below {}.\n", visible(&self.root.to_string_lossy())))
            }
        };
        append(directory, &about, &rule.toml, &Timestamp::now())
            .map_err(|error| format!("cannot write `{}`: {error}", visible_path(&directory.join(NAME))))
    }
}

/// Locks the rules of a directory.
pub(super) fn lock(directory: &Path) -> io::Result<File> {
    let lock = File::create(directory.join(".answers.lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Adds a rule to the file of a directory. Readers see it with the rule or without, never in
/// between. Earlier rules and those added at the same time stay.
fn append(directory: &Path, about: &str, rule: &str, now: &Timestamp) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.join(NAME);
    let _lock = lock(directory)?;
    let before = match whole(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("{FIRST_LINE}{about}"),
        Err(error) => return Err(error),
    };
    // A malformed file would stop every later run.
    let (kept, added) = (parsed(&before)?, parsed(rule)?);
    if added.iter().all(|rule| kept.iter().any(|each| is_same(each, rule))) {
        return Ok(());
    }
    let newline = if before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{newline}\n{}", dated(rule, now));
    parsed(&after)?;
    let staged = directory.join(".answers.new");
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
    new.write_all(after.as_bytes())?;
    new.sync_all()?;
    fs::rename(&staged, &path)
}

fn parsed(text: &str) -> io::Result<Vec<CommandRule>> {
    let file = RuleFile { name: NAME, text, trust: Trust::User };
    let rules = Rules::load(&[file]).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(rules.iter().cloned().collect())
}

fn is_same(one: &CommandRule, other: &CommandRule) -> bool {
    one.matches == other.matches
        && one.decision == other.decision
        && one.escape_sandbox == other.escape_sandbox
}

/// Returns rules with their time of creation.
fn dated(rules: &str, now: &Timestamp) -> String {
    let now = now.round(Unit::Second).unwrap_or(*now);
    let ends = rules.trim_end();
    ends.split_inclusive('\n')
        .map(|line| match line.trim_end() {
            decision if decision.starts_with("decision = ") => format!("{decision}\nanswered = \"{now}\"\n"),
            _ => line.to_owned(),
        })
        .collect::<String>()
        .trim_end()
        .to_owned()
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(program: &str) -> Offer {
        let toml = format!("[[rule]]\nprefix = [\"{program}\"]\ndecision = \"allow\"\n");
        Offer { toml, allows: String::new() }
    }

    #[test]
    fn the_project_of_a_file_is_known_from_its_directory() {
        let home = Path::new("/h/.windlass");
        for root in ["/w/a b", "/w/50%/汉字"] {
            let file = project_directory(home, Path::new(root)).join(NAME);
            assert_eq!(project_of(&file), Some(root.into()));
        }
        let long = project_directory(home, Path::new(&format!("/{}", "x".repeat(300))));
        assert_eq!(project_of(&long.join(NAME)), None);
        assert_eq!(project_of(&user_directory(home).join(NAME)), None);
    }

    #[test]
    fn rules_are_added_once_and_what_was_there_stays() {
        let home = tempfile::tempdir().unwrap();
        let answers = RuleWriter::new(home.path(), Path::new("/w/a b"));
        for program in ["make", "ninja", "make"] {
            answers.keep(Reach::Project, &offer(program)).unwrap();
        }
        let path = home.path().join("projects/%2Fw%2Fa%20b/rules/answers.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("answered = \"2").count(), 2, "{text}");
        let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("answered")).collect();
        assert_eq!(
            text,
            format!(
                "{FIRST_LINE}# They apply below /w/a b.\n\n{}\n{}",
                offer("make").toml,
                offer("ninja").toml
            )
        );
        fs::write(&path, "not toml").unwrap();
        let error = answers.keep(Reach::Project, &offer("cmake")).unwrap_err();
        assert!(error.contains("answers.toml"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "not toml");
    }

    #[test]
    fn long_paths_have_names_of_their_own() {
        let long = |end: &str| directory_name(Path::new(&format!("/{}/{end}", "d".repeat(400))));
        assert!(long("a").len() < 255);
        assert_ne!(long("a"), long("b"));
    }
}

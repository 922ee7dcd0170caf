//! Locations of rule files: the user's, and those of the project.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use windlass::policy::{RuleError, RuleFile, Rules, Trust};

use super::answers;
use crate::{problem::CliProblem, screen::visible_path, setup::ProgramSetup};

/// Maximum size of a rule file.
const MAX_BYTES: u64 = 1024 * 1024;

/// A rule file that was read.
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    /// The name in rules and messages.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) trust: Trust,
}

impl SourceFile {
    /// Parses a text as the contents of this file.
    pub(super) fn parse(&self, text: &str) -> Result<Rules, RuleError> {
        Rules::load(&[RuleFile { name: &self.name, text, trust: self.trust }])
    }

    fn as_rules(&self) -> RuleFile<'_> {
        RuleFile { name: &self.name, text: &self.text, trust: self.trust }
    }
}

/// Returns all rules in force: the user's, those of the user for this project, then
/// `.windlass/rules/*.toml` of the project.
pub(crate) fn rules(setup: &ProgramSetup) -> Result<Rules, CliProblem> {
    load(&sources(setup)?)
}

/// Loads the rules of files. The error lists all faults.
pub(super) fn load(sources: &[SourceFile]) -> Result<Rules, CliProblem> {
    let files: Vec<_> = sources.iter().map(SourceFile::as_rules).collect();
    Rules::load(&files).map_err(|error| CliProblem::usage(error.to_string()))
}

/// Reads all rule files.
pub(super) fn sources(setup: &ProgramSetup) -> Result<Vec<SourceFile>, CliProblem> {
    let root = project_root(&setup.cwd);
    let own = answers::user_directory(&setup.home);
    let project = root.join(".windlass").join("rules");
    let mut files = read(&own, Trust::User)?;
    files.extend(read(&answers::project_directory(&setup.home, root), Trust::User)?);
    // In the home directory there is no project.
    if project != own {
        files.extend(read(&project, Trust::Project)?);
    }
    Ok(files)
}

/// Returns the nearest directory upwards that has a repository, or the directory itself.
pub(crate) fn project_root(cwd: &Path) -> &Path {
    cwd.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(cwd)
}

fn read(directory: &Path, trust: Trust) -> Result<Vec<SourceFile>, CliProblem> {
    let mut paths = match fs::read_dir(directory) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => Err(error),
    }
    .map_err(|error| CliProblem::file("cannot list the rules in", directory, &error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let text = |path: PathBuf| {
        let text = whole(&path).map_err(|error| CliProblem::file("cannot read the rules", &path, &error))?;
        Ok(SourceFile { name: visible_path(&path), path, text, trust })
    };
    paths.into_iter().map(text).collect()
}

/// Reads a text file of limited size.
pub(super) fn whole(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

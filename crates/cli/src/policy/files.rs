//! Where rules are: the user's, and those of the project.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use windlass::policy::{RuleError, RuleFile, Rules, Trust};

use super::answers;
use crate::{problem::Problem, screen::visible_path, setup::Setup};

/// The largest file of rules that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// A file of rules that was read.
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    /// What rules and messages call it.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) trust: Trust,
}

impl SourceFile {
    /// Reads a text as one of this file.
    pub(super) fn parse(&self, text: &str) -> Result<Rules, RuleError> {
        Rules::load(&[RuleFile { name: &self.name, text, trust: self.trust }])
    }

    fn as_rules(&self) -> RuleFile<'_> {
        RuleFile { name: &self.name, text: &self.text, trust: self.trust }
    }
}

/// All rules in force: the user's, those of the user for this project, then `.windlass/rules/*.toml` of the project.
pub(crate) fn rules(setup: &Setup) -> Result<Rules, Problem> {
    load(&sources(setup)?)
}

/// The rules of files. Everything that is wrong in any of them is said.
pub(super) fn load(sources: &[SourceFile]) -> Result<Rules, Problem> {
    let files: Vec<_> = sources.iter().map(SourceFile::as_rules).collect();
    Rules::load(&files).map_err(|error| Problem::usage(error.to_string()))
}

/// All files of rules.
pub(super) fn sources(setup: &Setup) -> Result<Vec<SourceFile>, Problem> {
    let root = project_root(&setup.cwd);
    let own = answers::everywhere(&setup.home);
    let project = root.join(".windlass").join("rules");
    let mut files = read(&own, Trust::User)?;
    files.extend(read(&answers::of_project(&setup.home, root), Trust::User)?);
    // Who works in the home directory has no project there.
    if project != own {
        files.extend(read(&project, Trust::Project)?);
    }
    Ok(files)
}

/// The nearest directory upwards with a repository in it, or the directory itself.
pub(crate) fn project_root(cwd: &Path) -> &Path {
    cwd.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(cwd)
}

fn read(directory: &Path, trust: Trust) -> Result<Vec<SourceFile>, Problem> {
    let mut paths = match fs::read_dir(directory) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => Err(error),
    }
    .map_err(|error| Problem::file("cannot list the rules in", directory, &error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let text = |path: PathBuf| {
        let text = whole(&path).map_err(|error| Problem::file("cannot read the rules", &path, &error))?;
        Ok(SourceFile { name: visible_path(&path), path, text, trust })
    };
    paths.into_iter().map(text).collect()
}

/// A text file of a size that makes sense.
pub(super) fn whole(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

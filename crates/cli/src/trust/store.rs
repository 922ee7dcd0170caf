//! The decisions about projects, in a private file of the user.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass::instructions::FileDigests;

use super::ProjectConfiguration;
use crate::{private_file, screen::visible_path};

/// The decisions of a user.
pub(crate) struct TrustStore {
    path: PathBuf,
}

/// The state of a project's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectTrust {
    /// The user agreed to this content.
    Trusted,
    /// The user decided against this content.
    Declined,
    /// The user decided about another content.
    Changed,
    /// The user was never asked.
    Unknown,
}

impl ProjectTrust {
    /// Returns the name for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Declined => "declined",
            Self::Changed => "changed",
            Self::Unknown => "untrusted",
        }
    }
}

/// A fault of the file of decisions. Then nothing is trusted.
#[derive(Debug)]
pub(crate) struct TrustStoreError {
    path: PathBuf,
    reason: String,
}

impl std::error::Error for TrustStoreError {}

impl std::fmt::Display for TrustStoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = visible_path(&self.path);
        write!(f, "cannot use the decisions in {path}: {}; nothing is trusted", self.reason)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    projects: BTreeMap<PathBuf, TrustDecision>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustDecision {
    trusted: bool,
    /// Digest of the content of `.mcp.json`. Empty if there was none.
    sha256: String,
    /// Digests of the files of skills and prompts.
    #[serde(default, skip_serializing_if = "FileDigests::is_empty")]
    files: FileDigests,
    decided: Timestamp,
}

/// The content that a decision is about.
pub(crate) struct TrustSubject<'a> {
    /// The directory of the project, without links.
    pub(crate) root: &'a Path,
    pub(crate) servers: Option<&'a ProjectConfiguration>,
    /// The files of skills and prompts.
    pub(crate) files: FileDigests,
}

/// The decision about the skills and prompts of a project.
pub(crate) struct TextTrust(Option<TrustDecision>);

impl TextTrust {
    /// Trusts nothing.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Returns the state of one skill or prompt.
    pub(crate) fn state(&self, files: &FileDigests) -> ProjectTrust {
        let Some(decision) = &self.0 else { return ProjectTrust::Unknown };
        let is_same = |(path, digest): (&PathBuf, &String)| decision.files.get(path) == Some(digest);
        if !files.is_empty() && files.iter().all(is_same) {
            return if decision.trusted { ProjectTrust::Trusted } else { ProjectTrust::Declined };
        }
        let is_known = files.keys().any(|path| decision.files.contains_key(path));
        if is_known { ProjectTrust::Changed } else { ProjectTrust::Unknown }
    }
}

impl TrustStore {
    /// Creates a store below a home directory of Windlass.
    pub(crate) fn new(home: &Path) -> Self {
        Self { path: home.join("trust.json") }
    }

    /// Returns the home directory of Windlass.
    pub(crate) fn home(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the state of a project's configuration.
    pub(crate) fn state(&self, project: &ProjectConfiguration) -> Result<ProjectTrust, TrustStoreError> {
        let file = self.read()?;
        Ok(match file.projects.get(&project.root) {
            None => ProjectTrust::Unknown,
            // The decision was about skills or prompts alone.
            Some(decision) if decision.sha256.is_empty() => ProjectTrust::Unknown,
            Some(decision) if decision.sha256 != project.sha256 => ProjectTrust::Changed,
            Some(decision) if decision.trusted => ProjectTrust::Trusted,
            Some(_) => ProjectTrust::Declined,
        })
    }

    /// Returns the projects with a decision.
    pub(crate) fn list(&self) -> Result<Vec<PathBuf>, TrustStoreError> {
        Ok(self.read()?.projects.into_keys().collect())
    }

    /// Returns the decision about the skills and prompts of a project, by its directory without
    /// links.
    pub(crate) fn texts(&self, root: &Path) -> Result<TextTrust, TrustStoreError> {
        Ok(TextTrust(self.read()?.projects.remove(root)))
    }

    /// Keeps a decision. An earlier one with the same answer still counts for what is not part of
    /// this one, such as skills of another directory.
    pub(crate) fn decide(&self, subject: TrustSubject<'_>, trusted: bool) -> Result<(), TrustStoreError> {
        self.change(|file| {
            let former = file.projects.remove(subject.root).filter(|former| former.trusted == trusted);
            let (former_sha256, mut files) =
                former.map(|former| (former.sha256, former.files)).unwrap_or_default();
            files.extend(subject.files);
            let sha256 = subject.servers.map_or(former_sha256, |servers| servers.sha256.clone());
            let decision = TrustDecision { trusted, sha256, files, decided: Timestamp::now() };
            file.projects.insert(subject.root.to_owned(), decision);
        })
    }

    /// Removes a decision. Returns false if there is none.
    pub(crate) fn forget(&self, root: &Path) -> Result<bool, TrustStoreError> {
        self.change(|file| file.projects.remove(root)).map(|removed| removed.is_some())
    }

    fn change<T>(&self, change: impl FnOnce(&mut TrustFile) -> T) -> Result<T, TrustStoreError> {
        let _lock = private_file::lock(&self.path).map_err(|error| self.fault(error.to_string()))?;
        let mut file = self.read()?;
        let changed = change(&mut file);
        let text = serde_json::to_string_pretty(&file).map_err(|error| self.fault(error.to_string()))?;
        private_file::replace(&self.path, &format!("{text}\n"))
            .map_err(|error| self.fault(error.to_string()))?;
        Ok(changed)
    }

    fn read(&self) -> Result<TrustFile, TrustStoreError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| self.fault(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TrustFile::default()),
            Err(error) => Err(self.fault(error.to_string())),
        }
    }

    fn fault(&self, reason: String) -> TrustStoreError {
        TrustStoreError { path: self.path.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(root: &Path, text: &str) -> ProjectConfiguration {
        fs::write(root.join(".mcp.json"), text).unwrap();
        ProjectConfiguration::read(root).unwrap().unwrap()
    }

    fn decide(
        store: &TrustStore,
        project: &ProjectConfiguration,
        trusted: bool,
    ) -> Result<(), TrustStoreError> {
        let subject = TrustSubject { root: &project.root, servers: Some(project), files: FileDigests::new() };
        store.decide(subject, trusted)
    }

    fn files(list: &[(&str, &str)]) -> FileDigests {
        list.iter().map(|(path, digest)| (PathBuf::from(path), (*digest).to_owned())).collect()
    }

    const ONE: &str = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    const OTHER: &str = r#"{"mcpServers": {"a": {"command": "y"}}}"#;

    #[test]
    fn a_decision_counts_for_the_content_it_was_made_about() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = TrustStore::new(home.path());
        let one = project(root.path(), ONE);
        assert_eq!(store.state(&one).unwrap(), ProjectTrust::Unknown);
        decide(&store, &one, true).unwrap();
        assert_eq!(store.state(&one).unwrap(), ProjectTrust::Trusted);
        let other = project(root.path(), OTHER);
        assert_eq!(store.state(&other).unwrap(), ProjectTrust::Changed);
        decide(&store, &other, false).unwrap();
        assert_eq!(store.state(&other).unwrap(), ProjectTrust::Declined);
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&other.root));
        assert!(store.forget(&other.root).unwrap() && !store.forget(&other.root).unwrap());
    }

    #[test]
    fn each_skill_counts_with_the_content_that_was_decided_about() {
        let home = tempfile::tempdir().unwrap();
        let (store, root) = (TrustStore::new(home.path()), Path::new("/project"));
        let (one, other) = (files(&[("a/SKILL.md", "1"), ("a/more.md", "2")]), files(&[("b/SKILL.md", "3")]));
        let state = |files: &FileDigests| store.texts(root).unwrap().state(files);
        let decide = |files: &FileDigests, trusted| {
            let subject = TrustSubject { root, servers: None, files: files.clone() };
            store.decide(subject, trusted).unwrap();
        };
        assert_eq!(state(&one), ProjectTrust::Unknown);
        decide(&one, true);
        assert_eq!((state(&one), state(&other)), (ProjectTrust::Trusted, ProjectTrust::Unknown));
        for changed in [
            files(&[("a/SKILL.md", "1"), ("a/more.md", "9")]),
            files(&[("a/SKILL.md", "1"), ("a/more.md", "2"), ("a/new.md", "3")]),
        ] {
            assert_eq!(state(&changed), ProjectTrust::Changed);
        }
        assert_eq!(state(&FileDigests::new()), ProjectTrust::Unknown);
        decide(&other, true);
        assert_eq!((state(&one), state(&other)), (ProjectTrust::Trusted, ProjectTrust::Trusted));
        // What was trusted must not become so again with another decision.
        decide(&other, false);
        assert_eq!((state(&one), state(&other)), (ProjectTrust::Unknown, ProjectTrust::Declined));
        decide(&one, true);
        assert_eq!((state(&one), state(&other)), (ProjectTrust::Trusted, ProjectTrust::Unknown));
    }

    #[test]
    fn a_decision_about_skills_is_none_about_servers() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (store, servers) = (TrustStore::new(home.path()), project(root.path(), ONE));
        let subject = TrustSubject { root: &servers.root, servers: None, files: files(&[("a", "1")]) };
        store.decide(subject, true).unwrap();
        assert_eq!(store.state(&servers).unwrap(), ProjectTrust::Unknown);
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_is_not_replaced() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let one = project(root.path(), ONE);
        fs::write(home.path().join("trust.json"), "{").unwrap();
        let store = TrustStore::new(home.path());
        assert!(store.state(&one).unwrap_err().to_string().contains("nothing is trusted"));
        assert!(decide(&store, &one, true).is_err());
        assert_eq!(fs::read_to_string(home.path().join("trust.json")).unwrap(), "{");
    }
}

//! The decisions about projects, in a private file of the user.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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
    /// Digest of the content.
    sha256: String,
    decided: Timestamp,
}

impl TrustStore {
    /// Creates a store below a home directory of Windlass.
    pub(crate) fn new(home: &Path) -> Self {
        Self { path: home.join("trust.json") }
    }

    /// Returns the state of a project's configuration.
    pub(crate) fn state(&self, project: &ProjectConfiguration) -> Result<ProjectTrust, TrustStoreError> {
        let file = self.read()?;
        Ok(match file.projects.get(&project.root) {
            None => ProjectTrust::Unknown,
            Some(decision) if decision.sha256 != project.sha256 => ProjectTrust::Changed,
            Some(decision) if decision.trusted => ProjectTrust::Trusted,
            Some(_) => ProjectTrust::Declined,
        })
    }

    /// Returns the projects with a decision.
    pub(crate) fn list(&self) -> Result<Vec<PathBuf>, TrustStoreError> {
        Ok(self.read()?.projects.into_keys().collect())
    }

    /// Keeps a decision.
    pub(crate) fn decide(
        &self,
        project: &ProjectConfiguration,
        trusted: bool,
    ) -> Result<(), TrustStoreError> {
        let decision = TrustDecision { trusted, sha256: project.sha256.clone(), decided: Timestamp::now() };
        self.change(|file| file.projects.insert(project.root.clone(), decision)).map(drop)
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

    const ONE: &str = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    const OTHER: &str = r#"{"mcpServers": {"a": {"command": "y"}}}"#;

    #[test]
    fn a_decision_counts_for_the_content_it_was_made_about() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = TrustStore::new(home.path());
        let one = project(root.path(), ONE);
        assert_eq!(store.state(&one).unwrap(), ProjectTrust::Unknown);
        store.decide(&one, true).unwrap();
        assert_eq!(store.state(&one).unwrap(), ProjectTrust::Trusted);
        let other = project(root.path(), OTHER);
        assert_eq!(store.state(&other).unwrap(), ProjectTrust::Changed);
        store.decide(&other, false).unwrap();
        assert_eq!(store.state(&other).unwrap(), ProjectTrust::Declined);
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&other.root));
        assert!(store.forget(&other.root).unwrap() && !store.forget(&other.root).unwrap());
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_is_not_replaced() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let one = project(root.path(), ONE);
        fs::write(home.path().join("trust.json"), "{").unwrap();
        let store = TrustStore::new(home.path());
        assert!(store.state(&one).unwrap_err().to_string().contains("nothing is trusted"));
        assert!(store.decide(&one, true).is_err());
        assert_eq!(fs::read_to_string(home.path().join("trust.json")).unwrap(), "{");
    }
}

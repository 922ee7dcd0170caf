//! Files that hold credentials. Commands may not read them unless someone says so.

use std::path::{Path, PathBuf};

use crate::names;

/// Below the home directory, each with whose keys it holds.
#[rustfmt::skip]
const IN_HOME: &[(&str, &str)] = &[
    (".ssh", "keys for other machines"),
    (".gnupg", "keys that sign and decrypt"),
    (".aws", "Amazon's cloud"),
    (".azure", "Microsoft's cloud"),
    (".config/gcloud", "Google's cloud"),
    (".config/doctl", "DigitalOcean"),
    (".kube", "Kubernetes clusters"),
    (".docker/config.json", "image registries"),
    (".config/containers/auth.json", "image registries"),
    (".netrc", "any server, for curl and git"),
    (".git-credentials", "git servers, in plain text"),
    (".config/git/credentials", "git servers, in plain text"),
    (".config/gh", "GitHub"),
    (".config/glab-cli", "GitLab"),
    (".config/hub", "GitHub"),
    (".npmrc", "package registries"),
    (".yarnrc.yml", "package registries"),
    (".pypirc", "package registries"),
    (".gem/credentials", "package registries"),
    (".cargo/credentials", "package registries"),
    (".cargo/credentials.toml", "package registries"),
    (".terraform.d/credentials.tfrc.json", "Terraform's cloud"),
    (".vault-token", "a vault of other secrets"),
    (".pgpass", "databases"),
    (".my.cnf", "databases"),
    (".password-store", "a password manager"),
    (".local/share/keyrings", "a password manager"),
    (".config/op", "a password manager"),
    (".mozilla", "cookies of a browser"),
    (".config/google-chrome", "cookies of a browser"),
    (".config/chromium", "cookies of a browser"),
    (".codex/auth.json", "another agent's provider"),
    (".claude/.credentials.json", "another agent's provider"),
    (".gemini/oauth_creds.json", "another agent's provider"),
    (".config/github-copilot", "another agent's provider"),
    (".local/share/opencode/auth.json", "another agent's provider"),
    (".windlass", "our own provider and what was said in our sessions"),
];

/// What may be in a home directory that commands may not read.
pub(crate) fn below(home: &Path) -> impl Iterator<Item = PathBuf> {
    names::there(home, IN_HOME.iter().map(|(name, _)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_is_named_relative_to_the_home_directory_and_once() {
        let mut seen = std::collections::BTreeSet::new();
        for (name, whose) in IN_HOME {
            assert!(!name.starts_with('/') && !whose.is_empty() && seen.insert(name), "{name}");
        }
        let home = tempfile::tempdir().unwrap();
        assert_eq!(below(home.path()).count(), 0);
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        assert!(below(home.path()).eq([home.path().join(".ssh")]));
    }
}

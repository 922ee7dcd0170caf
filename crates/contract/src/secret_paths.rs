//! The list of secret paths: paths that hold credentials.
//!
//! All guards use this one table: the sandbox hides these paths from commands, the policy asks
//! before a command reads one, and the file tools refuse them. A path is relative to a home
//! directory, or to `/` for system paths. `*` in a name matches any text. Matching ignores case.

mod home;
mod system;

pub use home::home_secrets;
pub use system::system_secrets;

/// A path that holds credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretPath {
    /// The path, relative to a home directory or to `/`. Names may contain `*`.
    pub path: &'static str,
    /// The kind of file that is expected there.
    pub kind: SecretKind,
    /// Description of the credentials it holds.
    pub reason: &'static str,
    /// True if the name marks a secret in any directory, such as a project or a copy of a home
    /// directory. Only the analysis of command texts uses this; the sandbox hides paths in home
    /// directories.
    pub is_telling: bool,
}

impl SecretPath {
    const fn anywhere(self) -> Self {
        Self { is_telling: true, ..self }
    }
}

/// The kind of file that holds credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A single file.
    File,
    /// A directory, with everything in it.
    Directory,
}

const fn file(path: &'static str, reason: &'static str) -> SecretPath {
    SecretPath { path, kind: SecretKind::File, reason, is_telling: false }
}

const fn directory(path: &'static str, reason: &'static str) -> SecretPath {
    SecretPath { path, kind: SecretKind::Directory, reason, is_telling: false }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tables() -> [Vec<&'static SecretPath>; 2] {
        [home_secrets().collect(), system_secrets().collect()]
    }

    #[test]
    fn every_path_is_relative_named_once_and_has_a_reason() {
        for table in tables() {
            let mut seen = BTreeSet::new();
            for SecretPath { path, reason, .. } in table {
                assert!(path.split('/').all(|name| !matches!(name, "" | "." | "..")), "{path}");
                assert!(!reason.is_empty() && seen.insert(path.to_lowercase()), "{path}");
            }
        }
    }

    #[test]
    fn nothing_lies_inside_a_directory_that_is_in_the_table_itself() {
        for table in tables() {
            for above in table.iter().filter(|each| each.kind == SecretKind::Directory) {
                let rest = |each: &&&SecretPath| {
                    each.path.strip_prefix(above.path).is_some_and(|rest| rest.starts_with('/'))
                };
                assert_eq!(table.iter().find(rest), None, "{}", above.path);
            }
        }
    }

    #[test]
    fn no_directory_that_all_programs_share_is_hidden_as_a_whole() {
        let shared =
            [".config", ".cache", ".local", ".local/share", ".local/state", "snap", ".var", "library", "etc"];
        for SecretPath { path, .. } in home_secrets().chain(system_secrets()) {
            assert!(!shared.contains(&path.to_lowercase().as_str()), "{path}");
        }
    }
}

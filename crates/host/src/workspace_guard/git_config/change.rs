//! Changes of a command to a settings file, key by key.

use std::collections::BTreeSet;

use super::GitSetting;

/// Settings that a repository is made with: with another value it could not be used any more.
const FIXED: [&[u8]; 2] = [b"extensions.objectformat", b"core.bare"];

/// A change to the values of one key: all of them are replaced by these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitSettingEdit {
    pub(in super::super) key: Vec<u8>,
    pub(in super::super) values: Vec<Option<Vec<u8>>>,
}

/// The changes of a command to a settings file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct GitConfigChange {
    /// Changes that may be kept.
    pub(in super::super) edits: Vec<GitSettingEdit>,
    /// Keys whose change is dropped.
    pub(in super::super) dropped: Vec<String>,
}

impl GitConfigChange {
    /// Compares the settings before and after a command.
    pub(in super::super) fn between(before: &[GitSetting], after: &[GitSetting]) -> Self {
        let keys: BTreeSet<_> = before.iter().chain(after).map(|setting| &setting.key).collect();
        let promisors: BTreeSet<_> = before.iter().filter_map(GitSetting::promisor).collect();
        // With one object missing, git would connect to an address that the command chose.
        let leads_promisor = |setting: &GitSetting| {
            setting.promisor().is_some()
                || setting.remote_of_url().is_some_and(|remote| promisors.contains(remote))
        };
        let mut change = Self::default();
        for key in keys {
            let of = |settings: &[GitSetting]| -> Vec<GitSetting> {
                settings.iter().filter(|setting| setting.key == *key).cloned().collect()
            };
            let (old, new) = (of(before), of(after));
            if old == new {
                continue;
            }
            let is_kept = |setting: &GitSetting| {
                setting.is_allowed() && !leads_promisor(setting) && !FIXED.contains(&setting.key.as_slice())
            };
            // Removing a setting that only the user could have made is dropped, too.
            if old.iter().chain(&new).all(is_kept) {
                let values = new.into_iter().map(|setting| setting.value).collect();
                change.edits.push(GitSettingEdit { key: key.clone(), values });
            } else {
                let name = old.iter().chain(&new).next().map(GitSetting::name);
                change.dropped.extend(name);
            }
        }
        change
    }
}

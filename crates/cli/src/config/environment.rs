//! The environment of the programs that tools start. Secrets stay here unless someone lets them through by name.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::model::Provider;

use super::Config;

/// Which variables the programs that tools start are given. The steps are taken in the order of these keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ShellEnvironmentPolicy {
    /// Which variables of Windlass itself are taken to begin with.
    pub(crate) inherit: Inherit,
    /// Whether variables that look like secrets are passed on. They are not by default: names that contain `KEY`,
    /// `SECRET`, `TOKEN`, `PASSWORD`, `PASSWD`, `PASSPHRASE`, `CREDENTIAL`, `PRIVATE`, `CONNECTION_STRING` or
    /// `DATABASE_URL`, names that end in `_PAT` or `_DSN`, and every variable a provider takes a key or header from.
    pub(crate) ignore_default_excludes: bool,
    /// Names that are left out as well. `*` stands for any text, `?` for one character; case does not count.
    pub(crate) exclude: Vec<String>,
    /// Variables to set.
    pub(crate) set: BTreeMap<String, String>,
    /// If not empty, only these names remain, those of `set` included. Patterns as in `exclude`.
    pub(crate) include_only: Vec<String>,
    /// Whether to begin with the variables of a login shell instead of those of Windlass itself. The login files are read
    /// once, at the start.
    pub(crate) experimental_use_profile: bool,
}

/// Which variables to begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Inherit {
    /// All.
    #[default]
    All,
    /// Only `HOME`, `LANG`, `LC_ALL`, `LC_CTYPE`, `LOGNAME`, `PATH`, `SHELL`, `TEMP`, `TMP`, `TMPDIR`, `USER` and
    /// `USERNAME`.
    Core,
    /// None.
    None,
}

const CORE: [&str; 12] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR", "USER",
    "USERNAME",
];

const SECRETS: [&str; 12] = [
    "*KEY*",
    "*SECRET*",
    "*TOKEN*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*CREDENTIAL*",
    "*PRIVATE*",
    "*CONNECTION_STRING*",
    "*DATABASE_URL*",
    "*_PAT",
    "*_DSN",
];

/// Whether a name is one that secrets usually have.
pub(super) fn looks_secret(name: &str) -> bool {
    SECRETS.iter().any(|pattern| matches(pattern, name))
}

impl Config {
    /// The environment of a program that a tool starts, made from our own.
    pub(crate) fn child_environment(&self, parent: BTreeMap<String, String>) -> BTreeMap<String, String> {
        self.shell_environment_policy.apply(parent, &self.provider_variables())
    }

    /// Variables that hold keys of providers, whatever they are called.
    fn provider_variables<'a>(&'a self) -> BTreeSet<&'a str> {
        let providers = self.model_providers.values();
        let named =
            |provider: &'a Provider| provider.env_key.iter().chain(provider.env_http_headers.values());
        providers.flat_map(named).map(String::as_str).collect()
    }
}

impl ShellEnvironmentPolicy {
    fn apply(&self, parent: BTreeMap<String, String>, secret: &BTreeSet<&str>) -> BTreeMap<String, String> {
        let mut child = parent;
        child.retain(|name, _| {
            self.inherit.takes(name)
                && (self.ignore_default_excludes || !(secret.contains(name.as_str()) || looks_secret(name)))
                && !any_matches(&self.exclude, name)
        });
        child.extend(self.set.clone());
        child.retain(|name, _| self.include_only.is_empty() || any_matches(&self.include_only, name));
        child
    }
}

impl Inherit {
    fn takes(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Core => CORE.contains(&name),
            Self::None => false,
        }
    }
}

fn any_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Whether a name fits a pattern of `*` and `?`, whatever the case. Takes time in proportion to both lengths at most:
/// a later `*` never has to give back what an earlier one took.
fn matches(pattern: &str, name: &str) -> bool {
    let folded = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (pattern, name) = (folded(pattern), folded(name));
    let (mut p, mut n) = (0, 0);
    // Where the last `*` was, and how far it has swallowed the name.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(expected) if *expected == '?' || *expected == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, swallowed)) = star else { return false };
                star = Some((at, swallowed + 1));
                (p, n) = (at + 1, swallowed + 1);
            }
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), "value".to_owned())).collect()
    }

    fn left(policy: &ShellEnvironmentPolicy, names: &[&str]) -> Vec<String> {
        policy.apply(variables(names), &BTreeSet::new()).into_keys().collect()
    }

    #[test]
    fn secrets_are_not_passed_on_by_default() {
        let secrets = [
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "github_token",
            "PGPASSWORD",
            "MYSQL_PASSWD",
            "GPG_PASSPHRASE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "DEPLOY_PRIVATE",
            "AZURE_STORAGE_CONNECTION_STRING",
            "TEST_DATABASE_URL",
            "GITHUB_PAT",
            "SENTRY_DSN",
        ];
        assert_eq!(left(&ShellEnvironmentPolicy::default(), &secrets), Vec::<String>::new());
        let policy = ShellEnvironmentPolicy { ignore_default_excludes: true, ..Default::default() };
        assert_eq!(left(&policy, &secrets).len(), secrets.len());
    }

    #[test]
    fn what_work_needs_is_passed_on_by_default() {
        let plain =
            ["CARGO_HOME", "HOME", "HTTP_PROXY", "LANG", "PATH", "SSH_AUTH_SOCK", "TERM", "VIRTUAL_ENV"];
        assert_eq!(left(&ShellEnvironmentPolicy::default(), &plain), plain);
    }

    #[test]
    fn a_variable_that_a_provider_takes_its_key_from_is_a_secret_whatever_its_name() {
        let provider = Provider {
            env_key: Some("LLM_ACCESS".to_owned()),
            env_http_headers: [("x-team".to_owned(), "TEAM".to_owned())].into(),
            ..Provider::default()
        };
        let mut config =
            Config { model_providers: [("mine".to_owned(), provider)].into(), ..Config::default() };
        let parent = variables(&["LLM_ACCESS", "PATH", "TEAM"]);
        assert_eq!(config.child_environment(parent.clone()), variables(&["PATH"]));
        config.shell_environment_policy.ignore_default_excludes = true;
        assert_eq!(config.child_environment(parent.clone()), parent);
    }

    #[test]
    fn the_core_is_what_every_program_expects() {
        let policy = ShellEnvironmentPolicy { inherit: Inherit::Core, ..Default::default() };
        assert_eq!(left(&policy, &["EDITOR", "HOME", "PATH", "USER"]), ["HOME", "PATH", "USER"]);
    }

    #[test]
    fn set_comes_after_exclude_and_before_include_only() {
        let policy = ShellEnvironmentPolicy {
            exclude: vec!["no_*".to_owned()],
            set: variables(&["NO_COLOR", "API_TOKEN", "EXTRA"]),
            include_only: vec!["NO_?????".to_owned(), "*_TOKEN".to_owned(), "PATH".to_owned()],
            ..Default::default()
        };
        assert_eq!(left(&policy, &["NO_WAY", "PATH", "TERM"]), ["API_TOKEN", "NO_COLOR", "PATH"]);
    }

    #[test]
    fn inheriting_nothing_leaves_what_is_set() {
        let policy =
            ShellEnvironmentPolicy { inherit: Inherit::None, set: variables(&["A"]), ..Default::default() };
        assert_eq!(left(&policy, &["PATH"]), ["A"]);
    }

    #[test]
    fn patterns_match_whole_names_in_any_case() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "A", false),
            ("path", "PATH", true),
            ("PATH", "PATHS", false),
            ("?", "A", true),
            ("?", "", false),
            ("A*B*C", "AxBxBxC", true),
            ("A*B*C", "AxBxBxCx", false),
            ("*ÄÖ*", "xäöx", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_time() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(5000).replace("aa", "ab")));
    }
}

//! The environment of programs that tools start: the usual variables, and those that the user
//! names.

mod usual;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    clean::{Secrets, is_secret_name},
    model::Provider,
};

use super::WindlassConfig;
use usual::USUAL;

/// The environment variables of programs that tools start. The keys apply in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ShellEnvironmentPolicy {
    /// The variables of Windlass that are taken first.
    pub(crate) inherit: InheritedVariables,
    /// Further variables. A name without a wildcard is passed on even if it looks like a secret;
    /// with a wildcard, such variables are left out. Patterns as in `exclude`.
    pub(crate) include: Vec<String>,
    /// Passes on variables that look like secrets. By default, these are left out: names that
    /// contain `KEY`, `SECRET`, `TOKEN`, `PASSWORD`, `PASSWD`, `PASSPHRASE`, `CREDENTIAL`,
    /// `PRIVATE`, `CONNECTION_STRING` or `DATABASE_URL`; names that end in `_PAT`, `_DSN`, `_PASS`,
    /// `_PWD`, `_PW`, `_PSK`, `_CREDS`, `_SALT` or `_PEPPER`; every variable that a provider takes
    /// a key or header from; and, unless `inherit = "all"`, values that hold a password or have the
    /// form of a token.
    pub(crate) ignore_default_excludes: bool,
    /// Names that are left out. `*` matches any text and `?` one character; case is ignored.
    pub(crate) exclude: Vec<String>,
    /// Variables to set.
    pub(crate) set: BTreeMap<String, String>,
    /// If not empty, only these names remain, also of `set`. Patterns as in `exclude`.
    pub(crate) include_only: Vec<String>,
    /// Starts with the variables of a login shell instead of those of Windlass. Its files are read
    /// once, at the start.
    pub(crate) experimental_use_profile: bool,
}

/// The variables that are taken first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Inherit")]
pub(crate) enum InheritedVariables {
    /// Variables that programs usually need and that hold no credentials: of shells, terminals,
    /// languages, compilers, package managers, git and build servers. `windlass doctor` lists those
    /// that are left out.
    #[default]
    Usual,
    /// All variables.
    All,
    /// Only `HOME`, `LANG`, `LC_ALL`, `LC_CTYPE`, `LOGNAME`, `PATH`, `SHELL`, `TEMP`, `TMP`,
    /// `TMPDIR`, `USER` and `USERNAME`.
    Core,
    /// No variables.
    None,
}

/// The reason why a variable is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    NotInherited,
    SecretName,
    SecretValue,
    Excluded,
    NotIncluded,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInherited => "not inherited; add to `include` to pass on",
            Self::SecretName => "name looks like a secret; add to `include` to pass on",
            Self::SecretValue => "value looks like a credential; add to `include` to pass on",
            Self::Excluded => "listed in `exclude`",
            Self::NotIncluded => "not listed in `include_only`",
        })
    }
}

const CORE: [&str; 12] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR", "USER",
    "USERNAME",
];

/// Returns true if a value holds a password or has the form of a token.
fn looks_like_credential(name: &str, value: &str) -> bool {
    // A path is not a credential, and no program runs without these variables.
    if CORE.contains(&name) && value.starts_with('/') {
        return false;
    }
    let is_path_list = matches("*PATH", name) || matches("*_DIRS", name);
    has_userinfo(value)
        || (!is_path_list && has_bare_userinfo(value))
        || Secrets::default().clean(value) != value
}

/// Returns true if a URL in a value names a user with a password: `scheme://user:password@host`. A
/// user alone is a token if the scheme is `http`, and no secret otherwise: `ssh://git@host`.
fn has_userinfo(value: &str) -> bool {
    let addresses = value.match_indices("://").map(|(at, _)| value.split_at(at));
    addresses.into_iter().any(|(before, rest)| {
        let address = rest["://".len()..].split(is_between_words).next().unwrap_or_default();
        let (authority, path) = address.split_at(address.find(['/', '?', '#']).unwrap_or(address.len()));
        let is_http = before.ends_with("http") || before.ends_with("https");
        let is_password = |text: &str| !text.is_empty() && !text.bytes().all(|byte| byte.is_ascii_digit());
        match authority.rsplit_once('@') {
            Some((user, _)) => is_http || user.contains(':'),
            // A password with a `/` that is not percent-encoded; a port would be a number.
            None => {
                path.contains('@') && authority.split_once(':').is_some_and(|(_, text)| is_password(text))
            }
        }
    })
}

/// Returns true if a word in a value is `user:password@host` without a scheme.
fn has_bare_userinfo(value: &str) -> bool {
    let words = value.split(|character| character == '=' || is_between_words(character));
    let mut authorities = words
        .filter(|word| !word.contains("://"))
        .map(|word| word.split(['/', '?', '#']).next().unwrap_or_default());
    authorities.any(|authority| authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')))
}

fn is_between_words(character: char) -> bool {
    character.is_whitespace() || matches!(character, ',' | ';' | '|' | '"' | '\'' | '<' | '>')
}

/// Returns true if a variable is the address of a proxy. One that names a user is left out, with or
/// without a password.
fn is_proxy(name: &str) -> bool {
    matches("*_PROXY", name) && !matches("NO_PROXY", name)
}

impl WindlassConfig {
    /// Returns the environment of a program that a tool starts, made from our own.
    pub(crate) fn child_environment(&self, parent: BTreeMap<String, String>) -> BTreeMap<String, String> {
        self.shell_environment_policy.apply(parent, &self.provider_variables())
    }

    /// Returns our variables that such a program does not get, with the reason for each.
    pub(crate) fn left_out(&self, parent: &BTreeMap<String, String>) -> Vec<(String, LeftOut)> {
        let (policy, secret) = (&self.shell_environment_policy, self.provider_variables());
        let reason = |(name, value): (&String, &String)| {
            let reason = policy.reason(name, value, &secret)?;
            (!policy.set.contains_key(name)).then(|| (name.clone(), reason))
        };
        parent.iter().filter_map(reason).collect()
    }

    /// Returns variables that hold keys of providers, under any name.
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
        child.retain(|name, value| {
            matches!(self.reason(name, value, secret), None | Some(LeftOut::NotIncluded))
        });
        child.extend(self.set.clone());
        child.retain(|name, _| self.is_included(name));
        child
    }

    fn is_included(&self, name: &str) -> bool {
        self.include_only.is_empty() || any_matches(&self.include_only, name)
    }

    /// Returns why a variable of ours is not passed on.
    fn reason(&self, name: &str, value: &str, secret: &BTreeSet<&str>) -> Option<LeftOut> {
        let is_named = self.include.iter().any(|each| !each.contains(['*', '?']) && matches(each, name));
        let is_taken = self.inherit.takes(name) || any_matches(&self.include, name);
        let checks = !is_named && !self.ignore_default_excludes;
        let strict = checks && self.inherit != InheritedVariables::All;
        if !is_taken {
            Some(LeftOut::NotInherited)
        } else if checks && (secret.contains(name) || (is_secret_name(name) && !self.inherit.names(name))) {
            Some(LeftOut::SecretName)
        } else if strict && (looks_like_credential(name, value) || (is_proxy(name) && value.contains('@'))) {
            Some(LeftOut::SecretValue)
        } else if any_matches(&self.exclude, name) {
            Some(LeftOut::Excluded)
        } else {
            (!self.is_included(name)).then_some(LeftOut::NotIncluded)
        }
    }
}

impl InheritedVariables {
    fn takes(self, name: &str) -> bool {
        match self {
            Self::Usual => USUAL.iter().any(|pattern| matches(pattern, name)),
            Self::All => true,
            Self::Core => CORE.contains(&name),
            Self::None => false,
        }
    }

    /// Returns true if a variable is listed by its whole name, as `GOPRIVATE` is: it holds no
    /// secret, even if the name looks like one.
    fn names(self, name: &str) -> bool {
        self == Self::Usual && USUAL.iter().any(|usual| !usual.contains('*') && matches(usual, name))
    }
}

fn any_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Returns true if a name matches a pattern of `*` and `?`, ignoring case. Takes time in proportion
/// to both lengths at most: a later `*` never has to give back what an earlier one took.
fn matches(pattern: &str, name: &str) -> bool {
    let first = |text: &str| text.chars().next().and_then(|first| first.to_lowercase().next());
    // Most names differ in their first letter, and every start tries each variable with each
    // pattern.
    if !pattern.starts_with(['*', '?']) && first(pattern) != first(name) {
        return false;
    }
    let folded = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (pattern, name) = (folded(pattern), folded(name));
    let (mut p, mut n) = (0, 0);
    // The position of the last `*`, and how much of the name it matches.
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

    /// Credentials by the names they have in the wild.
    const CREDENTIALS: &[&str] = &[
        "DB_PASS",
        "SMTP_PASS",
        "MYSQL_PWD",
        "SSHPASS",
        "REDIS_URL",
        "DOCKER_AUTH_CONFIG",
        "COMPOSER_AUTH",
        "NPM_CONFIG__AUTH",
        "npm_config__auth",
        "DATABASE_URI",
        "MONGODB_URI",
        "AMQP_URL",
        "CLOUDINARY_URL",
        "PGPASSFILE",
        "BORG_PASSCOMMAND",
        "RESTIC_REPOSITORY",
        "GH_PAT",
        "TWILIO_SID",
        "STRIPE_SK",
        "KAFKA_SASL",
        "LDAP_BINDPW",
        "VAULT_ADDR",
        "GOAUTH",
        "GIT_CONFIG_VALUE_0",
        "ACTIONS_RUNTIME_URL",
        "AZURE_CLIENT_ID",
        "AWS_SESSION",
        "SLACK_WEBHOOK_URL",
        "SENTRY_AUTH",
        "JIRA_LOGIN",
        "COOKIE",
        "SESSION",
        "WIFI_PSK",
        "FTP_LOGIN",
        "ODBC_CONN",
    ];

    #[test]
    fn what_is_not_usual_is_not_passed_on_by_default() {
        assert_eq!(left(&ShellEnvironmentPolicy::default(), CREDENTIALS), Vec::<String>::new());
        let all = ShellEnvironmentPolicy { inherit: InheritedVariables::All, ..Default::default() };
        assert!(left(&all, CREDENTIALS).contains(&"FTP_LOGIN".to_owned()), "only if everything is asked for");
    }

    #[test]
    fn a_usual_variable_is_left_out_if_its_value_is_a_credential() {
        for (name, value, passes) in [
            ("HTTP_PROXY", "http://proxy:3128", true),
            ("https_proxy", "http://u:p@proxy:3128", false),
            ("ALL_PROXY", "socks5://user@proxy", false),
            ("HTTP_PROXY", "user:pass@proxy:80", false),
            ("NO_PROXY", "localhost,10.0.0.0/8", true),
            ("PIP_INDEX_URL", "https://pypi.org/simple", true),
            ("PIP_INDEX_URL", "https://u:p@pypi.example/simple", false),
            ("PIP_EXTRA_INDEX_URL", "https://a.example https://u:p@b.example", false),
            ("GOPROXY", "https://proxy.golang.org,direct", true),
            ("DOCKER_HOST", "ssh://me@host", true),
            ("EDITOR", "ghp_x7Kq2mVd9RtLwZ4bNcYf8HsJp3GaUe5TiOhQ", false),
            ("EDITOR", "vim -u NONE", true),
            ("PATH", "/usr/bin:/home/u:x@y/bin", true),
            ("PATH", "bin:/home/u:x@y/bin", true),
            ("LANG", "ghp_x7Kq2mVd9RtLwZ4bNcYf8HsJp3GaUe5TiOhQ", false),
            ("LANG", "de_DE.UTF-8", true),
            ("LC_ALL", "de_DE@euro", true),
            ("USER", "glpat-x7Kq2mVd9RtLwZ4bNcYf", false),
            ("TERM", "AKIAIOSFODNN7EXAMPLE", false),
            ("TERM", "AKIAQ3EGVZ7X5N2LKPWM", false),
            ("TERM", "xterm-256color", true),
            ("NODE_OPTIONS", "--max-old-space-size=4096 --require=/a/b.js", true),
            ("NODE_OPTIONS", "--import=https://me:geheim@host/x.mjs", false),
            ("NODE_OPTIONS", "--proxy me:geheim@host:80", false),
            ("GRADLE_OPTS", "-Dhttp.proxyHost=proxy -Dhttp.proxyPort=3128", true),
            ("GRADLE_OPTS", "-Dhttp.proxyHost=proxy -Dhttp.proxyPassword=geheim99", false),
            ("GRADLE_OPTS", "-Drepository=\"https://me:ge/heim@host/maven\"", false),
            ("MAVEN_OPTS", "-Xmx2g -Dmaven.repo.local=/home/u/.m2", true),
            ("MAVEN_OPTS", "-Drepo=me:geheim@host/maven -Xmx2g", false),
            ("PIP_EXTRA_INDEX_URL", "https://Xk29vQwertz@pypi.example/simple", false),
            ("npm_config_registry", "https://registry.example:8080/@scope/x", true),
            ("HTTP_PROXY", "http://me:geheim@proxy:3128", false),
            ("GIT_SSH_COMMAND", "ssh -i ~/.ssh/key -J me@jump:22", true),
            ("EMAIL", "Me <me@host.example>", true),
            ("GIT_AUTHOR_EMAIL", "me@host.example", true),
            ("LS_COLORS", "rs=0:di=01;34:ln=01;36:*.tar=01;31", true),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus", true),
            ("PKG_CONFIG_PATH", "/nix/store/0bqnl4p9sd5yq1m8h3xkr7v2wjcf6gza-zlib/lib/pkgconfig", true),
        ] {
            let parent = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let child = ShellEnvironmentPolicy::default().apply(parent.clone(), &BTreeSet::new());
            assert_eq!(child == parent, passes, "{name}={value}");
        }
    }

    #[test]
    fn values_are_looked_at_unless_all_variables_are_asked_for() {
        let parent = BTreeMap::from([("LANG".to_owned(), "glpat-x7Kq2mVd9RtLwZ4bNcYf".to_owned())]);
        for (inherit, passes) in [
            (InheritedVariables::Usual, false),
            (InheritedVariables::Core, false),
            (InheritedVariables::All, true),
        ] {
            let policy = ShellEnvironmentPolicy { inherit, ..Default::default() };
            assert_eq!(policy.apply(parent.clone(), &BTreeSet::new()) == parent, passes, "{inherit:?}");
        }
    }

    #[test]
    fn a_variable_is_passed_on_if_it_is_named() {
        let policy = ShellEnvironmentPolicy {
            include: vec!["GITHUB_TOKEN".to_owned(), "MY_*".to_owned()],
            ..Default::default()
        };
        let names = ["GITHUB_TOKEN", "MY_SETTING", "MY_TOKEN", "OTHER"];
        assert_eq!(left(&policy, &names), ["GITHUB_TOKEN", "MY_SETTING"]);
        let config = WindlassConfig { shell_environment_policy: policy, ..WindlassConfig::default() };
        let expected =
            [("MY_TOKEN".to_owned(), LeftOut::SecretName), ("OTHER".to_owned(), LeftOut::NotInherited)];
        assert_eq!(config.left_out(&variables(&names)), expected);
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
        let (ignore_default_excludes, inherit) = (true, InheritedVariables::All);
        let policy = ShellEnvironmentPolicy { inherit, ignore_default_excludes, ..Default::default() };
        assert_eq!(left(&policy, &secrets).len(), secrets.len());
    }

    #[test]
    fn what_work_needs_is_passed_on_by_default() {
        let plain =
            ["CARGO_HOME", "HOME", "HTTP_PROXY", "LANG", "PATH", "SSH_AUTH_SOCK", "TERM", "VIRTUAL_ENV"];
        assert_eq!(left(&ShellEnvironmentPolicy::default(), &plain), plain);
        let registries = ["GOPRIVATE", "PIP_INDEX_URL", "YARN_NPM_REGISTRY_SERVER", "npm_config_registry"];
        assert_eq!(left(&ShellEnvironmentPolicy::default(), &registries), registries);
    }

    #[test]
    fn a_variable_that_a_provider_takes_its_key_from_is_a_secret_whatever_its_name() {
        let provider = Provider {
            env_key: Some("LLM_ACCESS".to_owned()),
            env_http_headers: [("x-team".to_owned(), "TEAM".to_owned())].into(),
            ..Provider::default()
        };
        let mut config = WindlassConfig {
            model_providers: [("mine".to_owned(), provider)].into(),
            ..WindlassConfig::default()
        };
        let parent = variables(&["LLM_ACCESS", "PATH", "TEAM"]);
        assert_eq!(config.child_environment(parent.clone()), variables(&["PATH"]));
        config.shell_environment_policy.ignore_default_excludes = true;
        config.shell_environment_policy.inherit = InheritedVariables::All;
        assert_eq!(config.child_environment(parent.clone()), parent);
    }

    #[test]
    fn the_core_is_what_every_program_expects() {
        let policy = ShellEnvironmentPolicy { inherit: InheritedVariables::Core, ..Default::default() };
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
        let policy = ShellEnvironmentPolicy {
            inherit: InheritedVariables::None,
            set: variables(&["A"]),
            ..Default::default()
        };
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

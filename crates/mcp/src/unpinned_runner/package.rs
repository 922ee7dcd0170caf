//! Names of packages with their versions.

use std::path::Path;

use windlass_contract::wording::shell_quote;

use super::command_line::PackageRegistry;
use crate::listing::ServerListing;

/// The name of a package as a command line writes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PackageSpec<'a> {
    registry: PackageRegistry,
    /// Everything before the version.
    name: &'a str,
    /// Extras of a Python package, with their brackets.
    extras: &'a str,
    /// The version, tag, range or commit.
    version: Option<&'a str>,
    /// True if it is fetched from a repository.
    is_git: bool,
}

impl<'a> PackageSpec<'a> {
    /// Parses the name of a package. `None` if it is a local path or an archive.
    pub(super) fn parse(registry: PackageRegistry, text: &'a str) -> Option<Self> {
        let plain = |name, version| Self { registry, name, extras: "", version, is_git: false };
        if registry == PackageRegistry::Container {
            return Some(match text.split_once('@') {
                Some((name, digest)) => plain(name, Some(digest)),
                None => match text.rsplit_once(':') {
                    // A port of the registry is followed by a path.
                    Some((name, tag)) if !tag.contains('/') => plain(name, Some(tag)),
                    _ => plain(text, None),
                },
            });
        }
        if text.starts_with(['.', '/', '~']) || text.starts_with("file:") || is_archive(text) {
            return None;
        }
        if text.contains("git+") || text.starts_with("github:") || text.starts_with("git:") {
            return Some(Self { is_git: true, ..Self::git(registry, text) });
        }
        if text.contains("://") {
            return None;
        }
        if registry == PackageRegistry::Npm {
            // The first character can be the `@` of a scope.
            let at = text.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
            return Some(at.map_or(plain(text, None), |at| plain(&text[..at], Some(&text[at + 1..]))));
        }
        let end = text.find(['=', '@', '<', '>', '~', '!', ' ']).unwrap_or(text.len());
        let (name, version) = text.split_at(end);
        let version =
            version.trim_start_matches("===").trim_start_matches("==").trim_start_matches('@').trim();
        let (name, extras) = name.split_at(name.find('[').unwrap_or(name.len()));
        Some(Self {
            registry,
            name,
            extras,
            version: Some(version).filter(|text| !text.is_empty()),
            is_git: false,
        })
    }

    fn git(registry: PackageRegistry, text: &'a str) -> Self {
        let delimiter = if registry == PackageRegistry::Npm { '#' } else { '@' };
        // A user name in the address has an `@`, too.
        let path = text.find("://").map_or(0, |at| at + 3);
        let path = text[path..].find('/').map_or(text.len(), |at| path + at);
        let (name, version) = match text[path..].find(delimiter) {
            Some(at) => (&text[..path + at], Some(&text[path + at + 1..])),
            None if registry == PackageRegistry::Npm => match text.split_once('#') {
                Some((name, version)) => (name, Some(version)),
                None => (text, None),
            },
            None => (text, None),
        };
        Self { registry, name, extras: "", version, is_git: true }
    }

    /// Returns true if the same name is always the same program, as far as the name can say it.
    pub(super) fn is_pinned(&self) -> bool {
        let Some(version) = self.version else { return false };
        let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
        match self.registry {
            _ if self.is_git => version.len() == 40 && is_hex(version),
            PackageRegistry::Container => version != "latest" && !version.is_empty(),
            PackageRegistry::Npm => is_exact(version) && version.matches('.').count() >= 2,
            PackageRegistry::Python => is_exact(version),
        }
    }

    /// Returns the version of the package that runs now: the one that the server says it has, if
    /// the server is called like the package.
    pub(super) fn version_of(&self, listing: &ServerListing) -> Option<String> {
        if self.is_git || self.registry == PackageRegistry::Container {
            return None;
        }
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let base = self.name.rsplit_once('/').map_or(self.name, |(_, base)| base);
        let server = plain(&listing.server_name);
        let is_named = !server.is_empty() && (server == plain(base) || server == plain(self.name));
        let version = listing.server_version.trim();
        let is_version = is_exact(version) && version.matches('.').count() == 2;
        (is_named && is_version).then(|| version.to_owned())
    }

    /// Returns the name with a version.
    pub(super) fn pinned(&self, version: &str) -> String {
        let delimiter = match self.registry {
            PackageRegistry::Npm if self.is_git => "#",
            PackageRegistry::Npm | PackageRegistry::Container => "@",
            PackageRegistry::Python if self.is_git => "@",
            PackageRegistry::Python => "==",
        };
        format!("{}{}{delimiter}{version}", self.name, self.extras)
    }

    /// Returns the placeholder for a version that is not known.
    pub(super) fn placeholder(&self) -> &'static str {
        match self.registry {
            _ if self.is_git => "COMMIT",
            PackageRegistry::Container => "sha256:DIGEST",
            PackageRegistry::Npm | PackageRegistry::Python => "VERSION",
        }
    }

    /// Returns a command that prints the newest version.
    pub(super) fn version_command(&self) -> Option<String> {
        let name = shell_quote(self.name);
        match self.registry {
            _ if self.is_git => None,
            PackageRegistry::Npm => Some(format!("npm view {name} version")),
            PackageRegistry::Python => Some(format!("pip index versions {name}")),
            PackageRegistry::Container => {
                Some(format!("docker image inspect --format '{{{{index .RepoDigests 0}}}}' {name}"))
            }
        }
    }
}

fn is_archive(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|extension| extension == "tgz")
}

/// Returns true for a version that is neither a range nor a tag: `1.2.3`, `v1.2.3-beta.1`.
fn is_exact(version: &str) -> bool {
    let version = version.strip_prefix('v').unwrap_or(version);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    let mut parts = numbers.split('.').peekable();
    let starts_with_number = parts.peek().is_some_and(|part| is_number(part));
    starts_with_number
        && version.chars().all(is_allowed)
        && !parts.any(|part| matches!(part, "x" | "X" | "*" | ""))
}

//! Caches of package managers for confined commands.
//!
//! The user's own caches are read-only: what lies there runs outside later. So package managers are
//! pointed to a cache below the home of Windlass, one for each workspace: a command can spoil what
//! the same workspace builds, and nothing else. A cache that the user has made writable is left as
//! it is.

mod cache_dir;
mod cargo;
mod maven;

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};

/// Condition for moving the cache of a package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheRelocation {
    /// The package manager does not work with a read-only cache.
    Always,
    /// The package manager works offline with a read-only cache. It is moved once the network was
    /// granted.
    OnceOnline,
}

/// An environment variable that sets the cache directory of a package manager.
#[derive(Debug)]
struct CacheVariable {
    name: &'static str,
    /// Default directory of the cache, below the home directory.
    usual: &'static str,
    /// Name of the directory below our own cache.
    place: &'static str,
    relocation: CacheRelocation,
}

const fn variable(
    name: &'static str,
    usual: &'static str,
    place: &'static str,
    relocation: CacheRelocation,
) -> CacheVariable {
    CacheVariable { name, usual, place, relocation }
}

#[rustfmt::skip]
const VARIABLES: &[CacheVariable] = &[
    variable("npm_config_cache", ".npm", "npm", CacheRelocation::Always),
    variable("YARN_CACHE_FOLDER", ".cache/yarn", "yarn", CacheRelocation::Always),
    variable("YARN_GLOBAL_FOLDER", ".yarn/berry", "yarn-berry", CacheRelocation::Always),
    variable("PNPM_HOME", ".local/share/pnpm", "pnpm", CacheRelocation::Always),
    variable("PIP_CACHE_DIR", ".cache/pip", "pip", CacheRelocation::Always),
    variable("UV_CACHE_DIR", ".cache/uv", "uv", CacheRelocation::Always),
    variable("GRADLE_USER_HOME", ".gradle", "gradle", CacheRelocation::Always),
    variable("GOCACHE", ".cache/go-build", "go-build", CacheRelocation::Always),
    variable("GOMODCACHE", "go/pkg/mod", "go-mod", CacheRelocation::OnceOnline),
    variable("CARGO_HOME", ".cargo", cargo::PLACE, CacheRelocation::OnceOnline),
    variable("BUN_INSTALL_CACHE_DIR", ".bun/install/cache", "bun", CacheRelocation::OnceOnline),
    variable("COMPOSER_CACHE_DIR", ".cache/composer", "composer", CacheRelocation::OnceOnline),
    variable("DENO_DIR", ".cache/deno", "deno", CacheRelocation::OnceOnline),
    variable("NUGET_PACKAGES", ".nuget/packages", "nuget", CacheRelocation::OnceOnline),
];

/// The inputs that decide which cache directories a command gets.
#[derive(Debug)]
pub(crate) struct CacheRequest<'a> {
    /// The cache of this workspace.
    pub(crate) cache: &'a Path,
    pub(crate) home: Option<&'a Path>,
    /// Directories that the command may write.
    pub(crate) writable: &'a [PathBuf],
    /// Working directory of the command.
    pub(crate) directory: &'a Path,
    pub(crate) is_online: bool,
}

impl CacheRequest<'_> {
    /// Returns the variables that point package managers to caches they can write. `current` tells
    /// what a variable is set to.
    pub(crate) fn variables(&self, current: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
        let mut set = Vec::new();
        for each in VARIABLES {
            let usual = || self.home.map(|home| home.join(each.usual));
            let own = current(each.name).map(PathBuf::from).filter(|path| path.is_absolute()).or_else(usual);
            let place = self.cache.join(each.place);
            if own.as_deref().is_some_and(|own| self.may_write(own))
                || !self.is_relocated(each.relocation, &place)
            {
                continue;
            }
            let place = match (each.name, &own) {
                ("CARGO_HOME", Some(own)) => cargo::prepare(self.cache, own, self.directory).unwrap_or(place),
                _ => place,
            };
            set.push((each.name, place.to_string_lossy().into_owned()));
            set.extend(own.and_then(|own| read_through(each.name, &own, &current)));
        }
        set.extend(self.maven(&current));
        set
    }

    /// Maven takes no variable, but properties of its machine. The tail is read and not written
    /// (since Maven 3.9); for older ones, what the user has is found through links.
    fn maven(&self, current: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
        let own = self.home?.join(".m2/repository");
        let place = self.cache.join(maven::PLACE);
        let options = current("MAVEN_OPTS").unwrap_or_default();
        let keeps = self.may_write(&own) || options.contains("maven.repo.local");
        // It does nothing at all without a repository.
        let relocation = if own.is_dir() { CacheRelocation::OnceOnline } else { CacheRelocation::Always };
        if keeps || !self.is_relocated(relocation, &place) {
            return None;
        }
        // Where links cannot be made, there is the tail, and the network.
        let _unlinked = maven::prepare(self.cache, &own);
        let properties =
            format!("-Dmaven.repo.local={} -Dmaven.repo.local.tail={}", place.display(), own.display());
        Some(("MAVEN_OPTS", format!("{options} {properties}").trim_start().to_owned()))
    }

    fn is_relocated(&self, relocation: CacheRelocation, place: &Path) -> bool {
        let is_used =
            || if place.ends_with(cargo::PLACE) { cargo::is_used(self.cache) } else { place.exists() };
        relocation == CacheRelocation::Always || self.is_online || is_used()
    }

    fn may_write(&self, path: &Path) -> bool {
        let real = path.ancestors().find_map(|above| {
            let rest = path.strip_prefix(above).ok()?;
            Some(above.canonicalize().ok()?.join(rest))
        });
        let is_below = |path: &Path| self.writable.iter().any(|root| path.starts_with(root));
        is_below(path) || real.is_some_and(|real| is_below(&real))
    }
}

/// Returns a variable by which what the user's cache has is still found.
fn read_through(
    name: &str,
    own: &Path,
    current: impl Fn(&str) -> Option<String>,
) -> Option<(&'static str, String)> {
    match name {
        "GOMODCACHE" => {
            let known = own.join("cache/download");
            let others = current("GOPROXY").unwrap_or_else(|| "https://proxy.golang.org,direct".to_owned());
            known.is_dir().then(|| ("GOPROXY", format!("file://{},{others}", known.display())))
        }
        "GRADLE_USER_HOME" => {
            let known = own.join("caches");
            known.join("modules-2").is_dir().then(|| ("GRADLE_RO_DEP_CACHE", known.display().to_string()))
        }
        _ => None,
    }
}

/// Returns the cache of a workspace below a directory, and makes it if it is not there.
pub fn of_workspace(directory: &Path, workspace: &Path) -> io::Result<PathBuf> {
    let name = workspace.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let hash = digest(&SHA256, workspace.as_os_str().as_encoded_bytes());
    let hash: String = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let cache = directory.join(format!("{name}-{hash}"));
    DirBuilder::new().recursive(true).mode(0o700).create(&cache)?;
    cache.canonicalize()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::{collections::BTreeMap, fs};

    use super::*;

    fn names(request: &CacheRequest<'_>, current: &[(&str, &str)]) -> BTreeMap<&'static str, String> {
        let current: BTreeMap<_, _> = current.iter().copied().collect();
        request.variables(|name| current.get(name).map(|value| (*value).to_owned())).into_iter().collect()
    }

    #[test]
    fn caches_are_moved_unless_the_user_has_made_them_writable() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (cache, home, work) = (top.join("cache"), top.join("home"), top.join("work"));
        for path in [&cache, &home, &work] {
            fs::create_dir(path).unwrap();
        }
        let writable = [work.clone()];
        let request = CacheRequest {
            cache: &cache,
            home: Some(&home),
            writable: &writable,
            directory: &work,
            is_online: false,
        };
        let set = names(&request, &[]);
        assert_eq!(set["npm_config_cache"], cache.join("npm").to_str().unwrap());
        assert!(!set.contains_key("CARGO_HOME"), "it works offline as it is");
        assert!(set.contains_key("MAVEN_OPTS"), "there is no repository to read");
        let own = work.join("own").to_str().unwrap().to_owned();
        let set = names(&request, &[("npm_config_cache", &own), ("PIP_CACHE_DIR", "/usr/share")]);
        assert!(!set.contains_key("npm_config_cache"), "it can be written");
        assert_eq!(set["PIP_CACHE_DIR"], cache.join("pip").to_str().unwrap());
        let named = [work.clone(), home.join(".npm")];
        let set = names(&CacheRequest { writable: &named, ..request }, &[]);
        assert!(!set.contains_key("npm_config_cache"), "the user has named it");
    }

    #[test]
    fn what_the_network_has_filled_is_used_offline_too() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (cache, home) = (top.join("cache"), top.join("home"));
        fs::create_dir_all(home.join(".cargo/registry/cache/index")).unwrap();
        fs::create_dir_all(home.join("go/pkg/mod/cache/download")).unwrap();
        fs::create_dir(&cache).unwrap();
        let request = |is_online| CacheRequest {
            cache: &cache,
            home: Some(&home),
            writable: &[],
            directory: &home,
            is_online,
        };
        assert!(!names(&request(false), &[]).contains_key("CARGO_HOME"));
        let set = names(&request(true), &[("MAVEN_OPTS", "-Xmx1g")]);
        assert_eq!(set["CARGO_HOME"], cache.join("cargo").to_str().unwrap());
        assert!(set["MAVEN_OPTS"].starts_with("-Xmx1g -Dmaven.repo.local="));
        let known = home.join("go/pkg/mod/cache/download");
        assert_eq!(set["GOPROXY"], format!("file://{},https://proxy.golang.org,direct", known.display()));
        assert!(!names(&request(false), &[]).contains_key("CARGO_HOME"), "Cargo was not started");
        fs::write(cache.join("cargo/.package-cache"), "").unwrap();
        assert!(names(&request(false), &[]).contains_key("CARGO_HOME"), "it was used");
    }

    #[test]
    fn every_workspace_has_a_cache_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let cache = |workspace: &str| of_workspace(place.path(), Path::new(workspace)).unwrap();
        assert_eq!(cache("/a/b"), cache("/a/b"));
        assert_ne!(cache("/a/b"), cache("/c/b"));
        assert!(cache("/a/b").is_dir());
    }
}

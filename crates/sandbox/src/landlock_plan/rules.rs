//! Landlock rulesets, cached for the next command that needs the same.
//!
//! Naming every readable path around the hidden ones means listing directories and opening their
//! entries, which takes longer than the rest of a start. Rules refer to files by identity. A
//! ruleset is therefore valid until one of the listed directories changes or something is mounted.

use std::{
    ffi::CString,
    fs::{self, File},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    namespace_plan::WritablePath,
    sandbox_paths::PlanError,
    stat_cache::is_settled,
    sys::{
        self,
        landlock::{self, HandledAccess},
    },
};

/// Maximum number of readable paths named around hidden ones.
const MAX_NAMED_PATHS: usize = 8192;

/// The inputs of a ruleset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RulesetRequest {
    /// Directories that may be written.
    pub(crate) trees: Vec<PathBuf>,
    /// Unreadable paths, and readable ones inside them.
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) shown: Vec<PathBuf>,
    /// True if TCP is denied, too.
    pub(crate) offline: bool,
    /// The version of Landlock.
    pub(crate) version: u32,
}

/// The last ruleset, for everything below a directory.
#[derive(Debug)]
pub(crate) struct RulesetCache {
    top: PathBuf,
    last: Mutex<Option<CachedRuleset>>,
}

impl Default for RulesetCache {
    fn default() -> Self {
        Self { top: PathBuf::from("/"), last: Mutex::default() }
    }
}

#[derive(Debug)]
struct CachedRuleset {
    wanted: RulesetRequest,
    set: Arc<OwnedFd>,
    /// The visited directories and their state at that time.
    looked_at: Vec<(PathBuf, DirectoryState)>,
    /// `/proc/self/mountinfo`, which reports new mounts to `poll`.
    mounts: File,
}

/// Identity of a directory, and the time of its last change. For a writable tree only the identity
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryState {
    identity: (u64, u64),
    changed: Option<(i64, i64)>,
}

impl RulesetCache {
    /// Returns the ruleset for a request.
    #[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
    pub(crate) fn get_or_create(&self, wanted: RulesetRequest) -> Result<Arc<OwnedFd>, PlanError> {
        let mut kept = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Take it out: an outdated ruleset is not checked again, even if no new one can be made.
        if let Some(made) = kept.take().filter(|made| made.says(&wanted)) {
            return Ok(Arc::clone(&kept.insert(made).set));
        }
        let mounts = File::open("/proc/self/mountinfo");
        let mut around = ReadablePaths { hidden: &wanted.hidden, named: Vec::new(), listed: Vec::new() };
        around.name(&self.top)?;
        let set = Arc::new(make(&wanted, &around.named)?);
        let looked_at = state_of_all(around.listed, &wanted.trees);
        *kept = mounts.ok().zip(looked_at).map(|(mounts, looked_at)| {
            let set = Arc::clone(&set);
            CachedRuleset { wanted, set, looked_at, mounts }
        });
        Ok(set)
    }
}

impl CachedRuleset {
    /// Returns true if the ruleset fits the request and is up to date.
    fn says(&self, wanted: &RulesetRequest) -> bool {
        let as_it_was = |(path, before): &(PathBuf, DirectoryState)| {
            DirectoryState::read(path, before.changed.is_some()) == Some(*before)
        };
        self.wanted == *wanted && !sys::has_news(self.mounts.as_fd()) && self.looked_at.iter().all(as_it_was)
    }
}

impl DirectoryState {
    fn read(path: &Path, with_time: bool) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let changed = with_time.then(|| (found.ctime(), found.ctime_nsec()));
        Some(Self { identity: (found.dev(), found.ino()), changed })
    }

    /// Returns true if a change right now would be noticed.
    fn is_settled(self) -> bool {
        self.changed.is_none_or(is_settled)
    }
}

/// Returns the state of the listed directories and of the trees, or `None` if a change could go
/// unnoticed.
fn state_of_all(
    listed: Vec<(PathBuf, DirectoryState)>,
    trees: &[PathBuf],
) -> Option<Vec<(PathBuf, DirectoryState)>> {
    let trees = trees.iter().map(|tree| DirectoryState::read(tree, false).map(|state| (tree.clone(), state)));
    let all: Option<Vec<_>> = listed.into_iter().map(Some).chain(trees).collect();
    all.filter(|all| all.iter().all(|(_, state)| state.is_settled()))
}

fn make(wanted: &RulesetRequest, around: &[PathBuf]) -> Result<OwnedFd, PlanError> {
    let failed = |errno| {
        PlanError(format!("Landlock's rules cannot be made: {}", std::io::Error::from_raw_os_error(errno)))
    };
    let handled = HandledAccess::writing(wanted.version).and_reading();
    let handled = if wanted.offline { handled.and_tcp(wanted.version) } else { handled };
    let set = landlock::create_ruleset(handled).map_err(failed)?;
    let rules = landlock::own(set);
    let devices =
        ["null", "zero", "full", "random", "urandom", "tty"].map(|name| Path::new("/dev").join(name));
    let trees = wanted.trees.iter().map(|tree| (tree, true));
    for (path, is_directory) in trees.chain(devices.iter().map(|device| (device, false))) {
        let path = c(path)?;
        let place = WritablePath { path: path.as_c_str(), is_directory };
        landlock::allow_writing(set, handled, place).map_err(failed)?;
    }
    for path in around.iter().chain(&wanted.shown) {
        match landlock::allow_reading(set, &c(path)?) {
            // Gone, or not the user's: leaving it out grants nothing.
            Ok(()) | Err(libc::ENOENT | libc::EACCES | libc::ENXIO) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(rules)
}

/// Collects all paths except the hidden ones.
struct ReadablePaths<'a> {
    hidden: &'a [PathBuf],
    named: Vec<PathBuf>,
    /// The directories that were listed, with their state before.
    listed: Vec<(PathBuf, DirectoryState)>,
}

impl ReadablePaths<'_> {
    /// Adds everything below a path.
    fn name(&mut self, path: &Path) -> Result<(), PlanError> {
        if self.named.len() > MAX_NAMED_PATHS {
            return Err(PlanError("too many files lie around what may not be read".to_owned()));
        }
        if self.hidden.iter().any(|each| each == path) {
            return Ok(());
        }
        if !self.hidden.iter().any(|each| each.starts_with(path)) {
            self.named.push(path.to_owned());
            return Ok(());
        }
        self.listed.extend(DirectoryState::read(path, true).map(|state| (path.to_owned(), state)));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            // The kernel checks the target of a link when it is opened.
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.name(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn c(path: &Path) -> Result<CString, PlanError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| PlanError(format!("`{}` contains a NUL byte", path.display())))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    fn wanted(home: &Path) -> RulesetRequest {
        let hidden = vec![home.join("secret").canonicalize().unwrap()];
        RulesetRequest {
            trees: Vec::new(),
            hidden,
            shown: Vec::new(),
            offline: true,
            version: landlock::abi_version(),
        }
    }

    /// Leaves a directory alone until a change would show.
    fn settle(path: &Path) {
        while !DirectoryState::read(path, true).unwrap().is_settled() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// A home directory that was left alone for a while, and rules for it.
    fn home() -> (tempfile::TempDir, RulesetCache) {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::create_dir(home.path().join("secret")).unwrap();
        fs::write(home.path().join("plain"), "").unwrap();
        settle(home.path());
        let rules = RulesetCache { top: home.path().to_owned(), ..RulesetCache::default() };
        (home, rules)
    }

    #[test]
    fn rules_are_made_once_until_what_they_name_has_changed() {
        let (home, rules) = home();
        let same = |one: &Arc<OwnedFd>, other: &Arc<OwnedFd>| Arc::ptr_eq(one, other);
        let first = rules.get_or_create(wanted(home.path())).unwrap();
        assert!(same(&first, &rules.get_or_create(wanted(home.path())).unwrap()));
        fs::write(home.path().join("new"), "").unwrap();
        let second = rules.get_or_create(wanted(home.path())).unwrap();
        assert!(!same(&first, &second), "what is new could not be read");
        assert!(
            !same(&second, &rules.get_or_create(wanted(home.path())).unwrap()),
            "it may change within the same tick"
        );
        settle(home.path());
        let third = rules.get_or_create(wanted(home.path())).unwrap();
        assert!(same(&third, &rules.get_or_create(wanted(home.path())).unwrap()));
        let online = RulesetRequest { offline: false, ..wanted(home.path()) };
        assert!(!same(&third, &rules.get_or_create(online).unwrap()));
    }

    #[test]
    fn a_tree_that_was_replaced_is_another() {
        let ((home, rules), place) = (home(), tempfile::tempdir_in("/var/tmp").unwrap());
        let tree = place.path().join("tree");
        let wanted = || RulesetRequest { trees: vec![tree.clone()], ..wanted(home.path()) };
        fs::create_dir(&tree).unwrap();
        let first = rules.get_or_create(wanted()).unwrap();
        fs::write(tree.join("work"), "").unwrap();
        assert!(Arc::ptr_eq(&first, &rules.get_or_create(wanted()).unwrap()), "work inside does not matter");
        fs::rename(&tree, place.path().join("before")).unwrap();
        fs::create_dir(&tree).unwrap();
        assert!(!Arc::ptr_eq(&first, &rules.get_or_create(wanted()).unwrap()));
    }
}

//! Files that hold credentials, found where they really are. Commands may not read them unless the
//! user says so.
//!
//! The paths are those of the table in `contract`. A path of the table is found by its name in a
//! home directory or in the system; what a link directly inside it leads to is as secret as the
//! path itself ([`linked`]), and so is the same directory at another mount point (`mounts`). A hard
//! link in another place cannot be found.

use std::{
    path::{Path, PathBuf},
    sync::{LazyLock, OnceLock},
};

use rustix::fs::Access;
use windlass_contract::secret_paths::{home_secrets, system_secrets};

pub(crate) use stand_in::StandIn;
use tree::PathTree;

pub(crate) mod linked;
#[cfg(target_os = "linux")]
pub(crate) mod mounts;
mod stand_in;
mod tree;

/// Maximum number of home directories of other users that are searched for root, who can read all
/// of them.
const MAX_HOMES: usize = 16;

/// Finds the paths of the table that may exist: in this home directory, in those of the user that
/// runs this process, and in the system. The paths may be links.
pub(crate) fn find(home: Option<&Path>) -> Vec<PathBuf> {
    static HOME: LazyLock<PathTree> = LazyLock::new(|| PathTree::new(home_secrets().map(|each| each.path)));
    static SYSTEM: LazyLock<PathTree> =
        LazyLock::new(|| PathTree::new(system_secrets().map(|each| each.path)));
    let own = own_homes().iter().map(PathBuf::as_path);
    let mut homes: Vec<&Path> = home.into_iter().chain(own).collect();
    homes.dedup();
    let mut found: Vec<_> = homes.into_iter().flat_map(|home| HOME.find_below(home)).collect();
    found.extend(SYSTEM.find_below(Path::new("/")).into_iter().filter(|path| is_within_reach(path)));
    found
}

/// Returns the home directories of the user, without links: this one, those in which the user that
/// runs this process is at home, and for root those of people.
pub fn home_directories(home: Option<&Path>) -> Vec<PathBuf> {
    let all = home.into_iter().chain(own_homes().iter().map(PathBuf::as_path));
    let mut homes: Vec<_> = all.filter_map(|home| home.canonicalize().ok()).collect();
    homes.sort();
    homes.dedup();
    homes
}

/// Returns whether the system lets this user look into a file or directory at all. What it keeps
/// from the user need not be hidden from the user's commands, which gain no rights.
fn is_within_reach(path: &Path) -> bool {
    let may = |access| rustix::fs::access(path, access).is_ok();
    may(Access::READ_OK) || may(Access::EXEC_OK)
}

/// The home directories of the user that runs this process: `HOME` of a command may be set to
/// another one or be missing. For root also those of the machine's other users.
#[expect(clippy::disallowed_methods, reason = "a file of the system")]
fn own_homes() -> &'static [PathBuf] {
    static HOMES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    HOMES.get_or_init(|| {
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let listed = homes_in(&accounts, rustix::process::geteuid().as_raw());
        let mut homes: Vec<_> = listed.into_iter().filter(|home| home.is_dir()).collect();
        homes.sort();
        homes.dedup();
        homes
    })
}

/// The home directories that `/etc/passwd` lists for a user: its own, and for root those of people.
fn homes_in(accounts: &str, user: u32) -> Vec<PathBuf> {
    /// The numbers that people are given.
    const PEOPLE: std::ops::Range<u32> = 1000..60_000;
    let homes = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let (number, home) = (fields.next()?.parse::<u32>().ok()?, fields.nth(2)?);
        let counts = number == user || (user == 0 && PEOPLE.contains(&number));
        (counts && home.starts_with('/') && home != "/").then(|| PathBuf::from(home))
    });
    homes.take(MAX_HOMES).collect()
}

/// Returns whether a path is a place of the kernel's own, or so high up that hiding it would hide a
/// home directory. A history that is a link to `/dev/null` holds no secret.
pub(crate) fn is_no_secret(real: &Path, home: Option<&Path>) -> bool {
    const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];
    KERNEL.iter().any(|place| real.starts_with(place))
        || home.into_iter().chain(own_homes().iter().map(PathBuf::as_path)).any(|home| home.starts_with(real))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_secret_of_the_table_is_found_in_a_home_directory() {
        let home = tempfile::tempdir().unwrap();
        let below =
            |found: Vec<PathBuf>| found.into_iter().filter(|path| path.starts_with(home.path())).count();
        assert_eq!(below(find(Some(home.path()))), 0);
        for secret in home_secrets() {
            let path = home.path().join(secret.path.replace('*', "x"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !path.exists() {
                fs::write(&path, "").unwrap();
            }
            let found = find(Some(home.path()));
            assert!(found.iter().any(|each| path.starts_with(each)), "{}", secret.path);
        }
        for plain in [".gitconfig", ".bashrc", ".config/git/config", ".cargo/config.toml", ".cache/pip/x"] {
            let path = home.path().join(plain);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            assert!(!find(Some(home.path())).iter().any(|each| path.starts_with(each)), "{plain}");
        }
    }

    #[test]
    fn home_directories_are_those_of_the_user_and_for_root_those_of_people() {
        let accounts = "root:x:0:0::/root:/bin/sh\nd:x:1:1::/usr/sbin:/x\nu:x:1000:1::/home/u:/x\nbad\nv:x:1001:1::/:/x\n";
        assert_eq!(homes_in(accounts, 0), [Path::new("/root"), Path::new("/home/u")]);
        assert_eq!(homes_in(accounts, 1000), [Path::new("/home/u")]);
        assert_eq!(homes_in(accounts, 1001), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_null_device_and_a_home_directory_are_no_secrets() {
        let home = Some(Path::new("/home/u"));
        for path in ["/dev/null", "/proc/self", "/", "/home", "/home/u"] {
            assert!(is_no_secret(Path::new(path), home), "{path}");
        }
        assert!(!is_no_secret(Path::new("/home/u/.ssh"), home));
    }
}

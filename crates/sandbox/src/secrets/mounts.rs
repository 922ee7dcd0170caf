//! The same directory at other mount points: what is hidden in one place is hidden in the others,
//! too.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Read,
    os::{
        fd::AsFd,
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::sys;

/// Returns other paths by which these are reached, through a second mount of the same file system
/// or directory.
pub(crate) fn other_paths(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let found = current_aliases(hidden);
    found.iter().filter(|(path, alias)| alias.is_seen(path)).map(|(_, alias)| alias.path.clone()).collect()
}

/// Returns the mount points below a directory, without those below others.
pub(crate) fn mount_points_in(directory: &Path) -> Vec<PathBuf> {
    let Some(table) = read() else { return Vec::new() };
    let mut points: Vec<_> = table.mounts.into_iter().map(|mount| mount.point).collect();
    points.retain(|point| point != directory && point.starts_with(directory));
    points.sort();
    points.dedup_by(|point, above| point.starts_with(above));
    points
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountLine {
    /// The device, as `major:minor`.
    pub(crate) device: Vec<u8>,
    /// The directory of the file system that is mounted.
    pub(crate) root: PathBuf,
    /// The mount point.
    pub(crate) point: PathBuf,
}

impl MountLine {
    /// Reads a line: the device, the root and the mount point are the third to the fifth field.
    /// Names of files are bytes.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let (device, root, point) = (fields.next()?.to_owned(), fields.next()?, fields.next()?);
        Some(Self { device, root: unescape(root), point: unescape(point) })
    }
}

/// Another path of something hidden.
#[derive(Debug)]
struct MountAlias {
    path: PathBuf,
    /// Only a part of what is hidden is mounted there.
    is_part: bool,
}

impl MountAlias {
    /// Returns whether it is really seen there: something else may be mounted above it.
    fn is_seen(&self, hidden: &Path) -> bool {
        let identity = |path: &Path| fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let here = identity(&self.path);
        here.is_some() && (self.is_part || here == identity(hidden))
    }
}

/// Returns the other paths of one.
fn aliases(mounts: &[MountLine], path: &Path) -> Vec<MountAlias> {
    // The last mount of the innermost mount point is the one that is seen.
    let under = mounts.iter().enumerate().filter(|(_, mount)| path.starts_with(&mount.point));
    let Some((own, mount)) = under.max_by_key(|(at, mount)| (mount.point.components().count(), *at)) else {
        return Vec::new();
    };
    let inside = join(&mount.root, path.strip_prefix(&mount.point).unwrap_or(Path::new("")));
    let others = mounts.iter().enumerate().filter(|(at, other)| *at != own && other.device == mount.device);
    let found = others.filter_map(|(_, other)| {
        if let Ok(rest) = inside.strip_prefix(&other.root) {
            return Some(MountAlias { path: join(&other.point, rest), is_part: false });
        }
        let is_part = other.root.starts_with(&inside);
        is_part.then(|| MountAlias { path: other.point.clone(), is_part })
    });
    found.filter(|alias| alias.path != path).collect()
}

/// Joins two paths, without the slash that an empty second one would leave.
fn join(directory: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { directory.to_owned() } else { directory.join(rest) }
}

/// Blanks, tabs, line feeds and backslashes are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..]) => {
                (((high - b'0') << 6) | ((middle - b'0') << 3) | (low - b'0'), after)
            }
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Paths with their aliases.
type AliasList = Arc<Vec<(PathBuf, MountAlias)>>;

/// The mounts, the open file that says when they have changed, and what was last found in them.
struct MountTable {
    news: File,
    mounts: Vec<MountLine>,
    last: Option<(Vec<PathBuf>, AliasList)>,
}

/// Returns the aliases of paths among the mounts that this process sees. They are looked for again
/// only for other paths, or after something was mounted or unmounted.
fn current_aliases(hidden: &[PathBuf]) -> AliasList {
    static TABLE: Mutex<Option<MountTable>> = Mutex::new(None);
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if table.as_ref().is_none_or(|known| sys::has_news(known.news.as_fd())) {
        *table = read();
    }
    let Some(known) = table.as_mut() else { return AliasList::default() };
    if let Some((paths, found)) = &known.last
        && paths == hidden
    {
        return Arc::clone(found);
    }
    let of_one = |path: &PathBuf| {
        aliases(&known.mounts, path).into_iter().map(|alias| (path.clone(), alias)).collect::<Vec<_>>()
    };
    let found: AliasList = Arc::new(hidden.iter().flat_map(of_one).collect());
    known.last = Some((hidden.to_vec(), Arc::clone(&found)));
    found
}

#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn read() -> Option<MountTable> {
    let mut news = File::open("/proc/self/mountinfo").ok()?;
    let mut bytes = Vec::new();
    news.read_to_end(&mut bytes).ok()?;
    let lines = bytes.split(|byte| *byte == b'\n');
    Some(MountTable { mounts: lines.filter_map(MountLine::parse).collect(), news, last: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(lines: &[&str]) -> Vec<MountLine> {
        lines.iter().map(|line| MountLine::parse(line.as_bytes()).unwrap()).collect()
    }

    fn paths(mounts: &[MountLine], path: &str) -> Vec<String> {
        aliases(mounts, Path::new(path)).iter().map(|alias| alias.path.display().to_string()).collect()
    }

    #[test]
    fn a_directory_is_found_at_every_mount_of_its_file_system() {
        let mounts = mounts(&[
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
            "2 1 8:2 / /home rw - ext4 /dev/sda2 rw",
            "3 1 8:2 / /mnt/all rw - ext4 /dev/sda2 rw",
            r"4 1 8:2 /u /srv/a\040b rw - ext4 /dev/sda2 rw",
            "5 1 8:2 /u/.ssh /keys rw - ext4 /dev/sda2 rw",
            "6 1 8:2 /u/.ssh/work /work rw - ext4 /dev/sda2 rw",
            "7 1 8:2 /other /o rw - ext4 /dev/sda2 rw",
            "8 1 8:3 / /u rw - ext4 /dev/sda3 rw",
        ]);
        let expected = ["/mnt/all/u/.ssh", "/srv/a b/.ssh", "/keys", "/work"];
        assert_eq!(paths(&mounts, "/home/u/.ssh"), expected);
        assert_eq!(paths(&mounts, "/etc/shadow"), Vec::<String>::new());
    }

    #[test]
    fn of_two_mounts_at_one_place_the_later_counts() {
        let mounts = mounts(&[
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
            "2 1 8:2 / /home rw - ext4 /dev/sda2 rw",
            "3 1 8:1 /real /home rw - ext4 /dev/sda1 rw",
        ]);
        assert_eq!(paths(&mounts, "/home/u/.ssh"), ["/real/u/.ssh"]);
    }

    #[test]
    fn octal_digits_are_characters() {
        assert_eq!(unescape(br"/a\040b\134c\9"), PathBuf::from(r"/a b\c\9"));
    }
}

//! Links inside secret directories: what they lead to is as secret as the link.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::stat_cache::StatCache;

/// Maximum number of entries of one directory, with its subdirectories, that are searched for
/// links.
const MAX_ENTRIES: usize = 1024;

/// Maximum number of links followed for one command.
const MAX_LINKS: usize = 64;

/// Maximum number of rounds in which targets of links are searched for links.
const MAX_ROUNDS: usize = 3;

/// Directories that programs come with. Files of the system that a link leads to can be read by
/// everyone.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store", "/gnu/store", "/System"];

/// Adds what links inside these directories lead to. Says what was not looked at.
pub(crate) fn follow(
    hidden: &mut Vec<PathBuf>,
    is_kept: impl Fn(&Path) -> bool,
    not_covered: &mut Vec<String>,
) {
    let (mut begin, mut followed) = (0, 0);
    for _ in 0..MAX_ROUNDS {
        let end = hidden.len();
        for at in begin..end {
            let scan = links_in(&hidden[at]);
            if !scan.is_complete {
                not_covered.push(format!(
                    "links inside `{}`: only the first {MAX_ENTRIES} entries were looked at",
                    hidden[at].display()
                ));
            }
            for link in &scan.links {
                if followed == MAX_LINKS {
                    let rest =
                        format!("links inside what is hidden: only the first {MAX_LINKS} are followed");
                    not_covered.push(rest);
                    return;
                }
                followed += 1;
                let target = fs::canonicalize(link).ok().filter(|target| is_new(target, hidden));
                hidden.extend(target.filter(|target| is_kept(target)));
            }
        }
        begin = end;
    }
}

fn is_new(target: &Path, hidden: &[PathBuf]) -> bool {
    !hidden.iter().any(|above| target.starts_with(above))
        && !SYSTEM.iter().any(|place| target.starts_with(place))
}

/// The links in a directory and in its directories.
#[derive(Debug)]
struct LinkScan {
    links: Vec<PathBuf>,
    is_complete: bool,
}

/// Looks for links in a directory. Not again before the directory changes: commands cannot make
/// links in what is hidden from them.
fn links_in(directory: &Path) -> Arc<LinkScan> {
    static SEEN: StatCache<Arc<LinkScan>> = StatCache::new();
    SEEN.get_or_read(directory, || {
        let mut scan = LinkScan { links: Vec::new(), is_complete: true };
        let mut left = MAX_ENTRIES;
        let below = list(directory, &mut scan, &mut left);
        for directory in below {
            list(&directory, &mut scan, &mut left);
        }
        // The same ones every time, where not all can be followed.
        scan.links.sort();
        Arc::new(scan)
    })
}

/// Collects the links of one directory, and returns its directories.
fn list(directory: &Path, scan: &mut LinkScan, left: &mut usize) -> Vec<PathBuf> {
    let mut below = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if *left == 0 {
            scan.is_complete = false;
            break;
        }
        *left -= 1;
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => scan.links.push(entry.path()),
            Ok(kind) if kind.is_dir() => below.push(entry.path()),
            _ => {}
        }
    }
    below
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn followed(hidden: &Path) -> (Vec<PathBuf>, Vec<String>) {
        let (mut all, mut not_covered) = (vec![hidden.to_owned()], Vec::new());
        follow(&mut all, |_| true, &mut not_covered);
        (all.split_off(1), not_covered)
    }

    #[test]
    fn what_links_lead_to_is_secret_too_also_through_a_second_link_and_one_level_down() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        for directory in ["ssh/keys", "dotfiles/more"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in ["dotfiles/id_rsa", "dotfiles/deep", "other"] {
            fs::write(top.join(file), "").unwrap();
        }
        symlink("../dotfiles/id_rsa", top.join("ssh/id_rsa")).unwrap();
        symlink("../../dotfiles/deep", top.join("ssh/keys/deep")).unwrap();
        symlink("../dotfiles/more", top.join("ssh/more")).unwrap();
        symlink("../../other", top.join("dotfiles/more/other")).unwrap();
        symlink("nowhere", top.join("ssh/lock")).unwrap();
        symlink("/usr/bin/env", top.join("ssh/program")).unwrap();
        symlink("id_rsa", top.join("ssh/again")).unwrap();
        let (mut found, not_covered) = followed(&top.join("ssh"));
        found.sort();
        let expected = ["dotfiles/deep", "dotfiles/id_rsa", "dotfiles/more", "other"];
        assert_eq!(found, expected.map(|name| top.join(name)));
        assert_eq!(not_covered, Vec::<String>::new());
    }

    #[test]
    fn what_is_beyond_the_limits_is_said() {
        let place = tempfile::tempdir().unwrap();
        let (links, many) = (place.path().join("links"), place.path().join("many"));
        fs::create_dir(&links).unwrap();
        fs::create_dir(&many).unwrap();
        (0..=MAX_LINKS).for_each(|number| symlink("/x", links.join(number.to_string())).unwrap());
        assert!(followed(&links).1[0].contains("only the first 64 are followed"));
        (0..=MAX_ENTRIES).for_each(|number| fs::write(many.join(number.to_string()), "").unwrap());
        assert!(followed(&many).1[0].contains("only the first 1024 entries"));
    }
}

//! Tests of access through names, links and races.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use proptest::prelude::*;

use super::*;
use crate::file_rules::FixedFileRules;

/// A home with a secret, and a workspace in it.
struct HomeFixture {
    _directory: tempfile::TempDir,
    home: PathBuf,
    work: PathBuf,
}

impl HomeFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let work = home.join("work");
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::create_dir(home.join(".ssh")).unwrap();
        fs::write(home.join(".ssh/id_rsa"), "secret").unwrap();
        fs::write(work.join("file"), "text").unwrap();
        Self { _directory: directory, home, work }
    }

    /// Returns a resolver with rules, changed by `change`.
    fn held(&self, change: impl FnOnce(&mut FixedFileRules)) -> PathResolver {
        let mut rules = FixedFileRules {
            writable: vec![self.work.clone()],
            hidden: vec![self.home.join(".ssh")],
            protected_name: Some(".envrc".to_owned()),
            ..FixedFileRules::default()
        };
        change(&mut rules);
        PathResolver::new(self.work.clone(), Some(Arc::new(rules)))
    }

    fn free(&self) -> PathResolver {
        PathResolver::new(self.work.clone(), None)
    }
}

/// Opens a file; returns its content, or the error in a word.
fn opening(resolver: &PathResolver, path: impl AsRef<Path>) -> String {
    resolver.open_file(path.as_ref()).map_or_else(word, |opened| {
        io::read_to_string(opened.file).unwrap_or_else(|error| error.kind().to_string())
    })
}

/// Resolves a path for writing; returns the real path, or the error in a word.
fn placing(resolver: &PathResolver, path: impl AsRef<Path>) -> String {
    resolver.write_target(path.as_ref()).map_or_else(word, |place| place.real.display().to_string())
}

fn word(error: FileError) -> String {
    match error {
        FileError::NotFound { .. } => "not found".to_owned(),
        FileError::IsDirectory { .. } => "is a directory".to_owned(),
        FileError::Denied(denial) => format!("denied: {}", denial.rule),
        FileError::Nul => "nul".to_owned(),
        FileError::TooLong { .. } => "too long".to_owned(),
        FileError::Loop { .. } => "loop".to_owned(),
        FileError::NotAFile { kind, .. } => kind.to_string(),
        other => other.to_string(),
    }
}

const HIDDEN: &str =
    "denied: it may hold credentials or belongs to another program; only the user can allow it";
const OUTSIDE: &str = "denied: outside what may be written";
const PROTECTED: &str = "denied: a protected name: other programs run what it says";

#[test]
fn a_secret_is_out_of_reach_by_every_name_it_has() {
    let scene = HomeFixture::new();
    symlink(scene.home.join(".ssh/id_rsa"), scene.work.join("link")).unwrap();
    symlink("../.ssh", scene.work.join("folder")).unwrap();
    symlink("link", scene.work.join("link-to-link")).unwrap();
    let held = scene.held(|_| {});
    let process = std::process::id();
    for path in [
        "link".to_owned(),
        "link-to-link".to_owned(),
        "folder/id_rsa".to_owned(),
        "../.ssh/id_rsa".to_owned(),
        "sub/..//./../.ssh/./id_rsa".to_owned(),
        format!("/proc/self/root{}/.ssh/id_rsa", scene.home.display()),
        format!("/proc/{process}/root{}/.ssh/id_rsa", scene.home.display()),
        "../.ssh".to_owned(),
        // Absent entries are not reported either.
        "../.ssh/id_other".to_owned(),
        "folder/id_other".to_owned(),
    ] {
        assert_eq!(opening(&held, &path), HIDDEN, "{path}");
    }
    assert_eq!(opening(&held, "file"), "text");
    assert_eq!(opening(&scene.free(), "link"), "secret");
    let again = scene.held(|rules| rules.hidden.clear());
    assert_eq!(opening(&again, "link"), "secret");
    fs::create_dir(scene.home.join(".ssh/public")).unwrap();
    fs::write(scene.home.join(".ssh/public/key"), "public").unwrap();
    let inside = scene.held(|rules| rules.shown.push(scene.home.join(".ssh/public")));
    assert_eq!(opening(&inside, "../.ssh/public/key"), "public");
    assert_eq!(opening(&inside, "link"), HIDDEN);
    let more = scene.held(|rules| rules.hidden.push(scene.work.join("file")));
    assert_eq!(opening(&more, "file"), HIDDEN);
}

#[test]
fn our_own_environment_is_no_file_to_read() {
    let scene = HomeFixture::new();
    let process = std::process::id();
    for path in ["/proc/self/environ", "/proc/thread-self/environ", "/proc/self/mem"] {
        assert_eq!(opening(&scene.held(|_| {}), path), "denied: it belongs to a running process", "{path}");
    }
    let task = format!("/proc/{process}/task/{process}/environ");
    assert_eq!(opening(&scene.held(|_| {}), task), "denied: it belongs to a running process");
    assert!(opening(&scene.held(|_| {}), "/proc/meminfo").starts_with("MemTotal"));
}

#[test]
fn what_is_no_regular_file_is_told_and_never_waited_for() {
    let scene = HomeFixture::new();
    assert!(Command::new("mkfifo").arg(scene.work.join("pipe")).status().unwrap().success());
    let _listener = UnixListener::bind(scene.work.join("socket")).unwrap();
    for resolver in [scene.held(|_| {}), scene.free()] {
        assert_eq!(opening(&resolver, "pipe"), "a named pipe");
        assert_eq!(opening(&resolver, "socket"), "a socket");
        assert_eq!(opening(&resolver, "/dev/zero"), "a device");
        assert_eq!(opening(&resolver, "sub"), "is a directory");
        assert_eq!(opening(&resolver, "/"), "is a directory");
    }
}

#[test]
fn a_name_that_leads_nowhere_says_how() {
    let scene = HomeFixture::new();
    symlink("b", scene.work.join("a")).unwrap();
    symlink("a", scene.work.join("b")).unwrap();
    symlink("nothing", scene.work.join("dangling")).unwrap();
    let held = scene.held(|_| {});
    assert_eq!(opening(&held, "missing"), "not found");
    assert_eq!(opening(&held, "file/below"), "not found");
    assert_eq!(opening(&held, "dangling"), "not found");
    assert_eq!(opening(&held, "a"), "loop");
    assert_eq!(opening(&held, "x".repeat(5000)), "too long");
    assert_eq!(opening(&held, "x".repeat(300)), "too long");
    assert_eq!(opening(&held, "a\0b"), "nul");
    assert_eq!(opening(&held, ""), "is a directory");
}

#[test]
fn a_file_without_permission_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let scene = HomeFixture::new();
    fs::set_permissions(scene.work.join("file"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(scene.work.join("file")).is_ok() {
        println!("skipped: root may read everything");
        return;
    }
    assert!(opening(&scene.held(|_| {}), "file").starts_with("no permission for"));
}

#[test]
fn a_file_that_is_open_stays_what_it_was() {
    let scene = HomeFixture::new();
    let opened = scene.held(|_| {}).open_file(Path::new("file")).unwrap();
    fs::remove_file(scene.work.join("file")).unwrap();
    symlink(scene.home.join(".ssh/id_rsa"), scene.work.join("file")).unwrap();
    assert_eq!(io::read_to_string(opened.file).unwrap(), "text");
}

#[test]
fn a_link_that_comes_and_goes_never_opens_a_secret() {
    let scene = HomeFixture::new();
    let held = scene.held(|_| {});
    fs::write(scene.work.join("sub/id_rsa"), "harmless").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(scene.work.join("sub"), scene.work.join("aside")).unwrap();
                symlink("../.ssh", scene.work.join("sub")).unwrap();
                fs::remove_file(scene.work.join("sub")).unwrap();
                fs::rename(scene.work.join("aside"), scene.work.join("sub")).unwrap();
            }
        });
        for _ in 0..5000 {
            let read = opening(&held, "sub/id_rsa");
            assert_ne!(read, "secret");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn commands_have_a_tmp_of_their_own_and_it_comes_first() {
    let scene = HomeFixture::new();
    let temporary = tempfile::tempdir().unwrap();
    let private = temporary.path().canonicalize().unwrap();
    let held = scene.held(|rules| rules.private_tmp = Some(private.clone()));
    let name = format!("windlass-test-{}", private.file_name().unwrap().display());
    assert_eq!(opening(&held, Path::new("/tmp").join(&name)), "not found");
    fs::write(private.join(&name), "left by a command").unwrap();
    assert_eq!(opening(&held, Path::new("/tmp").join(&name)), "left by a command");
    assert_eq!(opening(&scene.free(), Path::new("/tmp").join(&name)), "not found");
}

#[test]
fn writing_stays_inside_whatever_links_say() {
    let scene = HomeFixture::new();
    symlink("/etc", scene.work.join("out")).unwrap();
    symlink(scene.work.join("file"), scene.work.join("in")).unwrap();
    symlink("nothing", scene.work.join("dangling")).unwrap();
    let held = scene.held(|_| {});
    let inside = |path: &str| scene.work.join(path).display().to_string();
    assert_eq!(placing(&held, "new"), inside("new"));
    assert_eq!(placing(&held, "a/b/new"), inside("a/b/new"));
    assert_eq!(placing(&held, "in"), inside("file"));
    assert_eq!(placing(&held, "out/../new"), inside("new"));
    assert_eq!(placing(&held, "out/passwd"), OUTSIDE);
    assert_eq!(placing(&held, "out/new"), OUTSIDE);
    assert_eq!(placing(&held, "../new"), OUTSIDE);
    assert_eq!(placing(&held, "../.ssh/new"), HIDDEN);
    assert_eq!(placing(&held, "dangling"), "not found");
    assert!(placing(&held, "file/below").ends_with("is not a directory"));
    assert_eq!(placing(&scene.free(), "out/new"), "/etc/new");
    let granted = scene.held(|rules| rules.writable = vec![scene.home.join("not/yet")]);
    assert_eq!(placing(&granted, "../not/yet"), scene.home.join("not/yet").display().to_string());
    assert_eq!(placing(&granted, "../not/other"), OUTSIDE);
    assert_eq!(placing(&scene.held(|rules| rules.writable.clear()), "new"), OUTSIDE);
}

#[test]
fn a_place_knows_which_directories_are_still_to_be_made() {
    let scene = HomeFixture::new();
    let place = scene.held(|_| {}).write_target(Path::new("sub/x/y/new")).unwrap();
    assert_eq!(place.name, scene.work.join("sub/x/y/new"));
    assert_eq!((place.missing, place.file_name), (vec!["x".into(), "y".into()], "new".into()));
    let number = |path: &Path| path.metadata().unwrap().ino();
    assert_eq!(
        rustix::fs::fstat(&place.directory).unwrap().st_ino,
        number(&scene.work.join("sub")),
        "the directory that exists is held"
    );
}

#[test]
fn names_that_make_other_programs_run_code_are_not_written() {
    let scene = HomeFixture::new();
    fs::create_dir(scene.work.join(".envrc")).unwrap();
    symlink(".envrc", scene.work.join("innocent")).unwrap();
    let held = scene.held(|_| {});
    for path in [".envrc", ".envrc/x", "innocent/x", "sub/../.envrc"] {
        assert_eq!(placing(&held, path), PROTECTED, "{path}");
    }
    assert!(placing(&held, ".gitignore").ends_with(".gitignore"));
    assert!(!placing(&scene.free(), ".envrc").starts_with("denied"));
    let unknown = scene.held(|rules| rules.protected_name = Some(String::new()));
    assert_eq!(placing(&unknown, "new"), "denied: the workspace cannot be read");
}

#[test]
fn two_names_of_one_file_resolve_to_one_path() {
    let scene = HomeFixture::new();
    symlink("sub", scene.work.join("alias")).unwrap();
    assert_eq!(resolve_links(&scene.work.join("alias/x/new")), scene.work.join("sub/x/new"));
    assert_eq!(resolve_links(&scene.work.join("sub")), scene.work.join("sub"));
    assert_eq!(resolve_links(Path::new("/missing/x")), Path::new("/missing/x"));
}

proptest! {
    #[test]
    fn no_spelling_leaves_the_workspace_or_finds_the_secret(
        parts in prop::collection::vec(
            prop::sample::select(vec!["..", ".", "", "sub", "file", ".ssh", "id_rsa", "up", "work", "proc", "self", "root"]),
            0..9,
        ),
    ) {
        let scene = HomeFixture::new();
        symlink("../..", scene.work.join("sub/up")).unwrap();
        let held = scene.held(|_| {});
        let path: PathBuf = parts.join("/").into();
        prop_assert_ne!(opening(&held, &path), "secret");
        if let Ok(place) = held.write_target(&path) {
            prop_assert!(place.real.starts_with(&scene.work));
        }
    }
}

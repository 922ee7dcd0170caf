//! No sequence of commands widens what the next one may do: random workspaces against a plain
//! model.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, symlink},
};

use proptest::prelude::*;

use super::{git_config::GitSetting, git_config::GitSettingEdit, *};

/// Git that reads nothing: what it cannot check is moved aside.
struct NoGit;

impl GitProgram for NoGit {
    fn list(&mut self, _config: &[u8]) -> Result<Vec<GitSetting>, String> {
        Err("there is no git here".to_owned())
    }

    fn edit(&mut self, _config: &[u8], _edits: &[GitSettingEdit]) -> Result<Vec<u8>, String> {
        Err("there is no git here".to_owned())
    }

    fn index_paths(&mut self, _git_directory: &Path) -> Result<Vec<u8>, String> {
        Err("there is no git here".to_owned())
    }

    fn differing_paths(&mut self, _top: &Path, _paths: &[&str]) -> Result<Vec<u8>, String> {
        Err("there is no git here".to_owned())
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// Actions of a command in the workspace.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize, usize),
    Directory(usize),
    Link(usize, usize),
    Rename(usize, usize),
    Remove(usize),
    Fifo(usize),
    GitDirectory(usize),
}

/// Paths below the place of it all: two roots, one of them in the other, and a directory that is
/// none.
const PATHS: [&str; 16] = [
    "ws/.git",
    "ws/a",
    "ws/a/.git",
    "ws/a/b",
    "ws/inner",
    "ws/inner/.git",
    "ws/g",
    "ws/g/commondir",
    "ws/g/gitdir",
    "ws/.git/commondir",
    "ws/.git/worktrees/w",
    "ws/.git/worktrees/w/gitdir",
    "ws/.vscode",
    "ws/a/.envrc",
    "ws/link",
    "ws/.config",
];

/// Texts written into files, or link targets. `@` stands for the place.
const TEXTS: [&str; 8] = [
    "gitdir: @/victim\n",
    "gitdir: @/ws/g\n",
    "gitdir: ../victim",
    "@/victim\n",
    "../../../victim\n",
    "../..\n",
    "@/ws/.git\n",
    "ref: refs/heads/main\n",
];

fn deed() -> impl Strategy<Value = Deed> {
    let path = 0..PATHS.len();
    prop_oneof![
        (path.clone(), 0..TEXTS.len()).prop_map(|(at, text)| Deed::Write(at, text)),
        path.clone().prop_map(Deed::Directory),
        (path.clone(), 0..4_usize).prop_map(|(at, to)| Deed::Link(at, to)),
        (path.clone(), path.clone()).prop_map(|(from, to)| Deed::Rename(from, to)),
        path.clone().prop_map(Deed::Remove),
        path.clone().prop_map(Deed::Fifo),
        path.prop_map(Deed::GitDirectory),
    ]
}

/// Most deeds fail where others were before them, and that is fine.
fn act(place: &Path, deed: &Deed) {
    let path = |at: &usize| place.join(PATHS[*at]);
    let text = |text: &str| text.replace('@', place.to_str().unwrap());
    let touched: &[&usize] = match deed {
        Deed::Rename(from, to) => &[from, to],
        Deed::Write(at, _)
        | Deed::Link(at, _)
        | Deed::Directory(at)
        | Deed::Remove(at)
        | Deed::Fifo(at)
        | Deed::GitDirectory(at) => &[at],
    };
    // Mounts and Landlock keep a command from following a link out of its root.
    let is_inside = |at: &&usize| {
        let real = path(at).canonicalize().or_else(|_| path(at).parent().unwrap().canonicalize());
        real.is_ok_and(|real| real.starts_with(place.join("ws")))
    };
    if !touched.iter().all(is_inside) && !matches!(deed, Deed::Remove(_) | Deed::Rename(..)) {
        return;
    }
    let above = |at: &&usize| path(at).parent().unwrap().canonicalize();
    if !touched.iter().all(|at| above(at).is_ok_and(|above| above.starts_with(place.join("ws")))) {
        return;
    }
    let _result = match deed {
        Deed::Write(at, said) => write(&path(at), &text(TEXTS[*said])),
        Deed::Directory(at) => fs::create_dir(path(at)),
        Deed::Link(at, to) => symlink(place.join(["victim", "ws", "ws/g", "/"][*to]), path(at)),
        Deed::Rename(from, to) => fs::rename(path(from), path(to)),
        Deed::Remove(at) => fs::remove_file(path(at)).or_else(|_| fs::remove_dir_all(path(at))),
        Deed::Fifo(at) => {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path(at), kind, rustix::fs::Mode::RWXU, 0)
                .map_err(Into::into)
        }
        Deed::GitDirectory(at) => ["objects", "refs", "hooks"]
            .iter()
            .try_for_each(|name| fs::create_dir_all(path(at).join(name)))
            .and_then(|()| fs::write(path(at).join("HEAD"), "ref: refs/heads/main\n")),
    };
}

/// Writes without waiting for a FIFO to be read.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    options.open(path)?.write_all(text.as_bytes())
}

fn identity(path: &Path) -> (u64, u64) {
    let found = fs::metadata(path).unwrap();
    (found.dev(), found.ino())
}

/// Every name that is protected wherever it stands, found in the plainest way. Links are not
/// followed.
fn protected_names(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = vec![top.to_owned()];
    while let Some(directory) = queue.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if protected_names::is_protected_entry(&entry.path()) {
                if !kind.is_symlink() {
                    found.push(entry.path());
                }
            } else if kind.is_dir() {
                queue.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn what_could_not_be_put_right_ends_the_use_of_the_workspace() {
    let place = tempfile::tempdir().unwrap();
    let writable = vec![place.path().canonicalize().unwrap()];
    let guard = WorkspaceGuard::for_tests();
    assert!(guard.begin(&writable, true, &mut NoGit).is_ok());
    let mut findings = Findings::default();
    findings.fail(&writable[0].join(".envrc"), "it could NOT be moved aside".to_owned());
    GuardReport::default().take(findings, &mut guard.state());
    let refused = guard.begin(&writable, true, &mut NoGit).map(drop);
    assert!(refused.is_err_and(|error| error.to_string().contains("start a new session")));
    assert!(guard.open_roots(&writable).is_err(), "file tools are refused, too");
}

#[test]
fn what_could_not_be_put_right_is_told_by_a_later_session_of_the_same_workspace() {
    let holder = tempfile::tempdir().unwrap();
    let place = holder.path().canonicalize().unwrap();
    let (ws, other) = (place.join("ws"), place.join("other"));
    for directory in [&ws, &other] {
        fs::create_dir(directory).unwrap();
    }
    let session = || {
        let guard = WorkspaceGuard::for_tests();
        guard.keep_notes_in(place.join("notes"));
        guard
    };
    let run = |guard: &Arc<WorkspaceGuard>, root: &Path| {
        let running = guard.begin(&[root.to_owned()], true, &mut NoGit).unwrap();
        running.finish(&mut NoGit)
    };
    let first = session();
    let running = first.begin(std::slice::from_ref(&ws), true, &mut NoGit).unwrap();
    fs::write(ws.join(".envrc"), "evil").unwrap();
    // As if it could not be renamed.
    first.state().unresolved = Some("`.envrc`: it could NOT be moved aside".to_owned());
    drop(running);
    drop(first);
    assert_eq!(run(&session(), &other).not_covered, Vec::<String>::new(), "another workspace");
    assert!(ws.join(".envrc").exists());
    let told = run(&session(), &ws);
    assert!(told.not_covered[0].contains("it could NOT be moved aside"), "{:?}", told.not_covered);
    assert_eq!(told.denials.len(), 1, "{:?}", told.denials);
    assert!(!ws.join(".envrc").exists());
    assert_eq!(run(&session(), &ws).not_covered, Vec::<String>::new(), "it is settled");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_sequence_of_commands_widens_the_rules_of_the_next(
        before in prop::collection::vec(deed(), 0..8),
        commands in prop::collection::vec(prop::collection::vec(deed(), 0..8), 1..5),
    ) {
        let holder = tempfile::tempdir().unwrap();
        let place = holder.path().canonicalize().unwrap();
        for directory in ["victim", "ws/inner"] {
            fs::create_dir_all(place.join(directory)).unwrap();
        }
        for deed in &before {
            act(&place, deed);
        }
        // The directory of the session may be gone by what the user did.
        fs::create_dir_all(place.join("ws")).unwrap();
        let writable = vec![place.join("ws"), place.join("ws/inner")];
        let guard = WorkspaceGuard::for_tests();
        let allowed: BTreeSet<_> = [identity(&place.join("ws"))].into();
        let victim = fs::read_dir(place.join("victim")).unwrap().count();
        for command in &commands {
            // Refused is as good.
            let Ok(running) = guard.begin(&writable, true, &mut NoGit) else { break };
            let roots: BTreeSet<_> = running
                .roots
                .iter()
                .map(|root| root.handle.stat().map(|found| (found.dev, found.ino)).unwrap())
                .collect();
            prop_assert!(roots.is_subset(&allowed), "{roots:?} {allowed:?}");
            for name in protected_names(&place.join("ws")) {
                let protected = &running.protected;
                let is_held = protected.read_only.contains(&name) || protected.unmounted.contains(&name);
                prop_assert!(is_held, "{name:?} {protected:?}");
            }
            for deed in command {
                act(&place, deed);
            }
            drop(running.finish(&mut NoGit));
        }
        prop_assert_eq!(fs::read_dir(place.join("victim")).unwrap().count(), victim, "nothing outside is renamed");
    }
}

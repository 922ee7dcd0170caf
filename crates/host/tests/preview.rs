//! Commands on a layer: what they change is seen and applied as a whole, or not at all.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    grant::{Confinement, Limits, SandboxRules},
    host::{Command, Exit, FinishedCommand, Keyboard},
};
use windlass_fakes::issue_grant;
use windlass_host::{LayerApplyError, Machine, Preview, PreviewChanges};

/// A workspace, and a home.
struct Bench {
    place: TempDir,
}

impl Bench {
    /// None, and a word about it, where this machine has no layers.
    async fn new() -> Option<Self> {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for directory in ["ws", "home"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        let bench = Self { place };
        match bench.try_preview("true").await {
            Ok(_) => Some(bench),
            Err(reason) => {
                eprintln!("skipped: this machine has no layers: {reason}");
                None
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join("ws").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn machine(&self) -> (Machine, Preview) {
        let variable = |name: &str, value: String| (name.to_owned(), value);
        let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        let environment = names.map(|name| variable(name, "t".to_owned())).into_iter().chain([
            variable("PATH", std::env::var("PATH").unwrap()),
            variable("HOME", self.place.path().join("home").to_str().unwrap().to_owned()),
        ]);
        let preview = Preview::new(self.place.path().join("home/notes"));
        (Machine::new(environment.collect()).with_preview(preview.clone()), preview)
    }

    fn host(&self, machine: &Machine) -> Arc<dyn Host> {
        let limits = Limits { default_time: Duration::from_mins(2), ..Limits::default() };
        let walls = SandboxRules { writable: vec![self.path("")], ..SandboxRules::default() };
        let grant = issue_grant(self.path(""), &Effects::none(), limits, Confinement::Sandboxed(walls));
        machine.confine(&grant).unwrap()
    }

    /// Runs a script on a layer.
    async fn try_preview(&self, script: &str) -> Result<(FinishedCommand, Preview), String> {
        let (machine, preview) = self.machine();
        let finished = self.host(&machine).run(&shell(script), &CancellationToken::new(), &|_| {}).await;
        Ok((finished.map_err(|error| error.to_string())?, preview))
    }

    /// The same, for a script that works.
    async fn preview(&self, script: &str) -> (Preview, PreviewChanges) {
        let (finished, preview) = self.try_preview(script).await.unwrap();
        let output = String::from_utf8_lossy(&finished.output).into_owned();
        assert_eq!(finished.report.exit, Exit::Code(0), "{script}: {output}");
        let changes = preview.changes().unwrap();
        (preview, changes)
    }

    /// Runs a script as the user, without confinement.
    fn outside(&self, script: &str) -> String {
        outside(&self.path(""), script)
    }

    fn left_over(&self) -> Vec<String> {
        let all = fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        all.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains("windlass")).collect()
    }
}

fn outside(directory: &Path, script: &str) -> String {
    let mut sh = process::Command::new("bash");
    sh.args(["-c", script]).current_dir(directory);
    for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
        sh.env(format!("GIT_{name}"), "t");
    }
    let output = sh.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn shell(script: &str) -> Command {
    let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
    Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None }
}

#[tokio::test]
async fn nothing_changes_until_it_is_applied_and_then_everything() {
    let Some(bench) = Bench::new().await else { return };
    bench.write("a", "one\n");
    bench.write("b", "two\n");
    bench.write("d/e/f", "x\n");
    let script =
        "sed -i s/one/uno/ a; rm b; mkdir -p new/deep; echo n > new/deep/file; mv d/e/f d/e/g; ls -a";
    let (finished, preview) = bench.try_preview(script).await.unwrap();
    assert!(!String::from_utf8_lossy(&finished.output).contains("windlass"), "{finished:?}");
    assert_eq!((bench.read("a"), bench.read("b")), ("one\n".to_owned(), "two\n".to_owned()));
    let changes = preview.changes().unwrap();
    preview.apply(&changes, None).unwrap();
    assert_eq!((bench.read("a"), bench.read("b"), bench.read("d/e/g")), three("uno\n", "", "x\n"));
    assert_eq!((bench.read("new/deep/file"), bench.left_over()), ("n\n".to_owned(), vec![]));
}

fn three(one: &str, two: &str, three: &str) -> (String, String, String) {
    (one.to_owned(), two.to_owned(), three.to_owned())
}

#[tokio::test]
async fn what_is_thrown_away_or_forgotten_leaves_no_trace() {
    let Some(bench) = Bench::new().await else { return };
    bench.write("a", "one\n");
    let before = fs::metadata(bench.path("")).unwrap().mtime_nsec();
    for is_discarded in [true, false] {
        let (preview, _) = bench.preview("rm a; mkdir -m 0 shut; mkdir -p $(printf 'd/%.0s' {1..100})").await;
        if is_discarded {
            preview.discard().unwrap();
        }
        drop(preview);
        assert_eq!((bench.read("a"), bench.left_over()), ("one\n".to_owned(), vec![]));
        assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 1);
        assert_eq!(fs::metadata(bench.path("")).unwrap().mtime_nsec(), before);
    }
}

#[tokio::test]
async fn commands_of_one_preview_see_what_the_earlier_ones_did() {
    let Some(bench) = Bench::new().await else { return };
    bench.write("a", "one\n");
    let (machine, preview) = bench.machine();
    let host = bench.host(&machine);
    for script in ["echo two >> a", "grep -q two a && mkdir d && mv a d/", "test ! -e a && echo three >> d/a"]
    {
        let finished = host.run(&shell(script), &CancellationToken::new(), &|_| {}).await.unwrap();
        assert_eq!(finished.report.exit, Exit::Code(0), "{script}");
    }
    // At the same time they wait for each other.
    let (one, two) = (shell("sleep 0.1; echo four >> d/a"), shell("echo five >> d/a"));
    let cancel = CancellationToken::new();
    let ends = tokio::join!(host.run(&one, &cancel, &|_| {}), host.run(&two, &cancel, &|_| {}));
    assert!(ends.0.unwrap().report.exit == Exit::Code(0) && ends.1.unwrap().report.exit == Exit::Code(0));
    let changes = preview.changes().unwrap();
    preview.apply(&changes, None).unwrap();
    assert_eq!(bench.read("d/a").lines().count(), 5);
}

/// A repository.
const SET_UP: &str = "git init -q .; echo '*.o' > .gitignore; mkdir -p src lib; seq 100 > src/a; seq 5 > lib/b; \
                      ln -s src/a link; git add -A; git commit -qm first; chmod 700 lib";

/// The compared part of a tree. Git's objects and times differ from run to run.
const LIST: &str = "find . -path ./.git -prune -o -path ./tree/.git -prune -o -printf '%p %y %m %l\\n' | sort; \
                      find . -path ./.git -prune -o -type f ! -path ./tree/.git -exec sha1sum {} + | sort; \
                      git status --short; git log --format=%s; git fsck 2>&1";

#[tokio::test]
async fn everyday_commands_leave_what_they_leave_without_a_layer() {
    let Some(bench) = Bench::new().await else { return };
    for script in [
        "echo more >> src/a; git commit -qam second",
        "git checkout -qb other; git mv src/a src/c; git commit -qm moved; git checkout -q -; git merge -q other",
        "rm -rf src; git checkout -q -- src; git stash list; git gc -q",
        "sed -i s/5/five/ lib/b src/a; cp -a src copy; mv lib/b lib/c; ln -sf lib/c link",
        "tar cf t.tar src lib; rm -rf src lib; tar xf t.tar; rm t.tar",
        "mv lib moved; mkdir lib; touch lib/new; chmod 750 moved",
        "rm -rf lib; echo file > lib; rm link; mkdir link; echo in > link/x",
        "mkdir -p a/b/c; touch -d 2001-01-01 a/b/c/old a/b; mkfifo pipe; truncate -s 1M sparse",
        "git worktree add -q ../ws/tree HEAD; git branch -q kept; git rm -q lib/b; git commit -qm removed",
    ] {
        let direct = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(direct.path().join("ws")).unwrap();
        outside(&direct.path().join("ws"), &format!("{SET_UP}; {script}"));
        let bench = Bench { place: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        for name in ["ws", "home"] {
            fs::create_dir(bench.place.path().join(name)).unwrap();
        }
        bench.outside(SET_UP);
        let (preview, changes) = bench.preview(script).await;
        let applied = preview.apply(&changes, None).unwrap();
        assert_eq!(applied.denials, vec![], "{script}");
        let (one, two) = (outside(&direct.path().join("ws"), LIST), bench.outside(LIST));
        assert_eq!(one, two, "{script}");
    }
    drop(bench);
}

#[tokio::test]
async fn directories_that_a_command_has_shut_do_not_come_along() {
    let Some(bench) = Bench::new().await else { return };
    bench.write("there/x", "x\n");
    let script = "mkdir -m 0 shut; mkdir -p made/shut; echo x > made/good; chmod 0 made/shut there";
    let (preview, changes) = bench.preview(script).await;
    let refused: Vec<_> = changes.layer.refused.iter().map(|each| each.path.clone()).collect();
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root can read every directory");
        return;
    }
    assert_eq!(refused, ["made/shut", "shut", "there"].map(|name| bench.path(name)));
    preview.apply(&changes, None).unwrap();
    assert_eq!((bench.read("made/good"), bench.read("there/x")), ("x\n".to_owned(), "x\n".to_owned()));
    assert!(!bench.path("made/shut").exists() && !bench.path("shut").exists());
}

#[tokio::test]
async fn a_protected_name_is_not_reached_through_a_link_or_by_another_way() {
    let Some(bench) = Bench::new().await else { return };
    bench.outside("git init -q .; echo x > f; git add f; git commit -qm x; mkdir .vscode; echo '{}' > .vscode/tasks.json");
    let script = "ln -s .git gg; echo '[alias] x = !sh' >> gg/config; echo bad > gg/hooks/pre-commit; \
                  echo bad >> .vscode/tasks.json; rm -rf .vscode; mkdir .idea; echo bad > .idea/x; \
                  mkdir -p sub/.vscode; echo bad > sub/.vscode/x; echo good > sub/good; mv .vscode away; true";
    let (preview, changes) = bench.preview(script).await;
    let refused: Vec<_> = changes.layer.refused.iter().map(|each| each.path.clone()).collect();
    assert_eq!(refused, [bench.path(".idea"), bench.path("sub/.vscode")]);
    let applied = preview.apply(&changes, None).unwrap();
    let list = bench.outside("find . -path ./.git/objects -prune -o -print | sort");
    for name in [".idea", "sub/.vscode", ".git/hooks/pre-commit\n", "away"] {
        assert!(!list.contains(name), "{name}: {list}");
    }
    assert_eq!(bench.read(".vscode/tasks.json"), "{}\n");
    assert_eq!(bench.outside("git config --get alias.x; cat sub/good"), "good\n", "{applied:?}");
}

#[tokio::test]
async fn a_repository_that_a_preview_makes_is_checked_like_any_other() {
    let Some(bench) = Bench::new().await else { return };
    let script = "git init -q repo; cd repo; git config core.fsmonitor /bin/evil; echo 'echo' > .git/hooks/pre-commit; \
                  chmod +x .git/hooks/pre-commit; git config user.name me; echo x > f; git add f; git commit -qm x --no-verify";
    let (preview, changes) = bench.preview(script).await;
    let applied = preview.apply(&changes, None).unwrap();
    assert!(!applied.denials.is_empty());
    let found = bench.outside("cd repo; git config --get core.fsmonitor; git config user.name; ls .git/hooks/pre-commit; git log --format=%s");
    assert!(!found.contains("evil") && found.contains("me\n") && found.contains("x\n"), "{found}");
    assert!(found.contains("No such file"), "{found}");
}

#[tokio::test]
async fn settings_of_git_are_taken_over_only_when_the_preview_is_applied() {
    let Some(bench) = Bench::new().await else { return };
    bench.outside("git init -q .; echo x > f; git add f; git commit -qm x");
    for is_applied in [false, true] {
        let (preview, changes) = bench.preview("git remote add origin https://example.com/x").await;
        assert_eq!(changes.git_settings, [bench.path(".git/config")]);
        if is_applied {
            drop(preview.apply(&changes, None).unwrap())
        } else {
            preview.discard().unwrap()
        }
        let remote = bench.outside("git remote");
        assert_eq!(remote, if is_applied { "origin\n" } else { "" });
    }
}

#[tokio::test]
async fn what_a_person_changes_meanwhile_is_never_overwritten() {
    let Some(bench) = Bench::new().await else { return };
    for path in ["a", "tree/b", "c"] {
        bench.write(path, "old\n");
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (preview, changes) = bench.preview("echo command >> a; rm -rf tree; echo command >> c").await;
    assert_eq!(changes.layer.conflicts, vec![]);
    bench.write("a", "person\n");
    bench.write("tree/new", "person\n");
    let conflicts = preview.changes().unwrap().layer.conflicts;
    assert!(conflicts.iter().any(|conflict| conflict.path == bench.path("a")), "{conflicts:?}");
    assert!(conflicts.iter().any(|conflict| conflict.path == bench.path("tree/new")), "{conflicts:?}");
    assert!(matches!(preview.apply(&changes, None), Err(LayerApplyError::Conflict(_))));
    assert_eq!(
        (bench.read("a"), bench.read("tree/new"), bench.read("c")),
        three("person\n", "person\n", "old\n")
    );
    assert_eq!((bench.read("tree/b"), bench.left_over()), ("old\n".to_owned(), vec![]));
}

#[tokio::test]
async fn what_cannot_be_on_a_layer_is_refused_before_it_starts() {
    let Some(bench) = Bench::new().await else { return };
    let (machine, _preview) = bench.machine();
    let host = bench.host(&machine);
    let session = host.open(&shell("true"), Keyboard::Absent, Arc::new(|_: &[u8]| {})).await;
    assert!(session.err().unwrap().to_string().contains("commands that end"));
    let unconfined =
        issue_grant(bench.path(""), &Effects::none(), Limits::default(), Confinement::Unconfined);
    assert!(machine.confine(&unconfined).err().unwrap().to_string().contains("outside of the sandbox"));
    // What an earlier command left would act in a layer.
    let made = "import os; os.mkdir('d'); os.setxattr('d', 'user.overlay.opaque', b'y')";
    if bench.outside(&format!("python3 -c \"{made}\"")).is_empty() {
        let refused = bench.try_preview("true").await.err().unwrap();
        assert!(refused.contains("attributes of an overlay"), "{refused}");
        fs::remove_dir(bench.path("d")).unwrap();
    }
    bench.outside("mknod gone c 0 0");
    let refused = bench.try_preview("true").await.err().unwrap();
    assert!(refused.contains("device with the number 0:0"), "{refused}");
    fs::remove_file(bench.path("gone")).unwrap();
    assert_eq!(bench.left_over(), Vec::<String>::new());
    let (open, _) = bench.preview("touch x").await;
    let refused = bench.try_preview("true").await.err().unwrap();
    assert!(refused.contains("only one can be open"), "{refused}");
    drop(open);
    assert!(bench.try_preview("true").await.is_ok());
}

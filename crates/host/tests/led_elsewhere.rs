//! Protected names that lead to files elsewhere in the workspace: what they lead to is protected
//! like themselves.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{collections::BTreeMap, fs, path::PathBuf, process, time::Duration};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    grant::{Confinement, Held, Limits, Mechanism, SandboxRules},
    host::{Command, FinishedCommand},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Setup, a protected name, and ways to change the file found under it.
const LINKS: &[(&str, &str, &[&str])] = &[
    (
        "mkdir -p tools/in; echo mine > tools/in/pc; ln -s ../../tools/in/pc .git/hooks/pre-commit",
        ".git/hooks/pre-commit",
        &[
            "echo evil > tools/in/pc",
            "echo evil > .git/hooks/pre-commit",
            "rm tools/in/pc; echo evil > tools/in/pc",
            "echo evil > e; mv e tools/in/pc",
            "mv tools t; mkdir -p tools/in; echo evil > tools/in/pc",
            "mv tools/in i; echo evil > e; ln -s . tools/in; mv e tools/pc",
            "rm .git/hooks/pre-commit; echo evil > .git/hooks/pre-commit",
        ],
    ),
    (
        "mkdir a b; echo mine > b/pc; ln -s ../b/pc a/pc; ln -s a l; ln -s ../../l/pc .git/hooks/pre-commit",
        ".git/hooks/pre-commit",
        &[
            "echo evil > l/pc",
            "rm a/pc; echo evil > a/pc",
            "mkdir e; echo evil > e/pc; rm l; ln -s e l",
            "mv a c; mkdir a; echo evil > a/pc",
        ],
    ),
    (
        "mkdir .vscode; ln -s ../made/tasks.json .vscode/tasks.json",
        ".vscode/tasks.json",
        &["mkdir made; echo evil > made/tasks.json", "mkdir e; echo evil > e/tasks.json; ln -s e made"],
    ),
    (
        "mkdir -p below/.claude skills; ln -s ../../skills below/.claude/skills; echo mine > skills/run",
        "below/.claude/skills/run",
        &["echo evil > skills/run", "mv skills s; mkdir skills; echo evil > skills/run"],
    ),
    (
        "mkdir conf; echo mine > conf/envrc; ln -s conf/envrc .envrc",
        ".envrc",
        &["mv conf c; mkdir conf; echo evil > conf/envrc"],
    ),
];

/// The same with files that git's settings include.
const INCLUDED: &[(&str, &str, &[&str])] = &[
    (
        "printf '[include]\\npath = ../conf/inc\\n' > .git/config; mkdir conf; echo '#mine' > conf/inc",
        "conf/inc",
        &["echo evil > conf/inc", "mv conf c; mkdir conf; echo evil > conf/inc"],
    ),
    ("printf '[includeIf \"gitdir:/\"]\\npath = ../inc\\n' > .git/config", "inc", &["echo evil > inc"]),
    (
        "printf '[include] path = \"../inc\" # more\\n' > .git/config; printf '[include]\\npath = inner\\n' > inc",
        "inner",
        &["echo evil > inner"],
    ),
    ("printf '[include]\\npath = ../inc\\n' > .git/config.worktree", "inc", &["echo evil > inc"]),
    (
        "mkdir -p .git/worktrees/w; cp .git/HEAD .git/worktrees/w; echo ../.. > .git/worktrees/w/commondir; \
         printf '[include]\\npath = ../../../inc\\n' > .git/worktrees/w/config.worktree",
        "inc",
        &["echo evil > inc"],
    ),
    (
        "printf '[include]\\npath = ../inc\\n' > .git/config; printf '[core]\\nhooksPath = hk\\n' > inc; mkdir hk",
        "hk/pre-commit",
        &["echo evil > hk/pre-commit"],
    ),
];

/// The same with files that links in the home directory lead to, as a repository of settings has
/// them.
const LINKED_FROM_HOME: &[(&str, &str, &[&str])] = &[
    (
        "mkdir git; echo '#mine' > git/gitconfig; ln -s ../ws/git/gitconfig ../home/.gitconfig",
        "git/gitconfig",
        &[
            "echo evil > git/gitconfig",
            "mv git g; mkdir git; echo evil > git/gitconfig",
            "rm git/gitconfig; echo evil > git/gitconfig",
        ],
    ),
    (
        "echo '#mine' > conf; ln -s ../../../ws/conf ../home/.config/git/config",
        "conf",
        &["echo evil > conf", "echo evil > e; mv e conf"],
    ),
    ("echo mine > rc; ln -s ../ws/rc ../home/.bashrc", "rc", &["echo evil >> rc"]),
    (
        "mkdir fish; echo mine > fish/config.fish; ln -s ../../ws/fish ../home/.config/fish",
        "fish/config.fish",
        &["echo evil > fish/config.fish", "mv fish f; mkdir fish; echo evil > fish/config.fish"],
    ),
    (
        "mkdir -p tools ../home/.local/bin; echo mine > tools/t; ln -s ../../../ws/tools/t ../home/.local/bin/t",
        "tools/t",
        &["echo evil > tools/t"],
    ),
];

/// A workspace with a repository, a place outside, a home directory and a machine.
struct World {
    place: TempDir,
    machine: Machine,
}

impl World {
    /// None, and a word about it, where this machine lacks the rung.
    fn on(rung: Mechanism) -> Option<Self> {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = place.path().join("home");
        fs::create_dir_all(home.join(".config/git")).unwrap();
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let home = ("HOME".to_owned(), home.to_str().unwrap().to_owned());
        let machine = Machine::new(BTreeMap::from([path, home]));
        let machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
        let found = machine.diagnose().rung;
        if found != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`, but {found:?}", rung.name());
            return None;
        }
        fs::create_dir(place.path().join("out")).unwrap();
        for directory in ["hooks", "objects", "refs"] {
            fs::create_dir_all(place.path().join("ws/.git").join(directory)).unwrap();
        }
        fs::write(place.path().join("ws/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        Some(Self { place, machine })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("ws").join(name)
    }

    /// Runs a script as the user, without confinement.
    fn outside(&self, script: &str) {
        let done = process::Command::new("sh").args(["-ec", script]).current_dir(self.path("")).status();
        assert!(done.unwrap().success(), "{script}");
    }

    async fn run(&self, script: &str) -> (FinishedCommand, Held) {
        let walls = SandboxRules { writable: vec![self.path("")], ..SandboxRules::default() };
        // Far more than any of these commands needs.
        let limits = Limits { default_time: Duration::from_mins(1), ..Limits::default() };
        let grant = issue_grant(self.path(""), &Effects::none(), limits, Confinement::Sandboxed(walls));
        let host = self.machine.confine(&grant).unwrap();
        let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let finished = host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
        (finished, host.held())
    }
}

/// Tries every attack in a world of its own, on every rung.
async fn nothing_changes(cases: &[(&str, &str, &[&str])]) {
    for rung in [Mechanism::Namespaces, Mechanism::Landlock] {
        for (setup, name, attacks) in cases {
            for attack in *attacks {
                let Some(world) = World::on(rung) else { break };
                world.outside(setup);
                let before = fs::read_to_string(world.path(name)).ok();
                world.run(attack).await;
                let after = fs::read_to_string(world.path(name)).ok();
                assert_eq!(after, before, "{}: {setup}: {attack}", rung.name());
            }
        }
    }
}

#[tokio::test]
async fn what_links_inside_protected_directories_lead_to_is_protected() {
    nothing_changes(LINKS).await;
}

#[tokio::test]
async fn what_links_in_the_home_directory_lead_to_is_protected() {
    nothing_changes(LINKED_FROM_HOME).await;
}

#[tokio::test]
async fn what_settings_of_git_include_is_protected() {
    nothing_changes(INCLUDED).await;
}

#[tokio::test]
async fn links_out_of_the_workspace_and_to_all_of_it_leave_work_as_it_is() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    world.outside(
        "mkdir .vscode; ln -s .. .vscode/all; ln -s ../../out .vscode/out; ln -s /tmp/no .vscode/tmp",
    );
    world.outside("ln -s round .vscode/round; touch ../out/file; ln -s ../../out/file .git/hooks/pre-push");
    let (finished, held) = world.run("mkdir new; echo x > new/file").await;
    assert_eq!(finished.report.denials, []);
    assert!(world.path("new/file").exists());
    let told = held.not_covered.iter().filter(|line| line.contains("/.vscode`")).count();
    assert_eq!(told, 1, "{:?}", held.not_covered);
}

#[tokio::test]
async fn links_beyond_what_is_followed_are_told_of() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    world.outside("for i in $(seq 70); do ln -s ../../none$i .git/hooks/h$i; done");
    let (_, held) = world.run("true").await;
    let told = held.not_covered.iter().filter(|line| line.contains("/.git/hooks`")).count();
    assert_eq!(told, 1, "{:?}", held.not_covered);
}

#[tokio::test]
async fn nothing_of_the_users_is_moved_aside_through_a_link_that_a_command_has_made() {
    for rung in [Mechanism::Namespaces, Mechanism::Landlock] {
        let Some(world) = World::on(rung) else { continue };
        world.outside("mkdir ../out/fish");
        world.run("ln -s ../out .config").await;
        assert!(world.place.path().join("out/fish").exists(), "{}", rung.name());
    }
}

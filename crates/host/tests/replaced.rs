//! Protected and hidden files that somebody outside replaces: the next command is kept from the new
//! ones, and one that runs is, soon.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs, future,
    path::PathBuf,
    process,
    sync::{
        Arc,
        mpsc::{self, TryRecvError},
    },
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Denial, Effects, Host, Sandbox,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::{Command, Exit, FinishedCommand},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more time than any of these commands needs: a command that takes longer was never blocked.
const FOREVER: Duration = Duration::from_secs(30);

/// Actions of a program outside of the sandbox, and the effects that a command must not have then.
const REPLACED: &[(&str, &str)] = &[
    // As `git config`, `sed -i` and most editors do.
    ("echo new > n; mv n .envrc", "echo evil >> .envrc"),
    ("rm .envrc; echo new > .envrc", "echo evil >> .envrc"),
    // As editors do that keep the old one.
    ("mv .envrc .envrc~; echo new > .envrc", "echo evil >> .envrc"),
    ("mv .envrc .envrc~; echo new > .envrc; rm .envrc~", "echo evil >> .envrc"),
    ("rm -r .git/hooks; mkdir .git/hooks", "echo evil > .git/hooks/pre-commit"),
    ("rm -rf .git/old; mv .git/hooks .git/old; mkdir .git/hooks", "echo evil > .git/hooks/pre-commit"),
    ("echo new > n; mv n env", "cat env"),
    ("rm env; echo new > env", "cat env"),
    ("mv env env~; echo new > env", "cat env"),
    // What comes under a protected name has a mount of its own, by which it can be written.
    (
        "rm -r .idea; mv .git .idea; mkdir -p .git/hooks; echo new > .git/config",
        "echo evil > .idea/tasks.xml",
    ),
];

/// The same for settings of git, of which a command has a copy.
const REPLACED_SETTINGS: &[(&str, &str)] = &[
    ("echo new > n; mv n .git/config", "echo evil >> .git/config"),
    ("rm -rf .git~; mv .git .git~; mkdir .git; echo new > .git/config", "echo evil >> .git/config"),
];

/// A workspace with what is protected or hidden, and a machine whose commands work in it.
struct World {
    place: TempDir,
    machine: Machine,
}

impl World {
    /// None, and a word about it, where this machine has no namespaces.
    fn new() -> Option<Self> {
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let machine = Machine::new(BTreeMap::from([path]));
        let found = machine.diagnose().rung;
        if found != Some(Mechanism::Namespaces) {
            eprintln!("skipped: this machine has no namespaces, but {found:?}");
            return None;
        }
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        for name in [".git/hooks", ".git/info", ".idea"] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        for name in [".envrc", ".git/config", ".git/info/attributes", "env"] {
            fs::write(place.path().join(name), "mine\n").unwrap();
        }
        Some(Self { place, machine })
    }

    fn path(&self) -> PathBuf {
        self.place.path().to_owned()
    }

    /// Runs a script outside of the sandbox.
    fn outside(&self, script: &str) {
        let done = process::Command::new("sh").args(["-ec", script]).current_dir(self.path()).status();
        assert!(done.unwrap().success(), "{script}");
    }

    fn host(&self) -> Arc<dyn Host> {
        let walls = SandboxRules {
            writable: vec![self.path()],
            unreadable: vec![self.path().join("env")],
            ..SandboxRules::default()
        };
        let limits = Limits { default_time: FOREVER, ..Limits::default() };
        let grant = issue_grant(self.path(), &Effects::none(), limits, Confinement::Sandboxed(walls));
        self.machine.confine(&grant).unwrap()
    }

    async fn run(&self, script: &str) -> FinishedCommand {
        let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        self.host().run(&command, &CancellationToken::new(), &|_| {}).await.unwrap()
    }

    /// Runs a script a few times over in one command, each time after somebody outside has done
    /// something.
    async fn run_after_each(&self, outside: &str, script: &str) -> FinishedCommand {
        let rounds = 0..3;
        let (ready, go) = (self.path().join("ready"), self.path().join("go"));
        let waits = "echo > ready; until [ -e go ]; do sleep 0.01; done; rm go";
        let script = rounds.clone().map(|_| format!("{waits}; {script}; ")).collect::<String>();
        let meanwhile = async {
            for _ in rounds {
                while fs::remove_file(&ready).is_err() {
                    tokio::task::yield_now().await;
                }
                self.outside(outside);
                fs::write(&go, "").unwrap();
            }
            future::pending::<Infallible>().await
        };
        // Whoever was given up after the longest time waits for nobody any more.
        tokio::select! {
            finished = self.run(&script) => finished,
            never = meanwhile => match never {},
        }
    }

    /// Returns true if a command has left its mark anywhere.
    fn has_evil(&self) -> bool {
        let found =
            process::Command::new("grep").args(["-rq", "evil", "."]).current_dir(self.path()).status();
        found.unwrap().success()
    }
}

#[tokio::test]
async fn the_next_command_is_kept_from_what_is_there_now() {
    for (outside, attack) in REPLACED {
        let Some(world) = World::new() else { return };
        assert_eq!(world.run("true").await.report.exit, Exit::Code(0));
        world.outside(outside);
        assert_ne!(world.run(attack).await.report.exit, Exit::Code(0), "{outside}: {attack}");
        assert!(!world.has_evil(), "{outside}: {attack}");
    }
    for (outside, attack) in REPLACED_SETTINGS {
        let Some(world) = World::new() else { return };
        assert_eq!(world.run("true").await.report.exit, Exit::Code(0));
        world.outside(outside);
        world.run(attack).await;
        assert!(!world.has_evil(), "{outside}: {attack}");
    }
}

#[tokio::test]
async fn a_name_that_somebody_outside_has_made_since_is_protected_and_stays() {
    let Some(world) = World::new() else { return };
    assert_eq!(world.run("true").await.report.exit, Exit::Code(0));
    world.outside("mkdir .vscode below; echo mine > .vscode/tasks.json; echo mine > below/.mcp.json");
    let attack = "echo evil > .vscode/tasks.json; echo evil > below/.mcp.json";
    assert_eq!(world.run(attack).await.report.exit, Exit::Code(1));
    assert!(!world.has_evil());
    assert_eq!(fs::read_to_string(world.path().join("below/.mcp.json")).unwrap(), "mine\n");
}

#[tokio::test]
async fn a_command_that_runs_is_kept_from_what_is_there_now_too() {
    for (outside, attack) in REPLACED.iter().chain(REPLACED_SETTINGS) {
        let Some(world) = World::new() else { return };
        let until_refused = format!("while {attack}; do sleep 0.01; done");
        let finished = world.run_after_each(outside, &until_refused).await;
        assert_eq!(finished.report.exit, Exit::Code(0), "{outside}: {attack}");
    }
}

#[tokio::test]
async fn no_link_that_a_command_makes_leads_a_cover_elsewhere() {
    let Some(world) = World::new() else { return };
    let outside = "rm -rf .git~ .idea; mv .git .git~; mkdir .git";
    // When the last of them is covered again, all have been looked at.
    let script = "rm -rf other; mkdir other .idea; echo > other/attributes; ln -s ../other .git/info; \
                  while echo > .idea/x; do sleep 0.01; done; echo more >> other/attributes || exit 7";
    let finished = world.run_after_each(outside, script).await;
    assert_eq!(finished.report.exit, Exit::Code(0));
}

#[tokio::test]
async fn what_was_replaced_meanwhile_is_told_of() {
    let Some(world) = World::new() else { return };
    let outside = "for name in .envrc env; do echo new > n; mv n $name; done";
    let finished = world.run_after_each(outside, "true").await;
    let told = |name: &str| {
        let is_it = |denial: &&Denial| {
            denial.what.ends_with(name) && denial.rule.contains("another program replaced")
        };
        finished.report.denials.iter().filter(is_it).count()
    };
    assert_eq!((told(".envrc"), told("/env")), (1, 1), "{:?}", finished.report.denials);
    assert_eq!(world.run("true").await.report.denials, []);
}

#[tokio::test]
async fn commands_start_while_somebody_outside_goes_on_replacing_a_file() {
    let Some(world) = World::new() else { return };
    let (from, to) = (world.path().join("n"), world.path().join(".envrc"));
    let (over, is_over) = mpsc::channel::<()>();
    let busy = thread::spawn(move || {
        while is_over.try_recv() == Err(TryRecvError::Empty) {
            fs::write(&from, "new").unwrap();
            fs::rename(&from, &to).unwrap();
        }
    });
    let mut exits = Vec::new();
    for _ in 0..100 {
        exits.push(world.run("true").await.report.exit);
    }
    drop(over);
    busy.join().unwrap();
    assert_eq!(exits, [Exit::Code(0); 100]);
}

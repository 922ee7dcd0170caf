//! A workspace, a user and a session for tests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    grant::{Confinement, Held, Limits, Mechanism, SandboxRules},
    host::{Command, FinishedCommand},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Both mechanisms of Linux.
pub(crate) const RUNGS: [Mechanism; 2] = [Mechanism::Namespaces, Mechanism::Landlock];

/// A workspace, a directory of the user's outside, a home, and a session.
pub(crate) struct World {
    pub(crate) place: TempDir,
    pub(crate) machine: Machine,
}

impl World {
    /// None, and a word about it, where this machine lacks the mechanism.
    pub(crate) fn on(rung: Mechanism) -> Option<Self> {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for directory in ["ws", "victim", "home"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("victim/file"), "mine").unwrap();
        let machine = session(place.path(), rung);
        let found = machine.diagnose().rung;
        if found != Some(rung) {
            eprintln!("skipped: this machine has no mechanism `{}`, but {found:?}", rung.name());
            return None;
        }
        Some(Self { place, machine })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Runs a script that may write some directories. `@` stands for the place of it all.
    pub(crate) async fn run_in(
        &self,
        roots: &[&str],
        script: &str,
    ) -> Result<(FinishedCommand, Held), String> {
        let writable: Vec<_> = roots.iter().map(|root| self.path(root)).collect();
        let limits = Limits { default_time: Duration::from_mins(1), ..Limits::default() };
        let walls = SandboxRules { writable: writable.clone(), ..SandboxRules::default() };
        let grant = issue_grant(writable[0].clone(), &Effects::none(), limits, Confinement::Sandboxed(walls));
        let host = self.machine.confine(&grant).map_err(|error| error.to_string())?;
        let script = script.replace('@', self.place.path().to_str().unwrap());
        let argv = ["bash".to_owned(), "-c".to_owned(), script];
        let command = Command { argv: argv.to_vec(), cwd: None, env: BTreeMap::new(), time_limit: None };
        let finished = host.run(&command, &CancellationToken::new(), &|_| {}).await;
        Ok((finished.map_err(|error| error.to_string())?, host.held()))
    }

    pub(crate) async fn run(&self, script: &str) -> FinishedCommand {
        self.run_in(&["ws"], script).await.unwrap().0
    }

    /// Runs a script as the user, without confinement.
    pub(crate) fn outside(&self, script: &str) -> String {
        let mut sh = process::Command::new("bash");
        sh.args(["-c", script]).current_dir(self.path("ws")).env("HOME", self.path("home"));
        for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
            sh.env(format!("GIT_{name}"), "t");
        }
        let output = sh.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

/// A session of its own in the same place.
pub(crate) fn session(place: &Path, rung: Mechanism) -> Machine {
    let variable = |name: &str, value: String| (name.to_owned(), value);
    let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    let environment = names.map(|name| variable(name, "t".to_owned())).into_iter().chain([
        variable("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        variable("HOME", place.join("home").to_str().unwrap().to_owned()),
    ]);
    let machine = Machine::new(environment.collect());
    if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine }
}

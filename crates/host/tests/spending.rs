//! The CPU time limit of all commands together, with every mechanism and without any.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Grant, Host, Sandbox,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::{Command, Exit, HostError, Keyboard},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more time than any of these commands needs: a test that takes longer hangs.
const FOREVER: Duration = Duration::from_mins(1);

/// Less than what `burn` takes, and far more than a shell does.
const LIMIT: Duration = Duration::from_millis(200);

/// Works until it has taken three tenths of a second of a processor, however long that is.
const BURN: &str = "import time\nwhile time.process_time() < 0.3: pass";

/// Ways to take too much. They differ in who comes to know of it.
const BURNERS: [(&str, &str); 4] = [
    ("collected by the shell", "python3 burn; exit 4"),
    (
        "an orphan that ends",
        "(setsid sh -c 'python3 burn; touch burnt' &); until [ -e burnt ]; do sleep 0.05; done; exit 4",
    ),
    (
        "collected by one who is killed in the end",
        "sh -c 'python3 burn; touch burnt; sleep 300; :' & until [ -e burnt ]; do sleep 0.05; done; exit 4",
    ),
    (
        "collected by nobody",
        "(sh -c 'python3 burn; touch burnt' & exec sleep 300) & until [ -e burnt ]; do sleep 0.05; done; exit 4",
    ),
];

/// A workspace on a machine whose commands may take `LIMIT`, and how it is held.
struct World {
    place: TempDir,
    /// The same, without limits.
    machine: Machine,
    host: Arc<dyn Host>,
    rung: Mechanism,
}

impl World {
    fn all() -> Vec<Self> {
        [Mechanism::Unconfined, Mechanism::Landlock, Mechanism::Namespaces]
            .into_iter()
            .filter_map(Self::on)
            .collect()
    }

    fn on(rung: Mechanism) -> Option<Self> {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::write(place.path().join("burn"), BURN).unwrap();
        let machine = Machine::new(BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]));
        let machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
        if rung != Mechanism::Unconfined && machine.diagnose().rung != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`", rung.name());
            return None;
        }
        let host = machine.clone().with_command_cpu(LIMIT).confine(&grant(rung, place.path())).unwrap();
        Some(Self { place, machine, host, rung })
    }

    fn grant(&self) -> Grant {
        grant(self.rung, self.place.path())
    }

    async fn run(&self, script: &str) -> Result<Exit, HostError> {
        let finished = self.host.run(&sh(script), &CancellationToken::new(), &|_| {}).await?;
        assert_eq!(self.host.held().rung, self.rung);
        Ok(finished.report.exit)
    }

    async fn refuses_more(&self, why: &str) {
        let more = self.run("touch made").await;
        assert!(
            matches!(more, Err(HostError::CpuUsedUp { limit: LIMIT })),
            "{:?}, {why}: {more:?}",
            self.rung
        );
        assert!(!self.place.path().join("made").exists());
    }
}

fn grant(rung: Mechanism, root: &Path) -> Grant {
    let confinement = match rung {
        Mechanism::Unconfined => Confinement::Unconfined,
        _ => Confinement::Sandboxed(SandboxRules {
            writable: vec![root.to_owned()],
            ..SandboxRules::default()
        }),
    };
    issue_grant(root.to_owned(), &Effects::none(), Limits::default(), confinement)
}

fn sh(script: &str) -> Command {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    Command { argv, cwd: None, env: BTreeMap::new(), time_limit: Some(FOREVER) }
}

#[tokio::test]
async fn when_the_processor_time_for_all_commands_is_used_up_no_more_are_started() {
    for (how, script) in BURNERS {
        for world in World::all() {
            assert_eq!(world.run(script).await.unwrap(), Exit::Code(4), "{:?}, {how}", world.rung);
            world.refuses_more(how).await;
        }
    }
}

#[tokio::test]
async fn time_spent_waiting_is_not_counted() {
    for world in World::all() {
        assert_eq!(world.run("sleep 0.3").await.unwrap(), Exit::Code(0));
        assert_eq!(world.run("exit 4").await.unwrap(), Exit::Code(4));
    }
}

#[tokio::test]
async fn what_goes_on_from_call_to_call_is_counted_when_it_ends() {
    for world in World::all() {
        let command = sh("python3 burn; echo burnt; sleep 300");
        let session = world.host.open(&command, Keyboard::Absent, Arc::new(|_| {})).await.unwrap();
        assert_eq!(session.progress(0).await, 6);
        assert_eq!(world.run("exit 4").await.unwrap(), Exit::Code(4));
        session.end().await;
        world.refuses_more("a session").await;
    }
}

#[tokio::test]
async fn what_goes_on_is_ended_when_the_time_for_all_commands_is_used_up() {
    for world in World::all() {
        let host = world.machine.clone().with_command_time(LIMIT).confine(&world.grant()).unwrap();
        let session = host.open(&sh("sleep 300"), Keyboard::Absent, Arc::new(|_| {})).await.unwrap();
        session.progress(0).await;
        assert_eq!(session.ended().map(|ended| ended.exit), Some(Exit::TimedOut), "{:?}", world.rung);
        let more = host.run(&sh("touch made"), &CancellationToken::new(), &|_| {}).await;
        assert!(matches!(more, Err(HostError::TimeUsedUp { limit: LIMIT })), "{:?}: {more:?}", world.rung);
        assert!(!world.place.path().join("made").exists());
    }
}

#[tokio::test]
async fn no_process_behind_walls_takes_much_more_than_is_left() {
    for world in World::all().into_iter().filter(|world| world.rung != Mechanism::Unconfined) {
        let exit = world.run("exec sh -c 'while :; do :; done'").await.unwrap();
        assert_eq!(exit, Exit::Signal(24), "{:?}: the signal for too much processor time", world.rung);
        world.refuses_more("a process").await;
    }
}

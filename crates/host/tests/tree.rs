//! However a process has hidden, it ends with its command: on every rung, and on none.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process,
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::{Command, Exit, FinishedCommand},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more time than any of these commands needs: a test that takes longer hangs.
const FOREVER: Duration = Duration::from_mins(1);

const HELD_BY: [Mechanism; 3] = [Mechanism::Unconfined, Mechanism::Landlock, Mechanism::Namespaces];

/// Ways to leave something behind. Each holds the tether open, and ends by itself.
const HIDERS: [(&str, &str); 5] = [
    ("a child in the background", "sleep 300 & exit 4"),
    ("a session of its own", "setsid sleep 300 & exit 4"),
    ("no parent, no descriptors", "(setsid sh -c 'sleep 300 <&- >&- 2>&- & exit' &); sleep 0.1; exit 4"),
    ("deaf to hangups", "nohup sleep 300 >/dev/null 2>&1 & exit 4"),
    ("deaf to every signal", "(trap '' TERM HUP INT; setsid sleep 300 &) ; exit 4"),
];

/// Forks on and on, each generation leaving its child and going. It would end by itself, but much
/// later.
const RUNNER: &str = "run() { [ $1 -eq 0 ] || (sleep 0.01; run $(($1 - 1))) & }; run 3000; exit 4";

/// Runs a script that holds a named pipe open, and cancels it when it says something; how it went,
/// and a word when everyone who held the pipe is gone.
async fn run(rung: Mechanism, script: &str) -> Option<(FinishedCommand, Receiver<()>)> {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let gone = tether(&place);
    let machine = Machine::for_one_command(BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]));
    let machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
    if rung != Mechanism::Unconfined && machine.diagnose().rung != Some(rung) {
        eprintln!("skipped: this machine has no rung `{}`", rung.name());
        return None;
    }
    let argv = ["sh", "-c", &format!("exec 3>tether; {script}")].map(str::to_owned).to_vec();
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: Some(FOREVER) };
    let cancel = CancellationToken::new();
    let grant =
        issue_grant(place.path().to_owned(), &Effects::none(), Limits::default(), hold(rung, place.path()));
    let host = machine.confine(&grant).unwrap();
    let finished = host.run(&command, &cancel, &|_| cancel.cancel()).await.unwrap();
    assert_eq!(host.held().rung, rung);
    Some((finished, gone))
}

fn hold(rung: Mechanism, root: &Path) -> Confinement {
    match rung {
        Mechanism::Unconfined => Confinement::Unconfined,
        _ => Confinement::Sandboxed(SandboxRules {
            writable: vec![root.to_owned()],
            ..SandboxRules::default()
        }),
    }
}

fn tether(place: &TempDir) -> Receiver<()> {
    let path = place.path().join("tether");
    assert!(process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (gone, told) = mpsc::channel();
    thread::spawn(move || {
        fs::read(path).unwrap();
        gone.send(()).unwrap();
    });
    told
}

#[tokio::test]
async fn whoever_hides_from_a_command_that_has_ended_is_killed_and_named() {
    for rung in HELD_BY {
        for (how, script) in HIDERS {
            let Some((finished, gone)) = run(rung, script).await else { continue };
            assert_eq!(finished.report.exit, Exit::Code(4), "{rung:?}, {how}");
            assert!(gone.recv_timeout(FOREVER).is_ok(), "{rung:?}, {how}");
            // On a busy machine it may not have come to be what it was to become.
            let is_hider = |name: &String| name == "sh" || script.contains(name.as_str());
            let killed = &finished.report.killed;
            assert!(killed.len() == 1 && killed.iter().all(is_hider), "{rung:?}, {how}: {killed:?}");
        }
    }
}

#[tokio::test]
async fn whoever_hides_from_a_command_that_is_cancelled_is_killed() {
    for rung in HELD_BY {
        for (how, script) in HIDERS {
            let script = script.replace("exit 4", "echo ready; sleep 300");
            let Some((finished, gone)) = run(rung, &script).await else { continue };
            assert_eq!(finished.report.exit, Exit::Cancelled, "{rung:?}, {how}");
            assert!(gone.recv_timeout(FOREVER).is_ok(), "{rung:?}, {how}");
        }
    }
}

#[tokio::test]
async fn whoever_is_asked_may_end_in_its_own_way() {
    for rung in HELD_BY {
        let script = "trap 'echo ended in peace; exit 0' TERM; echo ready; sleep 300 & wait";
        let Some((finished, gone)) = run(rung, script).await else { continue };
        assert_eq!(finished.report.exit, Exit::Cancelled);
        assert_eq!(String::from_utf8_lossy(&finished.output), "ready\nended in peace\n", "{rung:?}");
        assert!(gone.recv_timeout(FOREVER).is_ok(), "{rung:?}");
    }
}

#[tokio::test]
async fn whoever_keeps_forking_is_outrun() {
    for rung in HELD_BY {
        let Some((finished, gone)) = run(rung, RUNNER).await else { continue };
        assert_eq!(finished.report.exit, Exit::Code(4), "{rung:?}");
        assert!(gone.recv_timeout(Duration::from_secs(10)).is_ok(), "{rung:?}");
    }
}

#[tokio::test]
async fn a_command_that_stops_who_looks_after_it_ends_when_it_must() {
    let Some((finished, gone)) = run(Mechanism::Unconfined, "kill -STOP $PPID; echo ready; sleep 300").await
    else {
        return;
    };
    assert_eq!(finished.report.exit, Exit::Cancelled);
    assert!(gone.recv_timeout(FOREVER).is_ok());
}

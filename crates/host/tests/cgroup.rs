//! Limits that the kernel keeps for all processes of a command. Needs a cgroup that this process
//! may divide; see `tests/real/cgroup-vm.sh` for a machine that has one.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    grant::{Accounting, Confinement, DefaultLimits, Held, Limits, Quota, SandboxRules},
    host::{Command, Exit, FinishedCommand},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more time than any of these commands needs: a test that takes longer hangs.
const FOREVER: Duration = Duration::from_mins(1);

const MEMORY: Quota = Quota { memory_bytes: Some(64 << 20), ..NONE };
const PROCESSES: Quota = Quota { processes: Some(12), ..NONE };
const NONE: Quota = Quota {
    memory_bytes: None,
    processes: None,
    cpu_seconds: None,
    file_bytes: None,
    disk_bytes: None,
    open_files: None,
    wall_seconds: None,
    output_bytes: None,
    defaults: DefaultLimits { memory_bytes: None, processes: None, open_files: None },
};

/// Returns true if this process may divide its cgroup; prints a note if not.
fn can_divide() -> bool {
    let limits = machine().diagnose().layers.into_iter().find(|(name, _)| *name == "limits");
    let limits = limits.map_or_else(|| "commands are not held here".to_owned(), |(_, how)| how);
    let can = limits.starts_with("memory and processes by a cgroup");
    if !can {
        eprintln!("skipped: {limits}");
    }
    can
}

fn machine() -> Machine {
    Machine::new(BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]))
}

/// Both rungs.
fn hosts(quota: Quota) -> [Arc<dyn Host>; 2] {
    [machine(), machine().without_namespaces()].map(|machine| {
        let limits = Limits { quota, ..Limits::default() };
        let walls = Confinement::Sandboxed(SandboxRules::default());
        machine.confine(&issue_grant("/".into(), &Effects::none(), limits, walls)).unwrap()
    })
}

async fn run(host: &Arc<dyn Host>, script: &str) -> (FinishedCommand, Held) {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: Some(FOREVER) };
    let finished = host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
    (finished, host.held())
}

fn told(finished: &FinishedCommand) -> Vec<&str> {
    finished.report.denials.iter().map(|denial| denial.rule.as_str()).collect()
}

/// The cgroups of commands that are there now.
fn cgroups() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    let above = PathBuf::from("/sys/fs/cgroup").join(own).parent().unwrap().to_owned();
    let below = fs::read_dir(above).unwrap().map(|entry| entry.unwrap().path());
    let is_commands = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(&format!("windlass-{}-", std::process::id()))
    };
    below.filter(is_commands).collect()
}

/// One test, since all of it is about the one cgroup of this process.
#[tokio::test]
async fn the_kernel_keeps_the_limits_of_a_command() {
    if !can_divide() {
        return;
    }
    for host in hosts(MEMORY) {
        let (finished, held) = run(&host, "echo fine").await;
        assert_eq!((finished.report.exit, told(&finished)), (Exit::Code(0), vec![]));
        assert_eq!((held.accounting, held.quota), (Some(Accounting::Cgroup), MEMORY));
        // Without the end of a line it all has to be kept.
        let (finished, held) = run(&host, "head -c 300000000 /dev/zero | tail >/dev/null; echo alive").await;
        assert_eq!(finished.report.exit, Exit::Signal(9), "{:?}: all of the command goes", held.rung);
        assert_eq!(told(&finished), ["the limit on memory was reached, and the command was ended"]);
        assert_eq!(finished.output, b"");
    }
    for host in hosts(PROCESSES) {
        let script = "n=0; while [ $n -lt 40 ]; do sleep 60 & n=$((n + 1)); done; echo all were started";
        let (finished, held) = run(&host, script).await;
        assert_ne!(finished.report.exit, Exit::Code(0), "{:?}", held.rung);
        assert_eq!(told(&finished), ["the limit on processes was reached, and the command got no more"]);
        let (finished, _) = run(&host, "echo fine").await;
        assert_eq!((finished.report.exit, told(&finished)), (Exit::Code(0), vec![]));
    }
    // What was still dying goes with the next.
    let (finished, _) = run(&hosts(PROCESSES)[0], "echo fine").await;
    assert_eq!(finished.report.exit, Exit::Code(0));
    assert_eq!(cgroups(), Vec::<PathBuf>::new());
}

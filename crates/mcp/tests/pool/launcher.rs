//! Starts servers as plain child processes in process groups of their own.

use std::{
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::sync::watch;
use windlass_contract::{
    BoxFuture,
    grant::Held,
    host::{Exit, HostError},
    remote::{LaunchedServer, ServerCommand, ServerEnd, ServerLauncher, ServerProcess},
};

#[derive(Default)]
pub(crate) struct ChildLauncher {
    pids: Mutex<Vec<u32>>,
    /// Denials that the end of every server reports.
    pub(crate) denials: Mutex<Vec<String>>,
}

impl ChildLauncher {
    pub(crate) fn launches(&self) -> usize {
        self.pids.lock().unwrap().len()
    }

    /// Checks that every process group is gone, soon.
    pub(crate) async fn assert_all_gone(&self) {
        let pids = self.pids.lock().unwrap().clone();
        for pid in pids {
            let gone = async {
                while is_alive(pid) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let gone = tokio::time::timeout(crate::PATIENCE, gone).await;
            assert!(gone.is_ok(), "the process group {pid} is left");
        }
    }
}

impl ServerLauncher for ChildLauncher {
    fn launch<'a>(&'a self, command: &'a ServerCommand) -> BoxFuture<'a, Result<LaunchedServer, HostError>> {
        Box::pin(async move {
            let denials = self.denials.lock().unwrap().clone();
            let program = command.argv.first().cloned().unwrap_or_default();
            let mut child = Command::new(&program)
                .args(&command.argv[1..])
                .envs(&command.environment)
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|source| HostError::Spawn { program, source })?;
            self.pids.lock().unwrap().push(child.id());
            Ok(LaunchedServer {
                stdin: OwnedFd::from(child.stdin.take().unwrap()),
                stdout: OwnedFd::from(child.stdout.take().unwrap()),
                stderr: OwnedFd::from(child.stderr.take().unwrap()),
                process: Arc::new(ChildGroup::new(child, denials)),
            })
        })
    }
}

struct ChildGroup {
    pid: u32,
    end: watch::Receiver<Option<ServerEnd>>,
}

impl ChildGroup {
    fn new(mut child: Child, denials: Vec<String>) -> Self {
        let pid = child.id();
        let (sender, end) = watch::channel(None);
        std::thread::spawn(move || {
            let exit = child.wait().map(exit).ok();
            while is_alive(pid) {
                std::thread::sleep(Duration::from_millis(5));
            }
            sender.send_replace(Some(ServerEnd { exit, denials }));
        });
        Self { pid, end }
    }

    fn signal(&self, signal: Signal) {
        // The group may be gone.
        let _ = kill_process_group(group(self.pid), signal);
    }
}

impl ServerProcess for ChildGroup {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn held(&self) -> Held {
        Held::externally(windlass_contract::effects::Network::Any)
    }

    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn ended(&self) -> BoxFuture<'_, ServerEnd> {
        let mut end = self.end.clone();
        Box::pin(async move { end.wait_for(Option::is_some).await.unwrap().clone().unwrap() })
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

fn exit(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    status.code().map_or_else(|| Exit::Signal(status.signal().unwrap()), Exit::Code)
}

fn group(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn is_alive(pid: u32) -> bool {
    test_kill_process_group(group(pid)).is_ok()
}

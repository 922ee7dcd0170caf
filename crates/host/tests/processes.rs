//! Real processes, run through the host as a tool would.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver},
    },
    task::{Context, Waker},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    effects::Network,
    grant::{Confinement, Held, Limits, Mechanism},
    host::{ApartOutput, Command, Exit, FinishedCommand, HostError, Whole},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more time than any of these commands needs: a test that takes longer hangs.
const FOREVER: Duration = Duration::from_mins(1);

struct Place {
    directory: TempDir,
    host: Arc<dyn Host>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let host = host(directory.path(), Confinement::Unconfined);
        Self { directory, host }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn run(&self, command: Command) -> Result<FinishedCommand, HostError> {
        self.host.run(&command, &CancellationToken::new(), &|_| {}).await
    }

    /// Runs a shell script that must end by itself; its exit and output.
    async fn script(&self, script: &str) -> (Exit, String) {
        let finished = self.run(sh(script)).await.unwrap();
        (finished.report.exit, String::from_utf8(finished.output).unwrap())
    }

    fn named_pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// Makes the named pipe `tether` and tells when every process that held it open for writing is
    /// gone.
    fn tether(&self) -> Receiver<()> {
        let path = self.named_pipe("tether");
        let (gone, told) = mpsc::channel();
        thread::spawn(move || {
            fs::read(path).unwrap();
            gone.send(()).unwrap();
        });
        told
    }
}

fn host(directory: &Path, confinement: Confinement) -> Arc<dyn Host> {
    let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let limits = Limits { default_time: FOREVER, ..Limits::default() };
    let grant = issue_grant(directory.to_owned(), &Effects::none(), limits, confinement);
    Machine::new(environment).confine(&grant).unwrap()
}

fn command(argv: &[&str]) -> Command {
    let argv = argv.iter().map(ToString::to_string).collect();
    Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None }
}

fn sh(script: &str) -> Command {
    command(&["sh", "-c", script])
}

/// Holds the tether, leaves a grandchild that does too, says so, and stays.
fn tethered() -> Command {
    sh("exec 3>tether; sleep 300 & echo ready; sleep 300")
}

fn error_kind(result: Result<FinishedCommand, HostError>) -> io::ErrorKind {
    match result.unwrap_err() {
        HostError::Cwd { source, .. } | HostError::Spawn { source, .. } => source.kind(),
        other => panic!("not an error of the start: {other:?}"),
    }
}

#[tokio::test]
async fn the_exit_code_is_the_programs() {
    let place = Place::new();
    assert_eq!(place.script("exit 7").await, (Exit::Code(7), String::new()));
    assert_eq!(place.run(command(&["true"])).await.unwrap().report.exit, Exit::Code(0));
}

#[tokio::test]
async fn both_outputs_arrive_in_the_order_they_were_written() {
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let (_, output) = Place::new().script(script).await;
    assert_eq!(output, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[tokio::test]
async fn the_outputs_are_told_apart_where_that_is_wanted() {
    let place = Place::new();
    let host = &place.host;
    let script =
        "echo out; echo err >&2; head -c 300000 /dev/zero | tr '\\0' x; sleep 0.1; echo late >&2; exit 2";
    let printed = Mutex::new(0);
    let finished = host
        .run_apart(&sh(script), &CancellationToken::new(), &|bytes| *printed.lock().unwrap() += bytes.len())
        .await
        .unwrap();
    let apart = finished.apart.unwrap();
    assert_eq!((finished.report.exit, apart.stderr.as_slice()), (Exit::Code(2), &b"err\nlate\n"[..]));
    assert!(apart.stdout.starts_with(b"out\nxxx"));
    assert_eq!(*printed.lock().unwrap(), 300_000 + "out\nerr\nlate\n".len());
    let silent =
        host.run_apart(&sh("exec >&- 2>&-; sleep 0.1"), &CancellationToken::new(), &|_| {}).await.unwrap();
    assert_eq!((silent.report.exit, silent.apart), (Exit::Code(0), Some(ApartOutput::default())));
    assert_eq!(host.run(&sh("true"), &CancellationToken::new(), &|_| {}).await.unwrap().apart, None);
}

#[tokio::test]
async fn death_by_a_signal_is_told() {
    assert_eq!(Place::new().script("echo a; kill -SEGV $$").await, (Exit::Signal(11), "a\n".to_owned()));
}

#[tokio::test]
async fn when_time_is_up_grandchildren_die_too() {
    let place = Place::new();
    let gone = place.tether();
    let time_limit = Some(Duration::from_millis(300));
    let finished = place.run(Command { time_limit, ..tethered() }).await.unwrap();
    assert_eq!(finished.report.exit, Exit::TimedOut);
    assert!(finished.report.duration >= Duration::from_millis(300));
    gone.recv_timeout(FOREVER).unwrap();
}

#[tokio::test]
async fn cancelling_kills_the_whole_group_and_keeps_what_was_said() {
    let place = Place::new();
    let gone = place.tether();
    let cancel = CancellationToken::new();
    let finished = place.host.run(&tethered(), &cancel, &|_| cancel.cancel()).await.unwrap();
    assert_eq!((finished.report.exit, finished.output), (Exit::Cancelled, b"ready\n".to_vec()));
    gone.recv_timeout(FOREVER).unwrap();
}

#[tokio::test]
async fn dropping_the_call_kills_the_whole_group() {
    let place = Place::new();
    let gone = place.tether();
    let ready = tokio::sync::Notify::new();
    let (command, cancel) = (tethered(), CancellationToken::new());
    let output = |_: &[u8]| ready.notify_one();
    tokio::select! {
        result = place.host.run(&command, &cancel, &output) => panic!("ended: {result:?}"),
        () = ready.notified() => {}
    }
    gone.recv_timeout(FOREVER).unwrap();
}

#[tokio::test]
async fn when_the_time_for_all_commands_is_used_up_no_more_are_started() {
    let place = Place::new();
    let machine = Machine::new(BTreeMap::new()).with_command_time(Duration::from_millis(200));
    let limits = Limits { default_time: FOREVER, ..Limits::default() };
    let cwd = place.directory.path().to_owned();
    let grant = issue_grant(cwd, &Effects::none(), limits, Confinement::Unconfined);
    let host = machine.confine(&grant).unwrap();
    let run = async |script| host.run(&sh(script), &CancellationToken::new(), &|_| {}).await;
    assert_eq!(run("sleep 300").await.unwrap().report.exit, Exit::TimedOut);
    assert!(matches!(run("touch made").await, Err(HostError::TimeUsedUp { .. })));
    assert!(!place.path("made").exists());
}

#[tokio::test]
async fn a_background_process_neither_holds_the_call_nor_survives_it() {
    let place = Place::new();
    let gone = place.tether();
    let (exit, output) = place.script("sleep 300 3>tether & echo started; : <tether").await;
    assert_eq!((exit, output), (Exit::Code(0), "started\n".to_owned()));
    gone.recv_timeout(FOREVER).unwrap();
}

#[tokio::test]
async fn a_call_cancelled_before_it_began_starts_nothing() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let finished = place.host.run(&sh("touch made"), &cancel, &|_| {}).await.unwrap();
    assert_eq!(finished.report.exit, Exit::Cancelled);
    assert!(!place.path("made").exists());
}

#[tokio::test]
async fn huge_output_is_seen_whole_and_kept_in_bounds() {
    let place = Place::new();
    let seen = Mutex::new(0);
    let command = sh("printf HEAD; head -c 50000000 /dev/zero; printf TAIL");
    let finished = place
        .host
        .run(&command, &CancellationToken::new(), &|bytes| *seen.lock().unwrap() += bytes.len())
        .await
        .unwrap();
    let kept = Limits::default().output_bytes;
    assert_eq!(*seen.lock().unwrap(), 50_000_008);
    assert_eq!(finished.output.len(), kept);
    assert_eq!(finished.gap, Some((kept / 2, 50_000_008 - kept as u64)));
    assert_eq!(finished.report.output_bytes, 50_000_008);
    assert!(finished.output.starts_with(b"HEAD\0") && finished.output.ends_with(b"\0TAIL"));
}

#[tokio::test]
async fn bytes_that_are_not_text_survive() {
    let finished = Place::new().run(sh(r"printf '\377\0\376'")).await.unwrap();
    assert_eq!(finished.output, b"\xff\0\xfe");
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_that_nobody_is_there() {
    let env = BTreeMap::from([("GREETING".to_owned(), "hello there".to_owned())]);
    let finished = Place::new().run(Command { env, ..command(&["env"]) }).await.unwrap();
    assert_eq!(
        String::from_utf8(finished.output).unwrap(),
        "DEBIAN_FRONTEND=noninteractive\nGCM_INTERACTIVE=never\nGIT_TERMINAL_PROMPT=0\nPATH=/usr/bin:/bin\n\
         SSH_ASKPASS_REQUIRE=never\nGREETING=hello there\n"
    );
}

#[tokio::test]
async fn standard_input_is_empty() {
    let finished = Place::new().run(command(&["cat"])).await.unwrap();
    assert_eq!((finished.report.exit, finished.output), (Exit::Code(0), Vec::new()));
}

#[tokio::test]
async fn signals_are_back_at_their_defaults() {
    // Rust ignores SIGPIPE; a program that inherits that complains instead of ending.
    assert_eq!(Place::new().script("yes | head -n 1").await, (Exit::Code(0), "y\n".to_owned()));
    let (_, blocked) = Place::new().script("grep SigBlk /proc/self/status").await;
    assert_eq!(blocked, "SigBlk:\t0000000000000000\n");
}

#[tokio::test]
async fn directories_and_programs_start_at_the_grants_directory() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    fs::write(place.path("sub/hello"), "#!/bin/sh\npwd -P\n").unwrap();
    fs::set_permissions(place.path("sub/hello"), PermissionsExt::from_mode(0o755)).unwrap();
    let finished = place.run(Command { cwd: Some("sub".into()), ..command(&["./hello"]) }).await.unwrap();
    let expected = place.path("sub").canonicalize().unwrap();
    assert_eq!(Path::new(String::from_utf8(finished.output).unwrap().trim_end()), expected);
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    for (name, kind) in [("missing", io::ErrorKind::NotFound), ("file", io::ErrorKind::NotADirectory)] {
        let result = place.run(Command { cwd: Some(name.into()), ..command(&["true"]) }).await;
        assert!(
            matches!(&result, Err(HostError::Cwd { path, .. }) if *path == place.path(name)),
            "{result:?}"
        );
        assert_eq!(error_kind(result), kind);
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_with_the_reason() {
    let place = Place::new();
    fs::write(place.path("plain"), "echo hi").unwrap();
    fs::write(place.path("broken"), "no program at all").unwrap();
    fs::set_permissions(place.path("broken"), PermissionsExt::from_mode(0o755)).unwrap();
    let long = "x".repeat(3 * 1024 * 1024);

    let missing = place.run(command(&["no-such-program"])).await;
    assert!(matches!(&missing, Err(HostError::Spawn { program, .. }) if program == "no-such-program"));
    assert_eq!(error_kind(missing), io::ErrorKind::NotFound);
    assert_eq!(error_kind(place.run(command(&["./missing"])).await), io::ErrorKind::NotFound);
    assert_eq!(error_kind(place.run(command(&["./plain"])).await), io::ErrorKind::PermissionDenied);
    assert_eq!(error_kind(place.run(command(&["true", &long])).await), io::ErrorKind::ArgumentListTooLong);
    let Err(HostError::Spawn { source, .. }) = place.run(command(&["./broken"])).await else { panic!() };
    assert_eq!(source.raw_os_error(), Some(libc::ENOEXEC));
}

#[tokio::test]
async fn a_call_that_declared_to_start_nothing_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(directory.path(), Confinement::InProcess);
    let result = host.run(&sh("touch made"), &CancellationToken::new(), &|_| {}).await;
    assert!(matches!(result, Err(HostError::NotGranted { program }) if program == "sh"));
    assert!(!directory.path().join("made").exists());
    assert_eq!(host.held(), Held::by(Mechanism::InProcess));
}

#[tokio::test]
async fn a_long_output_of_a_call_without_a_process_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits::default();
    let machine = Machine::new(BTreeMap::new()).with_output_files(directory.path().join("kept"), 100);
    for confinement in [Confinement::InProcess, Confinement::Unconfined] {
        let grant = issue_grant(directory.path().to_owned(), &Effects::none(), limits.clone(), confinement);
        let host = machine.confine(&grant).unwrap();
        assert_eq!(host.keep_output(vec![b'x'; 100]).await, None);
        let Some(Whole::File { path, bytes: 101, complete: true }) = host.keep_output(vec![b'y'; 101]).await
        else {
            panic!("not kept");
        };
        assert_eq!(fs::read(path).unwrap(), vec![b'y'; 101]);
    }
}

#[tokio::test]
async fn what_is_held_from_outside_is_told_so_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let told = "echo $WINDLASS_SANDBOX $WINDLASS_SANDBOX_NETWORK_DISABLED";
    for (network, said) in [(Network::None, "external 1\n"), (Network::Any, "external\n")] {
        let host = host(directory.path(), Confinement::External(network));
        let finished = host.run(&sh(told), &CancellationToken::new(), &|_| {}).await.unwrap();
        assert_eq!((finished.output.as_slice(), host.held()), (said.as_bytes(), Held::externally(network)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_commands_at_once_do_not_mix() {
    let place = Arc::new(Place::new());
    let calls: Vec<_> = (0..40)
        .map(|number| {
            let place = Arc::clone(&place);
            tokio::spawn(async move { place.script(&format!("echo {number}; exit {number}")).await })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let code = i32::try_from(number).unwrap();
        assert_eq!(call.await.unwrap(), (Exit::Code(code), format!("{number}\n")));
    }
}

#[tokio::test]
async fn a_command_does_not_depend_on_the_thread_that_asked_for_it() {
    let place = Place::new();
    let go = place.named_pipe("go");
    let (command, cancel) = (sh("read line <go; echo $line"), CancellationToken::new());
    let mut call = place.host.run(&command, &cancel, &|_| {});
    let runtime = tokio::runtime::Handle::current();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _runtime = runtime.enter();
            assert!(Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        });
    });
    // Opening the pipe waits for the command, so it runs by now, and the thread is gone.
    fs::write(go, "on\n").unwrap();
    let finished = call.await.unwrap();
    assert_eq!((finished.report.exit, finished.output), (Exit::Code(0), b"on\n".to_vec()));
}

/// Directory of the process that gets killed; set for that process only.
const DOOMED: &str = "WINDLASS_TEST_DOOMED";

#[cfg(target_os = "linux")]
#[test]
fn a_command_dies_with_the_process_that_started_it() {
    let place = Place::new();
    let gone = place.tether();
    let up = place.named_pipe("up");
    let mut doomed = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_gets_killed", "--ignored"])
        .env(DOOMED, place.directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(fs::read_to_string(up).unwrap(), "up\n");
    doomed.kill().unwrap();
    doomed.wait().unwrap();
    gone.recv_timeout(FOREVER).unwrap();
}

#[ignore = "the other half of `a_command_dies_with_the_process_that_started_it`, which runs it"]
#[tokio::test]
async fn the_process_that_gets_killed() {
    let host = host(Path::new(&std::env::var(DOOMED).unwrap()), Confinement::Unconfined);
    let command =
        sh("exec 3>tether; (setsid sh -c 'echo up >up; trap \"\" TERM; sleep 300' &); exec sleep 300");
    host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
}

#[tokio::test]
async fn a_line_of_words_is_run_without_its_shell_and_any_other_by_it() {
    let place = Place::new();
    let without = place.run(command(&["/no/such/bash", "-c", "expr 'a b' : '.*'"])).await.unwrap();
    assert_eq!((without.report.exit, &without.output[..]), (Exit::Code(0), &b"3\n"[..]));
    assert_eq!(
        error_kind(place.run(command(&["/no/such/bash", "-c", "expr 1 + $(id -u)"])).await),
        io::ErrorKind::NotFound
    );
    let (_, told) = place.script("printenv PWD").await;
    assert_eq!(Path::new(told.trim_end()), place.directory.path());
    // What it cannot start itself is the shell's to explain, or to run.
    let (exit, told) = place.script("no-such-program -x").await;
    assert_eq!(exit, Exit::Code(127));
    assert!(told.contains("not found"), "{told}");
    fs::write(place.path("script"), "echo from a script").unwrap();
    fs::set_permissions(place.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.script("./script").await, (Exit::Code(0), "from a script\n".to_owned()));
    fs::set_permissions(place.path("script"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(place.script("./script").await.0, Exit::Code(126));
}

#[tokio::test]
async fn a_program_is_looked_for_where_a_shell_would_look() {
    let place = Place::new();
    for (name, text) in [("id", "#!/no/such/interpreter\n"), ("expr", "#!/bin/sh\necho mine\n")] {
        let path = place.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = |path: String, line| {
        let env = BTreeMap::from([
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), place.path("").display().to_string()),
        ]);
        place.run(Command { env, ..command(&["bash", "-c", line]) })
    };
    let first = format!("{}:/usr/bin:/bin", place.path("").display());
    assert_eq!(run(first.clone(), "expr 1").await.unwrap().output, b"mine\n");
    assert_ne!(
        run(first, "id -u").await.unwrap().report.exit,
        Exit::Code(0),
        "the one that is there cannot run"
    );
    assert_eq!(run("~:/usr/bin:/bin".to_owned(), "expr 1").await.unwrap().output, b"mine\n");
}

#[tokio::test]
async fn a_shell_that_is_told_to_do_more_than_its_line_does_it() {
    let place = Place::new();
    fs::write(place.path("first"), "id() { echo mine; }").unwrap();
    let env = BTreeMap::from([("BASH_ENV".to_owned(), place.path("first").display().to_string())]);
    let finished = place.run(Command { env, ..command(&["bash", "-c", "id -u"]) }).await.unwrap();
    assert_eq!(finished.output, b"mine\n");
}

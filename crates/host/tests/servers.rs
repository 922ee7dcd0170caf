//! MCP servers in sandboxes of their own: they work, they get no further than their profile, and
//! nothing of them is left.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and servers do")]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Write},
    net::TcpListener,
    os::fd::OwnedFd,
    path::PathBuf,
    process, thread,
    time::Duration,
};

use tempfile::TempDir;
use windlass_contract::{
    grant::{Mechanism, SandboxRules},
    host::Exit,
    remote::{LaunchedServer, ServerCommand, ServerEnd, ServerLauncher, ServerProfile, ServerSandbox},
};
use windlass_host::{Machine, SandboxedServers, ServerSandboxSettings};

/// Far more time than any of these servers needs.
const FOREVER: Duration = Duration::from_mins(1);

const RUNGS: [Mechanism; 2] = [Mechanism::Namespaces, Mechanism::Landlock];

/// A workspace, a home, a place outside, and a launcher.
struct ServerWorld {
    place: TempDir,
    servers: SandboxedServers,
}

impl ServerWorld {
    /// None, and a word about it, where this machine lacks the rung.
    fn on(rung: Mechanism) -> Option<Self> {
        // Not in /tmp or /var/tmp, of which servers have their own.
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for directory in ["ws", "out", "home/.ssh", "home/.npm", "own"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        for secret in ["home/.ssh/id_ed25519", "own/credentials"] {
            fs::write(place.path().join(secret), "confidential").unwrap();
        }
        let path = |name: &str| place.path().canonicalize().unwrap().join(name);
        let home = path("home").to_str().unwrap().to_owned();
        let variables =
            [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", &home), ("API_KEY", "k"), ("LANG", "C")];
        let servers = SandboxedServers::new(ServerSandboxSettings {
            workspace: path("ws"),
            environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            rules: SandboxRules { unreadable: vec![path("own")], ..SandboxRules::default() },
            ..ServerSandboxSettings::default()
        });
        let machine = Machine::for_one_command(BTreeMap::new());
        let (servers, machine) = match rung {
            Mechanism::Landlock => (servers.without_namespaces(), machine.without_namespaces()),
            _ => (servers, machine),
        };
        if machine.diagnose().rung != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`", rung.name());
            return None;
        }
        Some(Self { place, servers })
    }

    fn all() -> impl Iterator<Item = Self> {
        RUNGS.into_iter().filter_map(Self::on)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    /// Starts a shell script as a server. `@` stands for the place.
    async fn start(&self, profile: ServerProfile, script: &str) -> LaunchedServer {
        let script = script.replace('@', self.path("").to_str().unwrap().trim_end_matches('/'));
        let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
        let environment = BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]);
        self.servers.launch(&ServerCommand { argv, cwd: None, environment, profile }).await.unwrap()
    }

    /// Runs a script to its end with its input closed; what it printed, and its end.
    async fn run(&self, profile: ServerProfile, script: &str) -> (String, ServerEnd) {
        Self::to_the_end(self.start(profile, script).await).await
    }

    async fn to_the_end(server: LaunchedServer) -> (String, ServerEnd) {
        let LaunchedServer { stdin, stdout, stderr, process } = server;
        drop(stdin);
        let (output, errors) = (reader(stdout), reader(stderr));
        let end = tokio::time::timeout(FOREVER, process.ended()).await.unwrap();
        let output = output.join().unwrap();
        eprintln!("{}", errors.join().unwrap());
        (output, end)
    }
}

fn reader(from: OwnedFd) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        File::from(from).read_to_string(&mut text).unwrap();
        text
    })
}

fn writing() -> ServerProfile {
    ServerProfile { sandbox: ServerSandbox::WorkspaceWrite, ..ServerProfile::default() }
}

#[tokio::test]
async fn a_server_answers_on_its_pipes_and_ends_when_its_input_does() {
    for world in ServerWorld::all() {
        let server = world.start(ServerProfile::default(), "echo ready >&2; cat").await;
        let (mut stdin, mut stdout) = (File::from(server.stdin), File::from(server.stdout));
        stdin.write_all(b"{}\n").unwrap();
        let mut answer = [0; 3];
        stdout.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"{}\n");
        drop(stdin);
        let end = tokio::time::timeout(FOREVER, server.process.ended()).await.unwrap();
        assert_eq!(end, ServerEnd { exit: Some(Exit::Code(0)), denials: Vec::new() });
        assert_eq!(server.process.ended().await, end, "it can be asked again");
        assert_eq!(reader(server.stderr).join().unwrap(), "ready\n");
    }
}

#[tokio::test]
async fn what_the_command_line_names_in_tmp_can_be_read_and_its_neighbours_cannot() {
    let Some(world) = ServerWorld::on(Mechanism::Namespaces) else { return };
    let directory = || tempfile::Builder::new().prefix("windlass-test-").tempdir_in("/tmp").unwrap();
    let (named, other, outside) = (directory(), directory(), world.path("out"));
    for place in [named.path(), other.path(), &outside] {
        fs::write(place.join("file"), "content").unwrap();
    }
    let single = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    fs::write(single.path(), "alone").unwrap();
    // A link leads to nothing that it does not lead to from outside.
    std::os::unix::fs::symlink(world.path("home/.ssh"), named.path().join("link")).unwrap();
    let script = "for path in $1/file $2 $3/file $1/link/id_ed25519; do cat $path || echo none; echo; done
        (echo x > $1/new) || echo fixed; (echo x > $1/file) || echo fixed; echo x > /tmp/own && echo own";
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let option = format!("--file={}", text(&named.path().join("file")));
    let words = [text(named.path()), text(single.path())];
    let argv = ["sh", "-c", &script.replace("$3", &text(other.path())), "sh", &words[0], &words[1], &option];
    let argv: Vec<_> = argv.map(str::to_owned).into();
    let command = |argv| ServerCommand {
        argv,
        cwd: None,
        environment: BTreeMap::new(),
        profile: ServerProfile::default(),
    };
    let (output, _) = ServerWorld::to_the_end(world.servers.launch(&command(argv)).await.unwrap()).await;
    assert_eq!(
        output.split_whitespace().collect::<Vec<_>>().join(" "),
        "content alone none none fixed fixed own"
    );
    assert_eq!(fs::read_to_string(named.path().join("file")).unwrap(), "content");
    // A program there can be run, by its path or from its directory.
    let program = named.path().join("program");
    fs::write(&program, "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (output, _) =
        ServerWorld::to_the_end(world.servers.launch(&command(vec![text(&program)])).await.unwrap()).await;
    assert_eq!(output, "ran\n");
    let (output, _) = ServerWorld::to_the_end(
        world
            .servers
            .launch(&ServerCommand {
                cwd: Some(named.path().to_owned()),
                ..command(vec!["cat".to_owned(), "file".to_owned()])
            })
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(output, "content");
}

#[tokio::test]
async fn a_server_gets_a_few_variables_and_its_own() {
    for world in ServerWorld::all() {
        let (output, _) = world.run(ServerProfile::default(), "env").await;
        let names: Vec<_> = output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        for name in ["HOME", "PATH", "LANG", "GIVEN"] {
            assert!(names.contains(&name), "{name}: {output}");
        }
        assert!(!output.contains("API_KEY"), "{output}");
    }
}

#[tokio::test]
async fn a_read_only_server_writes_nothing_but_its_temporary_directory() {
    for world in ServerWorld::all() {
        let script = "for place in @/ws @/out @/home @/home/.npm; do echo x > $place/new && echo wrote $place; done; \
                      echo kept > $TMPDIR/new && cat $TMPDIR/new";
        let (output, _) = world.run(ServerProfile::default(), script).await;
        assert_eq!(output, "kept\n");
        for place in ["ws/new", "out/new", "home/new", "home/.npm/new"] {
            assert!(!world.path(place).exists(), "{place}");
        }
    }
}

#[tokio::test]
async fn a_server_writes_the_directories_of_its_profile_alone() {
    for world in ServerWorld::all() {
        let script = "for place in @/ws @/out @/home; do echo x > $place/new && echo $place; done";
        let (output, _) = world.run(writing(), script).await;
        assert_eq!(output, format!("{}\n", world.path("ws").display()));
        let profile = ServerProfile { writable: vec![world.path("out")], ..ServerProfile::default() };
        let (output, _) = world.run(profile, script).await;
        assert_eq!(output, format!("{}\n", world.path("out").display()));
    }
}

#[tokio::test]
async fn a_server_reads_no_secrets() {
    for world in ServerWorld::all() {
        fs::write(world.path("ws/file"), "plain\n").unwrap();
        let script = "cat @/ws/file; cat @/home/.ssh/id_ed25519 @/own/credentials";
        for profile in [ServerProfile::default(), writing()] {
            let (output, _) = world.run(profile, script).await;
            assert_eq!(output, "plain\n");
        }
    }
}

#[tokio::test]
async fn a_server_reaches_the_network_only_if_its_profile_says_so() {
    // `bash` speaks TCP by itself.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached'");
    for world in ServerWorld::all() {
        let (output, end) = world.run(ServerProfile::default(), &script).await;
        assert_eq!(output, "");
        assert_ne!(end.exit, Some(Exit::Code(0)));
        let online = ServerProfile { network: true, ..ServerProfile::default() };
        assert_eq!(world.run(online, &script).await.0, "reached\n");
    }
}

#[tokio::test]
async fn what_the_sandbox_blocked_is_told_with_the_setting_that_allows_it() {
    let Some(world) = ServerWorld::on(Mechanism::Namespaces) else { return };
    let home = world.path("home");
    let script = "mkdir @/home/.npm/_cacache || exec false";
    let (_, end) = world.run(ServerProfile::default(), script).await;
    let npm = home.join(".npm");
    let expected = format!(
        "blocked: writing {}/_cacache (allow with: writable = [\"{}\"])",
        npm.display(),
        npm.display()
    );
    assert_eq!(end.denials, [expected]);
    fs::create_dir(home.join(".cache")).unwrap();
    let (_, end) = world.run(ServerProfile::default(), "mkdir @/home/.cache/uv || exec false").await;
    let uv = home.join(".cache/uv");
    let expected = format!(
        "blocked: writing {} (allow with: writable = [\"{}\"]; make the directory first)",
        uv.display(),
        uv.display()
    );
    assert_eq!(end.denials, [expected]);
    let (_, end) = world.run(ServerProfile::default(), "echo x > file || exec false").await;
    let file = world.path("ws/file");
    let expected = format!("blocked: writing {} (allow with: sandbox = \"workspace-write\")", file.display());
    assert_eq!(end.denials, [expected]);
    // An address for documentation, which no host has.
    let (_, end) = world.run(ServerProfile::default(), "exec bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'").await;
    assert_eq!(end.denials, ["blocked: network access to 192.0.2.1:80 (allow with: network = true)"]);
}

#[tokio::test]
async fn the_temporary_directory_of_a_server_is_no_larger_than_its_memory() {
    let Some(world) = ServerWorld::on(Mechanism::Namespaces) else { return };
    let memory_bytes = Some(64 * 1024 * 1024);
    let profile = ServerProfile { memory_bytes, ..ServerProfile::default() };
    let script = "head -c 200000000 /dev/zero > $TMPDIR/fill && echo filled";
    assert_eq!(world.run(profile, script).await.0, "");
}

/// Ways to leave something behind, which would hold the pipe `tether` open.
const HIDERS: [&str; 3] = [
    "(setsid sh -c 'sleep 300 <&- >&- 2>&- & exit' &); cat",
    "(trap '' TERM HUP INT; setsid sleep 300 &); cat",
    "trap '' TERM; cat; while :; do sleep 300; done",
];

#[tokio::test]
async fn nothing_of_a_server_is_left_when_it_is_killed_or_dropped() {
    let unconfined = ServerProfile { sandbox: ServerSandbox::None, ..ServerProfile::default() };
    for (world, profile) in ServerWorld::all()
        .map(|world| (world, ServerProfile::default()))
        .chain(ServerWorld::on(Mechanism::Namespaces).map(|world| (world, unconfined)))
    {
        let tether = world.path("ws/tether");
        assert!(process::Command::new("mkfifo").arg(&tether).status().unwrap().success());
        for hider in HIDERS {
            for is_dropped in [false, true] {
                let path = tether.clone();
                let held = thread::spawn(move || reader(File::open(path).unwrap().into()).join().unwrap());
                let script = format!("exec 3>@/ws/tether; echo ready; {hider}");
                // A read-only server may not open it, so it is given.
                let profile = ServerProfile { writable: vec![world.path("ws")], ..profile.clone() };
                let mut server = world.start(profile, &script).await;
                let mut stdout = File::from(server.stdout);
                let mut ready = [0; 6];
                stdout.read_exact(&mut ready).unwrap();
                if is_dropped {
                    drop(server.process);
                } else {
                    server.process.kill();
                    tokio::time::timeout(FOREVER, server.process.ended()).await.unwrap();
                }
                // The end of the pipe: everyone who held it is gone.
                let ended = tokio::task::spawn_blocking(move || held.join().unwrap());
                tokio::time::timeout(FOREVER, ended).await.expect(hider).unwrap();
                server.stdin = stdout.into();
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_is_asked_to_end_can_say_goodbye() {
    for world in ServerWorld::all() {
        let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
        let server = world.start(ServerProfile::default(), script).await;
        let mut stdout = File::from(server.stdout);
        let mut ready = [0; 6];
        stdout.read_exact(&mut ready).unwrap();
        server.process.terminate();
        let end = tokio::time::timeout(FOREVER, server.process.ended()).await.unwrap();
        assert_eq!(end.exit, Some(Exit::Code(3)));
        assert_eq!(reader(stdout.into()).join().unwrap(), "bye\n");
    }
}

#[tokio::test]
async fn a_server_floods_its_errors_without_a_reader() {
    for world in ServerWorld::all() {
        let script = "head -c 3000000 /dev/zero >&2; echo done";
        let LaunchedServer { stdout, stderr, process, .. } =
            world.start(ServerProfile::default(), script).await;
        drop(stderr);
        tokio::time::timeout(FOREVER, process.ended()).await.unwrap();
        assert_eq!(reader(stdout).join().unwrap(), "done\n");
    }
}

#[tokio::test]
async fn a_server_does_not_start_without_what_its_profile_needs() {
    for world in ServerWorld::all() {
        let profile = ServerProfile { writable: vec![world.path("missing")], ..ServerProfile::default() };
        let command = |argv: &[&str], profile| ServerCommand {
            argv: argv.iter().map(ToString::to_string).collect(),
            cwd: None,
            environment: BTreeMap::new(),
            profile,
        };
        let refused = world.servers.launch(&command(&["true"], profile)).await.unwrap_err();
        assert!(refused.to_string().contains("missing"), "{refused}");
        let absent = world.servers.launch(&command(&["no-such-program"], ServerProfile::default())).await;
        assert_eq!(absent.unwrap_err().to_string(), "cannot start `no-such-program`");
    }
}

#[tokio::test]
async fn what_is_not_enforced_is_told() {
    let Some(world) = ServerWorld::on(Mechanism::Namespaces) else { return };
    let memory_bytes = Some(64 * 1024 * 1024);
    let profile = ServerProfile { memory_bytes, ..ServerProfile::default() };
    let held = world.start(profile.clone(), "cat").await.process.held();
    assert_eq!((held.rung, held.quota.memory_bytes), (Mechanism::Namespaces, memory_bytes));
    let unconfined = ServerProfile { sandbox: ServerSandbox::None, ..profile };
    let held = world.start(unconfined, "cat").await.process.held();
    assert_eq!(held.rung, Mechanism::Unconfined);
    assert!(held.not_covered.iter().any(|line| line.contains("memory")), "{held:?}");
}

#[tokio::test]
async fn a_server_cannot_signal_other_programs() {
    let Some(world) = ServerWorld::on(Mechanism::Namespaces) else { return };
    let mut other = process::Command::new("sleep").arg("60").spawn().unwrap();
    let script = format!("kill -0 {} && echo reached; kill -9 {} && echo killed", other.id(), other.id());
    let (output, _) = world.run(ServerProfile::default(), &script).await;
    assert_eq!(output, "");
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

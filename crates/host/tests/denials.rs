//! Which path or address a sandbox refused to a command, as the result tells it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Denial, Effects, Sandbox,
    effects::Network,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::{Command, Exit, FinishedCommand, Layer, Proof},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more than any of these commands needs.
const FOREVER: Duration = Duration::from_mins(1);

const RUNGS: [Mechanism; 2] = [Mechanism::Namespaces, Mechanism::Landlock];

/// A workspace, a place outside, a home, and a machine.
struct World {
    place: TempDir,
    machine: Machine,
    rung: Mechanism,
}

impl World {
    /// None, and a word about it, where this machine lacks the rung.
    fn on(rung: Mechanism) -> Option<Self> {
        // Not in /tmp or /var/tmp, of which commands have their own.
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for directory in [
            "ws/sub",
            "ws/.git/hooks",
            "ws/.vscode",
            "out",
            "home/.ssh",
            "home/.tool/data",
            "home/.cache",
            "out/.git",
            "out/.vscode",
        ] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("ws/script.sh"), "true\n").unwrap();
        fs::write(place.path().join("ws/Makefile"), "all:\n\ttouch made\n").unwrap();
        let home = place.path().join("home").to_str().unwrap().to_owned();
        let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", &home)];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let machine = Machine::for_one_command(BTreeMap::from(variables));
        let machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
        let found = machine.diagnose().rung;
        if found != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`, but {found:?}", rung.name());
            return None;
        }
        Some(Self { place, machine, rung })
    }

    fn all() -> impl Iterator<Item = Self> {
        RUNGS.into_iter().filter_map(Self::on)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    fn read_only() -> SandboxRules {
        SandboxRules::default()
    }

    fn writing(&self) -> SandboxRules {
        SandboxRules { writable: vec![self.path("ws")], ..SandboxRules::default() }
    }

    /// Runs a script in the workspace. `@` in it stands for the place.
    async fn run(&self, rules: SandboxRules, script: &str) -> FinishedCommand {
        let limits = Limits { default_time: FOREVER, ..Limits::default() };
        let grant = issue_grant(self.path("ws"), &Effects::none(), limits, Confinement::Sandboxed(rules));
        let host = self.machine.confine(&grant).unwrap();
        let script = script.replace('@', self.path("").to_str().unwrap().trim_end_matches('/'));
        let argv = ["bash", "-c", &script].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap()
    }

    /// Returns the denials: the layer, the object, and the directory that may be requested.
    async fn stopped(&self, rules: SandboxRules, script: &str) -> Vec<(Layer, String, Vec<PathBuf>)> {
        let finished = self.run(rules, script).await;
        assert_ne!(finished.report.exit, Exit::Code(0), "{script}");
        let told = |denial: Denial| (denial.layer, denial.what, denial.need.writes);
        finished.report.denials.into_iter().map(told).collect()
    }

    fn is_landlock(&self) -> bool {
        self.rung == Mechanism::Landlock
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn a_refused_write_is_told_by_its_path_however_the_program_names_it() {
    for world in World::all() {
        let cases = [
            ("touch m2", "ws/m2", "ws"),
            ("echo x > f", "ws/f", "ws"),
            ("make", "ws/made", "ws"),
            ("mkdir 'a b'", "ws/a b", "ws"),
            ("cp script.sh sub/copy", "ws/sub/copy", "ws/sub"),
            ("cd sub && touch x", "ws/sub/x", "ws/sub"),
            ("echo x > @/out/new", "out/new", "out"),
            ("cd ../out; touch new", "out/new", "out"),
            ("touch @/home/.cache/x", "home/.cache/x", "home/.cache"),
            ("echo x > .git/index.lock", "ws/.git/index.lock", "ws"),
            ("sed -i s/t/u/ script.sh", "ws/", "ws"),
            ("python3 -c 'open(\"z\", \"w\")' 2>&1", "ws/z", "ws"),
        ];
        for (script, path, directory) in cases {
            let told = world.stopped(World::read_only(), script).await;
            let [(Layer::Files, what, offered)] = &told[..] else {
                panic!("{:?} {script}: {told:?}", world.rung)
            };
            assert!(what.starts_with(&text(&world.path(path))), "{:?} {script}: {what}", world.rung);
            assert_eq!(offered, &[world.path(directory)], "{:?} {script}", world.rung);
        }
        if !world.is_landlock() {
            // It does not say which file, so the directory is reported.
            let told =
                world.stopped(World::read_only(), "perl -e 'open(F, q(>), q(pp)) or die qq(no: $!)'").await;
            assert_eq!(told, [(Layer::Files, text(&world.path("ws")), vec![world.path("ws")])]);
        }
        let told = world.run(World::read_only(), "touch m2").await.report.denials;
        let remedy = "`-s workspace-write`, or `/sandbox workspace-write` in a session";
        assert_eq!((told[0].proof, told[0].remedy.as_str()), (Proof::Verified, remedy));
    }
}

#[tokio::test]
async fn a_path_outside_of_the_roots_is_told_with_the_key_that_allows_it() {
    for world in World::all() {
        let finished = world.run(world.writing(), "touch @/home/.tool/data/x").await;
        let [denial] = &finished.report.denials[..] else {
            panic!("{:?}: {:?}", world.rung, finished.report.denials)
        };
        assert_eq!(denial.what, text(&world.path("home/.tool/data/x")));
        assert_eq!(denial.need, Effects::none(), "what programs keep in a home directory is not offered");
        let roots =
            format!("-c 'sandbox_workspace_write.writable_roots=[\"{}\"]'", text(&world.path("home/.tool")));
        assert_eq!(denial.remedy, format!("start windlass with `{roots}`"));
        assert!(finished.report.denials[0].advice().unwrap().contains(&denial.what));
        assert_eq!(world.stopped(world.writing(), "touch inside && false").await, []);
    }
}

#[tokio::test]
async fn what_text_claims_is_offered_only_if_it_is_so() {
    for world in World::all() {
        let error = if world.is_landlock() { "Permission denied" } else { "Read-only file system" };
        let claim = |path: &str| format!("echo \"touch: cannot touch '{path}': {error}\"; false");
        for path in
            ["@/home/.ssh/authorized_keys", "/proc/sys/x", "/nowhere/at/all", "@/ws/inside", "relative"]
        {
            let told = world.stopped(world.writing(), &claim(path)).await;
            assert_eq!(told, [], "{:?} {path}", world.rung);
        }
        // True, but more than anyone should be asked for.
        let system = [
            "/usr/bin/git",
            "/usr/x",
            "/usr/lib/x",
            "/usr/local/bin/x",
            "/var/x",
            "/var/lib/x",
            "/etc/x",
            "/etc/cron.d/x",
            "/boot/x",
            "/opt/x",
            "/run/x",
            "/home/x",
        ];
        let own = std::env::current_exe().unwrap();
        let program = text(&own.with_file_name("x"));
        let wide = ["@/home/x", "@/home/.bashrc", "/x", "@/out/.git/config", "@/out/.vscode/x", &program];
        for path in wide.into_iter().chain(system) {
            let told = world.stopped(world.writing(), &claim(path)).await;
            assert!(
                told.iter().all(|(_, _, offered)| offered.is_empty()),
                "{:?} {path}: {told:?}",
                world.rung
            );
        }
        for path in system {
            let told = world.run(world.writing(), &claim(path)).await.report.denials;
            assert!(told.iter().all(|denial| denial.remedy.is_empty()), "{:?} {path}: {told:?}", world.rung);
        }
        if !world.is_landlock() {
            assert_eq!(world.stopped(world.writing(), &claim("/tmp/x")).await, [], "a command has its own");
        }
        let quiet = world.run(world.writing(), &claim("@/out/x").replace("; false", "")).await;
        assert_eq!((quiet.report.exit, quiet.report.denials), (Exit::Code(0), Vec::new()));
    }
}

#[tokio::test]
async fn a_protected_name_is_told_and_never_offered() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    // The file system of `/proc` refuses it, and no word of the line is taken for the file instead.
    assert_eq!(world.stopped(World::read_only(), "touch /proc/x").await, []);
    for path in [".vscode/tasks.json", ".git/hooks/pre-commit"] {
        let told = world.stopped(world.writing(), &format!("echo x > {path}")).await;
        assert_eq!(told, [(Layer::Files, text(&world.path("ws").join(path)), Vec::new())]);
    }
}

#[tokio::test]
async fn a_command_that_fails_for_its_own_reasons_was_not_stopped() {
    for world in World::all() {
        fs::write(world.path("ws/locked"), "").unwrap();
        fs::set_permissions(world.path("ws/locked"), fs::Permissions::from_mode(0o444)).unwrap();
        let scripts = [
            "false",
            "exit 3",
            "ls missing",
            "cat missing/file",
            "cat sub",
            "cd missing",
            "no-such-program",
            "./script.sh",
            "bash missing.sh",
            "grep -q nothing script.sh",
            "test -d missing",
            "diff script.sh Makefile > /dev/null",
            "make missing",
            "python3 -c 'assert False'",
            "python3 -c 'import missing'",
            "mkdir sub",
            "ls -d missing*",
            "kill -9 $$",
            "echo 'test permissions ... FAILED'; exit 1",
            "echo 'error: Permission denied (publickey).'; exit 255",
            "echo 'read-only file system support is not compiled in'; exit 1",
            "git -C missing status",
            "cat < missing",
            "curl -s http://127.0.0.1:9/",
        ];
        for rules in [World::read_only(), world.writing()] {
            for script in scripts {
                let told = world.stopped(rules.clone(), script).await;
                assert_eq!(told, [], "{:?} {script}", world.rung);
            }
        }
        // The mode of the file refuses it, inside of what may be written (root's capabilities are
        // gone).
        assert_eq!(
            world.stopped(world.writing(), "chmod 0 locked; cat locked").await,
            [],
            "{:?}",
            world.rung
        );
    }
}

#[tokio::test]
async fn a_connection_without_a_network_is_observed_and_told_by_its_address() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let connect = |family: &str, address: &str| {
        format!("python3 -c 'import socket as s; s.socket(s.{family}).connect({address})' 2> /dev/null")
    };
    let send = "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b\"x\", (\"10.1.2.3\", 514))'";
    for (script, what) in [
        (connect("AF_INET", "(\"1.1.1.1\", 80)"), "1.1.1.1:80"),
        (connect("AF_INET6", "(\"2606:4700::1111\", 443)"), "[2606:4700::1111]:443"),
        (format!("{send} 2> /dev/null"), "10.1.2.3:514"),
    ] {
        let finished = world.run(world.writing(), &script).await;
        let [denial] = &finished.report.denials[..] else { panic!("{script}: {finished:?}") };
        assert_eq!(
            (denial.layer, denial.what.as_str(), denial.proof),
            (Layer::Network, what, Proof::Observed)
        );
        assert_eq!(denial.need.network, Network::Any);
        assert!(denial.advice().unwrap().starts_with("sandbox: the network is off: "));
    }
    let lookup = "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).connect((\"192.0.2.53\", 53))' 2> /dev/null";
    let says = format!("{lookup}; echo 'curl: (6) Could not resolve host: example.com'; exit 6");
    let denials = world.run(world.writing(), &says).await.report.denials;
    let [named] = &denials[..] else { panic!("{denials:?}") };
    assert_eq!((named.what.as_str(), named.proof), ("example.com", Proof::Verified));
    assert!(
        named.advice().unwrap().starts_with("sandbox: the network is off: its output names `example.com`")
    );
    let lie = "echo 'curl: (6) Could not resolve host: example.com'; exit 6";
    assert_eq!(world.stopped(world.writing(), lie).await, [], "nothing was tried");
}

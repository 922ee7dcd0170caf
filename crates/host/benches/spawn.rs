//! The cost of a start through the host, beside `posix_spawn`.
//!
//! Run with `cargo bench -p windlass-host --bench spawn`, or the program it builds with one of
//! `free`, `namespaces`, `landlock`, `large`, `many` and `output`. Prints medians and, for busy
//! machines, the fastest tenth; asserts nothing.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    grant::{Confinement, Limits, SandboxRules},
    host::Command,
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

const ROUNDS: usize = 300;

const PAUSE: Duration = Duration::from_millis(3);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run_in = |host: &Arc<dyn Host>, argv: &[&str]| {
        let argv = argv.iter().map(ToString::to_string).collect();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        runtime.block_on(host.run(&command, &CancellationToken::new(), &|_| {})).unwrap();
    };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let walls = || {
        Confinement::Sandboxed(SandboxRules {
            writable: vec![place.path().to_owned()],
            ..SandboxRules::default()
        })
    };
    let free = host(&machine(), Confinement::Unconfined);
    let run = |argv: &[&str]| run_in(&free, argv);
    let wanted = |part: &str| std::env::args().nth(1).is_none_or(|only| only == "--bench" || only == part);
    for ballast_mb in [0, 200].into_iter().filter(|_| wanted("free")) {
        let ballast = vec![1_u8; ballast_mb << 20];
        println!("with {ballast_mb} MB of memory in use");
        compare("  posix_spawn and wait, true", &posix_spawn, "  Host::run, true", &|| run(&["/bin/true"]));
        drop(ballast);
    }
    for (rung, host) in [
        ("namespaces", host(&machine(), walls())),
        ("landlock", host(&machine().without_namespaces(), walls())),
    ]
    .into_iter()
    .filter(|(rung, _)| wanted(rung))
    {
        let confined = format!("  Host::run sandboxed, {rung}, true");
        compare("  posix_spawn and wait, true", &posix_spawn, &confined, &|| run_in(&host, &["/bin/true"]));
    }
    if wanted("large") {
        let large = tempfile::tempdir_in("/var/tmp").unwrap();
        fill(large.path());
        let walls = SandboxRules { writable: vec![large.path().to_owned()], ..SandboxRules::default() };
        let host = host(&machine(), Confinement::Sandboxed(walls));
        let confined = "  Host::run sandboxed, 100 directories, 100 000 files in the index";
        compare("  posix_spawn and wait, true", &posix_spawn, confined, &|| run_in(&host, &["/bin/true"]));
    }
    if wanted("many") {
        let argv = ["sleep", "0.2"].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let cancel = CancellationToken::new();
        for (name, host) in [("free", &free), ("sandboxed", &host(&machine(), walls()))] {
            let begun = Instant::now();
            let runs = (0..16).map(|_| host.run(&command, &cancel, &|_| {}));
            runtime.block_on(futures_util::future::try_join_all(runs)).unwrap();
            println!("16 times `sleep 0.2` at once, {name}: {} ms", begun.elapsed().as_millis());
        }
    }
    if !wanted("output") {
        return;
    }
    let begun = Instant::now();
    run(&["head", "-c", "200000000", "/dev/zero"]);
    println!("200 MB of output: {:.0?}", begun.elapsed());
}

const FILES: u32 = 100_000;

/// Makes a repository with many directories and an index of many files.
fn fill(place: &Path) {
    for number in 0..100 {
        fs::create_dir(place.join(format!("directory-{number}"))).unwrap();
    }
    let mut index = b"DIRC\0\0\0\x02".to_vec();
    index.extend(FILES.to_be_bytes());
    for number in 0..FILES {
        let mut entry = vec![0_u8; 62];
        entry[24..28].copy_from_slice(&0o100_644_u32.to_be_bytes());
        entry.extend(format!("directory-{}/file-{number}", number % 100).bytes());
        entry.resize((entry.len() / 8 + 1) * 8, 0);
        index.extend(entry);
    }
    fs::create_dir(place.join(".git")).unwrap();
    fs::write(place.join(".git/index"), index).unwrap();
}

fn machine() -> Machine {
    Machine::new(BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]))
}

fn host(machine: &Machine, confinement: Confinement) -> Arc<dyn Host> {
    let grant = issue_grant("/".into(), &Effects::none(), Limits::default(), confinement);
    machine.confine(&grant).unwrap()
}

/// Runs `true` by `posix_spawn` and waits for it.
fn posix_spawn() {
    let mut command = std::process::Command::new("/bin/true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
}

/// Times both in turns, so that other work on the machine slows both alike. Pauses after each, as
/// there is a pause between two calls of a model, so that neither pays for the other's cleaning up.
fn compare(one: &str, do_one: &dyn Fn(), other: &str, do_other: &dyn Fn()) {
    let time = |act: &dyn Fn()| {
        let begun = Instant::now();
        act();
        let taken = begun.elapsed();
        std::thread::sleep(PAUSE);
        taken
    };
    let (ones, others): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| (time(do_one), time(do_other))).unzip();
    let growth = |times: &[Duration]| {
        let (early, late) = (&times[..times.len() / 3], &times[times.len() * 2 / 3..]);
        median(late.to_vec()).as_secs_f64() / median(early.to_vec()).as_secs_f64()
    };
    for (name, mut times) in [(one, ones), (other, others)] {
        let growth = growth(&times);
        times.sort_unstable();
        let part = |of: usize| times[times.len() / of].as_micros();
        println!("{name}: best tenth {} µs, median {} µs, late to early {growth:.2}", part(10), part(2));
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

//! What a start costs through the host, beside the cheapest way the standard library has.
//!
//! Run with `cargo bench -p windlass-host`, or the program it builds with one of `free`, `namespaces`, `landlock` and
//! `output`. Prints medians; nothing is asserted.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::{
    collections::BTreeMap,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{Command, Confinement, Effects, Grant, Host, Limits, Sandbox, Walls};
use windlass_host::Machine;

const ROUNDS: usize = 300;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run_in = |host: &Arc<dyn Host>, argv: &[&str]| {
        let argv = argv.iter().map(ToString::to_string).collect();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        runtime.block_on(host.run(&command, &CancellationToken::new(), &|_| {})).unwrap();
    };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let walls = || Confinement::Walls(Walls { writable: vec![place.path().to_owned()], ..Walls::default() });
    let free = host(&machine(), Confinement::Unconfined);
    let run = |argv: &[&str]| run_in(&free, argv);
    let wanted = |part: &str| std::env::args().nth(1).is_none_or(|only| only == "--bench" || only == part);
    for ballast_mb in [0, 200].into_iter().filter(|_| wanted("free")) {
        let ballast = vec![1_u8; ballast_mb << 20];
        println!("with {ballast_mb} MB of memory in use");
        compare("  posix_spawn and wait, true", &plain, "  Host::run, true", &|| run(&["/bin/true"]));
        drop(ballast);
    }
    for (rung, host) in [
        ("namespaces", host(&machine(), walls())),
        ("landlock", host(&machine().without_namespaces(), walls())),
    ]
    .into_iter()
    .filter(|(rung, _)| wanted(rung))
    {
        let confined = format!("  Host::run behind walls, {rung}, true");
        compare("  posix_spawn and wait, true", &plain, &confined, &|| run_in(&host, &["/bin/true"]));
    }
    if !wanted("output") {
        return;
    }
    let begun = Instant::now();
    run(&["head", "-c", "200000000", "/dev/zero"]);
    println!("200 MB of output: {:.0?}", begun.elapsed());
}

fn machine() -> Machine {
    Machine::new(BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]))
}

fn host(machine: &Machine, confinement: Confinement) -> Arc<dyn Host> {
    let grant = Grant::issue("/".into(), &Effects::none(), Limits::default(), confinement);
    machine.confine(&grant).unwrap()
}

fn plain() {
    let mut command = std::process::Command::new("/bin/true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
}

/// Times both in turns, so that whatever else the machine does hits them alike.
fn compare(one: &str, do_one: &dyn Fn(), other: &str, do_other: &dyn Fn()) {
    let time = |act: &dyn Fn()| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    };
    let (ones, others): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| (time(do_one), time(do_other))).unzip();
    let growth = |times: &[Duration]| {
        let (early, late) = (&times[..times.len() / 3], &times[times.len() * 2 / 3..]);
        median(late.to_vec()).as_secs_f64() / median(early.to_vec()).as_secs_f64()
    };
    for (name, times) in [(one, ones), (other, others)] {
        println!("{name}: {} µs, late to early {:.2}", median(times.clone()).as_micros(), growth(&times));
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

//! What a start costs through the host, beside the cheapest way the standard library has.
//!
//! Run with `cargo bench -p windlass-host`. Prints medians; nothing is asserted.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::{
    collections::BTreeMap,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{Command, Confinement, Effects, Grant, Host, Limits, Sandbox};
use windlass_host::Machine;

const ROUNDS: usize = 300;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = host();
    let run = |argv: &[&str]| {
        let argv = argv.iter().map(ToString::to_string).collect();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        runtime.block_on(host.run(&command, &CancellationToken::new(), &|_| {})).unwrap();
    };
    for ballast_mb in [0, 200] {
        let ballast = vec![1_u8; ballast_mb << 20];
        println!("with {ballast_mb} MB of memory in use");
        compare("  posix_spawn and wait, true", &plain, "  Host::run, true", &|| run(&["/bin/true"]));
        drop(ballast);
    }
    let begun = Instant::now();
    run(&["head", "-c", "200000000", "/dev/zero"]);
    println!("200 MB of output: {:.0?}", begun.elapsed());
}

fn host() -> Arc<dyn Host> {
    let limits = Limits::default();
    let grant = Grant::issue("/".into(), &Effects::none(), limits, Confinement::Unconfined);
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    Machine::new(BTreeMap::from([path])).confine(&grant).unwrap()
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
    println!("{one}: {:.0?}\n{other}: {:.0?}", median(ones), median(others));
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

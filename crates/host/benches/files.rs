//! Measures the CPU time to read a small file, and to list a small directory, in a sandbox.
//!
//! Run with `cargo bench -p windlass-host --bench files`. Counts the time of all threads on a core;
//! nothing is asserted.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{collections::BTreeMap, fs, path::Path};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    files::{Ignored, Listing},
    grant::{Confinement, Limits, SandboxRules},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

const ROUNDS: u32 = 1000;

fn main() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    for at in 0..25 {
        fs::write(place.path().join(format!("file{at}")), "a line of text\n".repeat(2000)).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let machine = Machine::new(BTreeMap::from([("HOME".to_owned(), "/root".to_owned())]));
    let host = || {
        let confinement = Confinement::Sandboxed(SandboxRules::default());
        let grant = issue_grant(place.path().to_owned(), &Effects::none(), Limits::default(), confinement);
        machine.confine(&grant).unwrap()
    };
    measure("a file of 30 kB read", || {
        let host = host();
        let file = runtime.block_on(host.files().open(Path::new("file7"))).unwrap();
        assert_eq!(runtime.block_on(file.read_at(0, 1 << 18)).unwrap().len(), 30_000);
    });
    measure("a directory of 25 files listed", || {
        let listing = Listing { path: ".".into(), depth: 2, ignored: Ignored::Shown, limit: 1000 };
        let host = host();
        let listed = runtime.block_on(host.files().list(&listing, &CancellationToken::new())).unwrap();
        assert_eq!(listed.entries.len(), 25);
    });
}

fn measure(what: &str, work: impl Fn()) {
    work();
    let begun = on_cpu();
    (0..ROUNDS).for_each(|_| work());
    println!("{what}: {:.3} ms on a core", (on_cpu() - begun) / f64::from(ROUNDS));
}

/// Milliseconds all threads together have had a core.
fn on_cpu() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let times = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    times.filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok()).sum::<f64>() / 1e6
}

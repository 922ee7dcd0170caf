//! What cleaning costs: `cargo bench -p windlass-shape`. Numbers are printed, never asserted.

use std::{
    hint::black_box,
    io::{Write, stdout},
    sync::LazyLock,
    time::Instant,
};

use windlass_shape::{Cleaner, Secrets};

const BYTES: usize = 20_000_000;
const PIECE_BYTES: usize = 64 * 1024;

fn main() {
    let secrets = Secrets::default();
    let start = Instant::now();
    black_box(secrets.clean("token"));
    print(&format!("{:44} {:>9.2} ms once", "building the search", start.elapsed().as_secs_f64() * 1e3));
    report("a build log without secrets", &secrets, &log());
    report("source code", &secrets, &include_str!("../src/clean/value.rs").repeat(4000)[..BYTES]);
    report("one line without end", &secrets, &log().replace('\n', " "));
    report("a secret or its like in every line", &secrets, &dense());
    for words in ["?sig=", "_auth=", "bearer=", "password=", "token="] {
        report(&format!("a megabyte of `{words}`"), &secrets, &words.repeat((1 << 20) / words.len()));
    }
    let known = (0..50).map(|n| (format!("SECRET_{n}"), format!("q8Zk2mPv{n:02}Lr7Tb4Xc9Wd")));
    report("a build log, 50 known values", &Secrets::knowing(known), &log());
}

fn log() -> String {
    let line = |n: usize| {
        format!(
            "   Compiling crate-{n} v1.{n}.0 (/home/user/project/crates/crate-{n}): 42 passed; 0 failed in {n} ms\n"
        )
    };
    let mut text: String = (0..BYTES / 90).map(line).collect();
    text.truncate(BYTES);
    text
}

/// The labelled cases, unexpanded, which is as hard.
fn dense() -> String {
    let cases =
        [include_str!("../tests/cases/secrets.txt"), include_str!("../tests/cases/look-alikes.txt")].concat();
    let keys = "DB_PASSWORD=q8Zk2mPv0Lr7\npostgres://app:Tb4Xc9Wd1Ye6@db/x\napi_key: \"Uf3Ig5Oh8Jn2Ks7A\"\n"
        .repeat(40);
    let mut text = [cases, keys].concat().repeat(BYTES / 15_000);
    text.truncate((0..=BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
    text
}

fn report(name: &str, secrets: &Secrets, text: &str) {
    let mut rates: Vec<_> = (0..7)
        .map(|_| {
            let (mut cleaner, mut out) = (Cleaner::new(secrets), Vec::new());
            let start = on_cpu();
            for piece in text.as_bytes().chunks(PIECE_BYTES) {
                out.clear();
                cleaner.push_to(piece, &mut out);
                black_box(&out);
            }
            black_box(cleaner.finish());
            u32::try_from(text.len()).map_or(0.0, f64::from) / 1e6 / (on_cpu() - start)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    print(&format!("{name:44} {:>9.0} MB/s median, {:.0} MB/s at best", rates[3], rates[6]));
}

/// Seconds this thread has had a core, because others may want it too; where the kernel does not say, seconds at all.
fn on_cpu() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |count| count / 1e9)
}

fn print(line: &str) {
    // Nobody to tell if the terminal is gone.
    let _gone = writeln!(stdout(), "{line}");
}

//! Measures redaction: `cargo bench -p windlass-shape --bench clean [-- FILE…]`. Numbers are
//! printed, never asserted.

#[path = "../tests/cases/drawn.rs"]
mod drawn;

use std::{
    hint::black_box,
    io::{Write, stdout},
    time::Instant,
};

use windlass_shape::{Cleaner, Secrets};

const BYTES: usize = 64_000_000;
const PIECE_BYTES: usize = 256 * 1024;
/// The best of so many counts, because others may want the processor too.
const RUNS: usize = 7;

fn main() {
    let files: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let none = Secrets::default();
    let start = Instant::now();
    black_box(none.clean("token"));
    print(&format!("{:36} {:>6.2} ms once", "building the search", start.elapsed().as_secs_f64() * 1e3));
    print(&format!("{:36} {:>6} {:>6} {:>6} {:>6}", "MB/s", "lines", "copy", "clean", "copies"));
    for file in &files {
        report(file, &none, &std::fs::read_to_string(file).unwrap_or_default());
    }
    if !files.is_empty() {
        return;
    }
    let (log, (dense, secrets)) = (log(), dense());
    report(&format!("{secrets} secrets and their like"), &none, &dense);
    report("a build log without secrets", &none, &log);
    report("source code", &none, &filled(&source()));
    report("one line without end", &none, &log.replace('\n', " "));
    for words in ["password=", "token=", "?sig=", "_auth=", "bearer=", "a:*:", "curl -u "] {
        report(&format!("one line of `{words}`"), &none, &filled(words));
    }
    let known = (0..50).map(|n| (format!("SECRET_{n}"), format!("q8Zk2mPv{n:02}Lr7Tb4Xc9Wd")));
    report("a build log, 50 known values", &Secrets::knowing(known), &log);
}

/// This again and again.
fn filled(text: &str) -> String {
    text.repeat(BYTES / text.len())
}

fn source() -> String {
    [include_str!("../src/clean/value.rs"), include_str!("../src/shaper.rs")].concat()
}

fn log() -> String {
    let line = |n: usize| {
        format!(
            "   Compiling crate-{n} v1.{n}.0 (/home/user/project/crates/crate-{n}): 42 passed; 0 failed in {n} ms\n"
        )
    };
    (0..BYTES / 100).map(line).collect()
}

/// The labelled cases, with values that were never there before, and the number of secrets in them.
fn dense() -> (String, usize) {
    let cases =
        [include_str!("../tests/cases/secrets.txt"), include_str!("../tests/cases/look-alikes.txt")].concat();
    let (mut text, mut secrets) = (String::with_capacity(BYTES), 0);
    for case in (0..).flat_map(|draw| drawn::drawn(&cases, draw)) {
        if text.len() >= BYTES {
            break;
        }
        text.push_str(&case.text);
        secrets += case.secrets.len();
    }
    (text, secrets)
}

/// Cleaning beside the least that could be done with a text: counting its lines, and copying it.
fn report(name: &str, secrets: &Secrets, text: &str) {
    let pieces = || text.as_bytes().chunks(PIECE_BYTES);
    let (mut rates, mut out) = ([0.0_f64; 3], Vec::new());
    for _ in 0..RUNS {
        let lines = rate(text, || {
            pieces().for_each(|piece| {
                black_box(memchr::memchr_iter(b'\n', piece).count());
            });
        });
        let copy = rate(text, || {
            pieces().for_each(|piece| {
                out.clear();
                out.extend_from_slice(piece);
                black_box(&out);
            });
        });
        let clean = rate(text, || {
            let mut cleaner = Cleaner::new(secrets);
            pieces().for_each(|piece| {
                out.clear();
                cleaner.push_to(piece, &mut out);
                black_box(&out);
            });
            black_box(cleaner.finish());
        });
        for (best, rate) in rates.iter_mut().zip([lines, copy, clean]) {
            *best = best.max(rate);
        }
    }
    let [lines, copy, clean] = rates;
    print(&format!("{name:36} {lines:>6.0} {copy:>6.0} {clean:>6.0} {:>6.1}", copy / clean));
}

/// In megabytes a second.
fn rate(text: &str, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    u32::try_from(text.len()).map_or(0.0, f64::from) / 1e6 / start.elapsed().as_secs_f64()
}

fn print(line: &str) {
    // Nobody to tell if the terminal is gone.
    let _gone = writeln!(stdout(), "{line}");
}

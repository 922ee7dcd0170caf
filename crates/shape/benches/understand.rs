//! Measures insights: `cargo bench -p windlass-shape --bench understand`. Numbers are printed,
//! never asserted.

use std::{
    hint::black_box,
    io::{Write, stdout},
    sync::LazyLock,
    time::Instant,
};

use windlass_contract::{
    Output,
    host::Exit,
    meta::Format,
    outcome::{Facts, Receipt},
    report::ProcessReport,
    verdict::Criteria,
};
use windlass_shape::{File, Shaper, Text};

fn main() {
    report("a line", "hello\n", 2000);
    report("a failed build", include_str!("../tests/outputs/rustc/output.txt"), 2000);
    report("a failed test run", include_str!("../tests/outputs/pytest-short/output.txt"), 2000);
    report("go's JSON", include_str!("../tests/outputs/go-test-json/output.txt"), 500);
    let log =
        "   Compiling crate-1 v1.2.0 (/home/user/project/crates/crate-1): 42 passed; 0 failed in 1 ms\n";
    report("1 MB of build log", &log.repeat(1_000_000 / log.len()), 5);
    let endless = "test a ... FAILED ";
    report("1 MB on one line", &endless.repeat(1_000_000 / endless.len()), 5);
    let dense = "src/main.rs:4:20: error[E0425]: cannot find value `prise` in this scope\n";
    report("1 MB of diagnostics", &dense.repeat(1_000_000 / dense.len()), 5);
    let rust = include_str!("../src/shaper.rs");
    file("a short file of Rust", "a.rs", &rust[..rust.len().min(2000)], 500);
    file("a file of Rust", "a.rs", rust, 50);
    file("the same as C++, by lines", "a.cpp", rust, 50);
    file("the same as text", "a.txt", rust, 500);
    let noise: String = (0..64 * 1024)
        .map(|at: u32| char::from(b'!' + (at.wrapping_mul(2_654_435_761) >> 25) as u8 % 90))
        .collect();
    file("64 KiB of noise as Rust", "a.rs", &noise, 1);
    file("64 KiB of brackets as Java", "a.java", &"{([".repeat(64 * 1024 / 3), 1);
}

/// Derives the insight that `read_file` adds to a file's text.
fn file(name: &str, path: &str, text: &str, times: u32) {
    let file =
        File { path: path.as_ref(), bytes: text.len() as u64, encoding: "UTF-8", text: Text::Whole(text) };
    let best = (0..5).map(|_| {
        let start = on_cpu();
        (0..times).for_each(|_| drop(black_box(file.insight())));
        (on_cpu() - start) / f64::from(times)
    });
    let best = best.fold(f64::INFINITY, f64::min) * 1e6;
    // Nobody to tell if the terminal is gone.
    let _gone = writeln!(stdout(), "{name:28} {:>8} bytes {best:>10.1} µs", text.len());
}

/// Shaping an output of a command, which understands it, and the same as the text of a file, which
/// does not.
fn report(name: &str, text: &str, times: u32) {
    let shaper = Shaper::default();
    let facts = |exit| Facts::Command(Box::new(ProcessReport::new(Exit::Code(exit))));
    let time = |facts: &Facts| {
        let best = (0..5).map(|_| {
            let start = Instant::now();
            for _ in 0..times {
                let output = Output { facts: facts.clone(), ..Output::from(text) };
                black_box(shaper.shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default()));
            }
            start.elapsed() / times
        });
        best.min().unwrap_or_default()
    };
    let (plain, failed) = (time(&Facts::None), time(&facts(1)));
    // Nobody to tell if the terminal is gone.
    let _gone = writeln!(
        stdout(),
        "{name:24} {:>8} bytes {:>10.1} µs understood, {:>10.1} µs not",
        text.len(),
        failed.as_secs_f64() * 1e6,
        plain.as_secs_f64() * 1e6
    );
}

/// Seconds this thread has had a core, because others may want it too; where the kernel does not
/// say, seconds at all.
fn on_cpu() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = told.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |count| count / 1e9)
}

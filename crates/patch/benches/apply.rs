//! Measures parsing and applying: `cargo bench -p windlass-patch`. Numbers are printed, never
//! asserted.

use std::{hint::black_box, time::Instant};

use windlass_patch::{FileOperation, Text, apply, parse};

/// Lines of a file of about five megabytes.
const LINES: usize = 100_000;

fn main() {
    let file = file();
    let plain = patch("");
    timed("floor: check, split into lines, copy", &mut || {
        let text = Text::decode(file.as_bytes()).ok()?;
        Some(text.lines().len() + text.encode(text.content()).ok()?.len())
    });
    report("20 chunks, exact", &file, &plain);
    report("20 chunks, other indentation", &file, &patch("  "));
    report("20 chunks, CRLF file", &file.replace('\n', "\r\n"), &plain);
    report("20 chunks, the last one missing", &file, &plain.replace("of the file, no. 95020", "of nothing"));
    let equal = "x\n".repeat(500_000);
    let long =
        format!("*** Begin Patch\n*** Update File: f\n@@\n{}-y\n*** End Patch", " x\n".repeat(250_000));
    report("equal lines, 250,000 of them missing", &equal, &long);
    let many =
        format!("*** Begin Patch\n*** Update File: f\n{}*** End Patch", "@@\n x\n-x\n+y\n".repeat(100_000));
    report("equal lines, 100,000 chunks", &equal, &many);
    // Every chunk matches, after two failing searches through the whole file. This one reaches the
    // limit of comparisons.
    let worst =
        format!("*** Begin Patch\n*** Update File: f\n{}*** End Patch", "@@\n-  x\n+y\n".repeat(100_000));
    report("equal lines, 100,000 indented chunks", &equal, &worst);
    let add =
        format!("*** Begin Patch\n*** Add File: f\n{}*** End Patch", "+0123456789abcdef\n".repeat(900_000));
    let start = Instant::now();
    drop(black_box(parse(&add)));
    print(&format!("{:44} {:>9.2} ms once", "parsing 16 MB", start.elapsed().as_secs_f64() * 1e3));
}

fn file() -> String {
    (0..LINES).map(|n| format!("    let value_{n} = compute(\"line of the file, no. {n}\");\n")).collect()
}

fn patch(indent: &str) -> String {
    let line = |n: usize| format!("{indent}    let value_{n} = compute(\"line of the file, no. {n}\");");
    let chunks = (0..20).map(|chunk| {
        let at = chunk * (LINES / 20) + 20;
        format!("@@\n {}\n-{}\n+    changed();\n {}\n", line(at - 1), line(at), line(at + 1))
    });
    format!("*** Begin Patch\n*** Update File: f\n{}*** End Patch", chunks.collect::<String>())
}

/// Parse, decode, apply.
fn report(name: &str, file: &str, patch: &str) {
    timed(name, &mut || once(black_box(file), black_box(patch)));
}

/// Prints the best and the median time of some runs.
fn timed(name: &str, run: &mut dyn FnMut() -> Option<usize>) {
    let mut times: Vec<_> = (0..15)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    print(&format!("{name:44} {:>9.2} ms median, {:.2} ms at best", times[7], times[0]));
}

fn once(file: &str, patch: &str) -> Option<usize> {
    let text = Text::decode(file.as_bytes()).ok()?;
    let patch = parse(patch).ok()?;
    let [FileOperation::Update { chunks, .. }] = patch.operations.as_slice() else { return None };
    apply(&text, chunks).ok().map(|applied| applied.bytes.len())
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to whoever runs it")]
fn print(line: &str) {
    println!("{line}");
}

//! How long one judgement takes: `cargo bench -p windlass-policy --bench judge [-- NAME]`, where only what begins with the
//! name is measured. Numbers are printed, never asserted.

use std::{hint::black_box, time::Instant};

use windlass_contract::CommandLine;
use windlass_policy::{RuleFile, Rules, Trust, judge};

/// About 200 bytes each.
const LINES: &[(&str, &str)] = &[
    ("one short command", "git status --short"),
    (
        "known, 200 bytes",
        "cd crates/policy && rg -n --hidden 'fn (judge|weigh)\\b' src tests -g '*.rs' 2>/dev/null | sort -t: -k1,1 -k2n | \
         head -40 && sed -n '1,80p' src/judge.rs && git log --oneline -5 -- src 2>&1",
    ),
    (
        "ordinary, 200 bytes",
        "RUST_BACKTRACE=1 timeout 300 cargo test -p windlass-policy --test properties -- --nocapture > target/out.txt 2>&1; \
         tail -n 40 target/out.txt | grep -E 'panicked|test result' || echo no summary in the output",
    ),
    (
        "unclear, 200 bytes",
        "for f in $(git ls-files '*.rs' | grep -v target); do n=$(wc -l < \"$f\"); if [ \"$n\" -gt 500 ]; then echo \
         \"$f has $n lines\"; sed -n '1,3p' \"$f\" | tr -d '\\r'; fi; done | sort -k3 -n | tail -n 20",
    ),
    (
        "dangerous, 200 bytes",
        "sudo sh -c 'cd /srv/app && env NODE_ENV=production timeout 60 npm ci && rm -rf build dist && git clean -fdx && \
         git reset --hard origin/main' && find . -name '*.tmp' -exec rm -f {} + && docker system prune -af",
    ),
];

fn main() {
    let text: String = (0..100)
        .map(|number| {
            format!("[[rule]]\nprefix = [\"tool{number}\", [\"a\", \"b\"]]\ndecision = \"allow\"\n")
        })
        .collect();
    let rules = Rules::load(&[RuleFile { name: "bench.toml", text: &text, trust: Trust::User }]);
    let rules = rules.unwrap_or_default();
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, line) in LINES.iter().filter(|(name, _)| name.starts_with(&wanted)) {
        let argv = ["bash", "-lc", line].map(str::to_owned).to_vec();
        let command = CommandLine { argv, cwd: None };
        report(name, line.len(), &mut || drop(black_box(judge(black_box(&command), &rules))));
    }
    for (name, script) in hostile().into_iter().filter(|(name, _)| name.starts_with(&wanted)) {
        let argv = ["bash", "-lc", &script].map(str::to_owned).to_vec();
        let command = CommandLine { argv, cwd: None };
        let start = Instant::now();
        drop(black_box(judge(&command, &rules)));
        print(&format!(
            "{name:24} {:>7} bytes  {:>9.2} ms once",
            script.len(),
            start.elapsed().as_secs_f64() * 1e3
        ));
    }
}

/// The median of many runs.
fn report(name: &str, bytes: usize, run: &mut dyn FnMut()) {
    let mut times: Vec<_> = (0..2000)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    let micros = |at: usize| times[at].as_secs_f64() * 1e6;
    print(&format!(
        "{name:24} {bytes:>7} bytes  {:>9.1} µs median, {:.1} µs at best",
        micros(1000),
        micros(0)
    ));
}

/// Inputs made to cost time.
fn hostile() -> Vec<(&'static str, String)> {
    vec![
        ("two megabytes", "a".repeat(2 << 20)),
        ("deep substitutions", "$(".repeat(40_000)),
        ("open quotes", "\"$(\"".repeat(30_000)),
        ("a long chain", "ls && ".repeat(20_000)),
        ("here-documents", "<<A ".repeat(30_000)),
        ("parentheses", "(".repeat(120_000)),
        ("braces", "{a,".repeat(40_000)),
        ("wildcards", format!("cat {}", "*a".repeat(60_000))),
        ("words", "x ".repeat(60_000)),
        ("many commands", "x;".repeat(60_000)),
        ("wrappers", "sudo ".repeat(25_000)),
        ("backquotes", "`".repeat(120_000)),
        ("redirections", ">a ".repeat(40_000)),
        ("assignments", "a=b ".repeat(30_000)),
    ]
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to whoever runs it")]
fn print(line: &str) {
    println!("{line}");
}

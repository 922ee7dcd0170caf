//! Measures how long one judgement takes, and how much of that the grammar needs to read the line:
//! `cargo bench -p windlass-policy --bench judge [-- NAME]`. With a name, only the cases that begin
//! with it are measured. Numbers are printed, never asserted.

use std::{fmt, hint::black_box, time::Instant};

use tree_sitter::Parser;
use windlass_contract::effects::CommandLine;
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
    let lines: Vec<_> = LINES.iter().filter(|(name, _)| name.starts_with(&wanted)).collect();
    let commands: Vec<_> = lines.iter().map(|(_, line)| command(line)).collect();
    let ended: Vec<_> = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap_or_default();
    let mut run = |turn: usize| match (turn / 2, turn % 2) {
        (at, 0) => drop(black_box(judge(black_box(&commands[at]), &rules))),
        (at, _) => drop(black_box(parser.parse(black_box(&ended[at]), None))),
    };
    let repeated = in_turns(2 * lines.len(), 50, &mut run);
    let mixed = in_turns(2 * lines.len(), 1, &mut run);
    print(
        "median and best tenth in µs, the same line 50 times in a row | lines in turns; and of that, the grammar alone",
    );
    for (at, (name, line)) in lines.iter().enumerate() {
        let [judged, floor, mixed, mixed_floor] =
            [&repeated[2 * at], &repeated[2 * at + 1], &mixed[2 * at], &mixed[2 * at + 1]];
        print(&format!("{name:22} {:>3} bytes: {judged} | {mixed}; {floor} | {mixed_floor}", line.len()));
    }
    for (name, script) in hostile().into_iter().filter(|(name, _)| name.starts_with(&wanted)) {
        let command = command(&script);
        let start = Instant::now();
        drop(black_box(judge(&command, &rules)));
        print(&format!(
            "{name:24} {:>7} bytes  {:>9.2} ms once",
            script.len(),
            start.elapsed().as_secs_f64() * 1e3
        ));
    }
}

fn command(line: &str) -> CommandLine {
    CommandLine { argv: ["bash", "-lc", line].map(str::to_owned).to_vec(), cwd: None }
}

/// Durations of one measured case, in microseconds.
struct Times {
    median: f64,
    best_tenth: f64,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6.1} {:>6.1}", self.median, self.best_tenth)
    }
}

/// Times each of several cases many times, a few runs in a row before the next case. A shared
/// machine is slow for a while and then fast again: measured one after the other, each case would
/// see only one of these phases.
fn in_turns(count: usize, in_a_row: usize, run: &mut dyn FnMut(usize)) -> Vec<Times> {
    const WARM_UP: usize = 500;
    const RUNS: usize = 5000;
    let mut times = vec![Vec::with_capacity(WARM_UP + RUNS); count];
    while times.iter().any(|times| times.len() < WARM_UP + RUNS) {
        for (at, times) in times.iter_mut().enumerate() {
            for _ in 0..in_a_row {
                let start = Instant::now();
                run(at);
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    let summary = |mut times: Vec<f64>| {
        times.drain(..WARM_UP);
        times.sort_by(f64::total_cmp);
        Times { median: times[RUNS / 2], best_tenth: times[RUNS / 10] }
    };
    times.into_iter().map(summary).collect()
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

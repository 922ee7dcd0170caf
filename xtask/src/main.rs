//! Checks and benchmarks of this workspace: `cargo xtask tidy`, `cargo xtask bench`.

mod bench;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(&root),
        ["bench"] => bench::run(&root),
        _ => Err(vec!["usage: cargo xtask tidy | bench".to_owned()]),
    };
    match done {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            ExitCode::FAILURE
        }
    }
}

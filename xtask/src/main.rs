//! Checks, benchmarks and data of this workspace: `cargo xtask tidy [--report]`,
//! `cargo xtask platforms`, `cargo xtask fuzz`, `cargo xtask bench`, `cargo xtask languages FILE`,
//! `cargo xtask pictures`.

mod bench;
mod fuzz;
mod house_rules;
mod languages;
mod pictures;
mod platforms;
mod recorder;
mod report;
mod scratch;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(&root),
        ["tidy", "--report"] => Ok(tidy::report(&root, false)),
        ["tidy", "--report", "--names"] => Ok(tidy::report(&root, true)),
        ["platforms"] => platforms::run(&root),
        ["fuzz"] => fuzz::run(&root),
        ["bench"] => bench::run(&root),
        ["languages", file] => languages::run(&root, file.as_ref()),
        ["pictures"] => pictures::run(&root),
        _ => Err(vec![
            "usage: cargo xtask tidy [--report [--names]] | platforms | fuzz | bench | languages FILE | pictures"
                .to_owned(),
        ]),
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

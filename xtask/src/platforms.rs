//! That the code for other systems compiles, as far as it can be told on this one: nothing is
//! linked, and C is not looked at.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

/// Systems whose code differs from that of this machine.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];

/// In the place of compilers and archivers that would know those systems: makes an empty file of
/// what is asked for.
const STUB: &str = r#"#!/bin/sh
for word in "$@"; do
    case "$before $word" in "-o "*|*.a) : > "$word" ;; esac
    before="$word"
done
"#;

/// Checks every target that Rust knows here.
pub(crate) fn run(root: &Path) -> Result<String, Vec<String>> {
    let problem = |what: &str, error: &dyn std::fmt::Display| vec![format!("platforms: {what}: {error}")];
    let stub = root.join("target/platform-stub");
    fs::create_dir_all(root.join("target"))
        .and_then(|()| fs::write(&stub, STUB))
        .and_then(|()| fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)))
        .map_err(|error| problem("the stub of a compiler", &error))?;
    let mut checked = Vec::new();
    for target in TARGETS.into_iter().filter(|target| is_installed(target)) {
        let name = target.replace('-', "_");
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args([
            "check",
            "--quiet",
            "--locked",
            "-p",
            "windlass-cli",
            "--target",
            target,
        ]);
        for tool in ["CC", "CXX", "AR"] {
            cargo.env(format!("{tool}_{name}"), &stub);
        }
        match cargo.status() {
            Ok(status) if status.success() => checked.push(target),
            Ok(status) => return Err(problem(target, &status)),
            Err(error) => return Err(problem("cargo", &error)),
        }
    }
    let left: Vec<_> = TARGETS.into_iter().filter(|target| !checked.contains(target)).collect();
    let skipped = if left.is_empty() {
        String::new()
    } else {
        format!("; NOT CHECKED, for want of `rustup target add`: {}", left.join(", "))
    };
    Ok(format!("platforms: checked {}{skipped}", checked.join(", ")))
}

/// Whether the standard library for it is here.
fn is_installed(target: &str) -> bool {
    let printed = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .stderr(Stdio::null())
        .output();
    let directory = printed.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    directory.is_ok_and(|directory| Path::new(&directory).is_dir())
}

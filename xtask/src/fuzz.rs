//! That the fuzz targets compile. They are outside of the workspace, since running them needs a
//! nightly compiler and libFuzzer; looking at their types needs neither.

use std::{fs, path::Path, process::Command};

/// Checks the targets of every crate that has some.
pub(crate) fn run(root: &Path) -> Result<String, Vec<String>> {
    let problem =
        |what: &dyn std::fmt::Display, error: &dyn std::fmt::Display| vec![format!("fuzz: {what}: {error}")];
    let crates = fs::read_dir(root.join("crates")).map_err(|error| problem(&"crates", &error))?;
    let manifests = crates.flatten().map(|entry| entry.path().join("fuzz/Cargo.toml"));
    let mut manifests: Vec<_> = manifests.filter(|manifest| manifest.is_file()).collect();
    manifests.sort();
    for manifest in &manifests {
        let mut cargo = Command::new("cargo");
        cargo.args(["check", "--quiet", "--bins", "--manifest-path"]).arg(manifest);
        // `cargo fuzz` sets the first. The second keeps libFuzzer, which is C++, from being built:
        // nothing is linked.
        cargo
            .env("RUSTFLAGS", "--cfg fuzzing -D warnings")
            .env("CUSTOM_LIBFUZZER_PATH", "/nonexistent/libfuzzer.a");
        cargo.env("CARGO_TARGET_DIR", root.join("target/fuzz"));
        match cargo.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(problem(&manifest.display(), &status)),
            Err(error) => return Err(problem(&"cargo", &error)),
        }
    }
    Ok(format!("fuzz: the targets of {} crates compile", manifests.len()))
}

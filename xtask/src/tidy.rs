//! Compares the code with ARCHITECTURE.md and the other documents, where the compiler cannot.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{house_rules, report::CodeReport};

/// Returns all differences between the code and the documents, and violations of the house rules.
pub(crate) fn run(root: &Path) -> Result<String, Vec<String>> {
    let sources = sources(root);
    let mut problems = edges(root);
    problems.extend(sources.iter().flat_map(Source::problems));
    problems.extend(walk(root));
    problems.extend(documented(root));
    problems.extend(house_rules::problems(root, &sources));
    if problems.is_empty() { Ok(format!("tidy: {} files", sources.len())) } else { Err(problems) }
}

/// Crate edges against the table of ARCHITECTURE.md.
fn edges(root: &Path) -> Vec<String> {
    let allowed = table(&read(&root.join("ARCHITECTURE.md")));
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output();
    let metadata: Value = match output {
        Ok(output) => serde_json::from_slice(&output.stdout).unwrap_or_default(),
        Err(error) => return vec![format!("cannot run cargo metadata: {error}")],
    };
    let mut problems = missing_edges(&allowed, &metadata);
    if metadata["packages"].as_array().is_none_or(Vec::is_empty) {
        problems.push("cargo metadata says nothing of any package".to_owned());
    }
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(package["name"].as_str().unwrap_or_default());
        let Some((_, may)) = allowed.iter().find(|(each, _)| each == name) else {
            if name != "xtask" {
                problems.push(format!("ARCHITECTURE.md: the table of crates has no row for `{name}`"));
            }
            continue;
        };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for dependency in dependencies.filter(|each| each["path"].is_string() && each["kind"].is_null()) {
            let on = short(dependency["name"].as_str().unwrap_or_default());
            if !may.iter().any(|each| each == on) {
                problems.push(format!(
                    "`{name}` depends on `{on}`, which the table of ARCHITECTURE.md does not allow"
                ));
            }
        }
    }
    problems
}

/// Returns the edges of the table that no crate has.
fn missing_edges(allowed: &[(String, Vec<String>)], metadata: &Value) -> Vec<String> {
    let packages: Vec<_> = metadata["packages"].as_array().into_iter().flatten().collect();
    let has = |name: &str, on: &str| {
        let package =
            packages.iter().find(|package| short(package["name"].as_str().unwrap_or_default()) == name);
        let dependencies =
            package.and_then(|package| package["dependencies"].as_array()).into_iter().flatten();
        dependencies.into_iter().any(|each| short(each["name"].as_str().unwrap_or_default()) == on)
    };
    let edges = allowed.iter().flat_map(|(name, may)| may.iter().map(move |on| (name, on)));
    let missing = edges.filter(|(name, on)| *on != "-" && !has(name, on));
    missing.map(|(name, on)| format!("ARCHITECTURE.md: `{name}` does not depend on `{on}`")).collect()
}

fn short(package: &str) -> &str {
    package.strip_prefix("windlass-").unwrap_or(package)
}

/// Rows of the table of crates: name and what it may depend on.
fn table(page: &str) -> Vec<(String, Vec<String>)> {
    let section = page.lines().skip_while(|line| *line != "## Crates").skip(1);
    let rows = section.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let parse = |cells: Vec<&str>| match cells[..] {
        [name, _, may] => {
            let may = may.split(',').map(|each| each.trim().trim_matches('`').to_owned()).collect();
            Some((name.trim_matches('`').to_owned(), may))
        }
        _ => None,
    };
    cells.filter_map(parse).collect()
}

/// The numbers of the code and the names behind them.
pub(crate) fn report(root: &Path, with_names: bool) -> String {
    let report = CodeReport::new(&sources(root));
    if with_names { report.page() + &report.names() } else { report.page() }
}

/// A Rust file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Tells whether the file is part of what ships.
    pub(crate) fn is_product(&self) -> bool {
        self.path.starts_with("crates/") && !self.is_test() && !self.path.contains("/fuzz/")
    }

    /// The code without the tests at its foot.
    pub(crate) fn product_code(&self) -> &str {
        self.text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default()
    }

    fn problems(&self) -> Vec<String> {
        /// What may be written only in some places, and why.
        const ONLY: [(&str, &[&str], &str); 4] = [
            ("unsafe {", &["crates/sandbox/src/sys"], "only `sandbox/src/sys` may be unsafe"),
            ("reqwest::", &["crates/model/src/", "crates/mcp/"], "only `model` and `mcp` speak HTTP"),
            ("std::env::var", &["crates/cli/src/"], "only `cli` reads the environment"),
            ("env::var(", &["crates/cli/src/"], "only `cli` reads the environment"),
        ];
        let mut problems = Vec::new();
        if !self.text.starts_with("//!") && !self.text.starts_with("#!") {
            problems.push(format!("{}: begins without a `//!` that says what it is for", self.path));
        }
        if self.path.ends_with("/mod.rs") {
            problems.push(format!("{}: name the file after its module instead of mod.rs", self.path));
        }
        if self.is_test() || self.path.starts_with("xtask/") {
            return problems;
        }
        // Tests at the foot of a file and examples in comments are exempt.
        let code: Vec<_> =
            self.product_code().lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for (what, places, why) in ONLY {
            let here = places.iter().any(|place| self.path.starts_with(place));
            if !here && code.iter().any(|line| line.contains(what)) {
                problems.push(format!("{}: `{what}` is not for this file: {why}", self.path));
            }
        }
        problems
    }

    fn is_test(&self) -> bool {
        ["/tests/", "/tests.rs", "/benches/", "/examples/", "/fakes.rs"]
            .iter()
            .any(|part| self.path.contains(part))
    }
}

fn sources(root: &Path) -> Vec<Source> {
    let mut paths = Vec::new();
    ["crates", "xtask"].iter().for_each(|folder| collect(&root.join(folder), &mut paths));
    paths.sort();
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    paths.iter().map(|path| Source { path: relative(path), text: read(path) }).collect()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            // The fuzz targets of a crate have a target directory of their own.
            if !path.ends_with("target") {
                collect(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Every file that the walk of ARCHITECTURE.md names must exist.
fn walk(root: &Path) -> Vec<String> {
    let page = read(&root.join("ARCHITECTURE.md"));
    let named = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| Path::new(word).extension().is_some_and(|it| it == "rs") && word.contains('/'));
    let missing = named.filter(|word| {
        let (package, file) = word.split_once('/').unwrap_or_default();
        !root.join("crates").join(package).join("src").join(file).exists() && !root.join(word).exists()
    });
    missing.map(|word| format!("ARCHITECTURE.md names `{word}`, which does not exist")).collect()
}

/// Every tool and every event has its place in the documentation.
fn documented(root: &Path) -> Vec<String> {
    let tools = read(&root.join("docs/tools.md"));
    let names = fs::read_dir(root.join("crates/tools/src")).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned));
    let names = names.filter(|name| {
        !["lib", "change", "command", "fakes", "file_error", "picture", "sessions"].contains(&name.as_str())
    });
    let missing = names.filter(|name| !tools.contains(&format!("`{name}`")));
    let mut problems: Vec<_> =
        missing.map(|name| format!("docs/tools.md does not mention `{name}`")).collect();
    let events = read(&root.join("docs/events.md"));
    let code = read(&root.join("crates/cli/src/jsonl.rs"));
    let kinds = code.split('"').skip(1).step_by(2).filter(|word| {
        word.starts_with("item.")
            || word.starts_with("turn.")
            || word.starts_with("thread.")
            || word.ends_with("_call")
    });
    let missing = kinds.filter(|kind| !events.contains(&format!("`{kind}`")));
    problems.extend(missing.map(|kind| format!("docs/events.md does not mention `{kind}`")));
    problems.sort();
    problems.dedup();
    problems
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

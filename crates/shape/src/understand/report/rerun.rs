//! Builds the arguments that make a runner repeat only the failed tests. The names come from an
//! output, so a name must not be taken for an option.

/// Returns the arguments. They are empty if nothing failed or the runner cannot select tests.
pub fn arguments<'a>(runner: &str, failed: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in failed {
        let usable = !name.is_empty() && !name.starts_with('-') && !name.ends_with('…');
        if usable && !name.contains(char::is_control) && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let words = |first: &[&str]| first.iter().chain(&names).map(ToString::to_string).collect();
    let pattern = |names: &[&str]| names.iter().map(|name| escaped(name)).collect::<Vec<_>>().join("|");
    match runner {
        "cargo" => words(&["--", "--exact"]),
        "pytest" => words(&[]),
        "unittest" => names.iter().flat_map(|name| ["-k".to_owned(), (*name).to_owned()]).collect(),
        "nextest" => {
            names.retain(|name| !name.contains([')', ',']));
            if names.is_empty() {
                return Vec::new();
            }
            let each = names.iter().map(|name| format!("test(={name})"));
            vec!["-E".to_owned(), each.collect::<Vec<_>>().join(" + ")]
        }
        "go" => go(&names),
        "jest" | "vitest" => vec!["-t".to_owned(), pattern(&names)],
        "mocha" => vec!["--grep".to_owned(), pattern(&names)],
        "node" => vec!["--test-name-pattern".to_owned(), format!("^({})$", pattern(&names))],
        "ctest" => vec!["-R".to_owned(), format!("^({})$", pattern(&names))],
        "maven" => vec![format!(
            "-Dtest={}",
            names.iter().map(|name| class_and_method(name)).collect::<Vec<_>>().join(",")
        )],
        "gradle" => names.iter().flat_map(|name| ["--tests".to_owned(), (*name).to_owned()]).collect(),
        _ => Vec::new(),
    }
}

/// Go matches each level of a name separately, so the whole test runs again with all its subtests.
fn go(names: &[&str]) -> Vec<String> {
    let mut tests: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("Test"))
        .filter_map(|name| name.split('/').next())
        .collect();
    tests.dedup();
    if tests.is_empty() {
        return Vec::new();
    }
    vec!["-run".to_owned(), format!("^({})$", tests.join("|"))]
}

/// Converts `shop.TillTest.rounds` to Surefire's format.
fn class_and_method(name: &str) -> String {
    name.rsplit_once('.').map_or_else(|| name.to_owned(), |(class, method)| format!("{class}#{method}"))
}

/// Escapes a name for use in a regular expression.
fn escaped(name: &str) -> String {
    name.chars()
        .flat_map(|c| [Some('\\').filter(|_| r".^$*+?()[]{}|\/".contains(c)), Some(c)])
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rerun(runner: &str, names: &[&str]) -> Vec<String> {
        arguments(runner, names.iter().copied())
    }

    #[test]
    fn every_runner_has_its_way_and_no_name_passes_for_an_option() {
        assert_eq!(rerun("cargo", &["a::b", "--nocapture", "a::b"]), ["--", "--exact", "a::b"]);
        assert_eq!(rerun("pytest", &["t.py::a[1]", "--pdb"]), ["t.py::a[1]"]);
        assert_eq!(rerun("nextest", &["a", "b"]), ["-E", "test(=a) + test(=b)"]);
        assert_eq!(rerun("go", &["TestA/x", "TestA/y", "pkg"]), ["-run", "^(TestA)$"]);
        assert_eq!(rerun("jest", &["a (b)"]), ["-t", r"a \(b\)"]);
        assert_eq!(rerun("maven", &["shop.Till.a", "shop.Till.b"]), ["-Dtest=shop.Till#a,shop.Till#b"]);
        assert_eq!(rerun("pytest", &["-x"]), Vec::<String>::new());
        assert_eq!(rerun("tap", &["a"]), Vec::<String>::new());
        assert_eq!(rerun("nextest", &["a::b(1, 2)"]), Vec::<String>::new());
    }
}

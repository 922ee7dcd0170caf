//! The language a file is in: by its name, by what its name ends with, or by the program its first line names.

/// Whole names, then endings, each with a language as people write it.
const NAMES: [(&str, &str); 19] = [
    ("Makefile", "Makefile"),
    ("makefile", "Makefile"),
    ("GNUmakefile", "Makefile"),
    ("Dockerfile", "Dockerfile"),
    ("Containerfile", "Dockerfile"),
    ("CMakeLists.txt", "CMake"),
    ("Cargo.lock", "TOML"),
    ("Gemfile", "Ruby"),
    ("Rakefile", "Ruby"),
    ("Jenkinsfile", "Groovy"),
    ("BUILD", "Starlark"),
    ("BUILD.bazel", "Starlark"),
    ("WORKSPACE", "Starlark"),
    ("Justfile", "Just"),
    ("justfile", "Just"),
    ("Vagrantfile", "Ruby"),
    (".bashrc", "Shell"),
    (".profile", "Shell"),
    (".gitignore", "Ignore List"),
];

const ENDINGS: [(&str, &[&str]); 52] = [
    ("Rust", &["rs"]),
    ("Python", &["py", "pyi", "pyw"]),
    ("JavaScript", &["js", "mjs", "cjs", "jsx"]),
    ("TypeScript", &["ts", "mts", "cts", "tsx"]),
    ("Go", &["go"]),
    ("Java", &["java"]),
    ("C", &["c", "h"]),
    ("C++", &["cc", "cpp", "cxx", "hpp", "hh", "hxx"]),
    ("C#", &["cs"]),
    ("Kotlin", &["kt", "kts"]),
    ("Swift", &["swift"]),
    ("Objective-C", &["m", "mm"]),
    ("Ruby", &["rb", "gemspec"]),
    ("PHP", &["php"]),
    ("Perl", &["pl", "pm"]),
    ("Lua", &["lua"]),
    ("Scala", &["scala", "sbt"]),
    ("Groovy", &["groovy", "gradle"]),
    ("Clojure", &["clj", "cljs", "edn"]),
    ("Haskell", &["hs"]),
    ("OCaml", &["ml", "mli"]),
    ("F#", &["fs", "fsx"]),
    ("Elixir", &["ex", "exs"]),
    ("Erlang", &["erl", "hrl"]),
    ("Dart", &["dart"]),
    ("Zig", &["zig"]),
    ("Nim", &["nim"]),
    ("R", &["r", "R"]),
    ("Julia", &["jl"]),
    ("Shell", &["sh", "bash", "zsh", "ksh"]),
    ("Fish", &["fish"]),
    ("PowerShell", &["ps1", "psm1"]),
    ("Batchfile", &["bat", "cmd"]),
    ("SQL", &["sql"]),
    ("HTML", &["html", "htm"]),
    ("CSS", &["css"]),
    ("SCSS", &["scss", "sass"]),
    ("Vue", &["vue"]),
    ("Svelte", &["svelte"]),
    ("XML", &["xml", "xsd", "svg", "plist"]),
    ("JSON", &["json", "jsonc", "jsonl"]),
    ("YAML", &["yaml", "yml"]),
    ("TOML", &["toml"]),
    ("INI", &["ini", "cfg", "conf"]),
    ("Markdown", &["md", "markdown"]),
    ("reStructuredText", &["rst"]),
    ("TeX", &["tex", "sty"]),
    ("Protocol Buffer", &["proto"]),
    ("GraphQL", &["graphql", "gql"]),
    ("HCL", &["tf", "hcl", "tfvars"]),
    ("Nix", &["nix"]),
    ("Diff", &["diff", "patch"]),
];

/// Programs that first lines name.
const INTERPRETERS: [(&str, &str); 9] = [
    ("python", "Python"),
    ("node", "JavaScript"),
    ("bash", "Shell"),
    ("zsh", "Shell"),
    ("sh", "Shell"),
    ("perl", "Perl"),
    ("ruby", "Ruby"),
    ("php", "PHP"),
    ("lua", "Lua"),
];

/// The language of a file of this name that begins with this line.
pub(super) fn of(name: &str, first_line: &str) -> Option<&'static str> {
    let by_name = NAMES.iter().find(|(known, _)| *known == name).map(|(_, language)| *language);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let by_ending =
        || ENDINGS.iter().find(|(_, endings)| endings.contains(&ending)).map(|(language, _)| *language);
    by_name.or_else(by_ending).or_else(|| by_interpreter(first_line))
}

/// `#!/usr/bin/env python3` and the like.
fn by_interpreter(line: &str) -> Option<&'static str> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let program = words.next()?.rsplit('/').next()?;
    let program = if program == "env" { words.find(|word| !word.starts_with('-'))? } else { program };
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == program).map(|(_, language)| *language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_endings_and_first_lines_tell() {
        for (name, line, language) in [
            ("main.rs", "", Some("Rust")),
            ("Dockerfile", "", Some("Dockerfile")),
            ("CMakeLists.txt", "", Some("CMake")),
            ("run", "#!/usr/bin/env -S python3.12 -u", Some("Python")),
            ("run", "#!/bin/sh", Some("Shell")),
            ("notes.txt", "", None),
            ("LICENSE", "", None),
        ] {
            assert_eq!(of(name, line), language, "{name}");
        }
    }
}

//! Prefixes that nobody can mean to allow: whatever follows them is another program, or anything at all.

use crate::{
    shell::Word,
    wrapper::{self, Inner, base_name, is_shell},
};

/// Prefixes that say nothing about what is done, alone.
const BARE: &[&str] = &[
    "git",
    "rm",
    "find",
    "fd",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "dd",
    "npm",
    "npm run",
    "npm exec",
    "pnpm",
    "pnpm run",
    "pnpm exec",
    "yarn",
    "yarn run",
    "yarn exec",
    "bun",
    "bun run",
    "npx",
    "pnpx",
    "bunx",
    "uvx",
    "uv",
    "uv run",
    "pipx",
    "pipx run",
    "docker",
    "docker run",
    "docker exec",
    "docker compose",
    "podman",
    "podman run",
    "podman exec",
    "kubectl",
    "kubectl exec",
    "ssh",
    "gh",
    "aws",
    "gcloud",
    "az",
    "terraform",
    "systemctl",
    "gdb",
    "vim",
    "vi",
    "nvim",
    "emacs",
    "expect",
    "tclsh",
    "osascript",
    "deno",
    "deno run",
    "deno eval",
    "go run",
    "cmd",
    "tar",
    "eval",
    "source",
    ".",
    "trap",
];

/// Programs that run code in a language of their own.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "py",
    "pypy",
    "pypy3",
    "node",
    "nodejs",
    "perl",
    "ruby",
    "php",
    "lua",
    "julia",
    "Rscript",
    "R",
    "irb",
    "ghci",
    "groovy",
    "scala",
    "powershell",
    "pwsh",
];

/// The first way to read a prefix that allows too much, and why.
pub(super) fn find(prefix: &[Vec<String>]) -> Option<(String, &'static str)> {
    /// Only the first words decide.
    const LOOKED_AT: usize = 4;
    /// More readings than a person writes down alternatives for.
    const MAX_READINGS: usize = 4096;
    let mut readings: Vec<Vec<Word>> = vec![Vec::new()];
    for names in prefix.iter().take(LOOKED_AT) {
        let longer = |reading: &Vec<Word>| {
            let reading = reading.clone();
            names.iter().map(move |name| [&reading[..], &[Word::literal(name)]].concat()).collect::<Vec<_>>()
        };
        readings = readings.iter().flat_map(longer).collect();
        if readings.len() > MAX_READINGS {
            return Some((shown(&readings[0]), "it has too many alternatives to be checked"));
        }
    }
    readings.iter().find_map(|words| Some((shown(words), reason(words)?)))
}

fn reason(words: &[Word]) -> Option<&'static str> {
    let program = base_name(&words.first()?.text);
    let second = words.get(1).map(|word| word.text.as_str());
    if is_shell(program) || INTERPRETERS.contains(&program) {
        // `python3 -m pytest` and `bash build.sh` say what runs.
        let says = match second {
            Some("-m") => words.len() > 2,
            Some(script) => !script.starts_with('-'),
            None => false,
        };
        return (!says).then_some("it runs any code");
    }
    if let Some(Inner::Words { range, .. }) = wrapper::open(words).into_iter().next() {
        return reason(words.get(range)?);
    }
    if wrapper::is_wrapper(program) {
        return Some("it runs any program");
    }
    let named: Vec<_> = words.iter().filter(|word| !word.text.starts_with('-')).cloned().collect();
    BARE.contains(&shown(&named).as_str()).then_some("it does very different things, also harmful ones")
}

fn shown(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

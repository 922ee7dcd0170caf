//! Prefixes that are too general to allow: any other program, or anything at all, may follow them.

use crate::{
    shell::ShellWord,
    wrapper::{self, InnerCommand, base_name, is_shell},
};

/// Prefixes that do not determine what the command does.
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

/// Returns the first reading of a prefix that allows too much, and the reason.
pub(super) fn find(prefix: &[Vec<String>]) -> Option<(String, &'static str)> {
    /// Maximum number of words that are checked; the later ones do not matter.
    const MAX_PREFIX_WORDS: usize = 4;
    /// Maximum number of readings. Alternatives written by hand give fewer.
    const MAX_READINGS: usize = 4096;
    let mut readings: Vec<Vec<ShellWord>> = vec![Vec::new()];
    for names in prefix.iter().take(MAX_PREFIX_WORDS) {
        let longer = |reading: &Vec<ShellWord>| {
            let reading = reading.clone();
            names
                .iter()
                .map(move |name| [&reading[..], &[ShellWord::literal(name)]].concat())
                .collect::<Vec<_>>()
        };
        readings = readings.iter().flat_map(longer).collect();
        if readings.len() > MAX_READINGS {
            return Some((shown(&readings[0]), "it has too many alternatives to be checked"));
        }
    }
    readings.iter().find_map(|words| Some((shown(words), reason(words)?)))
}

fn reason(words: &[ShellWord]) -> Option<&'static str> {
    let program = base_name(&words.first()?.text);
    let second = words.get(1).map(|word| word.text.as_str());
    if is_shell(program) || INTERPRETERS.contains(&program) {
        // `python3 -m pytest` and `bash build.sh` name what they run.
        let says = match second {
            Some("-m") => words.len() > 2,
            Some(script) => !script.starts_with('-'),
            None => false,
        };
        return (!says).then_some("it runs any code");
    }
    if let Some(InnerCommand::Words { range, .. }) = wrapper::open(words).into_iter().next() {
        return reason(words.get(range)?);
    }
    if wrapper::is_wrapper(program) {
        return Some("it runs any program");
    }
    let named: Vec<_> = words.iter().filter(|word| !word.text.starts_with('-')).cloned().collect();
    BARE.contains(&shown(&named).as_str()).then_some("it does very different things, also harmful ones")
}

fn shown(words: &[ShellWord]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

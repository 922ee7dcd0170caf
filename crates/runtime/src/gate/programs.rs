//! Looks up the programs of a command: missing ones, and those that no sandboxed command can
//! replace.

use std::path::{Path, PathBuf};

use windlass_contract::{
    ToolError,
    effects::CommandLine,
    grant::SandboxRules,
    program::{ProgramFile, ProgramFinder, ProgramSearch},
    tool::ErrorKind,
};
use windlass_policy::{Class, Judgement, Part, Reason};

use super::Policy;

/// Directories for temporary files, which any program writes.
const TEMPORARY_DIRECTORIES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Reserved words and builtins of shells that are not programs on every system.
const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "]]",
    "alias",
    "autoload",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "{",
    "}",
    "!",
];

/// System directories whose files only an administrator replaces.
const SYSTEM_DIRECTORIES: [&str; 8] =
    ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share", "/bin", "/sbin", "/etc/alternatives"];

/// Directories that commands in the sandbox may write.
pub(super) fn writable_directories(policy: &Policy) -> Vec<PathBuf> {
    let SandboxRules { writable, .. } = &policy.walls;
    [&policy.cwd].into_iter().chain(writable).cloned().collect()
}

/// Directories for temporary files, with that of the user.
pub(super) fn temporary_directories(finder: Option<&dyn ProgramFinder>) -> Vec<PathBuf> {
    let of_user = finder.and_then(|finder| finder.variable("TMPDIR")).map(PathBuf::from);
    let of_user = of_user.filter(|directory| directory.is_absolute());
    TEMPORARY_DIRECTORIES.into_iter().map(PathBuf::from).chain(of_user).collect()
}

/// Returns true if no earlier command may have written the file of a program.
fn is_outside(finder: &dyn ProgramFinder, policy: &Policy, file: &ProgramFile) -> bool {
    let (writable, temporary) = (writable_directories(policy), temporary_directories(Some(finder)));
    file.is_outside(writable.iter().chain(&temporary).map(PathBuf::as_path))
}

/// Returns the file of a program, looked up from this directory, if no sandboxed command can write
/// it.
pub(super) fn find_unwritable(
    finder: &dyn ProgramFinder,
    policy: &Policy,
    name: &str,
    cwd: &Path,
) -> Option<PathBuf> {
    let ProgramSearch::Found(file) = finder.find_program(name, cwd) else { return None };
    is_outside(finder, policy, &file).then_some(file.path)
}

/// Returns true if a program is a file of the system, so that no other workspace can replace it.
pub(super) fn is_system_program(finder: &dyn ProgramFinder, name: &str, cwd: &Path) -> bool {
    let ProgramSearch::Found(file) = finder.find_program(name, cwd) else { return false };
    let mut paths = [&file.path].into_iter().chain(&file.leads_to);
    paths.all(|path| SYSTEM_DIRECTORIES.iter().any(|directory| path.starts_with(directory)))
}

/// Returns true if an earlier command may have written the file that a name stands for. A missing
/// name is a builtin or nothing, and cannot be replaced.
pub(super) fn is_replaceable(finder: &dyn ProgramFinder, policy: &Policy, name: &str, cwd: &Path) -> bool {
    match finder.find_program(name, cwd) {
        ProgramSearch::Found(file) => !is_outside(finder, policy, &file),
        ProgramSearch::Missing => false,
        ProgramSearch::Unknown => true,
    }
}

/// Returns an error if a program of a command does not exist. Returns `None` if a shell may know
/// the name or an earlier part of the command may create the program.
pub(super) fn missing(
    finder: &dyn ProgramFinder,
    command: &CommandLine,
    cwd: &Path,
    judgement: &Judgement,
) -> Option<ToolError> {
    let is_missing = |name: &str| finder.find_program(name, cwd) == ProgramSearch::Missing;
    let name = match ProgramLookup::from_command(command) {
        ProgramLookup::Kernel(name) => Some(name).filter(|name| is_missing(name)),
        ProgramLookup::Shell(script) => missing_part(script, judgement, is_missing),
        ProgramLookup::Unknown => None,
    }?;
    let place = if name.contains('/') { "" } else { " on the search path" };
    let message = format!("no such program: there is no `{name}`{place}; nothing was run");
    Some(ToolError::new(ErrorKind::NotFound, message))
}

/// The lookup of the programs of a command.
enum ProgramLookup<'a> {
    /// By the kernel: the command is its program.
    Kernel(&'a str),
    /// By a shell that reads no startup file before this script.
    Shell(&'a str),
    /// By a shell that may know any name.
    Unknown,
}

impl<'a> ProgramLookup<'a> {
    fn from_command(command: &'a CommandLine) -> Self {
        let words: Vec<_> = command.argv.iter().map(String::as_str).collect();
        let base = |program: &'a str| program.rsplit('/').next().unwrap_or(program);
        match words[..] {
            [shell, "-c", script] if matches!(base(shell), "bash" | "sh" | "dash") => Self::Shell(script),
            [shell, ..] if matches!(base(shell), "bash" | "sh" | "dash" | "zsh" | "ksh" | "fish") => {
                Self::Unknown
            }
            [program, ..] => Self::Kernel(program),
            [] => Self::Unknown,
        }
    }
}

/// Returns the first program of a script that certainly runs and does not exist.
fn missing_part<'a>(
    script: &str,
    judgement: &'a Judgement,
    is_missing: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let sets = |part: &Part| part.facts.iter().any(|fact| fact.starts_with("sets "));
    if !judgement.unclear.is_empty() || judgement.parts.iter().any(sets) || may_go_on(script) {
        return None;
    }
    let mut has_moved = false;
    // Programs started by a program are looked up by that program.
    for part in judgement.parts.iter().filter(|part| part.via.is_empty()) {
        let name = part.argv.first()?.as_str();
        let is_own = BUILTINS.contains(&name) || name.contains(['*', '?', '~', '=']);
        let is_elsewhere = has_moved && name.contains('/');
        if !is_own && !is_elsewhere && is_missing(name) {
            return Some(name);
        }
        has_moved |= matches!(name, "cd" | "pushd" | "popd");
        // It may create or install the programs after it.
        if part.class != Class::Safe || matches!(part.reason, Reason::Rule(_)) {
            return None;
        }
    }
    None
}

/// Returns true if a script may handle a missing program: `x || y`, `x; y`, `! x`, `x &`.
fn may_go_on(script: &str) -> bool {
    let rest = script.replace("&&", " ").replace(">&", " ").replace("&>", " ");
    rest.contains(['&', ';', '\n', '!', '{', '(']) || rest.contains("||")
}

#[cfg(test)]
mod tests {
    use windlass_policy::{Rules, judge};

    use super::*;

    /// Knows these programs, all in `/usr/bin`.
    struct KnownPrograms(&'static [&'static str]);

    impl ProgramFinder for KnownPrograms {
        fn find_program(&self, name: &str, cwd: &Path) -> ProgramSearch {
            if self.0.contains(&name) {
                let path = if name.contains('/') { cwd.join(name) } else { Path::new("/usr/bin").join(name) };
                return ProgramSearch::Found(ProgramFile { path, leads_to: Vec::new() });
            }
            if name == "unsure" { ProgramSearch::Unknown } else { ProgramSearch::Missing }
        }

        fn variable(&self, _: &str) -> Option<String> {
            None
        }

        fn obstacle_outside(&self, _: &[PathBuf]) -> Option<String> {
            None
        }
    }

    fn told(argv: &[&str]) -> Option<String> {
        let command = CommandLine { argv: argv.iter().map(|word| (*word).to_owned()).collect(), cwd: None };
        let finder =
            KnownPrograms(&["ls", "cat", "make", "git", "mkdir", "cp", "sudo", "timeout", "npm", "./run.sh"]);
        let judgement = judge(&command, &Rules::default());
        missing(&finder, &command, Path::new("/w"), &judgement).map(|error| error.message)
    }

    #[test]
    fn a_program_that_is_certainly_run_and_not_there_is_named() {
        let expected = "no such program: there is no `frobnicate` on the search path; nothing was run";
        for script in [
            "frobnicate --x",
            "frobnicate",
            "frobnicate | cat",
            "cat a | frobnicate 2>&1",
            "cd sub && frobnicate",
            "ls && frobnicate",
            "frobnicate && ls",
            "frobnicate > out 2>&1",
        ] {
            assert_eq!(told(&["/bin/bash", "-c", script]).as_deref(), Some(expected), "{script}");
        }
        assert_eq!(told(&["frobnicate", "--x"]).as_deref(), Some(expected));
        let path = "no such program: there is no `./nope.sh`; nothing was run";
        assert_eq!(told(&["sh", "-c", "./nope.sh a"]).as_deref(), Some(path));
    }

    #[test]
    fn where_it_is_not_certain_nothing_is_said() {
        for script in [
            "ls",
            "unsure --x",
            "./run.sh",
            "frobnicate || true",
            "frobnicate; ls",
            "if frobnicate; then ls; fi",
            "! frobnicate",
            "frobnicate &",
            "$x",
            "frobnicate $x",
            "PATH=/opt/bin frobnicate",
            "PATH=/opt/bin; frobnicate",
            "f() { ls; }; f",
            "alias x=ls; x",
            "type frobnicate",
            "echo frobnicate",
            "sudo frobnicate",
            "timeout 5 frobnicate",
            "make && ./built",
            "npm i -g frobnicate && frobnicate",
            "cp a bin && bin/a",
            "cd sub && ./here.sh",
            "source env.sh && frobnicate",
            "eval frobnicate",
            "~/bin/x",
        ] {
            assert_eq!(told(&["/bin/bash", "-c", script]), None, "{script}");
        }
        assert_eq!(told(&["/bin/bash", "-lc", "frobnicate"]), None, "login files may extend the path");
        assert_eq!(told(&["/bin/zsh", "-c", "frobnicate"]), None, "zsh reads a file first");
    }
}

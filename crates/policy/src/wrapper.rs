//! Programs that run another program, and the commands that they would run.
//!
//! A wrapper that is not listed is not opened, and is treated as an unknown program.

mod code;
mod input;
mod scripts;

use std::{iter::successors, ops::Range};

use crate::{
    known::system_name,
    shell::{ShellDialect, ShellScript, ShellWord, SimpleCommand},
};

pub(crate) use input::reads_input;

/// A command or script that a command would run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InnerCommand {
    /// A range of its words is a command. If `plain`, the wrapper adds nothing to it.
    Words { range: Range<usize>, plain: bool },
    /// A text is a script. If `plain`, the shell adds nothing to it.
    Script { text: String, dialect: ShellDialect, plain: bool },
    /// A text in another language may run the commands that it names.
    Text(String),
    /// The command is put together from other words of the line: its input, variables, arguments.
    Line,
}

/// A program that takes options, perhaps operands, and then a command.
struct WrapperProgram {
    name: &'static str,
    /// Options with a value: letters, and long names.
    short: &'static str,
    long: &'static str,
    /// The number of operands before the command.
    operands: usize,
    /// It changes nothing about what the command does: it only limits or measures.
    plain: bool,
}

/// Sorted by name, for binary search.
const WRAPPERS: &[WrapperProgram] = &[
    wrapper("arch", "de", "", 0),
    wrapper("builtin", "", "", 0),
    wrapper("busybox", "", "", 0),
    wrapper("caffeinate", "tw", "", 0),
    wrapper("catchsegv", "", "", 0),
    wrapper("cgexec", "g", "", 0),
    wrapper("choom", "np", "adjust pid", 0),
    wrapper("chpst", "uUbeaocdfmprst", "", 0),
    wrapper("chronic", "", "", 0),
    wrapper("chroot", "", "userspec groups", 1),
    wrapper("chrt", "", "", 1),
    wrapper("command", "", "", 0),
    wrapper("coproc", "", "", 0),
    wrapper("daemonize", "acelopuE", "", 0),
    wrapper("dbus-launch", "", "", 0),
    wrapper("dbus-run-session", "", "config-file dbus-daemon", 0),
    wrapper("doas", "auC", "", 0),
    wrapper("dtach", "Ee", "", 1),
    wrapper("eatmydata", "", "", 0),
    wrapper("entr", "", "", 0),
    wrapper("env", "uCSa", "unset chdir split-string argv0", 0),
    wrapper("exec", "a", "", 0),
    wrapper("fakeroot", "ils", "", 0),
    wrapper("faketime", "", "", 1),
    wrapper("firejail", "", "", 0),
    wrapper("flock", "wEc", "timeout conflict-exit-code command", 1),
    wrapper("gosu", "", "", 1),
    wrapper("gpg-agent", "", "", 0),
    wrapper("i386", "", "", 0),
    wrapper("ifne", "", "", 0),
    wrapper("ionice", "cnpPu", "class classdata pid", 0),
    wrapper("ld.so", "", "library-path inhibit-rpath audit preload argv0 glibc-hwcaps-prepend", 0),
    wrapper("linux32", "", "", 0),
    wrapper("linux64", "", "", 0),
    wrapper("ltrace", "aeEonpsSux", "output", 0),
    wrapper("nice", "n", "adjustment", 0),
    wrapper("nocorrect", "", "", 0),
    wrapper("noglob", "", "", 0),
    wrapper("nohup", "", "", 0),
    wrapper("nsenter", "tSGrw", "target setuid setgid", 0),
    wrapper("numactl", "iIpPmNCl", "interleave preferred membind cpunodebind physcpubind", 0),
    wrapper("parallel", "jIS", "jobs sshlogin", 0),
    wrapper("pkexec", "", "user", 0),
    wrapper("prlimit", "p", "pid", 0),
    wrapper("proot", "rbqwk", "rootfs bind qemu cwd kernel-release", 0),
    wrapper("proxychains", "f", "", 0),
    wrapper("proxychains4", "f", "", 0),
    wrapper("rlwrap", "bcCDfgHlMmNOpPqStwz", "", 0),
    wrapper("runcon", "turl", "type user role range", 1),
    wrapper("runuser", "ugG", "user group supp-group", 0),
    wrapper("s6-setuidgid", "", "", 1),
    wrapper("script", "cEIoOmB", "command", 0),
    wrapper("setarch", "", "", 1),
    wrapper(
        "setpriv",
        "d",
        "reuid regid ruid euid rgid egid groups securebits ambient-caps inh-caps bounding-set",
        0,
    ),
    wrapper("setsid", "", "", 0),
    wrapper("setuidgid", "", "", 1),
    wrapper("softlimit", "acdfmoprst", "", 0),
    wrapper("ssh", "bcDEeFIiJLlmOopQRSWw", "", 1),
    wrapper("ssh-agent", "aEOPt", "", 0),
    wrapper("sshpass", "dfPp", "", 0),
    wrapper("stdbuf", "ioe", "input output error", 0),
    wrapper("strace", "aeEIoOpPsSuUX", "attach trace output user", 0),
    wrapper("su-exec", "", "", 1),
    wrapper("sudo", "ugpCrtThDRU", "user group prompt close-from role type host chdir chroot other-user", 0),
    wrapper("systemd-cat", "tp", "identifier priority stderr-priority", 0),
    wrapper("systemd-inhibit", "", "what who why mode", 0),
    wrapper("systemd-run", "puHMt", "property unit host machine description", 0),
    wrapper("taskset", "", "", 1),
    wrapper("time", "fo", "format output", 0).plain(),
    wrapper("timeout", "ks", "kill-after signal", 1).plain(),
    wrapper("torify", "", "", 0),
    wrapper("torsocks", "aPup", "", 0),
    wrapper("toybox", "", "", 0),
    wrapper("tsocks", "", "", 0),
    wrapper("uname26", "", "", 0),
    wrapper("unbuffer", "", "", 0),
    wrapper("unshare", "RGSwl", "root wd setgid setuid", 0),
    wrapper("valgrind", "", "", 0),
    wrapper("watch", "nq", "interval", 0),
    wrapper("xargs", "adEILnPsR", "arg-file delimiter eof replace max-lines max-args max-procs max-chars", 0),
    wrapper("xcrun", "", "sdk toolchain", 0),
    wrapper("xvfb-run", "efnpsw", "error-file auth-file server-num xauth-protocol server-args wait", 0),
];

const fn wrapper(
    name: &'static str,
    short: &'static str,
    long: &'static str,
    operands: usize,
) -> WrapperProgram {
    WrapperProgram { name, short, long, operands, plain: false }
}

impl WrapperProgram {
    const fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    fn inner(&self, words: &[ShellWord], start: usize) -> InnerCommand {
        // These join their words and pass them to a shell.
        if matches!(self.name, "watch" | "parallel" | "ssh") {
            let text = joined(words.get(start..).unwrap_or_default());
            return InnerCommand::Script { text, dialect: ShellDialect::Bash, plain: false };
        }
        let plain = self.plain && is_plain_call(self.name, words, start);
        InnerCommand::Words { range: start..words.len(), plain }
    }

    /// Returns the index at which the command begins.
    fn start(&self, words: &[ShellWord]) -> usize {
        let mut at = 1;
        let mut operands = self.operands;
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            at += 1;
            if text == "--" {
                return at + operands;
            } else if let Some(long) = text.strip_prefix("--") {
                let valued = self.long.split(' ').any(|each| each == long);
                at += usize::from(valued);
            } else if text.starts_with('-') && (text.len() > 1 || self.name == "env") {
                // The first letter with a value takes the rest of the bundle, or else the next
                // word.
                let valued = text.char_indices().find(|(at, letter)| *at > 0 && self.short.contains(*letter));
                at += usize::from(valued.is_some_and(|(at, letter)| at + letter.len_utf8() == text.len()));
            } else if is_assignment(text) && matches!(self.name, "env" | "sudo" | "doas") {
            } else if operands > 0 {
                operands -= 1;
            } else {
                return at - 1;
            }
        }
        words.len()
    }
}

/// Returns everything that a command would run besides its own program.
pub(crate) fn open(words: &[ShellWord]) -> Vec<InnerCommand> {
    let Some(program) = words.first() else { return Vec::new() };
    // In `/proc` a program has another name; that of the shell itself is `/proc/self/exe`.
    let name = if program.text.starts_with("/proc/") { "bash" } else { base_name(&program.text) };
    let scripts = scripts::argument_scripts(name, words).into_iter();
    let scripts =
        scripts.map(|text| InnerCommand::Script { text, dialect: ShellDialect::Bash, plain: false });
    let inner = shell(name, words).into_iter().chain(wrapped(name, words)).chain(scripts);
    let texts = code::in_words(name, words).into_iter().map(InnerCommand::Text);
    let line = (code::takes_line(name, words) || lacks_program(words)).then_some(InnerCommand::Line);
    inner.chain(actions(name, words)).chain(texts).chain(line).collect()
}

/// Returns everything that a command of a script would run besides its own program: from its words,
/// its variables, and the input of a shell.
pub(crate) fn open_in(script: &ShellScript, at: usize) -> Vec<InnerCommand> {
    let Some(simple) = script.commands.get(at) else { return Vec::new() };
    let texts = scripts::in_variables(simple).into_iter().chain(input::scripts(script, at));
    let scripts = texts.map(|text| InnerCommand::Script { text, dialect: ShellDialect::Bash, plain: false });
    let texts = code::in_input(script, at).into_iter().map(InnerCommand::Text);
    open(&simple.words).into_iter().chain(scripts).chain(texts).collect()
}

/// Returns the indices at which a command begins among words: after assignments, and behind
/// wrappers.
pub(crate) fn starts(words: &[ShellWord]) -> Vec<usize> {
    let first = words.iter().take_while(|word| is_assignment(&word.text)).count();
    let begins = successors(Some(first), |start: &usize| {
        let inner = command(words.get(*start..)?)?.start;
        (inner > 0).then_some(start + inner)
    });
    begins.collect()
}

/// Returns true if `xargs` or the like runs a wrapper without a program, so that its input names
/// it: `xargs env`.
fn lacks_program(words: &[ShellWord]) -> bool {
    let mut behind = successors(Some(words), |words| words.get(command(words)?));
    let is_fed = behind
        .next()
        .and_then(<[_]>::first)
        .is_some_and(|program| matches!(base_name(&program.text), "xargs" | "parallel"));
    let last = behind.last().and_then(<[_]>::first).map(|program| base_name(&program.text));
    // Without a command `xargs` only prints.
    is_fed && last.is_some_and(|last| is_wrapper(last) && last != "xargs")
}

/// Returns true if a command runs what it reads from its input, perhaps behind wrappers.
pub(crate) fn runs_input(simple: &SimpleCommand) -> bool {
    let words = successors(Some(&simple.words[..]), |words| words.get(command(words)?)).last();
    let words = words.unwrap_or_default();
    let name = words.first().map(|program| base_name(&program.text)).unwrap_or_default();
    reads_input(simple) || lacks_program(&simple.words) || code::runs_input(name, words)
}

/// Returns the range of the first command among the words of a command.
pub(crate) fn command(words: &[ShellWord]) -> Option<Range<usize>> {
    let name = base_name(&words.first()?.text);
    wrapped(name, words).into_iter().chain(actions(name, words)).find_map(|inner| match inner {
        InnerCommand::Words { range, .. } => Some(range),
        InnerCommand::Script { .. } | InnerCommand::Text(_) | InnerCommand::Line => None,
    })
}

/// Returns the command after a wrapper and its own arguments.
fn wrapped(name: &str, words: &[ShellWord]) -> Option<InnerCommand> {
    let wrapper = find(name)?;
    let start = wrapper.start(words);
    // `command -v` only prints where a program is.
    let asks =
        name == "command" && words.get(1).is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V"));
    (start < words.len() && !asks).then(|| wrapper.inner(words, start))
}

/// Returns true if the purpose of a program is to run others.
pub(crate) fn is_wrapper(name: &str) -> bool {
    find(name).is_some() || name == "su"
}

fn find(name: &str) -> Option<&'static WrapperProgram> {
    // The loader of programs: `ld-linux-x86-64.so.2`, `ld-musl-aarch64.so.1`.
    let name = if name.starts_with("ld-") && name.contains(".so") { "ld.so" } else { name };
    WRAPPERS.binary_search_by_key(&name, |wrapper| wrapper.name).ok().map(|at| &WRAPPERS[at])
}

/// Returns the name of a program without its directory.
pub(crate) fn base_name(program: &str) -> &str {
    let slash = program.bytes().rposition(|byte| byte == b'/');
    slash.and_then(|at| program.get(at + 1..)).unwrap_or(program)
}

/// Returns true if a word has the form `NAME=value`.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Returns true for `timeout 5 ls` and `time ls` without options: their grammars are not worth a
/// table.
fn is_plain_call(name: &str, words: &[ShellWord], start: usize) -> bool {
    let known = words.first().and_then(system_name) == Some(name);
    let seconds = |word: &ShellWord| {
        let number = word.text.trim_end_matches(['s', 'm', 'h']);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    known && words.get(1..start).is_some_and(|before| before.iter().all(seconds))
}

/// Returns the dialect of a shell.
pub(crate) fn dialect(name: &str) -> Option<ShellDialect> {
    match name {
        "bash" | "zsh" => Some(ShellDialect::Bash),
        "sh" | "dash" => Some(ShellDialect::Posix),
        _ => None,
    }
}

/// Returns true if a program runs shell scripts.
pub(crate) fn is_shell(name: &str) -> bool {
    dialect(name).is_some()
        || matches!(name, "ksh" | "mksh" | "ash" | "fish" | "csh" | "tcsh" | "rbash" | "pwsh")
}

/// Opens `bash -c SCRIPT`. It is plain if its only other options are these: read login files, stop
/// at errors.
fn shell(name: &str, words: &[ShellWord]) -> Option<InnerCommand> {
    if !is_shell(name) {
        return None;
    }
    let known = dialect(name).filter(|_| words.first().and_then(system_name) == Some(name));
    let mut plain = known.is_some();
    let mut words = words.iter().skip(1);
    let mut reads_script = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        match text.strip_prefix(['-', '+']) {
            Some(letters) if !letters.is_empty() => {
                let short = text.starts_with('-') && !letters.starts_with('-');
                let is_command = text.eq_ignore_ascii_case("-command");
                plain &= short && letters.bytes().all(|byte| b"leuco".contains(&byte));
                reads_script |= short && letters.contains('c') || is_command;
                if short && letters.ends_with('o') {
                    plain &= words.next().is_some_and(|option| option.text == "pipefail");
                } else if input::VALUED.contains(&text) {
                    words.next();
                }
            }
            // It ends the options, as `--` does.
            _ if text == "-" => plain = false,
            _ if reads_script => {
                plain &= word.unclear.is_none() && !word.glob && !word.home && words.next().is_none();
                let dialect = known.unwrap_or(ShellDialect::Bash);
                return Some(InnerCommand::Script { text: word.text.clone(), dialect, plain });
            }
            _ => return None,
        }
    }
    None
}

fn joined(words: &[ShellWord]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the commands of `find -exec … ;` and the like.
fn actions(name: &str, words: &[ShellWord]) -> Vec<InnerCommand> {
    let starts: &[&str] = match name {
        "find" => &["-exec", "-execdir", "-ok", "-okdir"],
        "fd" | "fdfind" => &["-x", "-X", "--exec", "--exec-batch"],
        _ => return Vec::new(),
    };
    let is_start = |word: &ShellWord| starts.contains(&word.text.as_str());
    let begins = words.iter().enumerate().filter(|(_, word)| is_start(word)).map(|(at, _)| at + 1);
    let ends = |begin: usize| {
        let rest = words.get(begin..).unwrap_or_default();
        begin + rest.iter().position(|word| matches!(word.text.as_str(), ";" | "+")).unwrap_or(rest.len())
    };
    begins.map(|begin| InnerCommand::Words { range: begin..ends(begin), plain: false }).collect()
}

#[cfg(test)]
mod tests;

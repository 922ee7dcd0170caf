//! Commands that would delete or overwrite files, directories and disks.

use super::{CommandDanger, SuspectCommand};
use crate::{
    path::WorkingDirectories,
    secret,
    shell::{RedirectKind, ShellRedirect},
    wrapper::base_name,
};

/// Directories that the system or the user cannot do without. A `*` at the end stands for one name.
const VITAL: &[&str] = &[
    "/",
    "/bin",
    "/bin/*",
    "/boot",
    "/boot/*",
    "/dev",
    "/dev/*",
    "/etc",
    "/etc/*",
    "/home",
    "/home/*",
    "/lib",
    "/lib/*",
    "/lib64",
    "/lib64/*",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/proc/*",
    "/root",
    "/sbin",
    "/sbin/*",
    "/srv",
    "/sys",
    "/sys/*",
    "/usr",
    "/usr/*",
    "/var",
    "/var/lib",
    "/var/log",
    "/Users",
    "/Users/*",
    "/System",
    "/System/*",
    "/Library",
    "/Applications",
    "~",
];

/// Prefixes of paths that belong to the system.
const SYSTEM: &[&str] = &[
    "/etc/",
    "/usr/",
    "/bin/",
    "/sbin/",
    "/boot/",
    "/lib/",
    "/lib64/",
    "/sys/",
    "/proc/",
    "/dev/",
    "/var/spool/cron",
];

/// Files that are run later, or that decide what is run later.
const LATER: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".inputrc",
    ".gitconfig",
    ".git/config",
    ".git/hooks",
    ".git/info/attributes",
    ".vscode",
    ".envrc",
    ".mcp.json",
    ".config/autostart",
    ".config/systemd",
    "launchagents",
    "authorized_keys",
];

/// Finds the danger of a command that changes files.
pub(super) fn find(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    match call.program {
        "rm" => remove(call),
        "find" => find_and_delete(call),
        "chmod" | "chown" | "chgrp" => change_mode(call),
        "mv" => move_away(call),
        "dd" => copy_blocks(call),
        "fdisk" | "sfdisk" | "parted" | "gdisk" => partition(call),
        "tee" => call.operands().find_map(|path| write(path, call.places)),
        "cp" | "install" | "ln" => call.operands().last().and_then(|path| write(path, call.places)),
        program if program == "mkfs" || program.starts_with("mkfs.") => {
            Some(CommandDanger::never(format!("`{program}` erases a file system")))
        }
        _ => None,
    }
}

fn remove(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    if call.has("--no-preserve-root") {
        return Some(CommandDanger::never("`rm --no-preserve-root` is for deleting everything"));
    }
    let recursive = call.has_any(&["-r", "-R", "--recursive"]);
    if !recursive {
        let everything = call.operands().any(|path| matches!(path, "*" | "./*" | "."));
        let system = call.operands().find_map(|path| write(path, call.places));
        return system.or_else(|| {
            everything
                .then(|| CommandDanger::ask("`rm` would delete every file here").instead("name the files"))
        });
    }
    if let Some(path) = call.operands().find(|path| is_vital(path, call.places)) {
        return Some(CommandDanger::never(format!(
            "`rm -r {path}` deletes what a machine or a person lives on"
        )));
    }
    Some(CommandDanger::ask("`rm -r` deletes whole directories").instead("mv them away, or name the files"))
}

fn find_and_delete(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let runs = call.texts().zip(call.texts().skip(1)).any(|(action, program)| {
        matches!(action, "-exec" | "-execdir" | "-ok" | "-okdir")
            && matches!(base_name(program), "rm" | "shred" | "unlink" | "truncate")
    });
    if !runs && !call.texts().any(|text| text == "-delete") {
        return None;
    }
    let mut starts = call.texts().take_while(|text| !text.starts_with(['-', '(', '!']));
    Some(match starts.find(|path| is_vital(path, call.places)) {
        Some(path) => {
            CommandDanger::never(format!("`find {path}` would delete what a machine or a person lives on"))
        }
        None => CommandDanger::ask("`find` would delete whatever it finds")
            .instead("-print first, to see what that is"),
    })
}

fn change_mode(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let program = call.program;
    if call.has_any(&["-R", "--recursive"]) {
        if let Some(path) = call.operands().skip(1).find(|path| is_vital(path, call.places)) {
            return Some(CommandDanger::never(format!("`{program} -R {path}` takes a machine apart")));
        }
        let what = format!("`{program} -R` changes whole directories, and nothing remembers how they were");
        return Some(CommandDanger::ask(what).instead("name the files"));
    }
    let mode = call.operands().next().unwrap_or_default();
    let sets_user = program == "chmod"
        && ((mode.contains('s') && mode.contains(['+', '=']))
            || (mode.len() == 4 && mode.starts_with(['2', '4', '6'])));
    sets_user.then(|| CommandDanger::ask("`chmod` would let a program run with the rights of its owner"))
}

fn move_away(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let operands: Vec<_> = call.operands().collect();
    let (target, sources) = operands.split_last()?;
    match sources.iter().find(|path| is_vital(path, call.places)) {
        Some(path) => {
            Some(CommandDanger::never(format!("`mv {path}` takes away what a machine or a person lives on")))
        }
        None => write(target, call.places),
    }
}

fn copy_blocks(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    call.texts().filter_map(|text| text.strip_prefix("of=")).find_map(|path| write(path, call.places))
}

fn partition(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let lists = call.has_any(&["-l", "--list", "-d", "--dump"]) || call.texts().any(|text| text == "print");
    let device = call.operands().any(|path| path.starts_with("/dev/"));
    (device && !lists)
        .then(|| CommandDanger::never(format!("`{}` changes the partitions of a disk", call.program)))
}

/// Finds the danger of overwriting the target of a redirection.
pub(super) fn redirection(redirect: &ShellRedirect, places: &WorkingDirectories) -> Option<CommandDanger> {
    match redirect.kind {
        RedirectKind::Write | RedirectKind::Append => write(&redirect.target.text, places),
        RedirectKind::Read | RedirectKind::Descriptor | RedirectKind::Text => None,
    }
}

/// Finds the danger of writing to a path.
fn write(path: &str, places: &WorkingDirectories) -> Option<CommandDanger> {
    let paths: Vec<_> = places.resolve(path).collect();
    let find = |test: fn(&str) -> bool| paths.iter().find(|path| test(path));
    if find(is_disk).is_some() {
        return Some(CommandDanger::never(format!("writing to `{path}` destroys what is on a disk")));
    }
    if find(|path| path == "/proc/sysrq-trigger").is_some() {
        return Some(CommandDanger::never("writing to `/proc/sysrq-trigger` stops the machine"));
    }
    if find(is_harmless_device).is_some() {
        return None;
    }
    if find(|path| SYSTEM.iter().any(|directory| path.starts_with(directory))).is_some() {
        return Some(CommandDanger::ask(format!("`{path}` belongs to the system")));
    }
    if secret::in_names(path, places).is_some() || find(runs_later).is_some() {
        return Some(CommandDanger::ask(format!("`{path}` decides what runs, or who may, later on")));
    }
    None
}

fn is_disk(path: &str) -> bool {
    const NAMES: &[&str] = &[
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "loop", "dm-", "md", "mapper/", "mem",
        "kmem", "port",
    ];
    path.strip_prefix("/dev/").is_some_and(|device| NAMES.iter().any(|name| device.starts_with(name)))
}

fn is_harmless_device(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/zero" | "/dev/full")
        || path.starts_with("/dev/fd/")
        || path.starts_with("/dev/shm/")
}

fn runs_later(path: &str) -> bool {
    let path = path.to_lowercase();
    let starts = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
    let begins = |tail: &str, names: &str| {
        tail.strip_prefix(names).is_some_and(|after| after.is_empty() || after.starts_with('/'))
    };
    let mut tails = starts.filter_map(|at| path.get(at..));
    tails.any(|tail| LATER.iter().any(|names| begins(tail, names)))
}

/// Returns true if a path is a vital directory, or stands for everything in one.
fn is_vital(path: &str, places: &WorkingDirectories) -> bool {
    places.resolve(path).any(|path| {
        let inside = |end: &&str| path.strip_suffix(*end);
        let path = match ["/*", "/.*"].iter().find_map(inside) {
            Some("") => "/",
            Some(directory) => directory,
            None => &path,
        };
        VITAL.iter().any(|vital| is_called(path, vital))
    })
}

/// Returns true if a path has the names of the pattern, where a `*` at the end is any one name.
fn is_called(path: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(directory) => path.strip_prefix(directory).is_some_and(|name| !name.contains('/')),
        None => path == pattern,
    }
}

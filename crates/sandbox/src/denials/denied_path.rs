//! Paths that a failed program names, checked against the rules of its sandbox and the file system.
//!
//! What a program prints proves nothing. A path counts only if the sandbox really keeps it from
//! being written, the user could write it, and the error is the one that this mechanism gives. What
//! may be asked for is decided here as well: the directory of the path and nothing above it, and
//! never a place of the system or of programs, a secret or a protected name.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use rustix::fs::Access;
use windlass_contract::{
    Denial, Effects,
    grant::{Held, Mechanism},
    host::{Exit, Layer, Proof},
    secret_paths::{SecretKind, home_secrets},
};

use super::{
    error_lines::{ErrorClass, ErrorLine, error_lines},
    system_place::SystemPlaces,
    with_mode,
};
use crate::{links, sandbox_spec::SandboxSpec, secrets::home_directories};

/// Maximum number of reported denials.
const MAX_DENIALS: usize = 5;

/// Maximum number of words of a command line that are checked.
const MAX_WORDS: usize = 64;

/// Directories of the kernel's own, and temporary ones of which commands have their own.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// A command that failed, with the rules of its sandbox. Its methods block: they look at files.
pub struct DeniedPathCheck<'a> {
    /// The rules of its sandbox.
    pub spec: &'a SandboxSpec,
    /// The mechanism that confined it.
    pub held: &'a Held,
    /// Its working directory.
    pub directory: &'a Path,
    /// Its arguments, or the line for a shell.
    pub arguments: &'a [String],
    /// The directories in which it looks for programs.
    pub search_path: &'a [PathBuf],
    /// Tells of paths that commands may not change, by their names alone.
    pub is_protected: &'a dyn Fn(&Path) -> bool,
}

impl fmt::Debug for DeniedPathCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeniedPathCheck").field("held", &self.held).finish_non_exhaustive()
    }
}

/// A path that the sandbox keeps from being written.
struct ConfirmedPath {
    path: PathBuf,
    /// True if it is inside a writable directory, under a protected name.
    is_protected: bool,
}

impl DeniedPathCheck<'_> {
    /// Returns what the sandbox kept the command from writing.
    pub fn find(&self, exit: Exit, output: &[u8]) -> Vec<Denial> {
        self.find_each(exit, output, |confirmed, hidden| self.denial(confirmed, hidden))
    }

    /// Returns the same for a program with a sandbox of its own, such as an MCP server: the paths,
    /// and the directories that would have to be writable for it.
    pub fn find_writes(&self, exit: Exit, output: &[u8]) -> Vec<BlockedWrite> {
        self.find_each(exit, output, |confirmed, hidden| {
            let ConfirmedPath { path, is_protected } = confirmed;
            let place = self.place_of_program(path, hidden).filter(|_| !is_protected);
            BlockedWrite { path: path.clone(), place }
        })
    }

    fn find_each<T: PartialEq>(
        &self,
        exit: Exit,
        output: &[u8],
        describe: impl Fn(&ConfirmedPath, &[PathBuf]) -> T,
    ) -> Vec<T> {
        let is_held =
            matches!(self.held.rung, Mechanism::Namespaces | Mechanism::Landlock | Mechanism::Seatbelt);
        let error_lines = if exit != Exit::Code(0) && is_held { error_lines(output) } else { Vec::new() };
        let error_lines: Vec<_> =
            error_lines.into_iter().filter(|error_line| self.fits(error_line.class, exit)).collect();
        let mut found: Vec<T> = Vec::new();
        let mut confirmed: Vec<_> =
            error_lines.iter().filter_map(|error_line| self.first_confirmed(error_line)).collect();
        if confirmed.is_empty() {
            confirmed.extend(self.unnamed(&error_lines));
        }
        let mut hidden = None;
        for confirmed in confirmed {
            let hidden = hidden.get_or_insert_with(|| self.spec.hidden(&self.roots()));
            // Its place is taken by an empty file or directory, which gives other errors.
            if hidden.iter().any(|secret| confirmed.path.starts_with(secret)) {
                continue;
            }
            let described = describe(&confirmed, hidden);
            if !found.contains(&described) {
                found.push(described);
            }
            if found.len() == MAX_DENIALS {
                break;
            }
        }
        found.reverse();
        found
    }

    /// Returns whether this mechanism refuses a write by such an error.
    fn fits(&self, class: ErrorClass, exit: Exit) -> bool {
        match self.held.rung {
            // Mounts come first: a write outside is `EROFS` before anything else looks at it.
            Mechanism::Namespaces => class != ErrorClass::Refused,
            _ if class == ErrorClass::Unwritable => true,
            // Shells end so if a file may not be executed, which is the same error.
            _ => class == ErrorClass::Refused && !matches!(exit, Exit::Code(126 | 127)),
        }
    }

    fn first_confirmed(&self, error_line: &ErrorLine) -> Option<ConfirmedPath> {
        let class = error_line.class;
        let first = |named: &[String]| named.iter().find_map(|named| self.confirm(named, class));
        // What it names and is not confirmed was refused by something else.
        if class == ErrorClass::Unwritable || !error_line.candidates.is_empty() {
            return first(&error_line.candidates);
        }
        let line: Vec<String> = self.words().collect();
        let is_meant = |word: &&String| {
            word.contains('.') || line.contains(word) || fs::metadata(self.directory.join(word)).is_ok()
        };
        let beside = error_line.words.iter().filter(is_meant).find_map(|word| self.confirm(word, class));
        beside.or_else(|| first(&error_line.earlier))
    }

    /// Returns the directory of a command that may write nothing at all, if it says that it was
    /// refused and not what.
    fn unnamed(&self, error_lines: &[ErrorLine]) -> Option<ConfirmedPath> {
        let is_error = |error_line: &ErrorLine| {
            error_line.class == ErrorClass::ReadOnly && error_line.is_last && error_line.candidates.is_empty()
        };
        let is_refused = error_lines.iter().any(is_error);
        if !is_refused || !self.held.writable.is_empty() {
            return None;
        }
        self.check(self.directory, ErrorClass::ReadOnly)
    }

    /// Checks a name where the command line goes to (`cd`, `-C`), in the directory of the command,
    /// and in others it names.
    fn confirm(&self, named: &str, class: ErrorClass) -> Option<ConfirmedPath> {
        if named.starts_with('/') {
            return self.check(Path::new(named), class);
        }
        let words: Vec<String> = self.words().collect();
        let enters = |word: &str| matches!(word, "cd" | "pushd" | "-C");
        let entered = words.windows(2).rev().filter(|pair| enters(&pair[0])).map(|pair| pair[1].as_str());
        let places = entered.chain(["."]).chain(words.iter().map(String::as_str));
        let places = places.map(|word| self.directory.join(word)).filter(|place| place.is_dir());
        places.into_iter().find_map(|place| self.check(&place.join(named), class))
    }

    /// Returns the words of the command line.
    fn words(&self) -> impl Iterator<Item = String> {
        let around = |char: char| char.is_whitespace() || "'\"`()<>;&|=".contains(char);
        let words = self.arguments.iter().flat_map(move |argument| argument.split(around));
        words.filter(|word| !word.is_empty()).take(MAX_WORDS).map(str::to_owned)
    }

    /// Returns the path without links if the sandbox, and nothing else, keeps it from being
    /// written.
    fn check(&self, path: &Path, class: ErrorClass) -> Option<ConfirmedPath> {
        let path = links::follow(path)?.end;
        let parent = path.parent().filter(|parent| parent.is_dir())?;
        if KERNEL.iter().any(|kernel| path.starts_with(kernel)) || self.is_own_temporary(&path) {
            return None;
        }
        if self.roots().iter().any(|root| path.starts_with(root)) {
            let is_protected = class != ErrorClass::Refused && (self.is_protected)(&path);
            return is_protected.then_some(ConfirmedPath { path, is_protected });
        }
        // What the user may not write either is refused by its mode, or lies on a file system that
        // is read-only anyway.
        let may_write = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
        let is_ours = match class {
            ErrorClass::ReadOnly | ErrorClass::Unwritable => may_write(&path) || may_write(parent),
            ErrorClass::Refused if path.is_file() => may_write(&path),
            ErrorClass::Refused => may_write(parent),
            ErrorClass::Busy => false,
        };
        is_ours.then_some(ConfirmedPath { path, is_protected: false })
    }

    /// Returns whether a path is in a temporary directory that the command has of its own.
    fn is_own_temporary(&self, path: &Path) -> bool {
        let SandboxSpec { cwd, home, temporary, package_cache, .. } = self.spec;
        let kept = [Some(cwd.as_path()), home.as_deref(), Some(self.directory)];
        let is_kept = kept.into_iter().flatten().any(|kept| path.starts_with(kept));
        let is_temporary = self.held.rung == Mechanism::Namespaces
            && TEMPORARY.iter().any(|temporary| path.starts_with(temporary));
        let own = [temporary.made(), package_cache.as_deref()];
        is_temporary && !is_kept || own.into_iter().flatten().any(|own| path.starts_with(own))
    }

    fn roots(&self) -> Vec<PathBuf> {
        let real = |root: &PathBuf| links::follow(root).map(|way| way.end);
        self.held.writable.iter().filter_map(real).collect()
    }

    fn denial(&self, ConfirmedPath { path, is_protected }: &ConfirmedPath, hidden: &[PathBuf]) -> Denial {
        let rule = match (is_protected, self.held.writable.is_empty()) {
            (true, _) => "other programs execute or trust it, so commands may not change it",
            (false, true) => "nothing may be written here",
            (false, false) => "it is outside of what may be written",
        };
        let offer = self.directory_to_grant(path, hidden).filter(|_| !is_protected);
        Denial {
            layer: Layer::Files,
            what: path.display().to_string(),
            rule: rule.to_owned(),
            need: offer.map_or_else(Effects::none, Effects::write),
            proof: Proof::Verified,
            remedy: if *is_protected { String::new() } else { self.remedy(path, hidden) },
        }
    }

    /// Returns the directory that would have to be writable, unless that is more than a person
    /// should be asked for because of a text: the home directory or what it is in, places of the
    /// system and of programs, secrets, protected names.
    fn directory_to_grant(&self, path: &Path, hidden: &[PathBuf]) -> Option<PathBuf> {
        let directory = if path.is_dir() { path } else { path.parent()? };
        let workspace = self.workspace();
        // Git writes beside its directory, too, and it is the workspace that is checked afterwards.
        let in_git = directory.ancestors().find(|above| above.file_name().is_some_and(|name| name == ".git"));
        let around_git = in_git.and_then(Path::parent).filter(|above| above.starts_with(&workspace));
        let directory = around_git.unwrap_or(directory);
        // The mode for writing grants the workspace whatever is in it.
        let has_secret =
            directory != workspace && (holds_secret(directory, hidden) || is_named_for_secrets(directory));
        let is_refused = self.is_too_wide(directory)
            || self.with_system_places(|places| places.forbid_offer(directory))
            || has_secret
            || (self.is_protected)(directory)
            || !directory.is_dir();
        (!is_refused).then(|| directory.to_owned())
    }

    /// Returns the working directory of the session, without links.
    fn workspace(&self) -> PathBuf {
        links::follow(&self.spec.cwd).map(|way| way.end).unwrap_or_default()
    }

    fn is_too_wide(&self, directory: &Path) -> bool {
        let homes = home_directories(self.spec.home.as_deref());
        directory.parent().is_none() || homes.iter().any(|home| home.starts_with(directory))
    }

    fn with_system_places(&self, ask: impl FnOnce(&SystemPlaces<'_>) -> bool) -> bool {
        let real = |searched: &PathBuf| links::follow(&self.directory.join(searched)).map(|way| way.end);
        let search_path: Vec<_> = self.search_path.iter().filter_map(real).collect();
        let homes = home_directories(self.spec.home.as_deref());
        ask(&SystemPlaces { workspace: &self.workspace(), homes: &homes, search_path: &search_path })
    }

    /// Returns the options that allow a path from the start.
    fn remedy(&self, path: &Path, hidden: &[PathBuf]) -> String {
        if self.held.writable.is_empty() && path.starts_with(self.workspace()) {
            return "`-s workspace-write`, or `/sandbox workspace-write` in a session".to_owned();
        }
        let homes = home_directories(self.spec.home.as_deref());
        // The directory of one program, such as `~/.cargo`.
        let of_program = homes.iter().find_map(|home| {
            let name = path.strip_prefix(home).ok()?.iter().next()?;
            name.as_encoded_bytes().starts_with(b".").then(|| home.join(name)).filter(|place| place.is_dir())
        });
        let other = path.parent().filter(|parent| !holds_secret(parent, hidden)).map(Path::to_owned);
        let Some(directory) = of_program.or(other) else { return String::new() };
        if self.is_no_remedy(&directory, hidden) {
            return String::new();
        }
        let roots =
            format!("-c 'sandbox_workspace_write.writable_roots=[{:?}]'`", directory.display().to_string());
        with_mode(self.held, &roots)
    }

    /// Returns true if a person must not be advised to make a directory writable.
    fn is_no_remedy(&self, directory: &Path, hidden: &[PathBuf]) -> bool {
        self.is_too_wide(directory)
            || self.with_system_places(|places| places.forbid_remedy(directory))
            || is_named_for_secrets(directory)
            || hidden.iter().any(|secret| secret == directory)
    }

    /// Returns the directory of one program that holds a path, whether it exists or not: the
    /// workspace, one such as `~/.npm` or `~/.cache/uv`, else the parent of the path.
    fn place_of_program(&self, path: &Path, hidden: &[PathBuf]) -> Option<WritablePlace> {
        if path.starts_with(self.workspace()) {
            return Some(WritablePlace::Workspace);
        }
        let homes = home_directories(self.spec.home.as_deref());
        let of_program = homes.iter().find_map(|home| {
            let names: Vec<_> = path.strip_prefix(home).ok()?.iter().collect();
            let first = names.first()?;
            let length = if SHARED.iter().any(|shared| first == shared) { 2 } else { 1 };
            let is_hidden = first.as_encoded_bytes().starts_with(b".");
            let names = names.get(..length).filter(|_| is_hidden)?;
            Some(home.join(names.iter().collect::<PathBuf>()))
        });
        let parent = || path.parent().filter(|parent| !holds_secret(parent, hidden)).map(Path::to_owned);
        let directory =
            of_program.or_else(parent).filter(|directory| !self.is_no_remedy(directory, hidden))?;
        let is_usable = directory.is_dir();
        Some(if is_usable { WritablePlace::Directory(directory) } else { WritablePlace::Missing(directory) })
    }
}

/// Directories in a home directory in which each program has one of its own.
const SHARED: [&str; 2] = [".cache", ".config"];

/// A write that a sandbox blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedWrite {
    /// The path.
    pub path: PathBuf,
    /// The directory that would have to be writable, unless that is too much to advise.
    pub place: Option<WritablePlace>,
}

/// A directory to make writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritablePlace {
    /// The workspace.
    Workspace,
    /// A directory.
    Directory(PathBuf),
    /// A directory that must be made first.
    Missing(PathBuf),
}

/// Returns whether a secret lies directly in a directory.
fn holds_secret(directory: &Path, hidden: &[PathBuf]) -> bool {
    hidden.iter().any(|secret| secret.parent() == Some(directory))
}

/// Returns whether a name in a path is that of a directory for secrets, such as `.ssh`, in any
/// directory.
fn is_named_for_secrets(directory: &Path) -> bool {
    let names: Vec<_> = directory.iter().map(|name| name.to_string_lossy().to_lowercase()).collect();
    let directories =
        home_secrets().filter(|secret| secret.kind == SecretKind::Directory && secret.is_telling);
    directories.map(|secret| secret.path.to_lowercase()).any(|secret| {
        let wanted: Vec<_> = secret.split('/').collect();
        names.windows(wanted.len()).any(|part| part == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_for_secrets_is_known_by_its_name_anywhere() {
        for path in ["/home/u/proj2/.ssh", "/home/u/proj2/.SSH/keys", "/srv/x/.config/sops/age", "/b/.gnupg"]
        {
            assert!(is_named_for_secrets(Path::new(path)), "{path}");
        }
        for path in ["/home/u/proj2", "/srv/ssh", "/srv/.config", "/", "/srv/.ssh2"] {
            assert!(!is_named_for_secrets(Path::new(path)), "{path}");
        }
    }
}

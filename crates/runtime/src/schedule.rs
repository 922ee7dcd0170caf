//! Decides which calls may run at the same time, by the effects that they declare.

use std::path::{Path, PathBuf};

use windlass_contract::Effects;

/// Maximum number of commands that run in parallel. Each is a tree of processes.
const MAX_PARALLEL_COMMANDS: usize = 16;

/// Maximum number of calls that run in parallel on one MCP server. Most are single programs that
/// answer one request after the other.
const MAX_PARALLEL_SERVER_CALLS: usize = 8;

/// The place of a call among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallPlace {
    access: CallAccess,
    kind: CallKind,
}

/// Everything that a call shares with others.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallAccess {
    /// It may change anything.
    Alone,
    /// It reads and writes exactly these paths, and everything below them.
    Paths { reads: Vec<PathBuf>, writes: Vec<PathBuf> },
    /// It may read anything, and writes no files that others read.
    ReadsAll,
}

/// The kind of a call, each with a limit of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallKind {
    Command,
    /// A call on this MCP server.
    Server(String),
    Other,
}

impl CallKind {
    fn of(effects: &Effects) -> Self {
        match &effects.remote {
            Some(remote) => Self::Server(remote.server.clone()),
            None if effects.has_program() => Self::Command,
            None => Self::Other,
        }
    }

    fn max_parallel(&self) -> usize {
        match self {
            Self::Command => MAX_PARALLEL_COMMANDS,
            Self::Server(_) => MAX_PARALLEL_SERVER_CALLS,
            Self::Other => usize::MAX,
        }
    }
}

impl CallPlace {
    /// The place of a call that runs while no other does.
    pub(crate) fn alone(effects: &Effects) -> Self {
        Self { access: CallAccess::Alone, kind: CallKind::of(effects) }
    }

    /// The place of a call that was refused before it began.
    pub(crate) fn untouched() -> Self {
        Self::with_paths(&Effects::none(), Path::to_owned)
    }

    /// The place of a command that runs beside others.
    pub(crate) fn shared_command(effects: &Effects) -> Self {
        Self { access: CallAccess::ReadsAll, kind: CallKind::of(effects) }
    }

    /// The place of a call that does nothing but what it declares. `real_path` resolves links, so
    /// that two names of one file are one path.
    pub(crate) fn from_effects(effects: &Effects, real_path: impl Fn(&Path) -> PathBuf) -> Self {
        let undeclared = Effects { writes: Vec::new(), ..effects.clone() };
        if undeclared.may_change() { Self::alone(effects) } else { Self::with_paths(effects, real_path) }
    }

    fn with_paths(effects: &Effects, real_path: impl Fn(&Path) -> PathBuf) -> Self {
        let real = |paths: &[PathBuf]| paths.iter().map(|path| real_path(path)).collect();
        let access = CallAccess::Paths { reads: real(&effects.reads), writes: real(&effects.writes) };
        Self { access, kind: CallKind::of(effects) }
    }

    /// Returns true if the call may run beside any other that changes nothing.
    pub(crate) fn changes_nothing(&self) -> bool {
        match &self.access {
            CallAccess::Alone => false,
            CallAccess::Paths { writes, .. } => writes.is_empty(),
            CallAccess::ReadsAll => true,
        }
    }

    /// Returns true if the two calls must run one after the other.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        match (&self.access, &other.access) {
            (CallAccess::Alone, _) | (_, CallAccess::Alone) => true,
            (CallAccess::ReadsAll, CallAccess::ReadsAll) => false,
            (CallAccess::ReadsAll, CallAccess::Paths { writes, .. })
            | (CallAccess::Paths { writes, .. }, CallAccess::ReadsAll) => !writes.is_empty(),
            (
                CallAccess::Paths { reads, writes },
                CallAccess::Paths { reads: other_reads, writes: other_writes },
            ) => meet(writes, other_writes) || meet(writes, other_reads) || meet(reads, other_writes),
        }
    }

    /// Returns true if a call with this place may do everything that a call with the other place
    /// may.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let within = |paths: &[PathBuf], all: &[PathBuf]| {
            paths.iter().all(|path| all.iter().any(|above| path.starts_with(above)))
        };
        match (&self.access, &other.access) {
            (CallAccess::Alone, _) | (CallAccess::ReadsAll, CallAccess::ReadsAll) => true,
            (CallAccess::ReadsAll, CallAccess::Paths { writes, .. }) => writes.is_empty(),
            (
                CallAccess::Paths { reads, writes },
                CallAccess::Paths { reads: other_reads, writes: other_writes },
            ) => within(other_writes, writes) && within(other_reads, &[reads.as_slice(), writes].concat()),
            (CallAccess::Paths { .. } | CallAccess::ReadsAll, _) => false,
        }
    }

    /// Returns true if as many calls of this kind run as may.
    pub(crate) fn is_full<'a>(&self, running: impl Iterator<Item = &'a Self>) -> bool {
        running.filter(|each| each.kind == self.kind).count() >= self.kind.max_parallel()
    }
}

/// Returns true if one list has a path that is, contains or is inside a path of the other.
fn meet(paths: &[PathBuf], others: &[PathBuf]) -> bool {
    paths.iter().any(|path| others.iter().any(|other| path.starts_with(other) || other.starts_with(path)))
}

#[cfg(test)]
mod tests {
    use windlass_contract::{effects::CommandLine, remote::RemoteCall};

    use super::*;

    fn place(effects: &Effects) -> CallPlace {
        CallPlace::from_effects(effects, |path| Path::new("/w").join(path))
    }

    fn conflict(one: &Effects, other: &Effects) -> bool {
        let (one, other) = (place(one), place(other));
        assert_eq!(one.conflicts_with(&other), other.conflicts_with(&one));
        one.conflicts_with(&other)
    }

    #[test]
    fn a_place_covers_no_more_than_was_declared() {
        let covers = |one: &Effects, other: &Effects| place(one).covers(&place(other));
        let edit = |path: &str| Effects { reads: vec![path.into()], ..Effects::write(path) };
        assert!(covers(&edit("a"), &edit("a/b")) && covers(&edit("a"), &Effects::read("a")));
        assert!(!covers(&edit("a"), &edit("b")) && !covers(&Effects::read("a"), &edit("a")));
        assert!(!covers(&Effects::read("a"), &Effects::read("b")));
        assert!(covers(&Effects::read("a"), &Effects::none()));
        let command = Effects::command(CommandLine { argv: vec!["make".into()], cwd: None });
        assert!(covers(&command, &edit("a")) && !covers(&edit("a"), &command));
        let shared = CallPlace::shared_command(&command);
        assert!(shared.covers(&place(&Effects::read("a"))) && !shared.covers(&place(&edit("a"))));
        assert!(!shared.covers(&place(&command)) && place(&command).covers(&shared));
    }

    #[test]
    fn only_calls_on_one_path_exclude_each_other() {
        let edit = |path: &str| Effects { reads: vec![path.into()], ..Effects::write(path) };
        assert!(!conflict(&edit("a"), &edit("b")));
        assert!(!conflict(&edit("ab"), &edit("a")), "a name is no directory above a longer one");
        assert!(conflict(&edit("a"), &edit("a")));
        assert!(conflict(&Effects::write("a"), &Effects::read("a")));
        assert!(conflict(&Effects::write("a/b"), &Effects::read("a")), "a search of the directory");
        assert!(conflict(&Effects::write("a/b"), &Effects::write("a")));
        assert!(conflict(&Effects::write("a"), &Effects::write("/w/a")), "two names of one path");
        assert!(!conflict(&Effects::read("a"), &Effects::read("a")));
        assert!(!conflict(&Effects::none(), &Effects::write("a")));
    }

    #[test]
    fn what_is_not_declared_as_a_path_runs_alone() {
        let argv = vec!["make".to_owned()];
        let command = Effects::command(CommandLine { argv, cwd: None });
        for effects in [&command, &Effects::unknown(), &remote("s")] {
            assert_eq!(place(effects), CallPlace::alone(effects));
            assert!(conflict(effects, &Effects::none()));
        }
        let harmless = CallPlace::shared_command(&command);
        assert!(!harmless.conflicts_with(&harmless));
        assert!(!harmless.conflicts_with(&place(&Effects::read("a"))));
        assert!(harmless.conflicts_with(&place(&Effects::write("a"))), "it may read that file");
    }

    fn remote(server: &str) -> Effects {
        Effects::remote(RemoteCall {
            server: server.to_owned(),
            tool: "t".to_owned(),
            reach: windlass_contract::remote::ServerReach::Outside,
            hints: windlass_contract::remote::ToolHints::default(),
            trusted: false,
            approval: windlass_contract::remote::ToolApprovalMode::Auto,
        })
    }

    #[test]
    fn each_server_and_commands_have_a_limit_of_their_own() {
        let one = CallPlace::alone(&remote("one"));
        let running = vec![one.clone(); MAX_PARALLEL_SERVER_CALLS];
        assert!(one.is_full(running.iter()));
        assert!(!one.is_full(running[1..].iter()));
        assert!(!CallPlace::alone(&remote("other")).is_full(running.iter()));
        let command = Effects::command(CommandLine { argv: vec!["ls".to_owned()], cwd: None });
        let command = CallPlace::shared_command(&command);
        assert!(!command.is_full(running.iter()));
        assert!(command.is_full(vec![command.clone(); MAX_PARALLEL_COMMANDS].iter()));
        let other = CallPlace::untouched();
        assert!(!other.is_full(vec![other.clone(); 1000].iter()));
    }
}

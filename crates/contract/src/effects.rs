//! Effects: everything a call would do, declared before it runs.

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{remote::RemoteCall, wording::shell_quote};

/// Resources a call would use. A tool that cannot know them declares the widest effects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Paths it would read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<PathBuf>,
    /// Paths it would create, change or delete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<PathBuf>,
    /// Network access it would use.
    #[serde(default, skip_serializing_if = "Network::is_none")]
    pub network: Network,
    /// The program it would start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// True if the program gets a terminal that can be typed to. Permission to run without a
    /// terminal does not cover running with one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// Time limit that the call names, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// Text it would type to a program that already runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
    /// Changes it would make beyond this machine. For a command, the gate derives them from its
    /// words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outward: Vec<OutwardEffect>,
    /// Tool of an MCP server that it would call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteCall>,
    /// Request of the model to run the program without the sandbox. It is never a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// A model's request to leave the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// Reason in the model's words. It is shown to the user and never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Prefix of commands that the model suggests to allow without further questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefix_rule: Vec<String>,
}

impl Effects {
    /// Returns no effects outside the tool itself.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the widest effects, for tools that cannot know theirs.
    pub fn unknown() -> Self {
        Self { reads: vec!["/".into()], writes: vec!["/".into()], network: Network::Any, ..Self::default() }
    }

    /// Returns the effect of reading one path.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        Self { reads: vec![path.into()], ..Self::default() }
    }

    /// Returns the effect of writing one path.
    pub fn write(path: impl Into<PathBuf>) -> Self {
        Self { writes: vec![path.into()], ..Self::default() }
    }

    /// Returns the effect of starting a program, which may then do anything the sandbox allows.
    pub fn command(command: CommandLine) -> Self {
        Self { command: Some(command), ..Self::default() }
    }

    /// Returns the effect of typing to a running program, which may then do anything its own
    /// sandbox allows.
    pub fn typed(typed: Typed) -> Self {
        Self { typed: Some(typed), ..Self::default() }
    }

    /// Returns the effect of calling a tool of an MCP server.
    pub fn remote(call: RemoteCall) -> Self {
        Self { remote: Some(call), ..Self::default() }
    }

    /// Returns true if a program does the work: one that would be started, or one that is typed to.
    pub fn has_program(&self) -> bool {
        self.command.is_some() || self.typed.is_some()
    }

    /// Returns true if the call may change something. Such a call runs alone, and is not allowed by
    /// default.
    pub fn may_change(&self) -> bool {
        let beyond = self.network != Network::None || !self.outward.is_empty();
        let remote = self.remote.as_ref().is_some_and(RemoteCall::may_change);
        !self.writes.is_empty() || self.has_program() || beyond || remote
    }
}

/// An effect beyond this machine, mildest first. It cannot be undone, and only a sandbox without
/// network access prevents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutwardEffect {
    /// Software from elsewhere comes in: `npm install`, `apt-get install`.
    Install,
    /// A message or a request that changes something: `curl -X POST`, `gh pr create`, mail.
    Send,
    /// Content goes to a repository that others share: `git push`.
    Push,
    /// Commands or files on another machine: `ssh`, `scp`.
    Remote,
    /// Something is released to others: `npm publish`, `docker push`.
    Publish,
    /// Infrastructure changes: `kubectl apply`, `terraform apply`.
    Deploy,
}

impl OutwardEffect {
    /// All outward effects.
    pub const ALL: [Self; 6] =
        [Self::Install, Self::Send, Self::Push, Self::Remote, Self::Publish, Self::Deploy];

    /// Returns the name in rules and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Send => "send",
            Self::Push => "push",
            Self::Remote => "remote",
            Self::Publish => "publish",
            Self::Deploy => "deploy",
        }
    }

    /// Returns the effect with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.name() == name)
    }

    /// Describes the effect for a person: the end of a sentence that begins with "it".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Install => "installs software from elsewhere",
            Self::Send => "sends something to another machine",
            Self::Push => "pushes to a repository that others share",
            Self::Remote => "works on another machine",
            Self::Publish => "publishes something for others",
            Self::Deploy => "changes infrastructure",
        }
    }
}

/// Network access of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None.
    #[default]
    None,
    /// Any host.
    Any,
}

impl Network {
    /// Returns true if no network is used.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde's skip_serializing_if wants")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Removes `.` and `..` from a path, by its text alone. The gate decides by the result and the host
/// opens it, so both mean the same file.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// A program with its arguments, as it would be executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Directory to run in, if the call names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

impl CommandLine {
    /// Formats the command as one line that can be pasted into a shell.
    pub fn display(&self) -> String {
        self.argv.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Text for a program that already runs. Its meaning is unknown, because the program may be a
/// shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// The program, as the model started it.
    pub to: String,
    /// The text.
    pub text: String,
}

impl Typed {
    /// Formats the program and the text on one line, each quoted where a shell would need it.
    pub fn display(&self) -> String {
        format!("{} {}", shell_quote(&self.to), shell_quote(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_so_that_it_can_be_pasted() {
        let argv = ["bash", "-lc", "echo 'hi' && ls", ""].map(str::to_owned).to_vec();
        let line = CommandLine { argv, cwd: None };
        assert_eq!(line.display(), r"bash -lc 'echo '\''hi'\'' && ls' ''");
    }

    #[test]
    fn only_reading_changes_nothing() {
        assert!(!Effects::none().may_change());
        assert!(!Effects::read("/etc/hosts").may_change());
        assert!(Effects::write("a").may_change());
        assert!(Effects::unknown().may_change());
        assert!(Effects { network: Network::Any, ..Effects::none() }.may_change());
    }
}

//! Tells a person how a refused call could be allowed: the flag, the setting or the rule.

use std::path::{Component, Path, PathBuf};

use windlass::{
    ApprovalPolicy, CommandLine, Effects, Network, SandboxMode, mcp::RemoteCall, policy::Class, shell_quote,
};

use crate::{
    confirm::obstacle_to_asking,
    policy::{RefusedCommands, is_forbidden},
    problem::CliProblem,
    setup::ProgramSetup,
};

/// The beginning of a refusal by a person, who knows how to allow it.
const BY_PERSON: &str = "rejected by user";

/// The settings that decide about calls, to tell which of them stands in the way.
pub(crate) struct AllowHints {
    commands: RefusedCommands,
    cwd: PathBuf,
    writable: Vec<PathBuf>,
    network: Network,
    sandbox: SandboxMode,
    approval: ApprovalPolicy,
    /// The reason that nobody is asked.
    obstacle: Option<&'static str>,
    /// The program has the option `--add-dir`.
    has_add_dir: bool,
}

impl AllowHints {
    /// Creates hints for `exec`, or for `call`.
    pub(crate) fn new(setup: &ProgramSetup, no_input: bool, is_exec: bool) -> Result<Self, CliProblem> {
        let config = setup.config();
        let rules = setup.policy(config.approval_policy).walls;
        Ok(Self {
            commands: RefusedCommands::new(setup)?,
            cwd: setup.cwd.clone(),
            writable: rules.writable,
            network: rules.network,
            sandbox: config.sandbox_mode,
            approval: config.approval_policy,
            obstacle: obstacle_to_asking(no_input),
            has_add_dir: is_exec,
        })
    }

    /// Creates hints for a user who asks about everything, without a terminal, in `/w`.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            commands: RefusedCommands::for_tests(),
            cwd: "/w".into(),
            writable: vec!["/more".into()],
            network: Network::None,
            sandbox: SandboxMode::WorkspaceWrite,
            approval: ApprovalPolicy::Untrusted,
            obstacle: Some("there is no terminal"),
            has_add_dir: true,
        }
    }

    /// Returns one sentence about a refused call; none if a person refused it.
    pub(crate) fn hint(&self, effects: &Effects, refusal: &str) -> Option<String> {
        let is_by_person = refusal == BY_PERSON || refusal.starts_with(&format!("{BY_PERSON}: "));
        if is_by_person {
            return None;
        }
        let judgement = effects.command.as_ref().map(|command| self.commands.judge(command));
        if judgement.as_ref().is_some_and(is_forbidden) {
            return Some(
                "no answer and no option allows it; `windlass policy rules` lists your rules".into(),
            );
        }
        let class = judgement.as_ref().map(|judgement| judgement.class);
        let mut ways = match &effects.command {
            Some(_) if effects.escalation.is_some() => self.ways_out(),
            Some(command) => self.ways_for_command(command, class),
            None if effects.typed.is_some() => Vec::new(),
            // A refusal by the policy names the setting itself.
            None if effects.remote.is_some() => {
                let settings = effects.remote.iter().map(RemoteCall::approving_setting);
                settings
                    .filter(|setting| !refusal.contains(setting.as_str()))
                    .map(|setting| format!("`{setting}` in the configuration"))
                    .collect()
            }
            None => self.ways_for_files(effects),
        };
        ways.extend(self.way_to_be_asked());
        let is_asked_each_time = effects.escalation.is_none() && class == Some(Class::Dangerous);
        let no_rule = if is_asked_each_time && !ways.iter().any(|way| way.contains("policy allow")) {
            ways.push(
                "write a rule by hand that names exactly this command (docs/policy.md#rules)".to_owned(),
            );
            "`windlass policy allow` makes no rule for it, because it is asked about each time; "
        } else {
            ""
        };
        (!ways.is_empty()).then(|| format!("{no_rule}to allow it: {}", ways.join(", or ")))
    }

    /// Returns how a command can run without the sandbox.
    fn ways_out(&self) -> Vec<String> {
        let mut ways = Vec::new();
        if self.network == Network::None || self.sandbox == SandboxMode::ReadOnly {
            ways.push(format!("{} if it only needs the network", self.network_options()));
        }
        ways.push("`-s danger-full-access` for no sandbox at all".to_owned());
        ways
    }

    fn ways_for_command(&self, command: &CommandLine, class: Option<Class>) -> Vec<String> {
        let words = self.commands.rule_words(command);
        // Rules are stored in plain text, so none is made from a secret.
        let words = words.filter(|words| !words.iter().any(|word| word.contains("[REDACTED:")));
        let rule = words.map(|words| {
            let line = words.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ");
            format!("`windlass policy allow {}`", shell_quote(&line))
        });
        let is_dangerous = class == Some(Class::Dangerous);
        let policy = match self.approval {
            ApprovalPolicy::Untrusted if !is_dangerous => Some("`-a on-request`"),
            ApprovalPolicy::OnRequest | ApprovalPolicy::OnFailure if !is_dangerous => {
                Some("`-a never`, which asks about nothing")
            }
            _ => None,
        };
        rule.into_iter().chain(policy.map(str::to_owned)).collect()
    }

    fn ways_for_files(&self, effects: &Effects) -> Vec<String> {
        let is_held = matches!(self.sandbox, SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite);
        let mut ways = Vec::new();
        if is_held && effects.network == Network::Any && self.network == Network::None {
            ways.push(self.network_options());
        }
        let written: Vec<_> = effects.writes.iter().map(|path| self.cwd.join(path)).collect();
        let outside = written.iter().find(|path| !self.is_writable(path));
        match outside.and_then(|path| path.parent()) {
            Some(directory) if is_held => ways.push(self.writable_option(directory)),
            None if !written.is_empty() && self.sandbox == SandboxMode::ReadOnly => {
                ways.push("`-s workspace-write`".to_owned());
            }
            _ => {}
        }
        if ways.is_empty() && self.approval == ApprovalPolicy::Untrusted {
            ways.push("`-a on-request`".to_owned());
        }
        ways
    }

    fn is_writable(&self, path: &Path) -> bool {
        if path.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        path.starts_with(&self.cwd) || self.writable.iter().any(|root| path.starts_with(root))
    }

    fn mode_option(&self) -> &'static str {
        if self.sandbox == SandboxMode::ReadOnly { "-s workspace-write " } else { "" }
    }

    fn network_options(&self) -> String {
        format!("`{}-c sandbox_workspace_write.network_access=true`", self.mode_option())
    }

    /// Returns the option that makes a directory writable.
    fn writable_option(&self, directory: &Path) -> String {
        let (mode, directory) = (self.mode_option(), directory.to_string_lossy());
        if self.has_add_dir {
            return format!("`{mode}--add-dir {}`", shell_quote(&directory));
        }
        let setting = format!("sandbox_workspace_write.writable_roots=[\"{directory}\"]");
        format!("`{mode}-c {}`", shell_quote(&setting))
    }

    fn way_to_be_asked(&self) -> Option<String> {
        match (self.approval, self.obstacle) {
            (ApprovalPolicy::Never, _) => Some("`-a on-request` at a terminal, which asks".to_owned()),
            (_, Some(obstacle)) => Some(format!(
                "run it where it can ask, at a terminal or in a session (it did not, because {obstacle})"
            )),
            (_, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass::Escalation;

    use super::*;

    fn command(line: &str) -> Effects {
        let argv = ["bash", "-c", line].map(str::to_owned).to_vec();
        Effects::command(CommandLine { argv, cwd: None })
    }

    const ASKED: &str =
        "run it where it can ask, at a terminal or in a session (it did not, because there is no terminal)";

    #[test]
    fn a_command_is_allowed_by_its_rule_or_by_another_policy() {
        let hints = AllowHints::for_tests();
        let expected = format!("to allow it: `windlass policy allow make`, or `-a on-request`, or {ASKED}");
        assert_eq!(hints.hint(&command("make"), "refused: …"), Some(expected));
        // No rule can allow everything that a shell makes of an unclear text.
        let unclear = format!("to allow it: `-a on-request`, or {ASKED}");
        assert_eq!(hints.hint(&command("$x -rf y"), "refused: …"), Some(unclear));
        let outward = AllowHints { approval: ApprovalPolicy::OnRequest, ..hints };
        let hint = outward.hint(&command("git push"), "refused: …").unwrap();
        assert!(hint.contains("`windlass policy allow 'git push'`, or `-a never`"), "{hint}");
    }

    #[test]
    fn a_command_that_no_rule_is_made_for_says_so_and_what_works() {
        let hint = AllowHints::for_tests().hint(&command("rm -rf x"), "refused: …").unwrap();
        assert_eq!(
            hint,
            format!(
                "`windlass policy allow` makes no rule for it, because it is asked about each time; to allow it: {ASKED}, \
                 or write a rule by hand that names exactly this command (docs/policy.md#rules)"
            )
        );
    }

    #[test]
    fn a_file_is_allowed_by_its_directory() {
        let hints = AllowHints::for_tests();
        let write = |path: &str| hints.hint(&Effects::write(path), "refused: …").unwrap();
        assert_eq!(write("/etc/x.conf"), format!("to allow it: `--add-dir /etc`, or {ASKED}"));
        assert!(write("a/../../x").contains("--add-dir"), "{}", write("a/../../x"));
        assert_eq!(write("/more/x"), format!("to allow it: `-a on-request`, or {ASKED}"));
        let call =
            AllowHints { has_add_dir: false, sandbox: SandboxMode::ReadOnly, ..AllowHints::for_tests() };
        assert_eq!(
            call.hint(&Effects::write("/etc/x"), "").unwrap(),
            format!(
                "to allow it: `-s workspace-write -c 'sandbox_workspace_write.writable_roots=[\"/etc\"]'`, or {ASKED}"
            )
        );
        assert!(call.hint(&Effects::write("x"), "").unwrap().contains("`-s workspace-write`"));
    }

    #[test]
    fn the_network_and_leaving_the_sandbox_have_their_own_options() {
        let hints = AllowHints::for_tests();
        let online = Effects { network: Network::Any, ..Effects::none() };
        let network = "`-c sandbox_workspace_write.network_access=true`";
        assert!(hints.hint(&online, "").unwrap().contains(network));
        let leaving = Effects { escalation: Some(Escalation::default()), ..command("make") };
        let never = AllowHints { approval: ApprovalPolicy::Never, ..hints };
        let hint = never.hint(&leaving, "").unwrap();
        assert!(hint.contains(network) && hint.contains("`-s danger-full-access`"), "{hint}");
        assert!(hint.ends_with("`-a on-request` at a terminal, which asks"), "{hint}");
    }

    #[test]
    fn a_person_who_said_no_is_told_nothing() {
        let hints = AllowHints::for_tests();
        assert_eq!(hints.hint(&command("make"), "rejected by user"), None);
        assert_eq!(hints.hint(&command("make"), "rejected by user: not now"), None);
        let settings = "writing outside of the project; rejected by user approval settings";
        assert!(hints.hint(&Effects::write("/etc/x"), settings).is_some());
    }
}

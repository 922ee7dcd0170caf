//! The table of rulings: the policy alone decides about a command, or a person is asked.

use serde::Serialize;
use windlass_contract::policy::{ApprovalPolicy, SandboxMode};

use crate::Class;

/// The confinement that the model requests for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// As the sandbox mode requires.
    Contained,
    /// Without the sandbox. A request, never a decision.
    Escalated,
}

/// The decision about a command, or who makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It runs as the sandbox mode requires.
    Run,
    /// A person decides; if approved, it runs as the sandbox mode requires.
    Ask,
    /// A person decides; if approved, it runs without the sandbox.
    AskToLeave,
    /// It does not run: a rule forbids it, or the policy rules out the question it would need.
    Refuse,
    /// It does not run, because under this policy a model may not ask for more than the sandbox
    /// allows.
    RefuseWish,
}

/// Returns the ruling for a command.
#[expect(clippy::match_same_arms, reason = "a table is read row by row")]
pub fn ruling(approval: ApprovalPolicy, sandbox: SandboxMode, class: Class, wish: Wish) -> Ruling {
    use ApprovalPolicy::{Never, OnFailure, OnRequest, Untrusted};
    use Class::{Dangerous, Forbidden, Ordinary, Safe};
    use SandboxMode::{DangerFullAccess, External, ReadOnly, WorkspaceWrite};
    use Wish::{Contained, Escalated};

    match (wish, class, approval, sandbox) {
        (_, Forbidden, _, _) => Ruling::Refuse,

        // The model may request this only under `on-request`; a safe command is no exception.
        (Escalated, _, Untrusted | OnFailure | Never, _) => Ruling::RefuseWish,
        (Escalated, _, OnRequest, ReadOnly | WorkspaceWrite) => Ruling::AskToLeave,
        // Without a sandbox of ours there is nothing to leave.
        (Escalated, Dangerous, OnRequest, DangerFullAccess | External) => Ruling::Ask,
        (Escalated, Safe | Ordinary, OnRequest, DangerFullAccess | External) => Ruling::Run,

        (Contained, Safe, _, _) => Ruling::Run,
        (Contained, Ordinary, Untrusted, _) => Ruling::Ask,
        (Contained, Ordinary, OnFailure | OnRequest | Never, _) => Ruling::Run,
        (Contained, Dangerous, Never, _) => Ruling::Refuse,
        (Contained, Dangerous, Untrusted | OnFailure | OnRequest, _) => Ruling::Ask,
    }
}

/// Returns the ruling for a command with effects beyond the machine that must be asked about. If it
/// would simply run, a person decides, provided that the policy asks beforehand. This does not
/// depend on a sandbox.
pub fn ruling_outward(approval: ApprovalPolicy, class: Class, ruling: Ruling) -> Ruling {
    match (ruling, class, approval) {
        (Ruling::Run, Class::Ordinary, ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest) => Ruling::Ask,
        _ => ruling,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy, sandbox, then the rulings for safe, ordinary, dangerous and forbidden commands,
    /// contained and escalated.
    const CELLS: &str = "
        untrusted   read-only           Run Ask Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        untrusted   workspace-write     Run Ask Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        untrusted   danger-full-access  Run Ask Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        untrusted   external-sandbox    Run Ask Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        on-failure  read-only           Run Run Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        on-failure  workspace-write     Run Run Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        on-failure  danger-full-access  Run Run Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        on-failure  external-sandbox    Run Run Ask    Refuse  RefuseWish RefuseWish RefuseWish Refuse
        on-request  read-only           Run Run Ask    Refuse  AskToLeave AskToLeave AskToLeave Refuse
        on-request  workspace-write     Run Run Ask    Refuse  AskToLeave AskToLeave AskToLeave Refuse
        on-request  danger-full-access  Run Run Ask    Refuse  Run        Run        Ask        Refuse
        on-request  external-sandbox    Run Run Ask    Refuse  Run        Run        Ask        Refuse
        never       read-only           Run Run Refuse Refuse  RefuseWish RefuseWish RefuseWish Refuse
        never       workspace-write     Run Run Refuse Refuse  RefuseWish RefuseWish RefuseWish Refuse
        never       danger-full-access  Run Run Refuse Refuse  RefuseWish RefuseWish RefuseWish Refuse
        never       external-sandbox    Run Run Refuse Refuse  RefuseWish RefuseWish RefuseWish Refuse
    ";

    #[test]
    fn every_cell_of_the_table_is_as_it_was_decided() {
        let mut cells = 0;
        for row in CELLS.lines().map(str::trim).filter(|row| !row.is_empty()) {
            let words: Vec<_> = row.split_whitespace().collect();
            let approval: ApprovalPolicy = serde_json::from_value(words[0].into()).unwrap();
            let sandbox: SandboxMode = serde_json::from_value(words[1].into()).unwrap();
            let classes = [Class::Safe, Class::Ordinary, Class::Dangerous, Class::Forbidden];
            let wishes = [Wish::Contained, Wish::Escalated];
            let columns = wishes.into_iter().flat_map(|wish| classes.map(|class| (class, wish)));
            for ((class, wish), expected) in columns.zip(&words[2..]) {
                let found = format!("{:?}", ruling(approval, sandbox, class, wish));
                assert_eq!(found, *expected, "{row}: {class:?}, {wish:?}");
                cells += 1;
            }
        }
        assert_eq!(cells, 128);
    }
}

//! `windlass policy explain`: one command in detail.

use serde_json::json;
use windlass::{
    CommandLine, Network, Policy, SandboxMode,
    policy::{Class, Judgement, Part, Ruling},
};

use super::{LineJudge, why};
use crate::{
    exit::ProgramExit,
    output::{print, print_text},
    problem::CliProblem,
    screen::visible,
    setup::ProgramSetup,
};

pub(super) fn run(setup: &ProgramSetup, command: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let judge = LineJudge::new(setup)?;
    let (ruling, judgement) = judge.line_in(&setup.cwd, command);
    let mode = judge.sandbox;
    let held = held(&setup.policy(judge.approval), &judgement);
    if json {
        let value = json!({
            "command": command,
            "approval_policy": judge.approval.name(),
            "sandbox_mode": mode.name(),
            "decision": ruling,
            "sandbox": held,
            "judgement": judgement,
        });
        print(&format!("{value:#}\n"))?;
        return Ok(ProgramExit::Done);
    }
    let why = why(ruling, &judgement);
    let mut out = format!("{}: {}\n", says(ruling, judgement.class, mode), visible(&why));
    for (at, part) in judgement.parts.iter().enumerate() {
        out.push_str(&format!("\n{}. {}\n", at + 1, described(part)));
    }
    if !judgement.unclear.is_empty() {
        out.push_str("\nUnclear, so it may do more than that:\n");
        judgement
            .unclear
            .iter()
            .for_each(|unclear| out.push_str(&format!("- {}\n", visible(&unclear.to_string()))));
    }
    out.push_str(&format!("\nApproval policy: {}\nSandbox: {held}\n", judge.approval.name()));
    for effect in &judgement.outward {
        out.push_str(&format!("Beyond this machine: {} (it {})\n", effect.name(), effect.in_words()));
    }
    print_text(&out)?;
    Ok(ProgramExit::Done)
}

fn says(ruling: Ruling, class: Class, mode: SandboxMode) -> &'static str {
    match (ruling, class, mode) {
        (Ruling::Run, Class::Safe, _) => "runs without a question",
        (Ruling::Run, _, SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite) => {
            "runs without a question, confined only by the sandbox"
        }
        (Ruling::Run, _, SandboxMode::External) => {
            "runs without a question, confined only by an external sandbox"
        }
        (Ruling::Run, _, SandboxMode::DangerFullAccess) => "runs without a question and without a sandbox",
        (Ruling::Ask | Ruling::AskToLeave, ..) => "a person is asked",
        (Ruling::Refuse | Ruling::RefuseWish, Class::Forbidden, _) => "refused",
        (Ruling::Refuse | Ruling::RefuseWish, ..) => "refused: it needs approval, and no question is allowed",
    }
}

fn described(part: &Part) -> String {
    let line = CommandLine { argv: part.argv.clone(), cwd: None }.display();
    let via = if part.via.is_empty() { String::new() } else { format!(" (through {})", part.via.join(", ")) };
    let facts: String = part.facts.iter().map(|fact| format!("\n   {}", visible(fact))).collect();
    let line = if line.is_empty() { "(no program)".to_owned() } else { visible(&line) };
    format!("{line}{via}\n   {}: {}{facts}", part.class.name(), visible(&part.reason.to_string()))
}

/// Describes the confinement of the command once it runs.
fn held(policy: &Policy, judgement: &Judgement) -> String {
    let network = match policy.walls.network {
        Network::None => "no network",
        Network::Any => "the network may be used",
    };
    let what = match policy.sandbox {
        SandboxMode::ReadOnly => "nothing may be written, no network".to_owned(),
        SandboxMode::WorkspaceWrite => {
            let roots = [&policy.cwd].into_iter().chain(&policy.walls.writable);
            let roots: String =
                roots.map(|root| format!("`{}`, ", visible(&root.to_string_lossy()))).collect();
            format!("{roots}and a private temporary directory may be written, {network}")
        }
        SandboxMode::DangerFullAccess => "none, it has all rights of the user".to_owned(),
        SandboxMode::External => {
            format!("none of its own; as configured, the external sandbox means: {network}")
        }
    };
    let leaves = if judgement.escape_sandbox { "; a rule lets this command run outside it" } else { "" };
    format!("{}: {what}{leaves}", policy.sandbox.name())
}

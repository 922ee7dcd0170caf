//! Decides about calls without a command by the files they read and write.

use std::path::Path;

use windlass_contract::{
    Effects,
    effects::{Network, normal},
    grant::{Confinement, SandboxRules},
    policy::ApprovalPolicy,
};
use windlass_policy::{read_shows_secret, search_shows_secret};

use super::GateDecision;

/// Decides about a call without a command. The host enforces read restrictions. With the policy
/// `untrusted`, reading possible secrets needs a question, as for a command. Writes inside of the
/// writable roots need none; all others do. `cause` is the reason that none may be asked.
pub(super) fn decide(
    effects: &Effects,
    confinement: Confinement,
    approval: ApprovalPolicy,
    cwd: &Path,
    cause: &str,
) -> GateDecision {
    let asked = |confinement, reason: &str| GateDecision::Ask {
        confinement,
        reason: reason.to_owned(),
        unclear: Vec::new(),
    };
    if approval == ApprovalPolicy::Untrusted
        && let Some(secret) = secret_in(effects, &confinement, cwd)
    {
        return asked(confinement, &secret);
    }
    let wary = effects.may_change() && approval == ApprovalPolicy::Untrusted;
    let Confinement::Sandboxed(walls) = &confinement else {
        if wary {
            return asked(confinement, "the approval policy is `untrusted`");
        }
        return GateDecision::Run { confinement, why: "the sandbox mode allows everything".to_owned() };
    };
    let outside: Vec<_> = effects.writes.iter().filter(|path| !is_inside(path, walls, cwd)).collect();
    let online = effects.network == Network::Any && walls.network == Network::None;
    let wider = || {
        let writable =
            walls.writable.iter().cloned().chain(outside.iter().map(|path| normal(&cwd.join(path))));
        let network = if online { Network::Any } else { walls.network };
        Confinement::Sandboxed(SandboxRules { writable: writable.collect(), network, ..walls.clone() })
    };
    match (outside.is_empty() && !online, approval) {
        (true, _) if wary => asked(confinement, "the approval policy is `untrusted`"),
        (true, _) => GateDecision::Run { confinement, why: "inside what the sandbox mode allows".to_owned() },
        (false, ApprovalPolicy::Never) if online => GateDecision::Refuse {
            reason: "refused: the network is off, and nobody may be asked; only the user can allow it, with \
                     `sandbox_workspace_write.network_access` or `--sandbox danger-full-access`"
                .to_owned(),
        },
        (false, ApprovalPolicy::Never) if walls.writable.is_empty() => {
            GateDecision::Refuse { reason: format!("writing is not allowed in a read-only sandbox; {cause}") }
        }
        (false, ApprovalPolicy::Never) => {
            GateDecision::Refuse { reason: format!("writing outside of the project; {cause}") }
        }
        (false, _) if online => asked(wider(), "it uses the network, which is off"),
        (false, _) => asked(wider(), "it writes outside of what the sandbox mode allows"),
    }
}

/// Returns the reason if a call may show a secret. In a sandbox, a search skips hidden files;
/// without one it may read a whole home directory.
fn secret_in(effects: &Effects, confinement: &Confinement, cwd: &Path) -> Option<String> {
    let searched = |path: &Path| match confinement {
        Confinement::Sandboxed(_) => None,
        _ => search_shows_secret(path, cwd),
    };
    effects.reads.iter().find_map(|path| read_shows_secret(path, cwd).or_else(|| searched(path)))
}

/// Returns true if a path lies in a writable directory, by its name alone: the host checks links.
fn is_inside(path: &Path, walls: &SandboxRules, cwd: &Path) -> bool {
    let path = normal(&cwd.join(path));
    walls.writable.iter().any(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: &str = "rejected by user approval settings";

    fn decided(effects: &Effects, approval: ApprovalPolicy) -> String {
        let walls = SandboxRules { writable: vec!["/w".into()], ..SandboxRules::default() };
        match decide(effects, Confinement::Sandboxed(walls), approval, Path::new("/w"), CAUSE) {
            GateDecision::Run { confinement: Confinement::Sandboxed(walls), .. } => {
                format!("run {:?}", walls.writable)
            }
            GateDecision::Ask { confinement: Confinement::Sandboxed(walls), .. } => {
                format!("ask {:?}", walls.writable)
            }
            GateDecision::Refuse { reason } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn writes_inside_need_no_question_and_others_do() {
        use ApprovalPolicy::{Never, OnFailure, OnRequest, Untrusted};
        for approval in [OnFailure, OnRequest, Never] {
            assert_eq!(decided(&Effects::read("/etc/hosts"), approval), r#"run ["/w"]"#);
            assert_eq!(decided(&Effects::write("a/../b"), approval), r#"run ["/w"]"#);
        }
        assert_eq!(decided(&Effects::read("/etc/hosts"), Untrusted), r#"run ["/w"]"#);
        assert_eq!(decided(&Effects::write("a"), Untrusted), r#"ask ["/w"]"#);
        assert_eq!(decided(&Effects::write("../x"), OnRequest), r#"ask ["/w", "/x"]"#);
        assert_eq!(
            decided(&Effects::write("/w/../x"), Never),
            "writing outside of the project; rejected by user approval settings"
        );
    }

    #[test]
    fn reading_a_secret_is_asked_about_where_a_command_would_be() {
        use ApprovalPolicy::{OnRequest, Untrusted};
        let open = |path: &str, approval| {
            let decision = decide(
                &Effects::read(path),
                Confinement::Unconfined,
                approval,
                Path::new("/home/u/p"),
                CAUSE,
            );
            matches!(decision, GateDecision::Ask { .. })
        };
        for path in
            ["/etc/shadow", "/home/u/.ssh/id_rsa", "../.aws/credentials", ".env", "/home/u/.zsh_history"]
        {
            assert_eq!(decided(&Effects::read(path), Untrusted), r#"ask ["/w"]"#, "{path}");
            assert_eq!(decided(&Effects::read(path), OnRequest), r#"run ["/w"]"#, "the host holds {path}");
            assert!(open(path, Untrusted) && !open(path, OnRequest), "{path}");
        }
        assert!(open("/home/u", Untrusted) && open("..", Untrusted), "all of a home directory");
        assert!(!open("src/main.rs", Untrusted) && !open(".", Untrusted));
    }

    #[test]
    fn a_tool_that_cannot_tell_is_never_let_through_by_itself() {
        assert_eq!(decided(&Effects::unknown(), ApprovalPolicy::OnRequest), r#"ask ["/w", "/"]"#);
        assert!(
            decided(&Effects::unknown(), ApprovalPolicy::Never).starts_with("refused: the network is off")
        );
    }
}

//! Computes the access that a second attempt needs after the sandbox blocked the first.

use windlass_contract::{
    Denial,
    approval::Beyond,
    effects::Network,
    grant::{Confinement, SandboxRules},
    host::{Layer, Proof},
};

/// Widens the rules just enough for the denied operations. Returns [`Confinement::Unconfined`] if
/// wider rules do not help, and `None` if nothing does. Only the first of several directories
/// becomes writable: paths come from the output of the program, and approving one must not grant
/// another.
pub(super) fn escalate(walls: &SandboxRules, denials: &[Denial]) -> Option<Confinement> {
    let mut wider = walls.clone();
    for denial in grantable(denials) {
        if denial.layer == Layer::SystemCall {
            return Some(Confinement::Unconfined);
        }
        let first = denial.need.writes.iter().find(|path| !walls.writable.contains(path));
        wider.writable.extend(first.cloned());
        if denial.need.network == Network::Any {
            wider.network = Network::Any;
        }
    }
    (wider != *walls).then_some(Confinement::Sandboxed(wider))
}

/// Returns the denials that an approval would lift: system calls, the network, and the first
/// directory that may be granted. Denials that name nothing to grant are left out: protected names,
/// directories that are too wide, limits and setup failures.
fn grantable(denials: &[Denial]) -> Vec<&Denial> {
    let sure = || denials.iter().filter(|denial| denial.proof != Proof::Suspected);
    let of_layer = |layer| sure().filter(move |denial| denial.layer == layer);
    let needs_network = |denial: &&Denial| denial.need.network == Network::Any;
    let directory = of_layer(Layer::Files).find(|denial| !denial.need.writes.is_empty());
    of_layer(Layer::SystemCall)
        .chain(directory)
        .chain(of_layer(Layer::Network).filter(needs_network))
        .collect()
}

/// Returns the access that one confinement allows beyond another.
pub(super) fn extra_access(usual: &Confinement, asked: &Confinement) -> Beyond {
    match (usual, asked) {
        (Confinement::Sandboxed(usual), Confinement::Sandboxed(asked)) if usual != asked => Beyond::Wider {
            writable: asked.writable.iter().filter(|path| !usual.writable.contains(path)).cloned().collect(),
            network: usual.network != asked.network,
        },
        (Confinement::Sandboxed(_), Confinement::Unconfined) => Beyond::Everything,
        _ => Beyond::Nothing,
    }
}

/// Returns the reason for the second question. A denial known only from the program's output is not
/// reported as observed.
pub(super) fn reason(denials: &[Denial]) -> String {
    let reasons: Vec<_> = grantable(denials)
        .into_iter()
        .map(|Denial { layer, what, rule, proof, .. }| match (proof, layer) {
            (Proof::Verified, Layer::Files) => format!(
                "its output says that `{what}` could not be written, and the sandbox does not allow writing there"
            ),
            (Proof::Verified, Layer::Network) => format!("{rule}, and its output names `{what}`"),
            _ => format!("the sandbox blocked `{what}` ({rule})"),
        })
        .collect();
    format!("{}; approving re-runs the command from the start", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use windlass_contract::Effects;

    use super::*;

    fn denial(layer: Layer, need: Effects) -> Denial {
        Denial {
            layer,
            what: "x".into(),
            rule: "r".into(),
            need,
            proof: Proof::Verified,
            remedy: String::new(),
        }
    }

    fn usual() -> SandboxRules {
        SandboxRules { writable: vec!["/w".into()], ..SandboxRules::default() }
    }

    #[test]
    fn walls_are_moved_just_as_far_as_is_needed() {
        let online = Effects { network: Network::Any, ..Effects::none() };
        let denials = [denial(Layer::Files, Effects::write("/etc")), denial(Layer::Network, online)];
        let wider = escalate(&usual(), &denials).unwrap();
        let expected = SandboxRules {
            writable: vec!["/w".into(), "/etc".into()],
            network: Network::Any,
            ..SandboxRules::default()
        };
        assert_eq!(wider, Confinement::Sandboxed(expected));
        assert_eq!(
            extra_access(&Confinement::Sandboxed(usual()), &wider),
            Beyond::Wider { writable: vec!["/etc".into()], network: true }
        );
    }

    #[test]
    fn one_directory_is_offered_at_a_time_and_what_is_only_printed_is_told_as_such() {
        let file =
            |path: &str| Denial { what: format!("{path}/x"), ..denial(Layer::Files, Effects::write(path)) };
        let denials = [denial(Layer::Files, Effects::none()), file("/d/one"), file("/d/two")];
        let Some(Confinement::Sandboxed(wider)) = escalate(&usual(), &denials) else { panic!("no walls") };
        assert_eq!(wider.writable, [Path::new("/w"), Path::new("/d/one")]);
        assert_eq!(
            reason(&denials),
            "its output says that `/d/one/x` could not be written, and the sandbox does not allow writing there; \
             approving re-runs the command from the start"
        );
        let online = Effects { network: Network::Any, ..Effects::none() };
        let named = Denial { rule: "the network is off".into(), ..denial(Layer::Network, online) };
        let told = reason(std::slice::from_ref(&named));
        assert!(told.starts_with("the network is off, and its output names `x`; "), "{told}");
        let told = reason(&[Denial { proof: Proof::Observed, ..named }]);
        assert!(told.starts_with("the sandbox blocked `x` (the network is off); "), "{told}");
    }

    #[test]
    fn what_no_wall_can_allow_needs_none_at_all_and_limits_stay() {
        let call = escalate(&usual(), &[denial(Layer::SystemCall, Effects::none())]);
        assert_eq!(call, Some(Confinement::Unconfined));
        for layer in [Layer::Limit, Layer::Setup] {
            assert_eq!(escalate(&usual(), &[denial(layer, Effects::write("/etc"))]), None);
        }
    }

    #[test]
    fn a_guess_and_a_denial_that_names_nothing_to_grant_move_no_wall() {
        let guess = Denial { proof: Proof::Suspected, ..denial(Layer::Files, Effects::write("/etc")) };
        for denial in [guess, denial(Layer::Files, Effects::none()), denial(Layer::Network, Effects::none())]
        {
            assert_eq!(escalate(&usual(), std::slice::from_ref(&denial)), None, "{denial:?}");
        }
    }
}

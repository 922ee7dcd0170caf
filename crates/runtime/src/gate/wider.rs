//! What a second attempt would have to be allowed, after the sandbox has stopped the first.

use windlass_contract::{
    Denial,
    approval::Beyond,
    effects::Network,
    grant::{Confinement, SandboxRules},
    host::{Layer, Proof},
};

/// The walls moved outwards just so far that what was stopped would pass; no walls at all where moving them does not
/// help; `None` if nothing would.
pub(super) fn walls(walls: &SandboxRules, denials: &[Denial]) -> Option<Confinement> {
    let mut wider = walls.clone();
    for denial in denials.iter().filter(|denial| denial.proof != Proof::Suspected) {
        match denial.layer {
            // A limit is no wall, and what could not be put up is never left out.
            Layer::Limit | Layer::Setup => {}
            Layer::SystemCall => return Some(Confinement::Unconfined),
            // One that names nothing to grant must not be asked about: a protected name, or a place that is too wide.
            Layer::Files | Layer::Network => {
                let need = &denial.need;
                let missing = need.writes.iter().filter(|path| !walls.writable.contains(path));
                wider.writable.extend(missing.cloned());
                if need.network == Network::Any {
                    wider.network = Network::Any;
                }
            }
        }
    }
    wider.writable.dedup();
    (wider != *walls).then_some(Confinement::Sandboxed(wider))
}

/// What one confinement allows beyond another.
pub(super) fn beyond(usual: &Confinement, asked: &Confinement) -> Beyond {
    match (usual, asked) {
        (Confinement::Sandboxed(usual), Confinement::Sandboxed(asked)) if usual != asked => Beyond::Wider {
            writable: asked.writable.iter().filter(|path| !usual.writable.contains(path)).cloned().collect(),
            network: usual.network != asked.network,
        },
        (Confinement::Sandboxed(_), Confinement::Unconfined) => Beyond::Everything,
        _ => Beyond::Nothing,
    }
}

/// Why there is a second question.
pub(super) fn reason(denials: &[Denial]) -> String {
    let told = denials.iter().filter(|denial| !matches!(denial.layer, Layer::Limit | Layer::Setup));
    let told: Vec<_> = told
        .map(|denial| {
            let sure = match denial.proof {
                Proof::Observed | Proof::Verified => "",
                Proof::Suspected => "; guessed from its output",
            };
            format!("`{}` ({}{sure})", denial.what, denial.rule)
        })
        .collect();
    format!("the sandbox blocked {}; approving re-runs the command from the start", told.join(", "))
}

#[cfg(test)]
mod tests {
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
        let wider = walls(&usual(), &denials).unwrap();
        let expected = SandboxRules {
            writable: vec!["/w".into(), "/etc".into()],
            network: Network::Any,
            ..SandboxRules::default()
        };
        assert_eq!(wider, Confinement::Sandboxed(expected));
        assert_eq!(
            beyond(&Confinement::Sandboxed(usual()), &wider),
            Beyond::Wider { writable: vec!["/etc".into()], network: true }
        );
    }

    #[test]
    fn what_no_wall_can_allow_needs_none_at_all_and_limits_stay() {
        let call = walls(&usual(), &[denial(Layer::SystemCall, Effects::none())]);
        assert_eq!(call, Some(Confinement::Unconfined));
        for layer in [Layer::Limit, Layer::Setup] {
            assert_eq!(walls(&usual(), &[denial(layer, Effects::write("/etc"))]), None);
        }
    }

    #[test]
    fn a_guess_and_a_denial_that_names_nothing_to_grant_move_no_wall() {
        let guess = Denial { proof: Proof::Suspected, ..denial(Layer::Files, Effects::write("/etc")) };
        for denial in [guess, denial(Layer::Files, Effects::none()), denial(Layer::Network, Effects::none())]
        {
            assert_eq!(walls(&usual(), std::slice::from_ref(&denial)), None, "{denial:?}");
        }
    }
}

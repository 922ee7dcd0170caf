//! Whether a command of some class is run, asked about or refused, for each approval policy.

use serde::Serialize;
use windlass_contract::ApprovalPolicy;

use crate::Class;

/// What happens to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs, in the sandbox if there is one.
    Run,
    /// A person is asked.
    Ask,
    /// It is refused.
    Refuse,
}

impl Class {
    /// What happens to a command of this class. The sandbox mode does not matter: it says how tightly a command is held
    /// once it runs.
    pub fn decide(self, policy: ApprovalPolicy) -> Decision {
        match (self, policy) {
            (Self::Ordinary, ApprovalPolicy::Untrusted) => Decision::Ask,
            (Self::Safe | Self::Ordinary, _) => Decision::Run,
            (Self::Dangerous, ApprovalPolicy::Never) | (Self::Forbidden, _) => Decision::Refuse,
            (Self::Dangerous, _) => Decision::Ask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_an_answer_under_every_policy() {
        use ApprovalPolicy::{Never, OnFailure, OnRequest, Untrusted};
        use Decision::{Ask, Refuse, Run};
        let table = [
            (Class::Safe, [Run, Run, Run, Run]),
            (Class::Ordinary, [Ask, Run, Run, Run]),
            (Class::Dangerous, [Ask, Ask, Ask, Refuse]),
            (Class::Forbidden, [Refuse, Refuse, Refuse, Refuse]),
        ];
        for (class, answers) in table {
            assert_eq!([Untrusted, OnFailure, OnRequest, Never].map(|policy| class.decide(policy)), answers);
        }
    }
}

//! Classifies how a command ended, from facts alone. Its output is not read.

use std::{error::Error as _, io};

use windlass_contract::{
    Denial, ToolError,
    host::{Exit, HostError, Layer, Proof},
    insight::ExitClass,
    outcome::Facts,
    verdict::Criteria,
};

/// Exit codes of a shell that cannot find or cannot execute a program.
pub(crate) const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// Returns the class of the observed facts, or `None` if no command has ended.
pub(crate) fn class_of(facts: &Facts, criteria: &Criteria, denials: &[Denial]) -> Option<ExitClass> {
    let exit = facts.exit()?;
    let observed = |denial: &&Denial| denial.proof != Proof::Suspected;
    let over_memory = |denial: &Denial| denial.layer == Layer::Limit && denial.what == "memory";
    Some(match exit {
        Exit::Code(0) => ExitClass::Ok,
        Exit::Code(1) if criteria.one_is_an_answer => ExitClass::Ok,
        Exit::TimedOut => ExitClass::TimedOut,
        Exit::Cancelled => ExitClass::Cancelled,
        _ if denials.iter().filter(observed).any(over_memory) => ExitClass::KilledForMemory,
        _ if denials.iter().any(|denial| observed(&denial)) => ExitClass::Denied,
        Exit::Code(NOT_FOUND) => ExitClass::NotFound,
        Exit::Code(NOT_EXECUTABLE) => ExitClass::NotExecutable,
        Exit::Code(_) => ExitClass::Failed,
        Exit::Signal(_) => ExitClass::Signalled,
    })
}

/// Returns the class of a command that could not be started, or `None` for any other error.
pub(crate) fn unstarted(error: &ToolError) -> Option<ExitClass> {
    match error.source()?.downcast_ref::<HostError>()? {
        HostError::Spawn { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Some(ExitClass::NotFound)
        }
        HostError::Spawn { .. } => Some(ExitClass::NotExecutable),
        HostError::NotHeld { .. }
        | HostError::NotApart { .. }
        | HostError::Confine { .. }
        | HostError::NotGranted { .. }
        | HostError::TimeUsedUp { .. }
        | HostError::CpuUsedUp { .. } => Some(ExitClass::Denied),
        HostError::EmptyCommand | HostError::Nul | HostError::Cwd { .. } | HostError::Wait { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Effects, report::ProcessReport};

    use super::*;

    fn class(exit: Exit, denials: &[(Layer, &str, Proof)]) -> Option<ExitClass> {
        let facts = Facts::Command(Box::new(ProcessReport::new(exit)));
        let denials: Vec<_> = denials
            .iter()
            .map(|(layer, what, proof)| Denial {
                layer: *layer,
                what: (*what).into(),
                rule: String::new(),
                need: Effects::none(),
                proof: *proof,
                remedy: String::new(),
            })
            .collect();
        class_of(&facts, &Criteria::default(), &denials)
    }

    #[test]
    fn every_end_has_its_class() {
        let memory = [(Layer::Limit, "memory", Proof::Observed)];
        let socket = [(Layer::Network, "/run/x", Proof::Observed)];
        let guess = [(Layer::Files, "/etc", Proof::Suspected)];
        for (exit, denials, expected) in [
            (Exit::Code(0), &[][..], ExitClass::Ok),
            (Exit::Code(0), &socket, ExitClass::Ok),
            (Exit::Code(1), &[], ExitClass::Failed),
            (Exit::Code(1), &guess, ExitClass::Failed),
            (Exit::Code(1), &socket, ExitClass::Denied),
            (Exit::Signal(9), &memory, ExitClass::KilledForMemory),
            (Exit::Code(127), &[], ExitClass::NotFound),
            (Exit::Code(126), &[], ExitClass::NotExecutable),
            (Exit::Signal(11), &[], ExitClass::Signalled),
            (Exit::TimedOut, &[], ExitClass::TimedOut),
            (Exit::Cancelled, &[], ExitClass::Cancelled),
        ] {
            assert_eq!(class(exit, denials), Some(expected), "{exit:?}");
        }
        assert_eq!(class_of(&Facts::None, &Criteria::default(), &[]), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_one_that_cannot_run() {
        let spawn = |kind: io::ErrorKind| {
            let error = HostError::Spawn { program: "x".into(), source: kind.into() };
            unstarted(&ToolError::failed("no").with_source(error))
        };
        assert_eq!(spawn(io::ErrorKind::NotFound), Some(ExitClass::NotFound));
        assert_eq!(spawn(io::ErrorKind::PermissionDenied), Some(ExitClass::NotExecutable));
        assert_eq!(unstarted(&ToolError::failed("no")), None);
    }
}

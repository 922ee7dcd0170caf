//! The rule that would let a refused command pass.

use std::path::PathBuf;

use windlass::{
    CommandLine,
    policy::{Class, Judgement, Wish, offer, suggest},
};

use super::LineJudge;
use crate::{problem::CliProblem, setup::ProgramSetup};

/// Judges refused commands once more, to tell how they could be allowed.
pub(crate) struct RefusedCommands {
    judge: LineJudge,
    cwd: PathBuf,
}

impl RefusedCommands {
    pub(crate) fn new(setup: &ProgramSetup) -> Result<Self, CliProblem> {
        Ok(Self { judge: LineJudge::quiet(setup)?, cwd: setup.cwd.clone() })
    }

    /// Creates a judge without rules.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self { judge: LineJudge::for_tests(), cwd: "/w".into() }
    }

    /// Returns the judgement of a command.
    pub(crate) fn judge(&self, command: &CommandLine) -> Judgement {
        self.judge.command_in(&self.cwd, &self.placed(command)).1
    }

    /// Returns the first words that a rule must name to allow exactly this kind of command in the
    /// sandbox; none if no rule can.
    pub(crate) fn rule_words(&self, command: &CommandLine) -> Option<Vec<String>> {
        let command = self.placed(command);
        let suggested = suggest(std::slice::from_ref(&command), &[]);
        let [only] = &suggested[..] else { return None };
        self.judge
            .in_surroundings(&self.cwd, |surroundings| {
                offer(&command, &self.judge.rules, &[], Wish::Contained, surroundings)
            })
            .map(|_offer| only.prefix.clone())
    }

    fn placed(&self, command: &CommandLine) -> CommandLine {
        let cwd = command.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd));
        CommandLine { argv: command.argv.clone(), cwd: Some(cwd) }
    }
}

/// Returns true if a rule forbids the command, so that no answer can allow it.
pub(crate) fn is_forbidden(judgement: &Judgement) -> bool {
    judgement.class == Class::Forbidden
}

//! Judges command lines: shell parsing, harmless and dangerous commands, rules. Pure: no I/O, no
//! clock, no environment.
//!
//! The text of a command is never the security boundary; the sandbox is. The text only decides
//! whether a question can be skipped, so a command that is not understood is never safe.
//!
//! ```
//! use windlass_contract::effects::CommandLine;
//! use windlass_policy::{Class, RuleFile, Rules, Trust, judge};
//!
//! # fn main() -> Result<(), windlass_policy::RuleError> {
//! let shell = |line: &str| CommandLine { argv: ["bash", "-lc", line].map(str::to_owned).to_vec(), cwd: None };
//! let text = r#"
//!     [[rule]]
//!     prefix = ["cargo", ["check", "test"]]
//!     decision = "allow"
//! "#;
//! let rules = Rules::load(&[RuleFile { name: "my.toml", text, trust: Trust::User }])?;
//!
//! assert_eq!(judge(&shell("git status | head -5"), &rules).class, Class::Safe);
//! assert_eq!(judge(&shell("cargo test 2>&1 | tail -20"), &rules).class, Class::Safe);
//! assert_eq!(judge(&shell("cargo test $(curl example.org)"), &rules).class, Class::Ordinary);
//! assert_eq!(judge(&shell("sudo git reset --hard"), &rules).class, Class::Dangerous);
//! assert_eq!(judge(&shell("rm -rf \"$HOME\""), &rules).class, Class::Forbidden);
//! # Ok(())
//! # }
//! ```

mod answer;
mod danger;
mod judge;
mod judgement;
mod known;
mod matrix;
mod offer;
mod outward;
mod path;
mod rules;
mod secret;
mod shell;
mod single_program;
mod suggest;
mod wrapper;

pub use answer::exit_one_means_no;
pub use danger::{CommandDanger, DangerSeverity};
pub use judge::{judge, judge_in, judge_typed};
pub use judgement::{Class, FileAccess, FileUse, Judgement, Part, Reason};
pub use matrix::{Ruling, Wish, ruling, ruling_outward};
pub use offer::{may_hold_for_session, offer};
pub use rules::{
    CommandRule, RuleDecision, RuleError, RuleFault, RuleFile, RuleMatch, RuleProblem, Rules, Surroundings,
    Trust,
};
pub use secret::{read_shows_secret, search_shows_secret};
pub use shell::{UnclearKind, UnclearText};
pub use single_program::single_program;
pub use suggest::{RuleSuggestion, suggest};

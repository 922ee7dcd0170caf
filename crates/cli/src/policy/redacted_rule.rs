//! A rule as it may be shown: an approved command may contain a secret.

use windlass::{
    CommandLine, Effects,
    clean::Secrets,
    policy::{CommandRule, RuleMatch},
};

use crate::redact::own;

/// Returns the rule without the secrets in its words.
pub(super) fn redacted(rule: &CommandRule) -> CommandRule {
    redacted_by(own(), rule)
}

fn redacted_by(secrets: &Secrets, rule: &CommandRule) -> CommandRule {
    let clean = |word: &String| secrets.clean(word).into_owned();
    let matches = match &rule.matches {
        RuleMatch::Argv(argv) => RuleMatch::Argv(clean_words(secrets, argv)),
        RuleMatch::Prefix(prefix) if prefix.iter().all(|names| names.len() == 1) => {
            let words = clean_words(secrets, &prefix.concat());
            RuleMatch::Prefix(words.into_iter().map(|word| vec![word]).collect())
        }
        RuleMatch::Prefix(prefix) => {
            RuleMatch::Prefix(prefix.iter().map(|names| names.iter().map(clean).collect()).collect())
        }
        RuleMatch::Effect(effect) => RuleMatch::Effect(*effect),
    };
    CommandRule { matches, justification: rule.justification.as_ref().map(clean), ..rule.clone() }
}

/// Cleans each word, in the context of those before it.
fn clean_words(secrets: &Secrets, argv: &[String]) -> Vec<String> {
    let effects = Effects::command(CommandLine { argv: argv.to_vec(), cwd: None });
    secrets.clean_effects(&effects).into_inner().command.map(|command| command.argv).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use windlass::policy::{RuleFile, Rules, Trust};

    use super::*;

    #[test]
    fn no_word_of_a_rule_shows_a_secret() {
        let text = "[[rule]]\nargv = [\"curl\", \"-u\", \"bob:q8Zk2mPv0Lr7\"]\ndecision = \"allow\"\n\
                    [[rule]]\nprefix = [\"curl\", \"-u\", \"bob:q8Zk2mPv0Lr7\"]\ndecision = \"ask\"\n\
                    [[rule]]\nprefix = [\"make\", [\"test\", \"check\"]]\ndecision = \"allow\"\n";
        let rules = Rules::load(&[RuleFile { name: "r", text, trust: Trust::User }]).unwrap();
        let shown: Vec<_> = rules.iter().map(|rule| redacted_by(&Secrets::default(), rule).shown()).collect();
        assert!(shown.iter().all(|shown| !shown.contains("q8Zk2mPv0Lr7")), "{shown:?}");
        assert!(shown[0].contains("[REDACTED:password#1]"), "{shown:?}");
        assert_eq!(shown[2], "make (test|check)");
    }
}

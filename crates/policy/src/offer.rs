//! The rule that an answer to a question about a command could make.

use std::fmt::Write;

use windlass_contract::{CommandLine, Offer};

use crate::{Class, RuleFile, Rules, Suggestion, Trust, Wish, judge, suggest};

/// The smallest rule that lets this command pass without a question, or none: what is unclear, dangerous or could be
/// anything deserves a question each time. A model may propose the beginning of the command; it counts only if it is
/// one, and if no more than that is needed.
pub fn offer(command: &CommandLine, rules: &Rules, proposed: &[String], wish: Wish) -> Option<Offer> {
    let smallest = suggest(std::slice::from_ref(command), &[]);
    let shorter = match &smallest[..] {
        [only] if !proposed.is_empty() && only.prefix.starts_with(proposed) => Some(Suggestion {
            prefix: proposed.to_vec(),
            explanation: format!(
                "every command that begins with `{}`, whatever words follow",
                proposed.join(" ")
            ),
            ..only.clone()
        }),
        _ => None,
    };
    let shorter =
        shorter.and_then(|rule| written(&[rule], wish).filter(|offer| works(offer, command, rules, wish)));
    shorter.or_else(|| written(&smallest, wish).filter(|offer| works(offer, command, rules, wish)))
}

fn written(suggestions: &[Suggestion], wish: Wish) -> Option<Offer> {
    let mut toml = String::new();
    for suggestion in suggestions {
        toml.push_str(&suggestion.to_toml());
        if wish == Wish::Escalated {
            // Writing to a string cannot fail.
            let _written = writeln!(toml, "escape_sandbox = true");
        }
    }
    let allows: Vec<_> = suggestions.iter().map(|suggestion| suggestion.explanation.as_str()).collect();
    (!suggestions.is_empty()).then(|| Offer { toml, allows: allows.join("; ") })
}

/// Whether the command would really pass with it: an offer that changes nothing is none.
fn works(offer: &Offer, command: &CommandLine, rules: &Rules, wish: Wish) -> bool {
    let file = RuleFile { name: "offer", text: &offer.toml, trust: Trust::User };
    let Ok(made) = Rules::load(&[file]) else { return false };
    let mut rules = rules.clone();
    rules.add(made);
    let judged = judge(command, &rules);
    judged.class == Class::Safe && (wish == Wish::Contained || judged.escape_sandbox)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str, proposed: &[&str], wish: Wish) -> Option<String> {
        let command = CommandLine { argv: ["bash", "-c", line].map(str::to_owned).to_vec(), cwd: None };
        let proposed: Vec<_> = proposed.iter().map(|word| (*word).to_owned()).collect();
        offer(&command, &Rules::default(), &proposed, wish).map(|offer| offer.toml)
    }

    #[test]
    fn the_whole_command_is_offered_and_the_models_wish_if_it_is_its_beginning() {
        let whole = offered("cargo test -p a | tail -5", &[], Wish::Contained).unwrap();
        assert!(whole.contains(r#"prefix = ["cargo", "test", "-p", "a"]"#), "{whole}");
        let wished = offered("cargo test -p a", &["cargo", "test"], Wish::Contained).unwrap();
        assert!(wished.contains(r#"prefix = ["cargo", "test"]"#), "{wished}");
        for wish in [&["cargo", "run"][..], &["git"]] {
            assert_eq!(
                offered("cargo test -p a", wish, Wish::Contained),
                offered("cargo test -p a", &[], Wish::Contained)
            );
        }
        assert_eq!(
            offered("npm run build", &["npm", "run"], Wish::Contained),
            offered("npm run build", &[], Wish::Contained)
        );
    }

    #[test]
    fn leaving_the_sandbox_is_a_key_of_its_own_and_every_part_needs_it() {
        let rule = offered("docker compose up", &[], Wish::Escalated).unwrap();
        assert!(rule.contains("escape_sandbox = true"), "{rule}");
        assert_eq!(offered("docker compose up | cat", &[], Wish::Escalated), None);
    }

    #[test]
    fn what_deserves_a_question_each_time_gets_no_rule() {
        for line in ["make $x", "rm -rf build", "python3 -c 'print(1)'", "make > out", "git push --force"] {
            assert_eq!(offered(line, &["make"], Wish::Contained), None, "{line}");
        }
    }
}

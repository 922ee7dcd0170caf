//! Proposes the rule that an answer to a question about a command could create.

mod lasting;

use windlass_contract::{
    approval::Offer,
    effects::{CommandLine, OutwardEffect},
};

use crate::{
    Class, RuleFile, RuleSuggestion, Rules, Surroundings, Trust, Wish, judge_in, single_program, suggest,
    suggest::quoted, wrapper::base_name,
};

/// Returns the smallest rule that lets this command pass without a question. There is none for
/// commands that are unclear, dangerous or too general: each of those deserves its own question. A
/// model may propose the first words of the command; they count only if they match and no more is
/// needed. Outside the sandbox a rule names one program by its file, with all its words. Only
/// programs that nothing in a workspace can influence get one.
pub fn offer(
    command: &CommandLine,
    rules: &Rules,
    proposed: &[String],
    wish: Wish,
    surroundings: &Surroundings<'_>,
) -> Option<Offer> {
    let works = |offer: &Offer| works(offer, command, rules, wish, surroundings);
    if wish == Wish::Escalated {
        return exactly(command, surroundings).filter(works);
    }
    let smallest = suggest(std::slice::from_ref(command), &[]);
    let shorter = match &smallest[..] {
        [only] if !proposed.is_empty() && only.prefix.starts_with(proposed) => Some(RuleSuggestion {
            prefix: proposed.to_vec(),
            explanation: format!(
                "every command that begins with `{}`, whatever words follow",
                proposed.join(" ")
            ),
            ..only.clone()
        }),
        _ => None,
    };
    let shorter = shorter.and_then(|rule| written(&[rule]).filter(works));
    shorter.or_else(|| written(&smallest).filter(works))
}

fn written(suggestions: &[RuleSuggestion]) -> Option<Offer> {
    let toml = suggestions.iter().map(RuleSuggestion::to_toml).collect();
    let allows: Vec<_> = suggestions.iter().map(|suggestion| suggestion.explanation.as_str()).collect();
    (!suggestions.is_empty()).then(|| Offer { toml, allows: allows.join("; ") })
}

/// Returns a rule for one program with all its words, outside the sandbox.
fn exactly(command: &CommandLine, surroundings: &Surroundings<'_>) -> Option<Offer> {
    let argv = single_program(command)?;
    let (program, rest) = argv.split_first()?;
    let file = (surroundings.programs)(program)?;
    let file = file.to_str()?;
    let named: Vec<_> = [base_name(file).to_owned()].into_iter().chain(rest.iter().cloned()).collect();
    if !lasting::is_listed(&named) {
        return None;
    }
    let words: Vec<_> = [file].into_iter().chain(rest.iter().map(String::as_str)).map(quoted).collect();
    let toml =
        format!("[[rule]]\nargv = [{}]\ndecision = \"allow\"\nescape_sandbox = true\n", words.join(", "));
    let line = CommandLine { argv, cwd: None }.display();
    Some(Offer { toml, allows: format!("exactly `{line}`, run by `{file}`") })
}

/// Returns true if an approval outside the sandbox may hold for the session. Outward effects are
/// excluded: their destination depends on settings that commands in the sandbox may change, such as
/// the URL of a remote. Each time is another question.
pub fn may_hold_for_session(outward: &[OutwardEffect]) -> bool {
    outward.iter().all(|effect| *effect == OutwardEffect::Install)
}

/// Returns true if the command would really pass with the rule: an offer without effect is useless.
fn works(
    offer: &Offer,
    command: &CommandLine,
    rules: &Rules,
    wish: Wish,
    surroundings: &Surroundings<'_>,
) -> bool {
    let file = RuleFile { name: "offer", text: &offer.toml, trust: Trust::User };
    let Ok(made) = Rules::load(&[file]) else { return false };
    let mut rules = rules.clone();
    rules.add(made);
    let judged = judge_in(surroundings, command, &rules);
    let leaves = || judged.escape_sandbox && may_hold_for_session(&judged.outward);
    judged.class == Class::Safe && (wish == Wish::Contained || leaves())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str, proposed: &[&str], wish: Wish) -> Option<String> {
        let command = CommandLine { argv: ["bash", "-c", line].map(str::to_owned).to_vec(), cwd: None };
        let proposed: Vec<_> = proposed.iter().map(|word| (*word).to_owned()).collect();
        let programs = |name: &str| (!name.contains('/')).then(|| format!("/usr/bin/{name}").into());
        let surroundings = Surroundings { programs: &programs, ..Surroundings::unknown() };
        offer(&command, &Rules::default(), &proposed, wish, &surroundings).map(|offer| offer.toml)
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
    fn leaving_the_sandbox_is_a_key_of_its_own_for_what_no_workspace_steers() {
        let rule = offered("docker ps -a", &["docker"], Wish::Escalated).unwrap();
        assert_eq!(
            rule,
            "[[rule]]\nargv = [\"/usr/bin/docker\", \"ps\", \"-a\"]\ndecision = \"allow\"\nescape_sandbox = true\n"
        );
        assert!(offered("df -h 2>&1", &[], Wish::Escalated).is_some(), "also what is known to be harmless");
        for line in [
            "./docker ps",
            "docker ps | cat",
            "timeout 5 docker ps",
            "bash -c 'docker ps'",
            "LC_ALL=C docker ps",
            "docker ps < x",
            "docker ps; docker ps",
            "docker compose up",
            "bash x.sh",
            "python3 x.py",
            "node x.js",
            "make",
            "npm test",
            "go test ./...",
            "awk -f x.awk",
            "java -jar x.jar",
            "sqlite3 x.db",
            "tee x",
            "git push",
            "git fetch",
        ] {
            assert_eq!(offered(line, &[], Wish::Escalated), None, "{line}");
        }
    }

    #[test]
    fn what_deserves_a_question_each_time_gets_no_rule() {
        for line in ["make $x", "rm -rf build", "python3 -c 'print(1)'", "make > out", "git push --force"] {
            assert_eq!(offered(line, &["make"], Wish::Contained), None, "{line}");
        }
    }
}

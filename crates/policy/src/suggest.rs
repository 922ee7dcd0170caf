//! Derives rules from approved commands, to suggest rules that would have avoided questions.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_contract::effects::CommandLine;

use crate::{Class, Reason, Rules, judge, rules};

/// A suggested rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleSuggestion {
    /// The words that it would allow.
    pub prefix: Vec<String>,
    /// The approved commands that it covers.
    pub covers: Vec<String>,
    /// Other recorded commands that it would also allow.
    pub also: Vec<String>,
    /// Describes what else it would allow.
    pub explanation: String,
}

impl RuleSuggestion {
    /// Returns the rule in the syntax of a rule file.
    pub fn to_toml(&self) -> String {
        let words = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
        let example =
            self.covers.first().map(|line| format!("match = [{}]\n", quoted(line))).unwrap_or_default();
        format!("[[rule]]\nprefix = [{}]\ndecision = \"allow\"\n{example}", words(&self.prefix))
    }
}

/// Returns the smallest rules that cover the approved commands, those that avoid the most questions
/// first. Unclear and dangerous commands are left out: the next one of their kind deserves its own
/// question.
pub fn suggest(approved: &[CommandLine], recorded: &[CommandLine]) -> Vec<RuleSuggestion> {
    let mut groups: BTreeMap<Vec<String>, Vec<Vec<String>>> = BTreeMap::new();
    for argv in approved.iter().flat_map(uncovered) {
        let kind = argv.iter().take(2).filter(|word| is_name(word)).cloned().collect();
        groups.entry(kind).or_default().push(argv);
    }
    let recorded: Vec<_> = recorded.iter().flat_map(uncovered).collect();
    let mut suggestions: Vec<_> =
        groups.into_values().filter_map(|group| suggestion(&group, &recorded)).collect();
    suggestions.sort_by_key(|suggestion| std::cmp::Reverse(suggestion.covers.len()));
    suggestions
}

/// Returns the parts of a command that a rule could have covered.
fn uncovered(command: &CommandLine) -> Vec<Vec<String>> {
    let judged = judge(command, &Rules::default());
    if !judged.unclear.is_empty() || judged.class > Class::Ordinary {
        return Vec::new();
    }
    let parts = judged.parts.into_iter();
    let ordinary = parts.filter(|part| {
        part.class == Class::Ordinary
            && part.facts.is_empty()
            && matches!(part.reason, Reason::NotKnown { .. })
    });
    // `{}` stands for names that another program fills in: a rule with it would say nothing.
    let is_whole = |argv: &Vec<String>| !argv.is_empty() && !argv.iter().any(|word| word.contains("{}"));
    ordinary.map(|part| part.argv).filter(is_whole).collect()
}

fn suggestion(group: &[Vec<String>], recorded: &[Vec<String>]) -> Option<RuleSuggestion> {
    let first = group.first()?;
    let common = group.iter().map(|argv| argv.iter().zip(first).take_while(|(a, b)| a == b).count()).min()?;
    let prefix = first.get(..common)?.to_vec();
    if prefix.is_empty() || rules::is_too_wide(&prefix) {
        return None;
    }
    let covers = lines(group.iter());
    let fitting = recorded.iter().filter(|argv| argv.starts_with(&prefix) && !group.contains(argv));
    let shown = prefix.join(" ");
    Some(RuleSuggestion {
        also: lines(fitting),
        explanation: format!("every command that begins with `{shown}`, whatever words follow"),
        prefix,
        covers,
    })
}

fn lines<'a>(commands: impl Iterator<Item = &'a Vec<String>>) -> Vec<String> {
    let mut lines: Vec<_> =
        commands.map(|argv| CommandLine { argv: argv.clone(), cwd: None }.display()).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Returns true if a word names a program or an action, rather than an object.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte))
}

/// Returns a text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RuleFile, Trust};

    fn line(source: &str) -> CommandLine {
        CommandLine { argv: vec!["bash".into(), "-c".into(), source.into()], cwd: None }
    }

    #[test]
    fn the_smallest_common_beginning_is_suggested() {
        let approved = ["cargo test -p a", "cargo test -p b 2>&1 | tail", "npm run lint", "ls"].map(line);
        let recorded = ["cargo test -p a", "cargo test -p evil", "cargo run"].map(line);
        let suggestions = suggest(&approved, &recorded);
        assert_eq!(
            suggestions,
            [
                RuleSuggestion {
                    prefix: ["cargo", "test", "-p"].map(str::to_owned).to_vec(),
                    covers: ["cargo test -p a", "cargo test -p b"].map(str::to_owned).to_vec(),
                    also: vec!["cargo test -p evil".to_owned()],
                    explanation: "every command that begins with `cargo test -p`, whatever words follow"
                        .to_owned(),
                },
                RuleSuggestion {
                    prefix: ["npm", "run", "lint"].map(str::to_owned).to_vec(),
                    covers: vec!["npm run lint".to_owned()],
                    also: Vec::new(),
                    explanation: "every command that begins with `npm run lint`, whatever words follow"
                        .to_owned(),
                },
            ]
        );
        for suggestion in suggestions {
            let text = suggestion.to_toml();
            let rules = Rules::load(&[RuleFile { name: "s.toml", text: &text, trust: Trust::User }]).unwrap();
            assert_eq!(rules.iter().count(), 1);
        }
    }

    #[test]
    fn nothing_is_suggested_for_what_is_unclear_dangerous_or_too_wide() {
        let approved = [
            "make $x",
            "rm -rf build",
            "python3 -c 'print(1)'",
            "PATH=. make",
            "make > f",
            "git push --force",
            "find . -name x -exec touch {} \\;",
            "ls | xargs -I{} touch {}.bak",
        ];
        assert_eq!(suggest(&approved.map(line), &[]), []);
        // Their common words do not determine what they do.
        assert_eq!(suggest(&["git -C a fetch", "git -C b fetch"].map(line), &[]), []);
    }
}

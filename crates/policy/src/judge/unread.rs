//! Judges texts that were not understood by every command that they name.

use super::{CommandJudge, WrapperContext};
use crate::{
    Class, CommandDanger, CommandRule, DangerSeverity, Part, Reason, RuleDecision, danger, outward,
    shell::{self, ShellWord},
    wrapper,
};

/// Maximum number of words of a command in a text that was not understood.
const MAX_WORDS_OF_UNREAD: usize = 32;

impl<'a> CommandJudge<'a> {
    /// Judges the whole text by the commands that it names, because one of its programs comes from a
    /// variable or the output of a command.
    pub(super) fn unread_source(&mut self, via: &WrapperContext<'a>) -> Class {
        let text = self.source.take_unread();
        self.unread(&text, via)
    }

    /// Judges a text that was not understood, and that a shell or another program may run: every
    /// command that it names counts. Only the worst becomes a part.
    pub(super) fn unread(&mut self, text: &str, via: &WrapperContext<'a>) -> Class {
        let effects = outward::text_effects(text);
        let by_effect = effects.iter().filter_map(|effect| self.rules.find_effect(*effect));
        let mut found: Vec<_> = by_effect.filter_map(|rule| ruled(rule, &[])).collect();
        self.outward.extend(&effects);
        let script = shell::read_loosely(text);
        let mut places = self.places.clone();
        for (at, simple) in script.commands.iter().enumerate() {
            let certain = wrapper::starts(&simple.words);
            found
                .extend(danger::context_danger(&script, at, &places).map(|danger| of(danger, &simple.words)));
            for start in 0..simple.words.len() {
                let words = &simple.words[start..simple.words.len().min(start + MAX_WORDS_OF_UNREAD)];
                let words = &*shell::without_prefix(words);
                found.extend(self.rules.find(words, &self.surroundings).and_then(|rule| ruled(rule, words)));
                let danger = danger::command_danger(words, &places);
                // A word in the middle may also be a value, or prose.
                let danger =
                    danger.map(|danger| if certain.contains(&start) { danger } else { danger.softened() });
                found.extend(danger.map(|danger| of(danger, words)));
            }
            if let (Some("cd" | "pushd"), Some(target)) = (simple.program(), simple.words.get(1)) {
                places.enter(&target.text);
            }
        }
        // Of equal classes the first counts.
        let Some(worst) = found.into_iter().rev().max_by_key(|part| part.class) else {
            return Class::Ordinary;
        };
        let class = worst.class;
        if !self.parts.iter().any(|part| part.reason == worst.reason) {
            self.parts.push(Part { via: via.programs.clone(), ..worst });
        }
        class
    }
}

/// Returns the part for a command that a text names and that a rule restricts.
fn ruled(rule: &CommandRule, words: &[ShellWord]) -> Option<Part> {
    let class = match rule.decision {
        RuleDecision::Forbid => Class::Forbidden,
        RuleDecision::Ask => Class::Dangerous,
        RuleDecision::Allow => return None,
    };
    Some(named(class, Reason::Rule(rule.clone()), words))
}

/// Returns the part for a dangerous command that a text names.
fn of(danger: CommandDanger, words: &[ShellWord]) -> Part {
    let never = danger.severity == DangerSeverity::Never;
    named(if never { Class::Forbidden } else { Class::Dangerous }, Reason::Danger(danger), words)
}

fn named(class: Class, reason: Reason, words: &[ShellWord]) -> Part {
    let argv = words.iter().map(|word| word.text.clone()).collect();
    Part { argv, via: Vec::new(), class, reason, facts: Vec::new() }
}

//! Judges texts that were not understood by every command that they name.

use std::collections::BTreeSet;

use windlass_contract::effects::OutwardEffect;

use super::{CommandJudge, WrapperContext};
use crate::{
    Class, CommandDanger, CommandRule, DangerSeverity, Part, Reason, RuleDecision, danger, outward,
    shell::{self, ShellWord},
    wrapper,
};

/// Maximum number of words of a command in a text that was not understood.
const MAX_WORDS_OF_UNREAD: usize = 32;

impl<'a> CommandJudge<'a> {
    /// Judges the whole text by the commands that it names, because one of its programs comes from
    /// a variable or the output of a command.
    pub(super) fn unread_source(&mut self, via: &WrapperContext<'a>) -> Class {
        let text = self.source.take_unread();
        self.code(&text, via)
    }

    /// Judges a text that a program puts commands together from: also the words of a command count
    /// that are not next to each other.
    pub(super) fn code(&mut self, text: &str, via: &WrapperContext<'a>) -> Class {
        self.text(text, &outward::code_effects(text), via)
    }

    /// Judges a text that was not understood, and that a shell or another program may run: every
    /// command that it names counts. Only the worst becomes a part.
    pub(super) fn unread(&mut self, text: &str, via: &WrapperContext<'a>) -> Class {
        self.text(text, &outward::text_effects(text), via)
    }

    fn text(&mut self, text: &str, effects: &BTreeSet<OutwardEffect>, via: &WrapperContext<'a>) -> Class {
        let mut worst = WorstPart::default();
        for rule in effects.iter().filter_map(|effect| self.rules.find_effect(*effect)) {
            worst.consider_rule(rule, &[]);
        }
        self.outward.extend(effects);
        let script = shell::read_loosely(text);
        let mut places = self.places.clone();
        for (at, simple) in script.commands.iter().enumerate() {
            let certain = wrapper::starts(&simple.words);
            worst.consider_danger(danger::context_danger(&script, at, &places), &simple.words);
            for start in 0..simple.words.len() {
                let words = &simple.words[start..simple.words.len().min(start + MAX_WORDS_OF_UNREAD)];
                let words = &*shell::without_prefix(words);
                if let Some(rule) = self.rules.find(words, &self.surroundings) {
                    worst.consider_rule(rule, words);
                }
                let danger = danger::command_danger(words, &places);
                // A word in the middle may also be a value, or prose.
                let is_certain = certain.binary_search(&start).is_ok();
                let danger = if is_certain { danger } else { danger.map(CommandDanger::softened) };
                worst.consider_danger(danger, words);
            }
            if let (Some("cd" | "pushd"), Some(target)) = (simple.program(), simple.words.get(1)) {
                places.enter(&target.text);
            }
        }
        let Some(worst) = worst.0 else { return Class::Ordinary };
        let class = worst.class;
        if !self.parts.iter().any(|part| part.reason == worst.reason) {
            self.parts.push(Part { via: via.programs.clone(), ..worst });
        }
        class
    }
}

/// The strictest finding in a text; of equal ones the first.
#[derive(Default)]
struct WorstPart(Option<Part>);

impl WorstPart {
    fn consider_rule(&mut self, rule: &CommandRule, words: &[ShellWord]) {
        match rule.decision {
            RuleDecision::Forbid => self.consider(Class::Forbidden, words, || Reason::Rule(rule.clone())),
            RuleDecision::Ask => self.consider(Class::Dangerous, words, || Reason::Rule(rule.clone())),
            RuleDecision::Allow => {}
        }
    }

    fn consider_danger(&mut self, danger: Option<CommandDanger>, words: &[ShellWord]) {
        let Some(danger) = danger else { return };
        let is_never = danger.severity == DangerSeverity::Never;
        let class = if is_never { Class::Forbidden } else { Class::Dangerous };
        self.consider(class, words, || Reason::Danger(danger));
    }

    fn consider(&mut self, class: Class, words: &[ShellWord], reason: impl FnOnce() -> Reason) {
        if self.0.as_ref().is_none_or(|worst| worst.class < class) {
            let argv = words.iter().map(|word| word.text.clone()).collect();
            self.0 = Some(Part { argv, via: Vec::new(), class, reason: reason(), facts: Vec::new() });
        }
    }
}

//! Reading arguments as the program itself would, by the table of known commands.

use crate::shell::Word;

/// What a command may be given.
#[derive(Debug, Default)]
pub(super) struct Grammar {
    pub(super) short: Vec<(char, Takes)>,
    pub(super) long: Vec<(&'static str, Takes)>,
    pub(super) operands: Operands,
    pub(super) left_out: &'static str,
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    Number,
    /// A value only if it is attached.
    Attached,
    /// A value unless it is the last word.
    UnlessLast,
}

/// What the arguments that are no options are.
#[derive(Debug, Default)]
pub(super) struct Operands {
    pub(super) shows: Shows,
    pub(super) max: Option<usize>,
    pub(super) pattern: bool,
    pub(super) sweep: Sweep,
    pub(super) traits: Vec<Trait>,
}

/// What a command shows of the files it is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Shows {
    /// What is in them.
    #[default]
    Contents,
    /// What is in them, if they are directories.
    Names,
    /// Nothing of either.
    Nothing,
}

/// When a command reads whole directories.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Sweep {
    #[default]
    Never,
    Always,
    /// With one of these options.
    With(Vec<&'static str>),
}

/// Peculiarities, as the head of the table explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trait {
    Check,
    Words,
    Digits,
    Harmless,
    NoAt,
    Plus,
}

impl Operands {
    pub(super) fn are(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }
}

/// Arguments, sorted out.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    /// Names without dashes, with their values.
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
    pub(super) operands: Vec<&'a Word>,
}

impl Arguments<'_> {
    /// Whether one of these options was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }
}

impl Grammar {
    /// Sorts arguments into options and operands, or says which one is not known.
    pub(super) fn sort<'a>(&self, words: &'a [Word]) -> Result<Arguments<'a>, String> {
        let mut sorted = Arguments::default();
        let mut words = words.iter();
        if self.operands.are(Trait::Words) {
            sorted.operands.extend(words);
            return Ok(sorted);
        }
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if word.glob && text.starts_with('-') && !is_wild_in_its_value_only(text) {
                return Err(format!("`{text}` may become any option"));
            }
            if word.could_be_an_option() && !self.operands.are(Trait::Harmless) {
                return Err(format!("a name that matches `{text}` may be an option; put `./` before it"));
            }
            if text == "--" {
                sorted.operands.extend(words);
                break;
            } else if let Some(long) = text.strip_prefix("--") {
                self.long(long, &mut words, &mut sorted)?;
            } else if self.is_number(text) {
            } else if let Some(short) = text.strip_prefix('-').filter(|short| !short.is_empty()) {
                self.short(short, &mut words, &mut sorted)?;
            } else {
                sorted.operands.push(word);
            }
        }
        Ok(sorted)
    }

    /// `-20`, where that is how lines are counted.
    fn is_number(&self, text: &str) -> bool {
        let digits = text.strip_prefix('-').unwrap_or_default();
        self.operands.are(Trait::Digits)
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn long<'a>(
        &self,
        text: &'a str,
        rest: &mut impl Iterator<Item = &'a Word>,
        sorted: &mut Arguments<'a>,
    ) -> Result<(), String> {
        let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let known = self.long.iter().find(|(each, _)| *each == name);
        let (_, takes) = known.ok_or_else(|| self.unknown(&format!("--{name}")))?;
        let value = match (takes, attached) {
            (Takes::Nothing, Some(_)) => return Err(self.unknown(&format!("--{text}"))),
            (Takes::Nothing | Takes::Attached, None) => None,
            (Takes::Value | Takes::Number | Takes::UnlessLast, None) => next(name, rest)?,
            (_, attached) => attached,
        };
        sorted.options.push((name, check(name, *takes, value)?));
        Ok(())
    }

    fn short<'a>(
        &self,
        bundle: &'a str,
        rest: &mut impl Iterator<Item = &'a Word>,
        sorted: &mut Arguments<'a>,
    ) -> Result<(), String> {
        for (at, letter) in bundle.char_indices() {
            let known = self.short.iter().find(|(each, _)| *each == letter);
            let (_, takes) = known.ok_or_else(|| self.unknown(&format!("-{letter}")))?;
            let end = at + letter.len_utf8();
            let name = bundle.get(at..end).unwrap_or_default();
            let attached = bundle.get(end..).filter(|value| !value.is_empty());
            let value = match takes {
                Takes::Nothing => {
                    sorted.options.push((name, None));
                    continue;
                }
                Takes::Attached => attached,
                Takes::Value | Takes::Number | Takes::UnlessLast => match attached {
                    Some(attached) => Some(attached),
                    None => next(name, rest)?,
                },
            };
            sorted.options.push((name, check(name, *takes, value)?));
            break;
        }
        Ok(())
    }

    fn unknown(&self, option: &str) -> String {
        let why =
            if self.left_out.is_empty() { String::new() } else { format!(" (left out: {})", self.left_out) };
        format!("its option `{option}` is not known to be harmless{why}")
    }
}

/// `--include=*.rs`: every name that matches it is the same option.
fn is_wild_in_its_value_only(text: &str) -> bool {
    let name = text.strip_prefix("--").and_then(|text| text.split_once('=')).map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && !name.contains(['*', '?', '[']))
}

/// The next word, as an option's value: never something that could be an option itself, or several words.
fn next<'a>(option: &str, rest: &mut impl Iterator<Item = &'a Word>) -> Result<Option<&'a str>, String> {
    match rest.next() {
        Some(word) if word.glob || (word.text.starts_with('-') && !is_count(&word.text)) => {
            Err(format!("`{}` is no value for its option `{option}`", word.text))
        }
        word => Ok(word.map(|word| word.text.as_str())),
    }
}

fn check<'a>(name: &str, takes: Takes, value: Option<&'a str>) -> Result<Option<&'a str>, String> {
    let fits = match (takes, value) {
        (Takes::Number, Some(value)) => is_count(value),
        (Takes::Value | Takes::Number, None) => false,
        (Takes::Value, Some(_)) | (Takes::Nothing | Takes::Attached | Takes::UnlessLast, _) => true,
    };
    if fits { Ok(value) } else { Err(format!("the value of its option `{name}` makes no sense")) }
}

/// `5`, `+5`, `-5`, `10M`, `1kB`.
fn is_count(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < number.len() && unit.len() <= 3 && unit.bytes().all(|byte| byte.is_ascii_alphabetic())
}

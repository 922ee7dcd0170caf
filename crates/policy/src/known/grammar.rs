//! Parses arguments as the program itself would, by the table of known commands.

use crate::shell::ShellWord;

/// The options and operands that a command may have.
#[derive(Debug, Default)]
pub(super) struct OptionGrammar {
    pub(super) short: Vec<(char, OptionArgument)>,
    pub(super) long: Vec<(&'static str, OptionArgument)>,
    pub(super) operands: OperandRules,
    pub(super) left_out: &'static str,
}

/// The option-argument of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionArgument {
    Nothing,
    Value,
    Number,
    /// A value only if it is attached.
    Attached,
    /// A value unless it is the last word.
    UnlessLast,
}

/// The rules for arguments that are not options.
#[derive(Debug, Default)]
pub(super) struct OperandRules {
    pub(super) shows: FileDisclosure,
    pub(super) max: Option<usize>,
    pub(super) pattern: bool,
    pub(super) sweep: DirectoryRecursion,
    pub(super) traits: Vec<OperandTrait>,
}

/// The part of its file operands that a command shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FileDisclosure {
    /// The contents of files.
    #[default]
    Contents,
    /// The names in directories.
    Names,
    /// Neither contents nor names.
    Nothing,
}

/// The condition under which a command reads whole directories.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum DirectoryRecursion {
    #[default]
    Never,
    Always,
    /// With one of these options.
    With(Vec<&'static str>),
}

/// Special cases, described at the top of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandTrait {
    Check,
    Words,
    Digits,
    Harmless,
    NoAt,
    Plus,
}

impl OperandRules {
    pub(super) fn are(&self, wanted: OperandTrait) -> bool {
        self.traits.contains(&wanted)
    }
}

/// Arguments, separated into options and operands.
#[derive(Debug, Default)]
pub(super) struct SortedArguments<'a> {
    /// Names without dashes, with their values.
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
    pub(super) operands: Vec<&'a ShellWord>,
}

impl SortedArguments<'_> {
    /// Returns true if one of these options was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }
}

impl OptionGrammar {
    /// Separates arguments into options and operands. The error names the first option that is not
    /// listed.
    pub(super) fn sort<'a>(&self, words: &'a [ShellWord]) -> Result<SortedArguments<'a>, String> {
        let mut sorted = SortedArguments::default();
        let mut words = words.iter();
        if self.operands.are(OperandTrait::Words) {
            sorted.operands.extend(words);
            return Ok(sorted);
        }
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if word.glob && text.starts_with('-') && !is_wild_in_its_value_only(text) {
                return Err(format!("`{text}` may become any option"));
            }
            if word.could_be_an_option() && !self.operands.are(OperandTrait::Harmless) {
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

    /// Returns true for `-20`, if the command takes a line count in that form.
    fn is_number(&self, text: &str) -> bool {
        let digits = text.strip_prefix('-').unwrap_or_default();
        self.operands.are(OperandTrait::Digits)
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn long<'a>(
        &self,
        text: &'a str,
        rest: &mut impl Iterator<Item = &'a ShellWord>,
        sorted: &mut SortedArguments<'a>,
    ) -> Result<(), String> {
        let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let known = self.long.iter().find(|(each, _)| *each == name);
        let (_, takes) = known.ok_or_else(|| self.unknown(&format!("--{name}")))?;
        let value = match (takes, attached) {
            (OptionArgument::Nothing, Some(_)) => return Err(self.unknown(&format!("--{text}"))),
            (OptionArgument::Nothing | OptionArgument::Attached, None) => None,
            (OptionArgument::Value | OptionArgument::Number | OptionArgument::UnlessLast, None) => {
                next(name, rest)?
            }
            (_, attached) => attached,
        };
        sorted.options.push((name, check(name, *takes, value)?));
        Ok(())
    }

    fn short<'a>(
        &self,
        bundle: &'a str,
        rest: &mut impl Iterator<Item = &'a ShellWord>,
        sorted: &mut SortedArguments<'a>,
    ) -> Result<(), String> {
        for (at, letter) in bundle.char_indices() {
            let known = self.short.iter().find(|(each, _)| *each == letter);
            let (_, takes) = known.ok_or_else(|| self.unknown(&format!("-{letter}")))?;
            let end = at + letter.len_utf8();
            let name = bundle.get(at..end).unwrap_or_default();
            let attached = bundle.get(end..).filter(|value| !value.is_empty());
            let value = match takes {
                OptionArgument::Nothing => {
                    sorted.options.push((name, None));
                    continue;
                }
                OptionArgument::Attached => attached,
                OptionArgument::Value | OptionArgument::Number | OptionArgument::UnlessLast => match attached
                {
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

/// Returns true for `--include=*.rs`: every file name that matches it is the same option.
fn is_wild_in_its_value_only(text: &str) -> bool {
    let name = text.strip_prefix("--").and_then(|text| text.split_once('=')).map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && !name.contains(['*', '?', '[']))
}

/// Returns the next word as the value of an option: never a word that could be an option itself, or
/// several words.
fn next<'a>(option: &str, rest: &mut impl Iterator<Item = &'a ShellWord>) -> Result<Option<&'a str>, String> {
    match rest.next() {
        Some(word) if word.glob || (word.text.starts_with('-') && !is_count(&word.text)) => {
            Err(format!("`{}` is no value for its option `{option}`", word.text))
        }
        word => Ok(word.map(|word| word.text.as_str())),
    }
}

fn check<'a>(name: &str, takes: OptionArgument, value: Option<&'a str>) -> Result<Option<&'a str>, String> {
    let fits = match (takes, value) {
        (OptionArgument::Number, Some(value)) => is_count(value),
        (OptionArgument::Value | OptionArgument::Number, None) => false,
        (OptionArgument::Value, Some(_))
        | (OptionArgument::Nothing | OptionArgument::Attached | OptionArgument::UnlessLast, _) => true,
    };
    if fits { Ok(value) } else { Err(format!("the value of its option `{name}` makes no sense")) }
}

/// `5`, `+5`, `-5`, `10M`, `1kB`.
fn is_count(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < number.len() && unit.len() <= 3 && unit.bytes().all(|byte| byte.is_ascii_alphabetic())
}

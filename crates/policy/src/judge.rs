//! From a command line to what is known about it.

use std::{collections::BTreeSet, path::Path};

use windlass_contract::effects::{CommandLine, OutwardEffect, Typed};

use crate::{
    Access, Action, Class, Danger, FileUse, Judgement, Part, Reason, Rule, RuleMatch, Rules, Severity,
    Surroundings, Unclear, What, danger, known,
    outward::{self, CommandContext, SourceText},
    path::Places,
    secret,
    shell::{Assignment, Dialect, Redirect, RedirectKind, Script, Simple, Word},
    single_program,
    wrapper::{self, Inner, base_name},
};

/// How deep programs may run programs. Nobody nests more by hand.
const MAX_DEPTH: usize = 8;

/// How many programs one command may run. More can hide anything among them.
const MAX_PARTS: usize = 256;

/// How much of what is unclear is told. One thing is enough to decide.
const MAX_UNCLEAR: usize = 32;

/// Why a program that is on the list is not known to be harmless.
const REPLACEABLE: &str =
    "nothing would hold it, and an earlier command may have replaced the file that would run";

/// Variables that only change how things look.
const HARMLESS_VARIABLES: &[&str] = &[
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "COLUMNS",
    "LINES",
    "CI",
    "NODE_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CARGO_TERM_COLOR",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
];

/// Says what is known about a command. Reads nothing but its arguments.
pub fn judge(command: &CommandLine, rules: &Rules) -> Judgement {
    judge_in(&Surroundings::unknown(), command, rules)
}

/// Says what is known about a command of someone who works in some directory of a machine, wherever the command itself is
/// run: their own files are no settings, also where they work in a hidden place such as `~/.dotfiles`.
pub fn judge_in(surroundings: &Surroundings<'_>, command: &CommandLine, rules: &Rules) -> Judgement {
    let places = Places::starting(command.cwd.as_deref());
    let places = match surroundings.workspace {
        Some(workspace) => places.with_workspace(workspace),
        None => places,
    };
    let cwd = command.cwd.as_deref();
    let is_at_home = cwd.is_none_or(|cwd| surroundings.workspace.is_none_or(|workspace| workspace == cwd));
    let judgement = Judge { is_at_home, ..Judge::new(rules, *surroundings, places) }.whole(command);
    let direct_argv = if judgement.escape_sandbox { direct_argv(command, surroundings) } else { None };
    Judgement { escape_sandbox: direct_argv.is_some(), direct_argv, ..judgement }
}

/// What runs of a command that may leave the sandbox: the file of its one program, and its words.
fn direct_argv(command: &CommandLine, surroundings: &Surroundings<'_>) -> Option<Vec<String>> {
    let mut argv = single_program(command)?;
    let program = argv.first_mut()?;
    *program = (surroundings.programs)(program)?.into_os_string().into_string().ok()?;
    Some(argv)
}

/// Says what is known about a text that would be typed to a running program. If that is a shell, the text is a script, and
/// what it would do there counts; but nobody knows what the program makes of it, so that it is never safe.
pub fn judge_typed(typed: &Typed, cwd: &Path, rules: &Rules) -> Judgement {
    let mut judge = Judge::new(rules, Surroundings::unknown(), Places::starting(Some(cwd)));
    judge.script(&typed.text, Dialect::Bash, &Via { programs: vec![typed.to.clone()], allowed: None });
    let judgement = judge.finish();
    if judgement.class > Class::Ordinary {
        return Judgement { escape_sandbox: false, asks_to_leave_again: false, ..judgement };
    }
    let why = format!("it is typed to `{}`, and what that makes of it is not known", typed.to);
    Judgement { class: Class::Ordinary, why, changes_nothing: false, escape_sandbox: false, ..judgement }
}

struct Judge<'a> {
    rules: &'a Rules,
    surroundings: Surroundings<'a>,
    /// The command starts where the user works. Elsewhere the same words may obey other files.
    is_at_home: bool,
    places: Places,
    outward: Vec<OutwardEffect>,
    source: SourceText,
    parts: Vec<Part>,
    unclear: Vec<Unclear>,
    files: Vec<FileUse>,
}

/// What is around a command.
#[derive(Clone, Default)]
struct Via<'a> {
    programs: Vec<String>,
    /// The rule that allows the wrapper together with what it runs.
    allowed: Option<&'a Rule>,
}

/// What a command runs besides its own program.
#[derive(Clone, Copy)]
struct Runs {
    class: Class,
    /// The program around it adds nothing.
    plain: bool,
}

impl<'a> Judge<'a> {
    fn new(rules: &'a Rules, surroundings: Surroundings<'a>, places: Places) -> Self {
        Self {
            rules,
            surroundings,
            is_at_home: true,
            places,
            outward: Vec::new(),
            source: SourceText::default(),
            parts: Vec::new(),
            unclear: Vec::new(),
            files: Vec::new(),
        }
    }

    /// A command, perhaps with a shell around it.
    fn whole(mut self, command: &CommandLine) -> Judgement {
        let words: Vec<_> = command.argv.iter().map(|word| Word::literal(word)).collect();
        match wrapper::open(&words).pop() {
            // The shell that a tool runs every line in is not worth a word.
            Some(Inner::Script { text, dialect, plain: true }) if !self.is_replaceable(&words) => {
                self.script(&text, dialect, &Via::default())
            }
            _ => self.words(words),
        };
        self.finish()
    }

    /// A command that no shell reads.
    fn words(&mut self, words: Vec<Word>) -> Class {
        self.unclear.extend(words.iter().find_map(|word| Unclear::hidden(&word.text)));
        self.script_of(single(words), &Via::default())
    }

    fn script(&mut self, text: &str, dialect: Dialect, via: &Via<'a>) -> Class {
        if self.source.is_empty() {
            self.source = SourceText::new(text);
        }
        let mut script = Script::parse(text, dialect);
        let clear = script.is_clear();
        // The texts are for whoever is told; the script keeps of what kinds they were.
        self.unclear.extend(script.unclear.iter_mut().map(Unclear::take));
        let class = self.script_of(script, via);
        if clear { class } else { class.max(Class::Ordinary) }
    }

    fn script_of(&mut self, script: Script, via: &Via<'a>) -> Class {
        if via.programs.len() > MAX_DEPTH {
            self.unclear.push(Unclear::new(What::TooDeep, "programs that run programs"));
            return Class::Dangerous;
        }
        let mut class = Class::Safe;
        let mut own = Vec::with_capacity(script.commands.len().min(MAX_PARTS));
        for at in 0..script.commands.len() {
            if self.parts.len() >= MAX_PARTS {
                self.unclear.push(Unclear::new(What::TooHard, "more programs than are looked at"));
                class = class.max(Class::Dangerous);
                break;
            }
            own.push(self.parts.len());
            class = class.max(self.command(&script, at, via));
        }
        // Only now does nobody look at the words any more.
        for (part, simple) in own.into_iter().zip(script.commands) {
            self.parts[part].argv = simple.words.into_iter().map(|word| word.text).collect();
        }
        class
    }

    /// Judges one command and what it runs. Its own part comes before theirs, and still has no words.
    fn command(&mut self, script: &Script, at: usize, via: &Via<'a>) -> Class {
        let Some(simple) = script.commands.get(at) else { return Class::Ordinary };
        let own = self.parts.len();
        self.parts.push(Part {
            argv: Vec::new(),
            via: via.programs.clone(),
            class: Class::Ordinary,
            reason: Reason::Wrapper,
            facts: facts(simple),
        });
        let context = CommandContext { script, at, via: &via.programs, source: &self.source };
        let effects = outward::of_command(context);
        self.outward.extend(&effects);
        let rule = self.rule(&simple.words, &effects);
        let runs = self.inner(script, at, via, rule);
        let place = danger::of_place(script, at, &self.places);
        let (class, reason) = self.weigh(simple, rule.or(via.allowed), place, runs);
        (self.parts[own].class, self.parts[own].reason) = (class, reason);
        self.files.extend(simple.redirects.iter().filter_map(file_use));
        self.follow(simple);
        class.max(runs.map_or(Class::Safe, |runs| runs.class))
    }

    /// The strictest rule about a command: about its words, or about what it does beyond the machine.
    fn rule(&self, words: &[Word], effects: &BTreeSet<OutwardEffect>) -> Option<&'a Rule> {
        let by_words = self.rules.find(words, &self.surroundings);
        let by_effect = effects.iter().filter_map(|effect| self.rules.find_effect(*effect));
        by_words.into_iter().chain(by_effect).max_by_key(|rule| rule.decision)
    }

    /// The class of a command by itself: the strictest word counts.
    fn weigh(
        &self,
        simple: &Simple,
        rule: Option<&Rule>,
        place: Option<Danger>,
        runs: Option<Runs>,
    ) -> (Class, Reason) {
        let own = danger::of_command(&simple.words, &self.places);
        let never = |danger: &&Danger| danger.severity == Severity::Never;
        if let Some(danger) = own.iter().chain(&place).find(never) {
            return (Class::Forbidden, Reason::Danger(danger.clone()));
        }
        let ruled = |ruling| rule.filter(|rule| rule.decision == ruling).cloned().map(Reason::Rule);
        if let Some(forbidden) = ruled(Action::Forbid) {
            return (Class::Forbidden, forbidden);
        }
        let any_words = rule.filter(|rule| rule.leaves_with_any_words()).cloned().map(Reason::Rule);
        if let Some(asked) = ruled(Action::Ask).or(any_words) {
            return (Class::Dangerous, asked);
        }
        let trouble = trouble(simple, &self.places);
        let allowed = ruled(Action::Allow).filter(|_| trouble.is_none() && !adds_options(simple));
        // Whoever allowed `git push` did not think of `git push --force`; who allowed that did.
        let meant = |rule: &Rule| {
            let named = match &rule.matches {
                RuleMatch::Prefix(prefix) => simple.words.get(..prefix.len()).unwrap_or_default(),
                RuleMatch::Argv(_) => &simple.words[..],
                RuleMatch::Effect(_) => &[],
            };
            danger::of_command(named, &self.places).is_some()
        };
        let lifted = allowed.is_some() && rule.is_some_and(meant);
        if let Some(danger) = place.or(own.filter(|_| !lifted)) {
            return (Class::Dangerous, Reason::Danger(danger));
        }
        match (allowed, trouble, runs) {
            (Some(allowed), ..) => (Class::Safe, allowed),
            (None, Some(why), _) => (Class::Ordinary, Reason::NotKnown { why }),
            (None, None, _) if self.is_replaceable(&simple.words) => {
                (Class::Ordinary, Reason::NotKnown { why: REPLACEABLE.to_owned() })
            }
            (None, None, Some(Runs { class, plain: true })) => (class.min(Class::Ordinary), Reason::Wrapper),
            (None, None, _) => match known::check(&simple.words, &self.places) {
                Ok(()) => (Class::Safe, Reason::Known),
                Err(why) => (Class::Ordinary, Reason::NotKnown { why }),
            },
        }
    }

    /// Whether an earlier command may have written what runs, where nothing holds it. The names in a login shell are looked
    /// up on a path that is not known here.
    fn is_replaceable(&self, words: &[Word]) -> bool {
        let (Some(replaceable), Some(program)) = (self.surroundings.replaceable, words.first()) else {
            return false;
        };
        let is_login = |word: &Word| {
            word.text
                .strip_prefix('-')
                .is_some_and(|letters| !letters.starts_with('-') && letters.contains('l'))
        };
        let is_login_shell =
            wrapper::is_shell(base_name(&program.text)) && words.iter().skip(1).take(2).any(is_login);
        is_login_shell || replaceable(&program.text)
    }

    /// Judges what a command runs besides its own program.
    fn inner(&mut self, script: &Script, at: usize, via: &Via<'a>, rule: Option<&'a Rule>) -> Option<Runs> {
        let simple = script.commands.get(at)?;
        let mut runs: Option<Runs> = None;
        for inner in wrapper::open_in(script, at) {
            let mut within = Via { programs: via.programs.clone(), allowed: None };
            within.programs.extend(simple.program().map(|program| base_name(program).to_owned()));
            let (class, plain) = match inner {
                Inner::Script { text, dialect, plain } => (self.script(&text, dialect, &within), plain),
                Inner::Words { range, plain } => {
                    // A rule that names the inner program has thought of it.
                    let words = simple.words.get(range.clone()).unwrap_or_default().to_vec();
                    within.allowed = rule.filter(|rule| {
                        rule.decision == Action::Allow
                            && rule.length() > range.start
                            && (!rule.escape_sandbox || self.is_found(words.first()))
                    });
                    (self.script_of(single(words), &within), plain)
                }
            };
            runs = Some(match runs {
                Some(runs) => Runs { class: class.max(runs.class), plain: plain && runs.plain },
                None => Runs { class, plain },
            });
        }
        runs
    }

    /// Whether a program behind a wrapper is a file that no command in the sandbox can write.
    fn is_found(&self, program: Option<&Word>) -> bool {
        program.is_some_and(|program| (self.surroundings.programs)(&program.text).is_some())
    }

    /// Follows a `cd`.
    fn follow(&mut self, simple: &Simple) {
        if !matches!(simple.program(), Some("cd" | "pushd")) {
            return;
        }
        let target = simple.words.iter().skip(1).find(|word| !word.text.starts_with('-'));
        let target = target.map_or("~", |word| word.text.as_str());
        if !self.places.enter(target) {
            self.unclear.push(Unclear::new(What::TooHard, target));
        }
    }

    fn finish(self) -> Judgement {
        let Self { parts, mut unclear, files, mut outward, is_at_home, .. } = self;
        // A program that only runs another says nothing by itself.
        let says = |part: &&Part| (part.class, part.reason != Reason::Wrapper);
        let strictest = parts.iter().rev().max_by_key(says);
        let (mut class, mut why) = match strictest {
            Some(part) => (part.class, explain(part)),
            None => (Class::Ordinary, "there is nothing to run".to_owned()),
        };
        let limit = unclear.iter().find(|unclear| unclear.what.is_over_a_limit());
        let written = files.iter().find(|file| file.access != Access::Read);
        if let Some(limit) = limit.filter(|_| class < Class::Dangerous) {
            (class, why) = (Class::Dangerous, format!("{limit}: do it in smaller steps"));
        } else if let Some(unclear) = unclear.first().filter(|_| class == Class::Safe) {
            (class, why) = (Class::Ordinary, unclear.to_string());
        } else if let Some(file) = written.filter(|_| class == Class::Safe) {
            (class, why) = (Class::Ordinary, format!("it writes `{}`", file.path));
        }
        unclear.dedup();
        unclear.truncate(MAX_UNCLEAR);
        let by_rule = |part: &Part| matches!(part.reason, Reason::Rule(_));
        let leaves = |part: &Part| match &part.reason {
            Reason::Rule(rule) => rule.escape_sandbox,
            reason => *reason == Reason::Wrapper,
        };
        let safe = class == Class::Safe;
        let changes_nothing = safe && !parts.iter().any(by_rule);
        let may_leave = parts.iter().any(by_rule) && parts.iter().all(leaves);
        let escape_sandbox = safe && may_leave && is_at_home;
        // What keeps it from being safe is then a rule that lets any words follow.
        let asks_to_leave_again = class == Class::Dangerous && may_leave && unclear.is_empty();
        outward.sort_unstable();
        outward.dedup();
        Judgement {
            class,
            why,
            parts,
            unclear,
            files,
            outward,
            changes_nothing,
            escape_sandbox,
            direct_argv: None,
            asks_to_leave_again,
        }
    }
}

/// One command, as a script.
fn single(words: Vec<Word>) -> Script {
    Script { commands: vec![Simple::of(words)], unclear: Vec::new() }
}

fn explain(part: &Part) -> String {
    let program = part.argv.first().map(String::as_str).unwrap_or_default();
    match &part.reason {
        Reason::NotKnown { why } => format!("`{program}` is not known to be harmless: {why}"),
        Reason::Known | Reason::Wrapper => format!("`{program}` is {}", part.reason),
        Reason::Rule(_) | Reason::Danger(_) => part.reason.to_string(),
    }
}

/// What keeps a command from being harmless whatever its program is.
fn trouble(simple: &Simple, places: &Places) -> Option<String> {
    if let Some(unclear) = simple.words.iter().find_map(|word| Some(Unclear::new(word.unclear?, &word.text)))
    {
        return Some(unclear.to_string());
    }
    if let Some(assignment) = simple.assignments.iter().find(|assignment| !is_harmless(assignment)) {
        return Some(format!("it sets `{}`, which may change what runs", assignment.name));
    }
    if simple.words.is_empty() {
        return Some("it changes the shell itself".to_owned());
    }
    simple.redirects.iter().find_map(|redirect| match redirect.kind {
        RedirectKind::Read => secret::in_contents(&redirect.target.text, redirect.target.glob, places),
        RedirectKind::Write | RedirectKind::Append | RedirectKind::Descriptor | RedirectKind::Text => None,
    })
}

/// Whether a variable only changes how things look. None of their values is a path, but for zones such as `Europe/Rome`.
fn is_harmless(assignment: &Assignment) -> bool {
    let Assignment { name, value } = assignment;
    let zone = name == "TZ" && !value.text.starts_with('/') && !value.text.contains("..");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+.,@=".contains(c) || (c == '/' && zone);
    HARMLESS_VARIABLES.contains(&name.as_str()) && value.unclear.is_none() && value.text.chars().all(plain)
}

/// Whether a wildcard may bring options that no rule has seen.
fn adds_options(simple: &Simple) -> bool {
    simple.words.iter().any(Word::could_be_an_option)
}

/// What is worth telling a person about a command besides its words.
fn facts(simple: &Simple) -> Vec<String> {
    let assignments = simple.assignments.iter().map(|each| format!("sets {}={}", each.name, each.value.text));
    let redirects = simple.redirects.iter().filter_map(file_use).map(|file| {
        let does = match file.access {
            Access::Read => "reads",
            Access::Write => "writes",
            Access::Append => "appends to",
        };
        format!("{does} `{}`", file.path)
    });
    let wild = simple.words.iter().filter(|word| word.glob);
    let wild = wild.map(|word| format!("`{}` stands for the names that match", word.text));
    assignments.chain(redirects).chain(wild).collect()
}

/// The file of a redirection; none if it is no file, or nothing stays in it.
fn file_use(redirect: &Redirect) -> Option<FileUse> {
    let access = match redirect.kind {
        RedirectKind::Read => Access::Read,
        RedirectKind::Write => Access::Write,
        RedirectKind::Append => Access::Append,
        RedirectKind::Descriptor | RedirectKind::Text => return None,
    };
    let target = &redirect.target;
    let clear = target.unclear.is_none() && !target.glob;
    (target.text != "/dev/null").then(|| FileUse { path: target.text.clone(), access, clear })
}

#[cfg(test)]
mod tests;

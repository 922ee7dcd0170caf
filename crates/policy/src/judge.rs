//! Judges a command line: splits it into programs and classifies each.

mod unread;

use std::{collections::BTreeSet, path::Path};

use windlass_contract::effects::{CommandLine, OutwardEffect, Typed};

use crate::{
    Class, CommandDanger, CommandRule, DangerSeverity, FileAccess, FileUse, Judgement, Part, Reason,
    RuleDecision, RuleMatch, Rules, Surroundings, UnclearKind, UnclearText, danger,
    judgement::strictest,
    known,
    outward::{self, CommandContext, SourceText},
    path::WorkingDirectories,
    secret,
    shell::{
        RedirectKind, ShellDialect, ShellRedirect, ShellScript, ShellWord, SimpleCommand, VariableAssignment,
    },
    single_program,
    wrapper::{self, InnerCommand, base_name},
};

/// Maximum depth of programs that run programs. A command written by hand nests less.
const MAX_DEPTH: usize = 8;

/// Maximum number of programs in one command. With more, anything can hide among them.
const MAX_PARTS: usize = 256;

/// Maximum number of unclear texts that are reported. One is enough to decide.
const MAX_UNCLEAR: usize = 32;

/// The reason why a listed program is not known to be harmless.
const REPLACEABLE: &str =
    "nothing would hold it, and an earlier command may have replaced the file that would run";

/// Variables that only change how output looks.
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

/// Judges a command. Reads nothing but its arguments.
pub fn judge(command: &CommandLine, rules: &Rules) -> Judgement {
    judge_in(&Surroundings::unknown(), command, rules)
}

/// Judges a command of a user who works in a certain directory, wherever the command itself runs.
/// The user's own files are not settings there, even if the directory is hidden, such as
/// `~/.dotfiles`.
pub fn judge_in(surroundings: &Surroundings<'_>, command: &CommandLine, rules: &Rules) -> Judgement {
    let places = WorkingDirectories::starting(command.cwd.as_deref());
    let mut places = match surroundings.workspace {
        Some(workspace) => places.with_workspace(workspace),
        None => places,
    };
    let cwd = command.cwd.as_deref();
    let is_at_home = cwd.is_none_or(|cwd| surroundings.workspace.is_none_or(|workspace| workspace == cwd));
    if let Some(workspace) = surroundings.workspace.filter(|_| surroundings.replaceable.is_some()) {
        // Nothing holds the command, so another directory counts as a `cd` does: a checkout may
        // hold a repository with settings that git obeys.
        places.enter(&workspace.to_string_lossy());
    }
    let judgement =
        CommandJudge { is_at_home, ..CommandJudge::new(rules, *surroundings, places) }.whole(command);
    let direct_argv = if judgement.escape_sandbox { direct_argv(command, surroundings) } else { None };
    Judgement { escape_sandbox: direct_argv.is_some(), direct_argv, ..judgement }
}

/// Returns the argument vector of a command that may leave the sandbox: the file of its only
/// program, and its words.
fn direct_argv(command: &CommandLine, surroundings: &Surroundings<'_>) -> Option<Vec<String>> {
    let mut argv = single_program(command)?;
    let program = argv.first_mut()?;
    *program = (surroundings.programs)(program)?.into_os_string().into_string().ok()?;
    Some(argv)
}

/// Judges a text that would be typed into a running program. If that program is a shell, the text
/// is a script and is judged as one. It is never safe, because the program may treat it in another
/// way.
pub fn judge_typed(typed: &Typed, cwd: &Path, rules: &Rules) -> Judgement {
    let mut judge =
        CommandJudge::new(rules, Surroundings::unknown(), WorkingDirectories::starting(Some(cwd)));
    judge.script(
        &typed.text,
        ShellDialect::Bash,
        &WrapperContext { programs: vec![typed.to.clone()], allowed: None },
    );
    let judgement = judge.finish();
    if judgement.class > Class::Ordinary {
        return Judgement { escape_sandbox: false, asks_to_leave_again: false, ..judgement };
    }
    let why = format!("it is typed to `{}`, and what that makes of it is not known", typed.to);
    Judgement { class: Class::Ordinary, why, changes_nothing: false, escape_sandbox: false, ..judgement }
}

struct CommandJudge<'a> {
    rules: &'a Rules,
    surroundings: Surroundings<'a>,
    /// The command starts where the user works. Elsewhere the same words may depend on other files.
    is_at_home: bool,
    places: WorkingDirectories,
    outward: Vec<OutwardEffect>,
    source: SourceText,
    parts: Vec<Part>,
    unclear: Vec<UnclearText>,
    files: Vec<FileUse>,
}

/// The wrappers around a command.
#[derive(Clone, Default)]
struct WrapperContext<'a> {
    programs: Vec<String>,
    /// The rule that allows the wrapper together with the command that it runs.
    allowed: Option<&'a CommandRule>,
}

/// The class of the commands that a wrapper runs.
#[derive(Clone, Copy)]
struct InnerClass {
    class: Class,
    /// The wrapper adds nothing to them.
    plain: bool,
}

impl<'a> CommandJudge<'a> {
    fn new(rules: &'a Rules, surroundings: Surroundings<'a>, places: WorkingDirectories) -> Self {
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

    /// Judges a command, perhaps with a shell around it.
    fn whole(mut self, command: &CommandLine) -> Judgement {
        let words: Vec<_> = command.argv.iter().map(|word| ShellWord::literal(word)).collect();
        match wrapper::open(&words).pop() {
            // The shell that a tool uses for every line is not reported.
            Some(InnerCommand::Script { text, dialect, plain: true }) if !self.is_replaceable(&words) => {
                self.script(&text, dialect, &WrapperContext::default())
            }
            _ => self.words(words),
        };
        self.finish()
    }

    /// Judges a command that no shell reads.
    fn words(&mut self, words: Vec<ShellWord>) -> Class {
        self.unclear.extend(words.iter().find_map(|word| UnclearText::hidden(&word.text)));
        self.script_of(single(words), &WrapperContext::default())
    }

    fn script(&mut self, text: &str, dialect: ShellDialect, via: &WrapperContext<'a>) -> Class {
        if self.source.is_empty() {
            self.source = SourceText::new(text);
        }
        let mut script = ShellScript::parse(text, dialect);
        let clear = script.is_clear();
        // The texts go to the reader of the judgement; the script keeps the kinds.
        self.unclear.extend(script.unclear.iter_mut().map(UnclearText::take));
        let unread = std::mem::take(&mut script.unread);
        let class = self.script_of(script, via);
        let class = unread.iter().fold(class, |class, text| class.max(self.unread(text, via)));
        if clear { class } else { class.max(Class::Ordinary) }
    }

    fn script_of(&mut self, script: ShellScript, via: &WrapperContext<'a>) -> Class {
        if via.programs.len() > MAX_DEPTH {
            self.unclear.push(UnclearText::new(UnclearKind::TooDeep, "programs that run programs"));
            return Class::Dangerous;
        }
        let mut class = Class::Safe;
        let mut own = Vec::with_capacity(script.commands.len().min(MAX_PARTS));
        for at in 0..script.commands.len() {
            if self.parts.len() >= MAX_PARTS {
                self.unclear.push(UnclearText::new(UnclearKind::TooHard, "more programs than are looked at"));
                class = class.max(Class::Dangerous);
                break;
            }
            own.push(self.parts.len());
            class = class.max(self.command(&script, at, via));
        }
        // The words are moved only now, because judging the later commands needs them.
        for (part, simple) in own.into_iter().zip(script.commands) {
            self.parts[part].argv = simple.words.into_iter().map(|word| word.text).collect();
        }
        class
    }

    /// Judges one command and the commands that it runs. Its own part comes before theirs and has
    /// no words yet.
    fn command(&mut self, script: &ShellScript, at: usize, via: &WrapperContext<'a>) -> Class {
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
        let effects = outward::command_effects(context);
        self.outward.extend(&effects);
        let rule = self.rule(&simple.words, &effects);
        let runs = self.inner(script, at, via, rule);
        let place = danger::context_danger(script, at, &self.places);
        let (class, reason) = self.weigh(simple, rule.or(via.allowed), place, runs);
        (self.parts[own].class, self.parts[own].reason) = (class, reason);
        self.files.extend(simple.redirects.iter().filter_map(file_use));
        self.follow(simple);
        let class = class.max(runs.map_or(Class::Safe, |runs| runs.class));
        if outward::hides_program(&simple.words) { class.max(self.unread_source(via)) } else { class }
    }

    /// Returns the strictest rule for a command: for its words, or for its effects beyond the
    /// machine.
    fn rule(&self, words: &[ShellWord], effects: &BTreeSet<OutwardEffect>) -> Option<&'a CommandRule> {
        let by_words = self.rules.find(words, &self.surroundings);
        let by_effect = effects.iter().filter_map(|effect| self.rules.find_effect(*effect));
        by_words.into_iter().chain(by_effect).max_by_key(|rule| rule.decision)
    }

    /// Returns the class of a command by itself: the strictest finding counts.
    fn weigh(
        &self,
        simple: &SimpleCommand,
        rule: Option<&CommandRule>,
        place: Option<CommandDanger>,
        runs: Option<InnerClass>,
    ) -> (Class, Reason) {
        let own = danger::command_danger(&simple.words, &self.places);
        let never = |danger: &&CommandDanger| danger.severity == DangerSeverity::Never;
        if let Some(danger) = own.iter().chain(&place).find(never) {
            return (Class::Forbidden, Reason::Danger(danger.clone()));
        }
        let ruled = |ruling| rule.filter(|rule| rule.decision == ruling).cloned().map(Reason::Rule);
        if let Some(forbidden) = ruled(RuleDecision::Forbid) {
            return (Class::Forbidden, forbidden);
        }
        let any_words = rule.filter(|rule| rule.leaves_with_any_words()).cloned().map(Reason::Rule);
        if let Some(asked) = ruled(RuleDecision::Ask).or(any_words) {
            return (Class::Dangerous, asked);
        }
        let trouble = trouble(simple, &self.places);
        let allowed = ruled(RuleDecision::Allow).filter(|_| trouble.is_none() && !adds_options(simple));
        // A rule for `git push` was not meant for `git push --force`, unless it names the option.
        let meant = |rule: &CommandRule| {
            let named = match &rule.matches {
                RuleMatch::Prefix(prefix) => simple.words.get(..prefix.len()).unwrap_or_default(),
                RuleMatch::Argv(_) => &simple.words[..],
                RuleMatch::Effect(_) => &[],
            };
            danger::command_danger(named, &self.places).is_some()
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
            (None, None, Some(InnerClass { class, plain: true })) => {
                (class.min(Class::Ordinary), Reason::Wrapper)
            }
            (None, None, _) => match known::check(&simple.words, &self.places) {
                Ok(()) => (Class::Safe, Reason::Known),
                Err(why) => (Class::Ordinary, Reason::NotKnown { why }),
            },
        }
    }

    /// Returns true if an earlier command may have written the program, and nothing holds the file.
    /// A login shell looks names up on a path that is not known here.
    fn is_replaceable(&self, words: &[ShellWord]) -> bool {
        let (Some(replaceable), Some(program)) = (self.surroundings.replaceable, words.first()) else {
            return false;
        };
        let is_login = |word: &ShellWord| {
            word.text
                .strip_prefix('-')
                .is_some_and(|letters| !letters.starts_with('-') && letters.contains('l'))
        };
        let is_login_shell =
            wrapper::is_shell(base_name(&program.text)) && words.iter().skip(1).take(2).any(is_login);
        is_login_shell || replaceable(&program.text)
    }

    /// Judges the commands that a command runs besides its own program.
    fn inner(
        &mut self,
        script: &ShellScript,
        at: usize,
        via: &WrapperContext<'a>,
        rule: Option<&'a CommandRule>,
    ) -> Option<InnerClass> {
        let simple = script.commands.get(at)?;
        let mut runs: Option<InnerClass> = None;
        for inner in wrapper::open_in(script, at) {
            let mut within = WrapperContext { programs: via.programs.clone(), allowed: None };
            within.programs.extend(simple.program().map(|program| base_name(program).to_owned()));
            let (class, plain) = match inner {
                InnerCommand::Script { text, dialect, plain } => {
                    (self.script(&text, dialect, &within), plain)
                }
                InnerCommand::Text(text) => (self.code(&text, &within), false),
                InnerCommand::Line => (self.unread_source(&within), false),
                InnerCommand::Words { range, plain } => {
                    // A rule that names the inner program was meant for it.
                    let words = simple.words.get(range.clone()).unwrap_or_default().to_vec();
                    within.allowed = rule.filter(|rule| {
                        rule.decision == RuleDecision::Allow
                            && rule.length() > range.start
                            && (!rule.escape_sandbox || self.is_found(words.first()))
                    });
                    (self.script_of(single(words), &within), plain)
                }
            };
            runs = Some(match runs {
                Some(runs) => InnerClass { class: class.max(runs.class), plain: plain && runs.plain },
                None => InnerClass { class, plain },
            });
        }
        runs
    }

    /// Returns true if a program behind a wrapper is a file that no command in the sandbox can
    /// write.
    fn is_found(&self, program: Option<&ShellWord>) -> bool {
        program.is_some_and(|program| (self.surroundings.programs)(&program.text).is_some())
    }

    /// Follows a `cd`.
    fn follow(&mut self, simple: &SimpleCommand) {
        if !matches!(simple.program(), Some("cd" | "pushd")) {
            return;
        }
        let target = simple.words.iter().skip(1).find(|word| !word.text.starts_with('-'));
        let target = target.map_or("~", |word| word.text.as_str());
        if !self.places.enter(target) {
            self.unclear.push(UnclearText::new(UnclearKind::TooHard, target));
        }
    }

    fn finish(self) -> Judgement {
        let Self { parts, mut unclear, files, mut outward, is_at_home, .. } = self;
        let (mut class, mut why) = match strictest(&parts) {
            Some(part) => (part.class, explain(part)),
            None => (Class::Ordinary, "there is nothing to run".to_owned()),
        };
        let limit = unclear.iter().find(|unclear| unclear.what.is_over_a_limit());
        let written = files.iter().find(|file| file.access != FileAccess::Read);
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
        // Then the obstacle is a rule that lets any words follow.
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

/// Returns a script of one command.
fn single(words: Vec<ShellWord>) -> ShellScript {
    ShellScript { commands: vec![SimpleCommand::from_words(words)], ..ShellScript::default() }
}

fn explain(part: &Part) -> String {
    let program = part.argv.first().map(String::as_str).unwrap_or_default();
    match &part.reason {
        Reason::NotKnown { why } => format!("`{program}` is not known to be harmless: {why}"),
        Reason::Known | Reason::Wrapper => format!("`{program}` is {}", part.reason),
        Reason::Rule(_) | Reason::Danger(_) => part.reason.to_string(),
    }
}

/// Returns the reason why a command is not harmless, whatever its program is.
fn trouble(simple: &SimpleCommand, places: &WorkingDirectories) -> Option<String> {
    if let Some(unclear) =
        simple.words.iter().find_map(|word| Some(UnclearText::new(word.unclear?, &word.text)))
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

/// Returns true if a variable only changes how output looks. None of their values is a path, except
/// zones such as `Europe/Rome`.
fn is_harmless(assignment: &VariableAssignment) -> bool {
    let VariableAssignment { name, value } = assignment;
    let zone = name == "TZ" && !value.text.starts_with('/') && !value.text.contains("..");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+.,@=".contains(c) || (c == '/' && zone);
    HARMLESS_VARIABLES.contains(&name.as_str()) && value.unclear.is_none() && value.text.chars().all(plain)
}

/// Returns true if a wildcard may add options that no rule has checked.
fn adds_options(simple: &SimpleCommand) -> bool {
    simple.words.iter().any(ShellWord::could_be_an_option)
}

/// Returns facts about a command, besides its words, that a person should see.
fn facts(simple: &SimpleCommand) -> Vec<String> {
    let assignments = simple.assignments.iter().map(|each| format!("sets {}={}", each.name, each.value.text));
    let redirects = simple.redirects.iter().filter_map(file_use).map(|file| {
        let does = match file.access {
            FileAccess::Read => "reads",
            FileAccess::Write => "writes",
            FileAccess::Append => "appends to",
        };
        format!("{does} `{}`", file.path)
    });
    let wild = simple.words.iter().filter(|word| word.glob);
    let wild = wild.map(|word| format!("`{}` stands for the names that match", word.text));
    assignments.chain(redirects).chain(wild).collect()
}

/// Returns the file of a redirection; none if it is not a file, or if nothing stays in it.
fn file_use(redirect: &ShellRedirect) -> Option<FileUse> {
    let access = match redirect.kind {
        RedirectKind::Read => FileAccess::Read,
        RedirectKind::Write => FileAccess::Write,
        RedirectKind::Append => FileAccess::Append,
        RedirectKind::Descriptor | RedirectKind::Text => return None,
    };
    let target = &redirect.target;
    let clear = target.unclear.is_none() && !target.glob;
    (target.text != "/dev/null").then(|| FileUse { path: target.text.clone(), access, clear })
}

#[cfg(test)]
mod tests;

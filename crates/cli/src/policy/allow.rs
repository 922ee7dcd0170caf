//! `windlass policy allow` and `windlass policy deny`: write a lasting rule, as an answer to a
//! question does, and say what it matches.

use serde_json::json;
use windlass::{
    CommandLine, Offer, Reach, Rulebook,
    policy::{
        Class, CommandRule, Judgement, Reason, RuleFile, RuleSuggestion, Rules, Ruling, Trust, Wish, offer,
    },
};

use super::{LineJudge, answers::RuleWriter, files::project_root, rule_list, shell};
use crate::{
    args::RuleOptions,
    exit::ProgramExit,
    output::{print, print_text},
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
};

/// Commands like the one of a rule: `C` stands for it, and `P` for its program.
const NEIGHBOURS: [&str; 9] =
    ["C --verbose", "C one two", "cd src && C", "C | tail -5", "C > out.txt", "C $x", "P", "sudo C", "./C"];

/// Runs `policy allow`.
pub(super) fn allow(setup: &ProgramSetup, args: &RuleOptions) -> Result<ProgramExit, CliProblem> {
    let command = checked(setup, &args.command)?;
    let judge = LineJudge::new(setup)?;
    let (ruling, before) = judge.line_in(&setup.cwd, command);
    if before.class == Class::Safe {
        return print_text(&format!(
            "`{}` already runs without a question: {}\nno rule was written\n",
            visible(command),
            visible(&before.why)
        ));
    }
    let line = CommandLine { argv: shell(command), cwd: Some(setup.cwd.clone()) };
    let found = judge.in_surroundings(&setup.cwd, |surroundings| {
        offer(&line, &judge.rules, &[], Wish::Contained, surroundings)
    });
    let rule = found.ok_or_else(|| refusal(command, &before))?;
    if ruling == Ruling::Run {
        crate::note(&format!(
            "note: with the approval policy `{}` it runs in the sandbox without a question anyway",
            judge.approval.name()
        ));
    }
    NewRule { judge, command, rule }.write(setup, args)
}

/// Runs `policy deny`.
pub(super) fn deny(setup: &ProgramSetup, args: &RuleOptions) -> Result<ProgramExit, CliProblem> {
    let command = checked(setup, &args.command)?;
    let judge = LineJudge::new(setup)?;
    let (_, before) = judge.line_in(&setup.cwd, command);
    if before.class == Class::Forbidden {
        return print_text(&format!(
            "`{}` is already refused: {}\nno rule was written\n",
            visible(command),
            visible(&before.why)
        ));
    }
    let [part] = &before.parts[..] else {
        return Err(CliProblem::usage(format!(
            "a rule is about one program, and `{}` runs {}; write one rule for each",
            visible(command),
            before.parts.len()
        )));
    };
    if !before.unclear.is_empty() || !before.files.is_empty() || part.argv.is_empty() {
        return Err(refusal(command, &before));
    }
    let words = RuleSuggestion {
        prefix: part.argv.clone(),
        covers: Vec::new(),
        also: Vec::new(),
        explanation: format!(
            "every command that begins with `{}`, behind any path and wrapper",
            part.argv.join(" ")
        ),
    };
    let toml = words.to_toml().replace("decision = \"allow\"", "decision = \"forbid\"");
    NewRule { judge, command, rule: Offer { toml, allows: words.explanation } }.write(setup, args)
}

/// Returns the command if a rule may be made from it.
fn checked<'a>(setup: &ProgramSetup, command: &'a str) -> Result<&'a str, CliProblem> {
    let command = command.trim();
    if command.is_empty() {
        return Err(CliProblem::usage("the command is empty; give its first words, as in `cargo test`"));
    }
    if setup.secrets().clean(command) != command {
        return Err(CliProblem::usage("the command contains a secret, and no rule is made from one"));
    }
    Ok(command)
}

/// Explains why a rule for a command would have no effect.
fn refusal(command: &str, judgement: &Judgement) -> CliProblem {
    let by_hand = "a rule that names exactly this can be written by hand: docs/policy.md#rules";
    let reason = match judgement.class {
        Class::Forbidden => format!("it is refused, and the strictest decision counts: {}", judgement.why),
        Class::Dangerous => format!("it is asked about each time: {}; {by_hand}", judgement.why),
        _ if !judgement.unclear.is_empty() => {
            let unclear: Vec<_> = judgement.unclear.iter().map(ToString::to_string).collect();
            format!("its text does not say what it does: {}; give the words as they are", unclear.join("; "))
        }
        _ if !judgement.files.is_empty() => {
            "redirections read and write files and are never covered by a rule; leave them out".to_owned()
        }
        Class::Safe | Class::Ordinary => too_general(judgement).unwrap_or_else(|| judgement.why.clone()),
    };
    CliProblem::usage(format!("no rule is written for `{}`: {}", visible(command), visible(&reason)))
}

/// Returns the fault of the rule that would be written, if it has one.
fn too_general(judgement: &Judgement) -> Option<String> {
    judgement.parts.iter().filter(|part| matches!(part.reason, Reason::NotKnown { .. })).find_map(|part| {
        let (covers, also, explanation) = (Vec::new(), Vec::new(), String::new());
        let toml = RuleSuggestion { prefix: part.argv.clone(), covers, also, explanation }.to_toml();
        let error = Rules::load(&[RuleFile { name: "rule", text: &toml, trust: Trust::User }]).err()?;
        error.faults.first().map(|fault| fault.problem.to_string())
    })
}

/// A rule to write.
struct NewRule<'a> {
    judge: LineJudge,
    command: &'a str,
    rule: Offer,
}

impl NewRule<'_> {
    fn write(mut self, setup: &ProgramSetup, args: &RuleOptions) -> Result<ProgramExit, CliProblem> {
        let file = RuleFile { name: "new rule", text: &self.rule.toml, trust: Trust::User };
        let added = Rules::load(&[file]).map_err(|error| CliProblem::usage(error.to_string()))?;
        let rules: Vec<_> = added.iter().cloned().collect();
        let before = self.neighbours(setup);
        self.judge.rules.add(added);
        let after = self.neighbours(setup);
        let (changed, same): (Vec<_>, Vec<_>) =
            before.into_iter().zip(after).partition(|((_, before), (_, after))| before != after);
        let lines = |pairs: Vec<((String, Class), (String, Class))>| -> Vec<String> {
            pairs.into_iter().map(|(_, (line, _))| line).collect()
        };
        let (also, not) = (lines(changed), lines(same));
        let reach = if args.user { Reach::Everywhere } else { Reach::Project };
        let writer = RuleWriter::new(&setup.home, project_root(&setup.cwd));
        if !args.dry_run {
            writer.keep(reach, &self.rule).map_err(CliProblem::failed)?;
        }
        let path = writer.path(reach);
        let ids = if args.dry_run { Vec::new() } else { written_ids(setup, &rules)? };
        if args.json {
            let value = json!({
                "rules": rules, "ids": ids, "file": path, "written": !args.dry_run,
                "matches": self.rule.allows, "also": also, "not": not,
            });
            return print(&format!("{value:#}\n"));
        }
        let scope = if args.user {
            "in all projects".to_owned()
        } else {
            format!("below {}", visible_path(project_root(&setup.cwd)))
        };
        let verb = if args.dry_run { "would be added to" } else { "added to" };
        let indented: String =
            self.rule.toml.lines().map(|line| format!("    {}\n", visible(line))).collect();
        let examples = |title: &str, lines: &[String]| {
            let lines: String = lines.iter().map(|line| format!("  {}\n", visible(line))).collect();
            if lines.is_empty() { String::new() } else { format!("{title}\n{lines}") }
        };
        let revoke: String =
            ids.iter().map(|id| format!("to remove it: windlass policy revoke {id}\n")).collect();
        print_text(&format!(
            "{verb} `{}`:\n\n{indented}\nIt matches {scope}: {}\n{}{}{revoke}",
            visible_path(&path),
            visible(&self.rule.allows),
            examples("It also matches, for example:", &also),
            examples("It does not match, for example:", &not),
        ))
    }

    /// Classifies commands like this one.
    fn neighbours(&self, setup: &ProgramSetup) -> Vec<(String, Class)> {
        let program = self.command.split_whitespace().next().unwrap_or_default();
        let line = |pattern: &&str| {
            let line = pattern.replace('C', self.command);
            if *pattern == "P" { program.to_owned() } else { line }
        };
        let lines = NEIGHBOURS.iter().map(line).filter(|line| line != self.command);
        let class = |line: &str| self.judge.line_in(&setup.cwd, line).1.class;
        lines.map(|line| (line.clone(), class(&line))).collect()
    }
}

/// Returns the ids of rules that were written.
fn written_ids(setup: &ProgramSetup, rules: &[CommandRule]) -> Result<Vec<String>, CliProblem> {
    rules.iter().filter_map(|rule| rule_list::id_of(setup, rule).transpose()).collect()
}

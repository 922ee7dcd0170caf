//! `windlass policy rules` and `windlass policy revoke`: lists the rules in force with their files,
//! and removes one.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    ops::Range,
    path::Path,
};

use serde_json::{Value, json};
use windlass::policy::{CommandRule, RuleDecision, RuleFault, RuleFile, Rules, Trust};
use windlass_tui::KeptRule;

use super::{
    answers,
    files::{self, SourceFile},
    redacted_rule::redacted,
};
use crate::{
    confirm::agrees,
    exit::ProgramExit,
    output::print,
    problem::CliProblem,
    redact::own,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
};

/// Prints all rules in force. Of a damaged file, the readable rules are listed and the faults are
/// reported.
pub(super) fn list(setup: &ProgramSetup, json: bool) -> Result<ProgramExit, CliProblem> {
    let sources = files::sources(setup)?;
    let found = FoundRules::new(&sources);
    found.notes.iter().for_each(|text| crate::note(&format!("note: {}", visible(text))));
    let rules: Vec<_> = found.listed(&sources).collect();
    if json {
        let values: Vec<_> = rules.iter().map(ListedRule::json).collect();
        print(&format!("{:#}\n", Value::from(values)))?;
    } else if rules.is_empty() && found.faults.is_empty() {
        print("there are no rules\n")?;
    } else if !rules.is_empty() {
        let rows = rules.iter().map(ListedRule::row).collect();
        let table = TextTable {
            titles: ["ID", "DECISION", "COMMANDS", "ANSWERED", "FROM"],
            expendable: &["ANSWERED"],
            last: LastColumn::Wrapped,
            rows,
        };
        print(&table.text())?;
    }
    if found.faults.is_empty() { Ok(ProgramExit::Done) } else { Err(found.problem("commands do not run")) }
}

/// Returns all rules in force, for a list within a session.
pub(crate) fn kept_rules(setup: &ProgramSetup) -> Result<Vec<KeptRule>, CliProblem> {
    let sources = files::sources(setup)?;
    let found = FoundRules::new(&sources);
    let rule = |rule: ListedRule<'_>| {
        let [id, decision, commands, _answered, from] = rule.row();
        KeptRule { id, text: format!("{decision} {commands}  {from}") }
    };
    Ok(found.listed(&sources).map(rule).collect())
}

/// Removes a rule from its file, with all its copies there.
pub(super) fn revoke(setup: &ProgramSetup, id: &str, agreed: bool) -> Result<ProgramExit, CliProblem> {
    let sources = files::sources(setup)?;
    let found = FoundRules::new(&sources);
    let listed: Vec<_> = found.listed(&sources).collect();
    let fitting: Vec<_> = listed.iter().filter(|rule| !id.is_empty() && rule.id.starts_with(id)).collect();
    let is_damaged = fitting.iter().any(|rule| rule.is_damaged) || fitting.is_empty();
    if is_damaged && !found.faults.is_empty() {
        return Err(found.problem("the rule is not revoked"));
    }
    let Some(rule) = fitting.first().filter(|first| fitting.iter().all(|rule| rule.id == first.id)) else {
        let problem =
            if fitting.is_empty() { "there is no such rule" } else { "several rules have this prefix" };
        return Err(CliProblem::usage(format!(
            "cannot revoke `{}`: {problem}; `windlass policy rules` lists them",
            visible(id)
        )));
    };
    let source = rule.source.ok_or_else(|| CliProblem::failed("the file of the rule is gone"))?;
    let equal: Vec<_> = fitting.iter().map(|rule| rule.rule).collect();
    let removal = RuleRemoval::find(source, &equal)?;
    let path = visible_path(&source.path);
    crate::note(&format!("{}:\n\n{}", rule.owner(), visible_each(&removal.text(&source.text))));
    let (it, rules) = match equal.len() {
        1 => ("it".to_owned(), format!("rule {}", rule.id)),
        count => (format!("all {count} equal rules"), format!("{count} equal rules {}", rule.id)),
    };
    let question = format!("Remove {it} from `{path}`? [y/N] ");
    if !agreed && !agrees(&question, "pass `--yes` to remove it")? {
        crate::note("nothing was removed");
        return Ok(ProgramExit::Refused);
    }
    removal
        .carry_out(source)
        .map_err(|error| CliProblem::file("cannot change the rules", &source.path, &error))?;
    print(&format!("removed {rules} from `{path}`, {}\n", removal.lines()))?;
    Ok(ProgramExit::Done)
}

/// Returns the id of a rule that was just written: the first with its words and its decision.
pub(super) fn id_of(setup: &ProgramSetup, rule: &CommandRule) -> Result<Option<String>, CliProblem> {
    let sources = files::sources(setup)?;
    let found = FoundRules::new(&sources);
    let equal = |each: &ListedRule<'_>| {
        each.rule.matches == rule.matches && each.rule.decision == rule.decision && each.kind() == "answer"
    };
    Ok(found.listed(&sources).find(equal).map(|each| each.id))
}

/// The rules of all files, read file by file.
#[derive(Default)]
struct FoundRules {
    /// Each with true if its file is damaged.
    rules: Vec<(CommandRule, bool)>,
    notes: Vec<String>,
    faults: Vec<RuleFault>,
}

impl FoundRules {
    fn new(sources: &[SourceFile]) -> Self {
        let mut found = Self::default();
        for source in sources {
            match source.parse(&source.text) {
                Ok(rules) => {
                    found.notes.extend_from_slice(rules.notes());
                    found.rules.extend(rules.iter().map(|rule| (rule.clone(), false)));
                }
                Err(error) => {
                    found.faults.extend(error.faults);
                    found.rules.extend(readable(source).into_iter().map(|rule| (rule, true)));
                }
            }
        }
        found
    }

    fn listed<'a>(&'a self, sources: &'a [SourceFile]) -> impl Iterator<Item = ListedRule<'a>> {
        self.rules.iter().map(move |(rule, is_damaged)| ListedRule {
            id: id(rule),
            rule,
            source: sources.iter().find(|source| source.name == rule.file),
            is_damaged: *is_damaged,
        })
    }

    /// Returns all faults, their effect, and how to fix them.
    fn problem(&self, effect: &str) -> CliProblem {
        let faults: Vec<_> = self.faults.iter().map(ToString::to_string).collect();
        let count = self.faults.iter().map(|fault| &fault.file).collect::<BTreeSet<_>>().len();
        let file = if count == 1 { "the file is" } else { "the files are" };
        let advice = format!("{file} damaged: {effect} until these lines are corrected or removed");
        CliProblem::usage(format!("{}\n{advice}", faults.join("\n")))
    }
}

/// Returns the rules of a damaged file that are valid by themselves, with their lines.
fn readable(source: &SourceFile) -> Vec<CommandRule> {
    let lines: Vec<_> = source.text.split_inclusive('\n').collect();
    let starts: Vec<_> = (0..lines.len()).filter(|at| lines[*at].trim_start().starts_with("[[")).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let pieces = starts.iter().zip(ends).map(|(start, end)| {
        // Empty lines before it keep the line numbers of the file.
        format!("{}{}", "\n".repeat(*start), lines[*start..end].concat())
    });
    let parsed = pieces.filter_map(|piece| Some(source.parse(&piece).ok()?.iter().cloned().collect()));
    parsed.collect::<Vec<Vec<_>>>().concat()
}

fn visible_each(text: &str) -> String {
    text.lines().map(|line| format!("    {}\n", visible(&own().clean(line)))).collect()
}

/// A rule with its file.
struct ListedRule<'a> {
    id: String,
    rule: &'a CommandRule,
    source: Option<&'a SourceFile>,
    /// The file is damaged, so the rule is not in force.
    is_damaged: bool,
}

impl ListedRule<'_> {
    /// Returns the author of the rule.
    fn kind(&self) -> &'static str {
        let is_answer = |source: &&SourceFile| source.path.file_name() == Some(answers::NAME.as_ref());
        match self.source {
            Some(source) if source.trust == Trust::Project => "project",
            source if source.as_ref().is_some_and(is_answer) => "answer",
            _ => "user",
        }
    }

    /// Returns the owner of the file that would be edited.
    fn owner(&self) -> String {
        let place = format!("`{}`, line {}", visible(&self.rule.file), self.rule.line);
        match self.kind() {
            "answer" => format!("{place}, created by an answer of yours"),
            "project" => format!("{place}, a file of the project, which others may share"),
            _ => format!("{place}, a file that you wrote yourself"),
        }
    }

    /// Returns the file and the line. The files of a project are named by its path, not by the
    /// directory that stands for it.
    fn place(&self) -> String {
        let CommandRule { file, line, .. } = self.rule;
        let project = self.source.and_then(|source| answers::project_of(&source.path));
        match (project, file.rsplit_once('/')) {
            (Some(project), Some((_, name))) => format!("{name}:{line} for {}", project.display()),
            _ => format!("{file}:{line}"),
        }
    }

    fn decision(&self) -> String {
        let name = match self.rule.decision {
            RuleDecision::Allow => "allow",
            RuleDecision::Ask => "ask",
            RuleDecision::Forbid => "forbid",
        };
        match (self.rule.escape_sandbox, self.rule.leaves_with_any_words()) {
            (true, true) => "asked again (outside the sandbox)".to_owned(),
            (true, false) => format!("{name}, outside the sandbox"),
            (false, _) => name.to_owned(),
        }
    }

    fn row(&self) -> [String; 5] {
        let tail = matches!(self.rule.matches, windlass::policy::RuleMatch::Prefix(_));
        let commands = format!("{}{}", redacted(self.rule).shown(), if tail { " …" } else { "" });
        let answered = self.rule.answered.clone().unwrap_or_else(|| "-".to_owned());
        let damaged = if self.is_damaged { ", damaged file" } else { "" };
        let from = format!("{} ({}{damaged})", self.place(), self.kind());
        [self.id.clone(), self.decision(), visible(&commands), visible(&answered), visible(&from)]
    }

    fn json(&self) -> Value {
        let mut value = json!(redacted(self.rule));
        value["id"] = json!(self.id);
        value["source"] = json!(self.kind());
        value["is_obeyed"] = json!(!self.is_damaged && !self.rule.leaves_with_any_words());
        value
    }
}

/// Returns an id for a rule that does not depend on its position in the file.
fn id(rule: &CommandRule) -> String {
    let text = format!("{}\n{}\n{:?}\n{}", rule.file, rule.shown(), rule.decision, rule.escape_sandbox);
    // FNV-1a, the same in every build.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}").chars().take(8).collect()
}

/// The lines of one rule, or of several equal ones.
#[derive(Debug)]
struct RuleRemoval {
    /// Counted from 0, in order.
    ranges: Vec<Range<usize>>,
    /// The file without them.
    rest: String,
}

impl RuleRemoval {
    /// Finds the lines of rules. The rest must contain all the other rules and nothing else.
    fn find(source: &SourceFile, rules: &[&CommandRule]) -> Result<Self, CliProblem> {
        let lines: Vec<_> = source.text.split_inclusive('\n').collect();
        let mut ranges: Vec<_> = rules.iter().map(|rule| rule_lines(&lines, rule)).collect();
        ranges.sort_by_key(|range| range.start);
        let is_kept = |at: usize| !ranges.iter().any(|range| range.contains(&at));
        let rest: String = (0..lines.len()).filter(|at| is_kept(*at)).map(|at| lines[at]).collect();
        let by_hand = || {
            let path = visible_path(&source.path);
            CliProblem::failed(format!("cannot locate the rule in `{path}`; edit the file yourself"))
        };
        let ids = |text: &str| -> Option<Vec<String>> {
            let file = RuleFile { name: &source.name, text, trust: Trust::User };
            Some(Rules::load(&[file]).ok()?.iter().map(id).collect())
        };
        let removed: Vec<_> = rules.iter().map(|rule| id(rule)).collect();
        let before = ids(&source.text).ok_or_else(by_hand)?;
        let others: Vec<_> = before.iter().filter(|each| !removed.contains(each)).cloned().collect();
        if before.len() == others.len() + removed.len() && ids(&rest).ok_or_else(by_hand)? == others {
            Ok(Self { ranges, rest })
        } else {
            Err(by_hand())
        }
    }

    /// Returns the lines to remove.
    fn text(&self, file: &str) -> String {
        let lines: Vec<_> = file.split_inclusive('\n').collect();
        self.ranges.iter().filter_map(|range| lines.get(range.clone())).map(<[&str]>::concat).collect()
    }

    /// Returns the numbers of the lines to remove, for a person.
    fn lines(&self) -> String {
        let ranges: Vec<_> =
            self.ranges.iter().map(|range| format!("lines {} to {}", range.start + 1, range.end)).collect();
        ranges.join(" and ")
    }

    /// Rewrites the file, unless it has changed meanwhile.
    fn carry_out(&self, source: &SourceFile) -> io::Result<()> {
        let path = source.path.canonicalize()?;
        let _lock = answers::lock(path.parent().unwrap_or_else(|| Path::new(".")))?;
        if fs::read_to_string(&path)? != source.text {
            return Err(io::Error::other("it has changed in the meantime"));
        }
        let permissions = fs::metadata(&path)?.permissions();
        let staged = path.with_extension("toml.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&staged)?;
        file.set_permissions(permissions)?;
        file.write_all(self.rest.as_bytes())?;
        file.sync_all()?;
        fs::rename(&staged, &path)
    }
}

/// Returns the lines of a rule, without comments before the next one.
fn rule_lines(lines: &[&str], rule: &CommandRule) -> Range<usize> {
    let first = rule.line.saturating_sub(1);
    let next = lines.iter().skip(first + 1).position(|line| line.trim_start().starts_with("[["));
    let mut end = next.map_or(lines.len(), |next| first + 1 + next);
    // Comments before the next rule belong to that.
    let is_between = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    while end > first + 1 && lines.get(end - 1).is_some_and(is_between) {
        end -= 1;
    }
    first..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> SourceFile {
        let (path, name) = ("/r.toml".into(), "/r.toml".to_owned());
        SourceFile { path, name, text: text.to_owned(), trust: Trust::User }
    }

    #[test]
    fn exactly_one_rule_is_taken_out_and_comments_stay_with_their_rules() {
        let source = source(
            "# Mine.\n\n[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\n\n# About b.\n[[rule]]\nargv = [\"b\"]\ndecision = \"ask\"\n",
        );
        let rules = files::load(std::slice::from_ref(&source)).unwrap();
        let rules: Vec<_> = rules.iter().collect();
        let removal = RuleRemoval::find(&source, &rules[..1]).unwrap();
        assert_eq!(removal.text(&source.text), "[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\n");
        assert_eq!(removal.rest, "# Mine.\n\n\n# About b.\n[[rule]]\nargv = [\"b\"]\ndecision = \"ask\"\n");
        let removal = RuleRemoval::find(&source, &rules[1..]).unwrap();
        assert!(removal.rest.ends_with("# About b.\n"), "{}", removal.rest);
    }

    #[test]
    fn a_rule_that_is_not_lines_of_its_own_is_left_to_its_author() {
        let source = source(
            "rule = [{prefix = [\"a\"], decision = \"allow\"}, {prefix = [\"b\"], decision = \"ask\"}]\n",
        );
        let rules = files::load(std::slice::from_ref(&source)).unwrap();
        assert!(RuleRemoval::find(&source, &[rules.iter().next().unwrap()]).is_err());
    }

    #[test]
    fn equal_rules_are_taken_out_together() {
        let rule = "[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\n";
        let source = source(&format!("{rule}# About b.\n{}{rule}", rule.replace("\"a\"", "\"b\"")));
        let rules = files::load(std::slice::from_ref(&source)).unwrap();
        let equal: Vec<_> = rules.iter().filter(|rule| rule.shown() == "a").collect();
        let removal = RuleRemoval::find(&source, &equal).unwrap();
        assert_eq!(removal.rest, format!("# About b.\n{}", rule.replace("\"a\"", "\"b\"")));
        assert_eq!(removal.text(&source.text), rule.repeat(2));
        assert_eq!(removal.lines(), "lines 1 to 3 and lines 8 to 10");
        assert!(RuleRemoval::find(&source, &equal[..1]).is_err(), "the other would stay");
    }

    #[test]
    fn what_can_be_read_of_a_damaged_file_is_found_with_its_lines() {
        let rule = "[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\n";
        let source = source(&format!("{rule}[[rule]]\ngarbage ===\n{rule}"));
        let found = FoundRules::new(std::slice::from_ref(&source));
        assert_eq!(found.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [5]);
        let lines: Vec<_> = found.rules.iter().map(|(rule, damaged)| (rule.line, *damaged)).collect();
        assert_eq!(lines, [(1, true), (6, true)]);
    }
}

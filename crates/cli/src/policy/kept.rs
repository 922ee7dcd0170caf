//! `windlass policy rules` and `windlass policy revoke`: the rules in force, where they come from, and taking one back.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};
use windlass::policy::{Action, Rule, RuleFile, Rules, Trust};

use super::{
    answers,
    files::{self, SourceFile},
    redacted_rule::redacted,
    suggest::agrees,
};
use crate::{
    exit::Exit,
    output::print,
    problem::Problem,
    redact::own,
    screen::{visible, visible_path},
    setup::Setup,
    table::Table,
};

/// Prints all rules in force.
pub(super) fn list(setup: &Setup, json: bool) -> Result<Exit, Problem> {
    let sources = files::sources(setup)?;
    let rules = files::load(&sources)?;
    rules.notes().iter().for_each(|text| crate::note(&format!("note: {}", visible(text))));
    let rules: Vec<_> = rules.iter().map(|rule| Listed::new(rule, &sources)).collect();
    if json {
        let values: Vec<_> = rules.iter().map(Listed::json).collect();
        print(&format!("{:#}\n", Value::from(values)))?;
    } else if rules.is_empty() {
        print("there are no rules\n")?;
    } else {
        let rows = rules.iter().map(Listed::row).collect();
        let table = Table {
            titles: ["ID", "DECISION", "COMMANDS", "ANSWERED", "FROM"],
            expendable: &["ANSWERED"],
            rows,
        };
        print(&table.text())?;
    }
    Ok(Exit::Done)
}

/// Takes a rule out of its file.
pub(super) fn revoke(setup: &Setup, id: &str, agreed: bool) -> Result<Exit, Problem> {
    let sources = files::sources(setup)?;
    let rules = files::load(&sources)?;
    let listed: Vec<_> = rules.iter().map(|rule| Listed::new(rule, &sources)).collect();
    let mut fitting = listed.iter().filter(|rule| !id.is_empty() && rule.id.starts_with(id));
    let (Some(rule), None) = (fitting.next(), fitting.next()) else {
        let count = listed.iter().filter(|rule| rule.id.starts_with(id)).count();
        let problem = if count > 1 { "several rules begin so" } else { "there is no such rule" };
        return Err(Problem::usage(format!(
            "cannot revoke `{}`: {problem}; `windlass policy rules` lists them",
            visible(id)
        )));
    };
    let source = rule.source.ok_or_else(|| Problem::failed("the file of the rule is gone"))?;
    let removal = Removal::find(source, rule.rule)?;
    let path = visible_path(&source.path);
    crate::note(&format!("{}:\n\n{}", rule.owner(), visible_each(removal.text(&source.text))));
    let question = format!("Remove it from `{path}`? (y or n) ");
    if !agreed && !agrees(&question, "give `--yes` to remove it all the same")? {
        crate::note("nothing was removed");
        return Ok(Exit::Refused);
    }
    removal
        .carry_out(source)
        .map_err(|error| Problem::file("cannot change the rules", &source.path, &error))?;
    let (first, last) = (removal.first + 1, removal.end);
    print(&format!("removed rule {} from `{path}`, lines {first} to {last}\n", rule.id))?;
    Ok(Exit::Done)
}

fn visible_each(text: &str) -> String {
    text.lines().map(|line| format!("    {}\n", visible(&own().clean(line)))).collect()
}

/// A rule with the file it is from.
struct Listed<'a> {
    id: String,
    rule: &'a Rule,
    source: Option<&'a SourceFile>,
}

impl<'a> Listed<'a> {
    fn new(rule: &'a Rule, sources: &'a [SourceFile]) -> Self {
        Self { id: id(rule), rule, source: sources.iter().find(|source| source.name == rule.file) }
    }

    /// Who made the rule.
    fn kind(&self) -> &'static str {
        let is_answer = |source: &&SourceFile| source.path.file_name() == Some(answers::NAME.as_ref());
        match self.source {
            Some(source) if source.trust == Trust::Project => "project",
            source if source.as_ref().is_some_and(is_answer) => "answer",
            _ => "user",
        }
    }

    /// Whose file would be edited.
    fn owner(&self) -> String {
        let place = format!("`{}`, line {}", visible(&self.rule.file), self.rule.line);
        match self.kind() {
            "answer" => format!("{place}, made by an answer of yours"),
            "project" => format!("{place}, a file of the project that others may share"),
            _ => format!("{place}, a file you wrote yourself, which would be edited"),
        }
    }

    fn decision(&self) -> String {
        let name = match self.rule.decision {
            Action::Allow => "allow",
            Action::Ask => "ask",
            Action::Forbid => "forbid",
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
        let from = format!("{}:{} ({})", self.rule.file, self.rule.line, self.kind());
        [self.id.clone(), self.decision(), visible(&commands), visible(&answered), visible(&from)]
    }

    fn json(&self) -> Value {
        let mut value = json!(redacted(self.rule));
        value["id"] = json!(self.id);
        value["source"] = json!(self.kind());
        value["is_obeyed"] = json!(!self.rule.leaves_with_any_words());
        value
    }
}

/// A name for a rule that stays the same wherever it is in its file.
fn id(rule: &Rule) -> String {
    let text = format!("{}\n{}\n{:?}\n{}", rule.file, rule.shown(), rule.decision, rule.escape_sandbox);
    // FNV-1a, the same in every build.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}").chars().take(8).collect()
}

/// Lines of a file that are one rule.
#[derive(Debug)]
struct Removal {
    /// Counted from 0.
    first: usize,
    /// The line behind the last.
    end: usize,
    /// The file without them.
    rest: String,
}

impl Removal {
    /// Finds the lines of a rule. What is left must be all the other rules and nothing else.
    fn find(source: &SourceFile, rule: &Rule) -> Result<Self, Problem> {
        let lines: Vec<_> = source.text.split_inclusive('\n').collect();
        let first = rule.line.saturating_sub(1);
        let next = lines.iter().skip(first + 1).position(|line| line.trim_start().starts_with("[["));
        let mut end = next.map_or(lines.len(), |next| first + 1 + next);
        // What stands before the next rule is about that.
        let is_between = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        while end > first + 1 && lines.get(end - 1).is_some_and(is_between) {
            end -= 1;
        }
        let rest: String = lines.iter().take(first).chain(lines.iter().skip(end)).copied().collect();
        let by_hand = || {
            let path = visible_path(&source.path);
            Problem::failed(format!("cannot tell the lines of the rule in `{path}`; edit the file yourself"))
        };
        let others = |text: &str| -> Option<Vec<String>> {
            let file = RuleFile { name: &source.name, text, trust: Trust::User };
            Some(Rules::load(&[file]).ok()?.iter().map(id).collect())
        };
        let mut before = others(&source.text).ok_or_else(by_hand)?;
        let own = before.iter().position(|each| *each == id(rule)).ok_or_else(by_hand)?;
        before.remove(own);
        if others(&rest).ok_or_else(by_hand)? == before {
            Ok(Self { first, end, rest })
        } else {
            Err(by_hand())
        }
    }

    fn text<'a>(&self, file: &'a str) -> &'a str {
        let start: usize = file.split_inclusive('\n').take(self.first).map(str::len).sum();
        let end: usize = file.split_inclusive('\n').take(self.end).map(str::len).sum();
        file.get(start..end).unwrap_or_default()
    }

    /// Writes the file anew, unless someone has changed it meanwhile.
    fn carry_out(&self, source: &SourceFile) -> io::Result<()> {
        let path = source.path.canonicalize()?;
        let _lock = answers::lock(path.parent().unwrap_or_else(|| Path::new(".")))?;
        if fs::read_to_string(&path)? != source.text {
            return Err(io::Error::other("someone has changed it meanwhile"));
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
        let removal = Removal::find(&source, rules[0]).unwrap();
        assert_eq!(removal.text(&source.text), "[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\n");
        assert_eq!(removal.rest, "# Mine.\n\n\n# About b.\n[[rule]]\nargv = [\"b\"]\ndecision = \"ask\"\n");
        let removal = Removal::find(&source, rules[1]).unwrap();
        assert!(removal.rest.ends_with("# About b.\n"), "{}", removal.rest);
    }

    #[test]
    fn a_rule_that_is_not_lines_of_its_own_is_left_to_its_author() {
        let source = source(
            "rule = [{prefix = [\"a\"], decision = \"allow\"}, {prefix = [\"b\"], decision = \"ask\"}]\n",
        );
        let rules = files::load(std::slice::from_ref(&source)).unwrap();
        assert!(Removal::find(&source, rules.iter().next().unwrap()).is_err());
    }
}

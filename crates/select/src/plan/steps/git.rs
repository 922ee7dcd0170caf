//! Answers questions from the git history, and compares files.

use windlass_contract::wording::shell_quote;

use super::with_rows;
use crate::plan::{
    goal::{CommitQuery, HistoryStart},
    phrases::AnswerPhrase,
    run::{PlanResult, PlanRun},
};

/// The format of a commit.
const COMMIT: &str = "--date=short --format='%h %ad %an: %s'";

impl PlanRun<'_> {
    pub(super) fn compare(&self, one: &str, two: &str) -> PlanResult<String> {
        let (one, two) = (self.file(one)?, self.file(two)?);
        if one == two {
            return Err(self.decline(AnswerPhrase::SameFile, &[&one]));
        }
        let line = format!("diff -u -- {} {}", shell_quote(&one), shell_quote(&two));
        Ok(match self.command(&line, &[0, 1])? {
            (0, _) => self.say(AnswerPhrase::Same, &[&one, &two]),
            (_, printed) => {
                format!("{}\n{}", self.say(AnswerPhrase::Differ, &[&one, &two]), printed.trim_end())
            }
        })
    }

    pub(super) fn status(&self) -> PlanResult<String> {
        let (_, printed) = self.command("git status --short --branch", &[0])?;
        let (branch, changes) = printed.split_once('\n').unwrap_or((printed, ""));
        let branch = branch.trim_start_matches("## ").split("...").next().unwrap_or_default();
        if changes.trim().is_empty() {
            return Ok(self.say(AnswerPhrase::Clean, &[]));
        }
        let names = changes.lines().filter_map(|row| row.get(3..));
        // For a renamed file the new name.
        self.remember_all(names.map(|name| name.rsplit(" -> ").next().unwrap_or(name)));
        Ok(with_rows(self.say(AnswerPhrase::Status, &[branch]), changes.lines().map(str::to_owned)))
    }

    pub(super) fn branches(&self) -> PlanResult<String> {
        let (_, printed) = self.command("git branch --all", &[0])?;
        Ok(with_rows(self.say(AnswerPhrase::Branches, &[]), printed.lines().map(str::to_owned)))
    }

    pub(super) fn log(&self, commits: &CommitQuery) -> PlanResult<String> {
        let author = commits
            .author
            .as_ref()
            .map(|name| format!(" --author={}", shell_quote(name)))
            .unwrap_or_default();
        // A single commit is shown with its changes.
        let stat = if commits.count == 1 { " --stat" } else { "" };
        let path = self.path(commits.path.as_deref())?;
        let line = format!("git log -n {} {COMMIT}{author}{stat}{path}", commits.count);
        let (_, printed) = self.command(&line, &[0])?;
        if let (Some(path), true) = (&commits.path, printed.is_empty()) {
            return Ok(self.say(AnswerPhrase::NoCommitsOf, &[path]));
        }
        if commits.count == 1 && !printed.is_empty() {
            return Ok(printed.trim_end().to_owned());
        }
        Ok(self.commits(printed))
    }

    pub(super) fn count_commits(&self, path: Option<&str>) -> PlanResult<String> {
        let path = self.path(path)?;
        let (_, printed) = self.command(&format!("git rev-list --count HEAD{path}"), &[0])?;
        Ok(self.say(AnswerPhrase::CommitCount, &[printed.trim()]))
    }

    /// Returns the end of a git command that limits it to a path.
    fn path(&self, name: Option<&str>) -> PlanResult<String> {
        let path = name.map(|name| self.place(name)).transpose()?;
        Ok(path.map(|path| format!(" -- {}", shell_quote(&path))).unwrap_or_default())
    }

    fn commits(&self, printed: &str) -> String {
        let count = printed.lines().count();
        if count == 0 {
            return self.say(AnswerPhrase::NoCommits, &[]);
        }
        with_rows(self.say(AnswerPhrase::Commits, &[&count.to_string()]), printed.lines().map(str::to_owned))
    }

    /// Shows the changes since the last commit. New files have no diff.
    pub(super) fn diff(&self, path: Option<&str>) -> PlanResult<String> {
        let Some(name) = path else {
            let status = self.status()?;
            let (_, printed) = self.command("git diff HEAD", &[0])?;
            return Ok(format!("{status}\n\n{}", printed.trim_end()).trim().to_owned());
        };
        let place = self.place(name)?;
        let path = format!(" -- {}", shell_quote(&place));
        let (_, printed) = self.command(&format!("git diff HEAD{path}"), &[0])?;
        if !printed.trim().is_empty() {
            return Ok(printed.trim().to_owned());
        }
        let (_, known) = self.command(&format!("git ls-files{path}"), &[0])?;
        let phrase =
            if known.trim().is_empty() { AnswerPhrase::NoCommitsOf } else { AnswerPhrase::PathUnchanged };
        Ok(self.say(phrase, &[&place]))
    }

    pub(super) fn changes_since(&self, since: &HistoryStart) -> PlanResult<String> {
        let (line, shown) = match since {
            HistoryStart::Revision(revision) => {
                // A leading dash would be an option.
                let revision = shell_quote(revision.trim_start_matches('-'));
                (format!("git diff --stat {revision} --"), revision)
            }
            HistoryStart::Time(time) => {
                let is_day = time == "yesterday"
                    || time.starts_with(|c: char| c.is_ascii_digit()) && time.contains('-');
                // For a date without a time git takes the current time of day, and would leave out
                // earlier commits.
                let begin = if is_day { format!("{time} 00:00:00") } else { time.clone() };
                (format!("git log --since={} {COMMIT} --stat", shell_quote(&begin)), time.clone())
            }
        };
        let (_, printed) = self.command(&line, &[0])?;
        let is_by_time = matches!(since, HistoryStart::Time(_));
        let none = if is_by_time { AnswerPhrase::NoCommitsSince } else { AnswerPhrase::NoChanges };
        let answer = if printed.trim().is_empty() {
            self.say(none, &[&shown])
        } else {
            format!("{}\n{}", self.say(AnswerPhrase::Since, &[&shown]), printed.trim_end())
        };
        Ok(if is_by_time {
            format!("{answer}\n{}", self.say(AnswerPhrase::CommitsOnly, &[]))
        } else {
            answer
        })
    }

    /// Lists the authors of a file or the project, by number of commits.
    pub(super) fn authors(&self, file: Option<&str>) -> PlanResult<String> {
        let file = file.map(|name| self.place(name)).transpose()?;
        let file = file.as_deref();
        let path = file.map(|path| format!(" -- {}", shell_quote(path))).unwrap_or_default();
        self.remember_all(file);
        let (_, printed) = self.command(&format!("git shortlog -sn HEAD{path}"), &[0])?;
        if let (Some(file), true) = (file, printed.trim().is_empty()) {
            return Ok(self.say(AnswerPhrase::NoCommitsOf, &[file]));
        }
        Ok(with_rows(
            self.say(AnswerPhrase::Authors, &[file.unwrap_or(".")]),
            printed.lines().map(str::to_owned),
        ))
    }

    /// Shows the last commit that changed a line.
    pub(super) fn blame(&self, file: &str, number: u64) -> PlanResult<String> {
        let file = self.file(file)?;
        self.remember(&file, None);
        let blame = format!("git blame --porcelain -L {number},{number} -- {}", shell_quote(&file));
        let (_, printed) = self.command(&blame, &[0])?;
        let commit = printed.split_whitespace().next().unwrap_or_default();
        let author = printed.lines().find_map(|row| row.strip_prefix("author ")).unwrap_or_default();
        let shown = number.to_string();
        if !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) || commit.bytes().all(|byte| byte == b'0') {
            return Ok(self.say(AnswerPhrase::NotCommitted, &[&file, &shown]));
        }
        let (_, summary) = self.command(&format!("git show -s {COMMIT} {commit}"), &[0])?;
        let code = printed.lines().find_map(|row| row.strip_prefix('\t')).unwrap_or_default();
        let heading = self.say(AnswerPhrase::Blame, &[&file, &shown, author]);
        Ok(with_rows(heading, [summary.trim_end().to_owned(), format!("{number:>5}  {code}")]))
    }
}

//! Answers from the history of the project, and compares files.

use super::{below, over, quote};
use crate::plan::{
    goal::Since,
    phrases::Phrase,
    run::{Planned, Run},
};

/// How a commit is shown.
const COMMIT: &str = "--date=short --format='%h %ad %an: %s'";

impl Run<'_> {
    pub(super) fn compare(&self, one: &str, two: &str) -> Planned<String> {
        let (one, two) = (self.file(one)?, self.file(two)?);
        let line = format!("diff -u -- {} {}", quote(&one), quote(&two));
        Ok(match self.command(&line, &[0, 1])? {
            (0, _) => self.say(Phrase::Same, &[&one, &two]),
            (_, printed) => format!("{}\n{}", self.say(Phrase::Differ, &[&one, &two]), printed.trim_end()),
        })
    }

    pub(super) fn status(&self) -> Planned<String> {
        let (_, printed) = self.command("git status --short --branch", &[0])?;
        let (branch, changes) = printed.split_once('\n').unwrap_or((printed, ""));
        let branch = branch.trim_start_matches("## ").split("...").next().unwrap_or_default();
        if changes.trim().is_empty() {
            return Ok(self.say(Phrase::Clean, &[]));
        }
        Ok(below(self.say(Phrase::Status, &[branch]), changes.lines().map(str::to_owned)))
    }

    pub(super) fn log(&self, count: u64, path: Option<&str>) -> Planned<String> {
        let path = path.map(|name| self.place(name)).transpose()?;
        let path = path.map(|path| format!(" -- {}", quote(&path))).unwrap_or_default();
        let (_, printed) = self.command(&format!("git log -n {count} {COMMIT}{path}"), &[0])?;
        Ok(self.commits(printed))
    }

    fn commits(&self, printed: &str) -> String {
        let count = printed.lines().count();
        if count == 0 {
            return self.say(Phrase::NoCommits, &[]);
        }
        below(self.say(Phrase::Commits, &[&count.to_string()]), printed.lines().map(str::to_owned))
    }

    /// What is different from the last commit; new files have no difference to show.
    pub(super) fn diff(&self) -> Planned<String> {
        let status = self.status()?;
        let (_, printed) = self.command("git diff HEAD", &[0])?;
        Ok(if printed.is_empty() { status } else { format!("{status}\n\n{}", printed.trim_end()) })
    }

    pub(super) fn changes_since(&self, since: &Since) -> Planned<String> {
        let (line, shown) = match since {
            Since::Revision(revision) => {
                // What begins with a dash would be an option.
                let revision = quote(revision.trim_start_matches('-'));
                (format!("git diff --stat {revision} --"), revision)
            }
            Since::Time(time) => (format!("git log --since={} {COMMIT} --stat", quote(time)), time.clone()),
        };
        let (_, printed) = self.command(&line, &[0])?;
        if printed.trim().is_empty() {
            return Ok(self.say(Phrase::NoChanges, &[&shown]));
        }
        Ok(format!("{}\n{}", self.say(Phrase::Since, &[&shown]), printed.trim_end()))
    }

    pub(super) fn blame(&self, file: &str, line: Option<u64>) -> Planned<String> {
        let file = self.file(file)?;
        let Some(number) = line else {
            let (_, printed) = self.command(&format!("git shortlog -sn HEAD -- {}", quote(&file)), &[0])?;
            return Ok(below(self.say(Phrase::Authors, &[&file]), printed.lines().map(str::to_owned)));
        };
        let blame = format!("git blame --porcelain -L {number},{number} -- {}", quote(&file));
        let (_, printed) = self.command(&blame, &[0])?;
        let commit = printed.split_whitespace().next().unwrap_or_default();
        let author = printed.lines().find_map(|row| row.strip_prefix("author ")).unwrap_or_default();
        let shown = number.to_string();
        if !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) || commit.bytes().all(|byte| byte == b'0') {
            return over(self.say(Phrase::NotCommitted, &[&file, &shown]));
        }
        let (_, summary) = self.command(&format!("git show -s {COMMIT} {commit}"), &[0])?;
        let code = printed.lines().find_map(|row| row.strip_prefix('\t')).unwrap_or_default();
        let heading = self.say(Phrase::Blame, &[&file, &shown, author]);
        Ok(below(heading, [summary.trim_end().to_owned(), format!("{number:>5}  {code}")]))
    }
}

//! Changes files, with the same tools and approvals as any model.

use std::collections::HashSet;

use serde_json::json;
use windlass_contract::wording::shell_quote;

use super::{escape_regex, value::difference, with_rows};
use crate::plan::{
    names::{NameLookup, find},
    phrases::AnswerPhrase,
    results::{self, ListedEntries},
    run::{PlanResult, PlanRun},
};

/// Maximum number of files that are deleted with a directory.
const MAX_DELETED_FILES: usize = 100;

/// Maximum number of files that are named as the reason to keep a directory.
const MAX_NAMED: usize = 3;

impl PlanRun<'_> {
    /// Creates a new file.
    pub(super) fn create(&self, path: &str, content: &str) -> PlanResult<String> {
        self.remember(path, None);
        self.require_absent(path)?;
        let output = self.call("write_file", &json!({"path": path, "content": content}))?;
        self.confirm(output, "Made ", AnswerPhrase::Created, &[path])
    }

    pub(super) fn replace(&self, file: &str, old: &str, new: &str) -> PlanResult<String> {
        let file = self.exact_file(file)?;
        self.remember(&file, None);
        let rows = if old.contains('\n') { Vec::new() } else { self.lines_with(&file, &escape_regex(old))? };
        let changed = rows.iter().map(|(line, text)| difference(&file, *line, text, &text.replace(old, new)));
        let changed: Vec<_> = changed.collect();
        self.announce(changed.join("\n"));
        let output = self.call(
            "edit_file",
            &json!({"path": file, "old_string": old, "new_string": new, "replace_all": true}),
        )?;
        let answer = self.confirm(output, "Edited ", AnswerPhrase::Replaced, &[old, new, &file])?;
        Ok(with_rows(answer, changed))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> PlanResult<String> {
        let file = self.exact_file(from)?;
        // The tool would overwrite an existing file.
        self.require_absent(to)?;
        self.remember(to, None);
        self.patch(
            &format!("*** Update File: {file}\n*** Move to: {to}"),
            AnswerPhrase::Renamed,
            &[&file, to],
        )
    }

    pub(super) fn delete(&self, file: &str) -> PlanResult<String> {
        let file = self.exact_file(file)?;
        self.patch(&format!("*** Delete File: {file}"), AnswerPhrase::Deleted, &[&file])
    }

    pub(super) fn copy(&self, from: &str, to: &str) -> PlanResult<String> {
        let file = self.exact_file(from)?;
        self.require_absent(to)?;
        self.remember(to, None);
        self.run_creating_command(&format!("cp -- {} {}", shell_quote(&file), shell_quote(to)), to)?;
        Ok(self.say(AnswerPhrase::Copied, &[&file, to]))
    }

    /// Appends lines to a file. It uses a patch, which can be undone.
    pub(super) fn append(&self, file: &str, text: &str) -> PlanResult<String> {
        let file = self.exact_file(file)?;
        self.remember(&file, None);
        let lines = self.line_count(&file)?.max(1);
        let last = self.call("read_file", &json!({"file_path": file, "offset": lines, "limit": 1}))?;
        // A patch without context appends at the end, but before an empty last line.
        let is_blank =
            results::numbered(last).is_some_and(|rows| rows.iter().all(|(_, line)| line.is_empty()));
        let (before, after) = if is_blank { ("\n ", "\n*** End of File") } else { ("", "") };
        // A patch takes a single carriage return as the end of a line, too.
        let text_lines = text.replace("\r\n", "\n").replace('\r', "\n");
        let added: String = text_lines.lines().map(|line| format!("\n+{line}")).collect();
        let change = format!("*** Update File: {file}\n@@{before}{added}{after}");
        let patch = format!("*** Begin Patch\n{change}\n*** End Patch");
        let output = self.call("apply_patch", &json!({"input": patch}))?;
        self.confirm(output, "Success.", AnswerPhrase::Appended, &[text, &file])
    }

    pub(super) fn make_directory(&self, path: &str) -> PlanResult<String> {
        self.require_absent(path)?;
        self.run_creating_command(&format!("mkdir -p -- {}", shell_quote(path)), path)?;
        Ok(self.say(AnswerPhrase::MadeDirectory, &[path]))
    }

    /// Deletes the files of a directory with a patch, which can be undone, and then the empty
    /// directories. A directory with ignored files is kept.
    pub(super) fn delete_directory(&self, name: &str) -> PlanResult<String> {
        let directory = self.exact_directory(name)?;
        let inside = self.deletable(directory)?;
        let path = |below: &&str| format!("{directory}/{below}");
        let files: Vec<_> = inside.files.iter().map(path).collect();
        if !files.is_empty() {
            let changes: Vec<_> = files.iter().map(|file| format!("*** Delete File: {file}")).collect();
            self.patch(&changes.join("\n"), AnswerPhrase::Deleted, &[directory])?;
        }
        let mut directories: Vec<_> = inside.directories.iter().map(path).collect();
        directories.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
        directories.push(directory.to_owned());
        let directories: Vec<_> = directories.iter().map(|path| shell_quote(path)).collect();
        // Some tools remove a directory after deleting its last file.
        let line = format!(
            "for d in {}; do [ ! -d \"$d\" ] || rmdir -- \"$d\" || exit 1; done",
            directories.join(" ")
        );
        let output = self.call("shell_command", &json!({"command": line}))?;
        let count = files.len().to_string();
        match results::command(output) {
            Some((0, _)) => Ok(self.say(AnswerPhrase::DeletedDirectory, &[directory, &count])),
            ended => {
                let why = ended.map_or(output, |(_, printed)| printed);
                // The files are already deleted, even if the directory cannot be.
                let kept = || self.decline(AnswerPhrase::KeptDirectory, &[&count, directory, why.trim()]);
                Err(if files.is_empty() { self.failed(why) } else { kept() })
            }
        }
    }

    /// Lists a directory, if all of it is known and can be deleted.
    fn deletable(&self, directory: &str) -> PlanResult<ListedEntries<'_>> {
        let (listed, inside) = (self.list_tree(".")?, self.list_with_ignored(directory)?);
        if inside.files.len() > MAX_DELETED_FILES {
            return Err(
                self.decline(AnswerPhrase::TooManyFiles, &[directory, &MAX_DELETED_FILES.to_string()])
            );
        }
        if listed.more || inside.more {
            return Err(self.decline(AnswerPhrase::TooMuchToList, &[directory]));
        }
        let known: HashSet<_> = listed.files.iter().chain(&listed.directories).copied().collect();
        let paths = inside.files.iter().chain(&inside.directories);
        let left_out = paths.copied().filter(|path| !known.contains(format!("{directory}/{path}").as_str()));
        match left_out.take(MAX_NAMED).collect::<Vec<_>>().as_slice() {
            [] => Ok(inside),
            left_out => Err(self.decline(AnswerPhrase::LeftOut, &[directory, &self.language.list(left_out)])),
        }
    }

    /// Returns the file with exactly this path, also if it is ignored. A similar name is enough
    /// only for reading.
    pub(super) fn exact_file(&self, name: &str) -> PlanResult<String> {
        match self.look_up(name)? {
            NameLookup::One(path) if path == name => Ok(path.to_owned()),
            _ if self.exists(name)? => Ok(name.to_owned()),
            found => Err(self.decline_inexact(name, found, AnswerPhrase::NoFile)),
        }
    }

    /// Returns the listed directory with exactly this path.
    fn exact_directory<'n>(&self, name: &'n str) -> PlanResult<&'n str> {
        let name = name.trim_start_matches("./");
        let listing = self.list_tree(".")?;
        if listing.directories.contains(&name) {
            return Ok(name);
        }
        if self.exists(name)? {
            let why = if listing.more { AnswerPhrase::TooMuchToList } else { AnswerPhrase::OtherDirectory };
            return Err(self.decline(why, &[name]));
        }
        Err(self.decline_inexact(name, find(name, &listing.directories), AnswerPhrase::NoDirectory))
    }

    fn require_absent(&self, path: &str) -> PlanResult<()> {
        if self.exists(path)? { Err(self.decline(AnswerPhrase::Exists, &[path])) } else { Ok(()) }
    }

    /// Runs a command that creates a file, and checks that it exists afterwards.
    fn run_creating_command(&self, line: &str, path: &str) -> PlanResult<()> {
        if self.is_temporary(path) {
            return Err(self.decline(AnswerPhrase::Passing, &[path]));
        }
        self.command(line, &[0])?;
        // Another number of lines makes another call: the first one was before the command.
        if self.probe(path, 2)? { Ok(()) } else { Err(self.decline(AnswerPhrase::NotMade, &[path])) }
    }

    /// Returns true if a file of this name exists. A listing lacks ignored files and those
    /// elsewhere.
    fn exists(&self, path: &str) -> PlanResult<bool> {
        self.probe(path, 1)
    }

    fn probe(&self, path: &str, lines: u64) -> PlanResult<bool> {
        let output = self.call("read_file", &json!({"file_path": path, "limit": lines}))?;
        match results::unreadable(output) {
            None => Ok(true),
            Some(why) if why.ends_with("does not exist") => Ok(false),
            Some(why) if why.ends_with("is a directory") => Ok(true),
            Some(_) => Err(self.failed(output)),
        }
    }

    fn patch(&self, change: &str, phrase: AnswerPhrase, blanks: &[&str]) -> PlanResult<String> {
        // A name with a line break would add another order to the patch.
        if change.lines().count() != change.matches("***").count() {
            return Err(self.decline(AnswerPhrase::WhichFile, &[]));
        }
        let patch = format!("*** Begin Patch\n{change}\n*** End Patch");
        let output = self.call("apply_patch", &json!({"input": patch}))?;
        self.confirm(output, "Success.", phrase, blanks)
    }

    /// Returns the answer to a change that was made, or declines with the error.
    pub(super) fn confirm(
        &self,
        output: &str,
        sign: &str,
        phrase: AnswerPhrase,
        blanks: &[&str],
    ) -> PlanResult<String> {
        if !output.contains(sign) {
            return Err(self.failed(output));
        }
        Ok(self.say(phrase, blanks))
    }
}

//! Changes files, by the same tools and under the same approval as everyone.

use serde_json::json;

use super::quote;
use crate::plan::{
    names::Found,
    phrases::Phrase,
    reading::Scope,
    results::{self, total},
    run::{Planned, Run},
};

/// How many files go with a directory.
const MOST_DELETED: usize = 100;

impl Run<'_> {
    /// Makes a file that is not there yet.
    pub(super) fn create(&self, path: &str, content: &str) -> Planned<String> {
        self.tell(path, None);
        self.unless_there(path)?;
        let output = self.call("write_file", &json!({"path": path, "content": content}))?;
        self.done(output, "Made ", Phrase::Created, &[path])
    }

    pub(super) fn replace(&self, file: &str, old: &str, new: &str) -> Planned<String> {
        let file = self.own_file(file)?;
        self.tell(&file, None);
        let output = self.call(
            "edit_file",
            &json!({"path": file, "old_string": old, "new_string": new, "replace_all": true}),
        )?;
        self.done(output, "Edited ", Phrase::Replaced, &[old, new, &file])
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Planned<String> {
        let file = self.own_file(from)?;
        // The tool itself, like its whole family, writes over what is there.
        self.unless_there(to)?;
        self.tell(to, None);
        self.patch(&format!("*** Update File: {file}\n*** Move to: {to}"), Phrase::Renamed, &[&file, to])
    }

    pub(super) fn delete(&self, file: &str) -> Planned<String> {
        let file = self.own_file(file)?;
        self.patch(&format!("*** Delete File: {file}"), Phrase::Deleted, &[&file])
    }

    pub(super) fn copy(&self, from: &str, to: &str) -> Planned<String> {
        let file = self.own_file(from)?;
        self.unless_there(to)?;
        self.tell(to, None);
        self.command(&format!("cp -- {} {}", quote(&file), quote(to)), &[0])?;
        Ok(self.say(Phrase::Copied, &[&file, to]))
    }

    /// Adds a line behind the last. By a patch, which can be taken back.
    pub(super) fn append(&self, file: &str, text: &str) -> Planned<String> {
        let file = self.own_file(file)?;
        self.tell(&file, None);
        let scope = Scope { place: Some(file.clone()), glob: None };
        let last = match total(&self.counted_in(&scope, "^")?.rows) {
            0 => return Err(self.ends(Phrase::Empty, &[&file])),
            lines => self.call("read_file", &json!({"file_path": file, "offset": lines, "limit": 1}))?,
        };
        let Some([(_, last)]) = results::numbered(last).as_deref().map(|rows| [rows[0]]) else {
            return Err(self.failed(last));
        };
        let added: String = text.lines().map(|line| format!("\n+{line}")).collect();
        let change = format!("*** Update File: {file}\n@@\n {last}{added}\n*** End of File");
        let patch = format!("*** Begin Patch\n{change}\n*** End Patch");
        let output = self.call("apply_patch", &json!({"input": patch}))?;
        self.done(output, "Success.", Phrase::Appended, &[text, &file])
    }

    pub(super) fn make_directory(&self, path: &str) -> Planned<String> {
        self.unless_there(path)?;
        self.command(&format!("mkdir -p -- {}", quote(path)), &[0])?;
        Ok(self.say(Phrase::MadeDirectory, &[path]))
    }

    /// Deletes the files of a directory by a patch, which can be taken back, and then what is empty. What ignore files leave
    /// out is not touched, and neither is a directory that has it.
    pub(super) fn delete_directory(&self, name: &str) -> Planned<String> {
        let directory = self.directory(name)?;
        let listing = self.everything(".")?;
        let below = |path: &&&str| path.strip_prefix(&directory).is_some_and(|rest| rest.starts_with('/'));
        let files: Vec<_> = listing.files.iter().filter(below).collect();
        if listing.more || files.len() > MOST_DELETED {
            return Err(self.ends(Phrase::TooManyFiles, &[&directory, &MOST_DELETED.to_string()]));
        }
        if !files.is_empty() {
            let changes: Vec<_> = files.iter().map(|file| format!("*** Delete File: {file}")).collect();
            self.patch(&changes.join("\n"), Phrase::Deleted, &[&directory])?;
        }
        let mut directories: Vec<_> =
            listing.directories.iter().filter(below).map(|path| quote(path)).collect();
        directories.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
        directories.push(quote(&directory));
        // Some tools for files remove a directory that they have emptied.
        self.command(
            &format!(
                "for d in {}; do [ ! -d \"$d\" ] || rmdir -- \"$d\" || exit 1; done",
                directories.join(" ")
            ),
            &[0],
        )?;
        Ok(self.say(Phrase::DeletedDirectory, &[&directory, &files.len().to_string()]))
    }

    /// The file to change: the one of exactly this name, also where ignore files leave it out, and only then one that the
    /// name could stand for as well.
    fn own_file(&self, name: &str) -> Planned<String> {
        match self.look_up(name)? {
            Found::One(path) if path == name => Ok(path.to_owned()),
            _ if self.is_there(name)? => Ok(name.to_owned()),
            found => self.one(name, found, Phrase::NoFile),
        }
    }

    fn unless_there(&self, path: &str) -> Planned<()> {
        if self.is_there(path)? { Err(self.ends(Phrase::Exists, &[path])) } else { Ok(()) }
    }

    /// Whether there is a file of this name. A listing cannot tell: it lacks what is ignored and what is elsewhere.
    fn is_there(&self, path: &str) -> Planned<bool> {
        let output = self.call("read_file", &json!({"file_path": path, "limit": 1}))?;
        match results::unreadable(output) {
            None => Ok(true),
            Some(why) if why.ends_with("does not exist") => Ok(false),
            Some(why) if why.ends_with("is a directory") => Ok(true),
            Some(_) => Err(self.failed(output)),
        }
    }

    fn patch(&self, change: &str, phrase: Phrase, blanks: &[&str]) -> Planned<String> {
        // A name with a line break in it would be another order.
        if change.lines().count() != change.matches("***").count() {
            return Err(self.ends(Phrase::WhichFile, &[]));
        }
        let patch = format!("*** Begin Patch\n{change}\n*** End Patch");
        let output = self.call("apply_patch", &json!({"input": patch}))?;
        self.done(output, "Success.", phrase, blanks)
    }

    /// What to say about a change that was made, or why it was not.
    fn done(&self, output: &str, sign: &str, phrase: Phrase, blanks: &[&str]) -> Planned<String> {
        if !output.contains(sign) {
            return Err(self.failed(output));
        }
        Ok(self.say(phrase, blanks))
    }
}

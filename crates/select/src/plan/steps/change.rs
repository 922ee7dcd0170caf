//! Changes files, by the same tools and under the same approval as everyone.

use serde_json::json;

use crate::plan::{
    names::Found,
    phrases::Phrase,
    results,
    run::{Planned, Run},
};

impl Run<'_> {
    /// Makes a file that is not there yet.
    pub(super) fn create(&self, path: &str, content: &str) -> Planned<String> {
        self.unless_there(path)?;
        let output = self.call("write_file", &json!({"path": path, "content": content}))?;
        self.done(output, "Made ", Phrase::Created, &[path])
    }

    pub(super) fn replace(&self, file: &str, old: &str, new: &str) -> Planned<String> {
        let file = self.own_file(file)?;
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
        self.patch(&format!("*** Update File: {file}\n*** Move to: {to}"), Phrase::Renamed, &[&file, to])
    }

    pub(super) fn delete(&self, file: &str) -> Planned<String> {
        let file = self.own_file(file)?;
        self.patch(&format!("*** Delete File: {file}"), Phrase::Deleted, &[&file])
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

//! Changes files, by the same tools and under the same approval as everyone.

use serde_json::json;

use crate::plan::{
    phrases::Phrase,
    run::{Planned, Run},
};

impl Run<'_> {
    /// Makes a file that is not there yet.
    pub(super) fn create(&self, path: &str, content: &str) -> Planned<String> {
        let listing = self.everything(".")?;
        let wanted = path.trim_start_matches("./");
        // Once it is made it is listed, but the listing of this turn is from before.
        if listing.files.contains(&wanted) {
            return Err(self.ends(Phrase::Exists, &[path]));
        }
        let output = self.call("write_file", &json!({"path": path, "content": content}))?;
        self.done(output, &["Made ", "Rewrote "], Phrase::Created, &[path])
    }

    pub(super) fn replace(&self, file: &str, old: &str, new: &str) -> Planned<String> {
        let file = self.file(file)?;
        let output = self.call(
            "edit_file",
            &json!({"path": file, "old_string": old, "new_string": new, "replace_all": true}),
        )?;
        self.done(output, &["Edited "], Phrase::Replaced, &[old, new, &file])
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Planned<String> {
        let file = self.file(from)?;
        if self.everything(".")?.files.contains(&to) {
            return Err(self.ends(Phrase::Exists, &[to]));
        }
        self.patch(&format!("*** Update File: {file}\n*** Move to: {to}"), Phrase::Renamed, &[&file, to])
    }

    pub(super) fn delete(&self, file: &str) -> Planned<String> {
        let file = self.file(file)?;
        self.patch(&format!("*** Delete File: {file}"), Phrase::Deleted, &[&file])
    }

    fn patch(&self, change: &str, phrase: Phrase, blanks: &[&str]) -> Planned<String> {
        // A name with a line break in it would be another order.
        if change.lines().count() != change.matches("***").count() {
            return Err(self.ends(Phrase::WhichFile, &[]));
        }
        let patch = format!("*** Begin Patch\n{change}\n*** End Patch");
        let output = self.call("apply_patch", &json!({"input": patch}))?;
        self.done(output, &["Success."], phrase, blanks)
    }

    /// What to say about a change that was made, or why it was not.
    fn done(&self, output: &str, signs: &[&str], phrase: Phrase, blanks: &[&str]) -> Planned<String> {
        if !signs.iter().any(|sign| output.contains(sign)) {
            return Err(self.failed(output));
        }
        Ok(self.say(phrase, blanks))
    }
}

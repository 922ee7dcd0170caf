//! Clean values: the only ones that may be recorded, shown or put into questions.

use std::ops::Deref;

use serde::Serialize;
use windlass_seal::CleanSeal;

use crate::{
    CallId, Effects, Item, Outcome, ToolCall, Verdict,
    item::Body,
    journal::{Feedback, Intent, Rating},
};

/// A value whose texts hold no secrets that the cleaner knows. Journals, event sinks, approvers and
/// the history of a conversation take nothing else. The cleaner (`shape`) makes it: the constructor
/// takes a [`CleanSeal`], which only a crate that depends on `seal` can name. It is written as the
/// value itself, and cannot be changed or read back from a file.
///
/// Messages between the model and the person are kept as they are: a person who asks for a password
/// must get it. So are the contents of changed files in `Event::EditEnded`, which are never
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Clean<T>(T);

impl<T> Clean<T> {
    /// Marks a value that was cleaned.
    pub fn new(_seal: CleanSeal, value: T) -> Self {
        Self(value)
    }

    /// Returns a clean reference to the value.
    pub fn as_ref(&self) -> Clean<&T> {
        Clean(&self.0)
    }

    /// Returns a clean reference to the target of a clean pointer.
    pub fn as_deref(&self) -> Clean<&T::Target>
    where
        T: Deref,
    {
        Clean(&self.0)
    }

    /// Returns the value without the mark.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Clean<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl From<Clean<ToolCall>> for Clean<Item> {
    fn from(call: Clean<ToolCall>) -> Self {
        Self(Body::Call(call.0).into())
    }
}

impl Clean<Intent> {
    /// Builds the record of what a call is about to do.
    pub fn intent(call: &Clean<ToolCall>, effects: Clean<Effects>, decision: Clean<String>) -> Self {
        let ToolCall { id, name, .. } = &call.0;
        Self(Intent { call: id.clone(), tool: name.clone(), effects: effects.0, decision: decision.0 })
    }
}

impl Clean<Feedback> {
    /// Builds the record of a person's feedback on a call.
    pub fn feedback(call: CallId, handle: String, rating: Option<Rating>, note: Clean<String>) -> Self {
        Self(Feedback { call, handle, rating, note: note.0 })
    }
}

impl Clean<Outcome> {
    /// Builds the outcome of a call about which nothing is known. Fixed texts hold no secrets.
    pub fn unknown(reason: &'static str, note: &'static str) -> Self {
        Self(Outcome::plain(Verdict::failure(reason), note))
    }
}

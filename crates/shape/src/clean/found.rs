//! What a look at one line brings.

use std::ops::Range;

use super::{name::NameKind, rules};

/// A secret in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) label: &'static str,
    /// Why it was taken for one, for a report.
    pub(super) why: &'static str,
}

impl Found {
    /// A value taken for a secret because of where it stands; if it has a known format, that names it.
    pub(super) fn value(line: &[u8], range: Range<usize>, label: &'static str, why: &'static str) -> Self {
        Self::key(line, &range).unwrap_or(Self { range, label, why })
    }

    /// The same, if all of it has a known format.
    pub(super) fn key(line: &[u8], range: &Range<usize>) -> Option<Self> {
        let rule = rules::key_rule(&line[range.clone()])?;
        Some(Self { range: range.clone(), label: rule.label, why: rule.what })
    }
}

/// A secret that one of the next lines must hold, because this one only has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) form: Form,
    pub(super) kind: NameKind,
    /// How many lines may still come between.
    pub(super) left: u8,
}

/// How a later line holds a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `value: …`
    Value,
    /// The whole line.
    Whole,
    /// The whole line, if it looks random: nothing else says that it belongs to the name.
    Alone,
    /// `<string>…</string>`
    Element,
}

impl Pending {
    pub(super) fn new(form: Form, kind: NameKind) -> Self {
        Self { form, kind, left: 3 }
    }

    /// The same, one line later.
    pub(super) fn later(self) -> Option<Self> {
        Some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// Where to go on looking.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) resume: usize,
    pub(super) pending: Option<Pending>,
}

impl Next {
    pub(super) fn at(resume: usize) -> Self {
        Self { resume, pending: None }
    }
}

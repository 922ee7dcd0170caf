//! Results of scanning one line.

use std::ops::Range;

use super::{name::NameKind, rules};

/// A secret in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSecret {
    pub(super) range: Range<usize>,
    pub(super) label: &'static str,
    /// The reason for the match, for a report.
    pub(super) why: &'static str,
}

impl FoundSecret {
    /// Creates a match for a value in the place of a secret. A known key format determines its
    /// label.
    pub(super) fn value(line: &[u8], range: Range<usize>, label: &'static str, why: &'static str) -> Self {
        Self::key(line, &range).unwrap_or(Self { range, label, why })
    }

    /// Creates a match if the whole value has a known key format.
    pub(super) fn key(line: &[u8], range: &Range<usize>) -> Option<Self> {
        let rule = rules::key_rule(&line[range.clone()])?;
        Some(Self { range: range.clone(), label: rule.label, why: rule.what })
    }
}

/// A secret that one of the next lines must hold, because this line has only its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingSecret {
    pub(super) form: PendingForm,
    pub(super) kind: NameKind,
    /// Number of lines that may still come between.
    pub(super) left: u8,
}

/// Layout of the later line that holds the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingForm {
    /// `value: …`
    Value,
    /// The whole line.
    Whole,
    /// The whole line, if it looks random: nothing else links it to the name.
    Alone,
    /// `<string>…</string>`
    Element,
}

impl PendingSecret {
    pub(super) fn new(form: PendingForm, kind: NameKind) -> Self {
        Self { form, kind, left: 3 }
    }

    /// Returns the state one line later, or `None` if no lines are left.
    pub(super) fn later(self) -> Option<Self> {
        Some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// The position at which the scan resumes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScanResume {
    pub(super) resume: usize,
    pub(super) pending: Option<PendingSecret>,
}

impl ScanResume {
    pub(super) fn at(resume: usize) -> Self {
        Self { resume, pending: None }
    }
}

//! Judges whether a call did what was asked, in six weighted dimensions and from facts only. Prose
//! is not read.

use windlass_contract::{
    Content, Verdict,
    host::Whole,
    insight::{Detail, Insight},
    outcome::{Facts, Receipt, Status},
    report::ToolReport,
    verdict::{Criteria, Gives, Marks, Must},
};

mod failed;

/// Maximum points of each dimension. Criteria that a tool sets have no points: the call fails if
/// one is missed.
pub const WEIGHTS: Marks = Marks { status: 40, data: 20, format: 20, time: 10, quality: 10, criteria: true };

/// Minimum points of a successful call.
const MIN_POINTS: u8 = 70;

/// Everything known about a finished call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallEvidence<'a> {
    pub(crate) status: Status,
    pub(crate) criteria: &'a Criteria,
    pub(crate) facts: &'a Facts,
    pub(crate) insight: Option<&'a Insight>,
    pub(crate) content: &'a [Content],
    pub(crate) data: Option<&'a ToolReport>,
    pub(crate) receipt: &'a Receipt,
    /// True if the model sees only part of the content.
    pub(crate) cut: bool,
}

/// Returns the verdict on a call.
pub(crate) fn judge(case: &CallEvidence<'_>) -> Verdict {
    if case.status != Status::Success {
        return failed::verdict(case);
    }
    let mut notes = VerdictNotes::default();
    let marks = Marks {
        status: WEIGHTS.status,
        data: notes.points(WEIGHTS.data, case.data()),
        format: notes.points(WEIGHTS.format, case.format()),
        time: notes.points(WEIGHTS.time, case.time()),
        quality: notes.points(WEIGHTS.quality, case.quality()),
        criteria: case.criteria.musts.iter().all(|must| notes.points(1, case.must(*must)) == 1),
    };
    let points = marks.total();
    let success = marks.criteria && points >= MIN_POINTS;
    let confidence = match (success, marks.criteria) {
        (true, _) => points,
        (false, true) => 100 - points,
        (false, false) => 100,
    };
    Verdict { success, confidence, marks, reasons: notes.reasons, suggestions: notes.suggestions }
}

/// A deduction in one dimension: the share of the points lost in per cent, the reason, and a
/// suggestion.
type PointDeduction = (u8, String, &'static str);

/// Reasons and suggestions, in the order of the dimensions.
#[derive(Default)]
struct VerdictNotes {
    reasons: Vec<String>,
    suggestions: Vec<String>,
}

impl VerdictNotes {
    /// Applies the deductions and returns the remaining points.
    fn points(&mut self, most: u8, deductions: Vec<PointDeduction>) -> u8 {
        let mut left = 100_u8;
        for (lost, reason, suggestion) in deductions {
            left = left.saturating_sub(lost);
            self.reasons.push(reason);
            self.suggestions.push(suggestion.to_owned());
        }
        u8::try_from(u16::from(most) * u16::from(left) / 100).unwrap_or(most)
    }
}

impl CallEvidence<'_> {
    fn data(&self) -> Vec<PointDeduction> {
        let text =
            self.content.iter().any(|part| matches!(part, Content::Text(text) if !text.trim().is_empty()));
        let there = match self.criteria.gives {
            Gives::Anything => true,
            Gives::Text => text,
            Gives::Image => self.has_image(),
            Gives::TextOrImage => text || self.has_image(),
            Gives::Data => self.data.is_some_and(|report| !report.is_empty()),
        };
        if there {
            return Vec::new();
        }
        vec![(100, "it gave nothing back".to_owned(), "check that it was asked about the right thing")]
    }

    fn format(&self) -> Vec<PointDeduction> {
        let (fits, promised) = match self.criteria.gives {
            Gives::Anything => (true, ""),
            Gives::Text => (self.has_text(), "a text"),
            Gives::Image => (self.has_image(), "an image"),
            Gives::TextOrImage => (self.has_text() || self.has_image(), "a text or an image"),
            Gives::Data => {
                let fits = self.data.is_some_and(ToolReport::is_structured);
                (fits, "an object or a list")
            }
        };
        if fits {
            return Vec::new();
        }
        vec![(100, format!("what it gave back is not {promised}"), "check the arguments")]
    }

    fn time(&self) -> Vec<PointDeduction> {
        match self.criteria.usual {
            Some(usual) if self.receipt.duration > usual => {
                let (took, usual) = (self.receipt.duration.as_secs_f32(), usual.as_secs_f32());
                let reason = format!("it took {took:.1} s, usually it takes less than {usual:.1} s");
                vec![(50, reason, "ask for less at once")]
            }
            _ => Vec::new(),
        }
    }

    fn quality(&self) -> Vec<PointDeduction> {
        let mut amiss = Vec::new();
        if self.cut {
            let kept = matches!(self.facts.whole(), Some(Whole::File { complete: true, .. }));
            let (lost, what) =
                if kept { (20, "read the part that matters") } else { (50, "ask for less at once") };
            amiss.push((lost, "its result is longer than what is shown".to_owned(), what));
        }
        if self.is_garbled() {
            let what = "look at it with a tool for binary data";
            amiss.push((50, "much of its result is not text".to_owned(), what));
        }
        if let Some(denial) = self.receipt.denials.first() {
            let reason = format!("the sandbox stopped something on the way: {}", denial.what);
            amiss.push((50, reason, "check whether what was stopped was needed"));
        }
        match self.insight.map(|insight| &insight.detail) {
            // A pipeline hides the exit code of its first command.
            Some(Detail::Command(command))
                if command.tests.as_ref().is_some_and(|tests| tests.failed > 0) =>
            {
                let reason = "it ended well, but what it printed tells of failed tests".to_owned();
                amiss.push((50, reason, "do not rely on its exit code"));
            }
            Some(Detail::Search(search)) if search.files == 0 => {
                amiss.push((30, "nothing was found".to_owned(), "try a wider pattern, or another place"));
            }
            _ => {}
        }
        let killed = self.facts.killed();
        if !killed.is_empty() {
            let reason = format!("processes it left behind were ended: {}", killed.join(", "));
            amiss.push((30, reason, "start what is to go on as a session"));
        }
        amiss
    }

    fn must(&self, must: Must) -> Vec<PointDeduction> {
        match (must, self.insight.and_then(Insight::tests)) {
            (Must::PassTests, Some(tests)) if tests.failed > 0 => {
                vec![(100, failed::failed_tests(tests), "mend what failed, then run those again")]
            }
            (Must::PassTests, Some(tests)) if tests.passed > 0 => Vec::new(),
            (Must::PassTests, _) => {
                vec![(100, "no test was run".to_owned(), "check the filter, and that there are tests")]
            }
        }
    }

    fn has_text(&self) -> bool {
        self.content.iter().any(|part| matches!(part, Content::Text(_)))
    }

    fn has_image(&self) -> bool {
        self.content.iter().any(|part| matches!(part, Content::Image(_)))
    }

    /// Returns true if more than one per cent of the characters are replacement characters for
    /// invalid bytes.
    fn is_garbled(&self) -> bool {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text),
            Content::Image(_) | Content::Tool(_) => None,
        });
        let (lost, bytes) = texts.fold((0, 0), |(lost, bytes), text| {
            (lost + text.matches(char::REPLACEMENT_CHARACTER).count(), bytes + text.len())
        });
        lost * 100 > bytes
    }
}

#[cfg(test)]
mod tests;

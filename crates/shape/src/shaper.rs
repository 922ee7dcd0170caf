//! Turns the result of a tool into an outcome.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use windlass_contract::{
    Clean, Content, Outcome, Output, ToolError, Verdict,
    host::{Exit, Whole},
    meta::Format,
    outcome::{Facts, Receipt, Status, View},
    report::ToolReport,
    tool::ErrorKind,
    verdict::Criteria,
};
use windlass_seal::CleanSeal;

use crate::{
    Budget, Secrets, Terminal,
    judge::{CallEvidence, judge},
    understand,
};

/// Shapes results. All tools share it.
#[derive(Debug, Clone, Default)]
pub struct Shaper {
    /// Maximum size of an output that the model gets.
    pub budget: Budget,
    /// Budgets of single tools, by name.
    pub budgets: Arc<BTreeMap<String, Budget>>,
    /// Secrets to redact.
    pub secrets: Secrets,
    /// Selects the calls whose verdict the model reads.
    pub verdicts: Verdicts,
}

/// The calls whose verdict a model reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verdicts {
    /// No call.
    Never,
    /// Failed calls whose verdict says more than the result.
    #[default]
    OnFailure,
    /// Every call.
    Always,
}

/// The reason why a call has no output.
#[derive(Debug)]
pub enum Failure {
    /// The tool does not exist.
    NotFound(String),
    /// The tool failed, or its input was invalid.
    Tool(ToolError),
    /// The call was not approved.
    Refused(String),
    /// The call was stopped before it ended.
    Aborted(String),
    /// The call was stopped, and this is its output so far.
    CutShort(String, Box<Output>),
}

impl Shaper {
    /// Builds an outcome: reduces terminal output, redacts secrets, cuts long text, and judges the
    /// call.
    pub fn shape(
        &self,
        format: Format,
        criteria: &Criteria,
        result: Result<Output, Failure>,
        mut receipt: Receipt,
    ) -> Clean<Outcome> {
        let unstarted = match &result {
            Err(Failure::Tool(error)) => understand::unstarted(error),
            Ok(_) | Err(_) => None,
        };
        let (status, output) = match result {
            Ok(output) => (status_of(&output.facts, criteria), output),
            Err(Failure::CutShort(why, output)) => {
                let why = aborted(format, &why, receipt.duration);
                (Status::Rejected, cut_short(&why, *output))
            }
            Err(failure) => {
                let (status, text) = explain(failure, format, &mut receipt);
                (status, Output::from(text))
            }
        };
        let Output { content, data, mut facts, insight, most_tokens } = output;
        let (denials, held) = facts.take_confinement();
        receipt.denials.extend(denials);
        receipt.held = held.or(receipt.held);
        receipt.refusal = receipt.refusal.map(|reason| self.clean_text(reason));
        receipt.decision = self.clean_text(receipt.decision);
        receipt.repairs = self.clean_lines(receipt.repairs);
        receipt.hooks = self.clean_lines(receipt.hooks);
        receipt.hook_notes = self.clean_lines(receipt.hook_notes);
        receipt.undo_limits = self.clean_lines(receipt.undo_limits);
        for denial in &mut receipt.denials {
            denial.what = self.clean_text(std::mem::take(&mut denial.what));
            denial.rule = self.clean_text(std::mem::take(&mut denial.rule));
            denial.remedy = self.clean_text(std::mem::take(&mut denial.remedy));
            denial.need = self.secrets.clean_effects(&denial.need).into_inner();
        }
        let content: Vec<_> = content.into_iter().map(|part| self.clean(part, &facts)).collect();
        // What a runner wrote about its tests becomes part of the insight.
        let (data, written) = match data.and_then(|report| self.clean_report(report)) {
            Some(ToolReport::Tests(tests)) => (None, Some(*tests)),
            other => (other, None),
        };
        let class = understand::class_of(&facts, criteria, &receipt.denials).or(unstarted);
        let insight = match insight {
            Some(own) => self.clean_insight(own),
            None => class.map(|class| understand::command(class, &Content::join(&content), written)),
        };
        let content = match (&insight, format) {
            (Some(insight), Format::Tests) => understand::reported(insight, content),
            _ => content,
        };
        let (content, total_lines) = fit(
            most_tokens.map_or(self.budget, |most| self.budget.at_most(most)),
            content,
            &elsewhere(&facts),
        );
        let verdict = judge(&CallEvidence {
            status,
            criteria,
            facts: &facts,
            insight: insight.as_ref(),
            content: &content,
            data: data.as_ref(),
            receipt: &receipt,
            cut: total_lines.is_some(),
        });
        let view = View { format, total_lines, verdict: false };
        Clean::new(CleanSeal, Outcome { status, content, view, data, facts, insight, verdict, receipt })
    }

    /// Gives an outcome its final verdict, and decides if the model's view shows it. The lines that
    /// a review added are cleaned.
    pub fn conclude(&self, outcome: Clean<Outcome>, verdict: Verdict) -> Clean<Outcome> {
        let mut outcome = outcome.into_inner();
        let added = |lines: Vec<String>, before: &[String]| {
            let clean = |line| if before.contains(&line) { line } else { self.clean_text(line) };
            lines.into_iter().map(clean).collect()
        };
        outcome.verdict = Verdict {
            reasons: added(verdict.reasons, &outcome.verdict.reasons),
            suggestions: added(verdict.suggestions, &outcome.verdict.suggestions),
            ..verdict
        };
        outcome.view.verdict = match self.verdicts {
            Verdicts::Never => false,
            Verdicts::Always => true,
            // Most failures are clear: the model reads an exit code or a refusal.
            Verdicts::OnFailure => {
                let says_more = outcome.status == Status::Success || !outcome.verdict.suggestions.is_empty();
                !outcome.verdict.success && says_more
            }
        };
        Clean::new(CleanSeal, outcome)
    }

    /// Adds the answers of hooks to an outcome, and their texts for the model.
    pub fn with_hooks(
        &self,
        outcome: Clean<Outcome>,
        answers: Vec<String>,
        notes: Vec<String>,
    ) -> Clean<Outcome> {
        let mut outcome = outcome.into_inner();
        outcome.receipt.hooks.extend(self.clean_lines(answers));
        outcome.receipt.hook_notes.extend(self.clean_lines(notes));
        Clean::new(CleanSeal, outcome)
    }

    /// Returns a shaper with the budget of one tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Self {
        Self { budget: self.budgets.get(tool).copied().unwrap_or(self.budget), ..self.clone() }
    }

    fn clean(&self, part: Content, facts: &Facts) -> Content {
        match (part, facts) {
            // Keep the carriage returns of a file: a model that edits it must match them.
            (Content::Text(text), Facts::None) if !text.contains('\u{1b}') => {
                Content::Text(self.clean_text(text))
            }
            // Apply redraws first: a secret may be printed in two colours.
            (Content::Text(text), _) => match Terminal::reduce(&text) {
                Cow::Borrowed(_) => Content::Text(self.clean_text(text)),
                Cow::Owned(seen) => Content::Text(self.clean_text(seen)),
            },
            (other @ (Content::Image(_) | Content::Tool(_)), _) => other,
        }
    }

    pub(crate) fn clean_text(&self, text: String) -> String {
        self.secrets.clean_text(text).into_inner()
    }

    fn clean_lines(&self, lines: Vec<String>) -> Vec<String> {
        lines.into_iter().map(|line| self.clean_text(line)).collect()
    }
}

/// Returns a line that says where the full output can be read.
fn elsewhere(facts: &Facts) -> String {
    match facts.whole() {
        Some(Whole::File { path, bytes, complete }) => {
            let what = if *complete {
                "whole output".to_owned()
            } else {
                format!("first {bytes} bytes of the output")
            };
            format!("\n[{what}: {}]\n", Whole::place(path))
        }
        Some(Whole::Lost(_)) | None => String::new(),
    }
}

/// Cuts texts to the budget they share. Returns the original number of lines if something was cut.
fn fit(budget: Budget, content: Vec<Content>, elsewhere: &str) -> (Vec<Content>, Option<u64>) {
    let (mut left, mut total_lines, mut omitted) = (Some(budget), None, 0);
    let mut kept = Vec::new();
    for part in content {
        match (part, left) {
            (Content::Text(text), Some(budget)) => {
                let cut = budget.cut(&text, elsewhere);
                left = cut.is_none().then(|| budget.less(&text));
                if cut.is_some() {
                    total_lines = u64::try_from(text.lines().count()).ok();
                }
                kept.push(Content::Text(cut.unwrap_or(text)));
            }
            (Content::Text(_), None) => omitted += 1,
            (other @ (Content::Image(_) | Content::Tool(_)), _) => kept.push(other),
        }
    }
    if omitted > 0 {
        kept.push(Content::Text(format!("[omitted {omitted} text items ...]")));
    }
    (kept, total_lines)
}

fn status_of(facts: &Facts, criteria: &Criteria) -> Status {
    if matches!(facts, Facts::Remote(remote) if remote.failed) {
        return Status::Error;
    }
    match facts.exit() {
        Some(Exit::Code(1)) if criteria.one_is_an_answer => Status::Success,
        Some(Exit::TimedOut) => Status::Timeout,
        Some(Exit::Cancelled) => Status::Rejected,
        Some(Exit::Code(0)) | None => Status::Success,
        Some(Exit::Code(understand::NOT_FOUND)) if facts.denials().is_empty() => Status::NotFound,
        Some(Exit::Code(_) | Exit::Signal(_)) => Status::Error,
    }
}

/// Returns the status and the model's text for a call without output. Adds refusals and denials to
/// the receipt.
fn explain(failure: Failure, format: Format, receipt: &mut Receipt) -> (Status, String) {
    match failure {
        Failure::NotFound(text) => {
            receipt.unknown_tool = true;
            (Status::NotFound, text)
        }
        Failure::Aborted(why) | Failure::CutShort(why, _) => {
            (Status::Rejected, aborted(format, &why, receipt.duration))
        }
        Failure::Refused(reason) => {
            receipt.refusal = Some(reason.clone());
            (Status::Rejected, reason)
        }
        Failure::Tool(error) => match error.kind {
            ErrorKind::BadInput | ErrorKind::Failed => (Status::Error, error.message),
            ErrorKind::NotFound => (Status::NotFound, error.message),
            ErrorKind::NoPermission => (Status::PermissionDenied, error.message),
            ErrorKind::TimedOut => (Status::Timeout, error.message),
            ErrorKind::Cancelled => (Status::Rejected, aborted(format, &error.message, receipt.duration)),
            ErrorKind::Denied(denial) => {
                receipt.denials.push(*denial);
                (Status::PermissionDenied, error.message)
            }
        },
    }
}

/// Puts the reason for stopping before the output so far.
fn cut_short(why: &str, output: Output) -> Output {
    let text = Content::join(&output.content);
    let text = if text.is_empty() { why.to_owned() } else { format!("{why}\nOutput until then:\n{text}") };
    Output { content: vec![Content::Text(text)], ..output }
}

/// Returns the model's text for a stopped call, in the wording of its format.
fn aborted(format: Format, why: &str, after: Duration) -> String {
    let seconds = after.as_secs_f32().max(0.1);
    match format {
        Format::Structured | Format::Freeform | Format::Session | Format::Tests => {
            format!("Wall time: {seconds:.1} seconds\n{why}")
        }
        Format::Plain => format!("{why} after {seconds:.1}s"),
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        grant::{Held, Mechanism},
        report::{ProcessReport, RemoteReport, SessionReport},
    };

    use super::*;

    fn command(exit: Exit) -> Facts {
        Facts::Command(Box::new(ProcessReport { output_bytes: 3, ..ProcessReport::new(exit) }))
    }

    fn shape(facts: Facts, text: &str) -> Clean<Outcome> {
        let output = Output { facts, ..Output::from(text) };
        Shaper { budget: Budget::Bytes(8), ..Shaper::default() }.shape(
            Format::Freeform,
            &Criteria::default(),
            Ok(output),
            Receipt::default(),
        )
    }

    #[test]
    fn a_cut_output_remembers_how_many_lines_it_had() {
        let outcome = shape(command(Exit::Code(0)), "1\n2\n3\n4\n5\n6\n");
        assert_eq!(outcome.text(), "1\n2\n…4 chars truncated…5\n6\n");
        assert_eq!(outcome.view.total_lines, Some(6));
        assert_eq!(shape(command(Exit::Code(0)), "1\n").view.total_lines, None);
    }

    #[test]
    fn a_remote_tool_fails_if_its_server_says_so_and_its_text_is_cleaned() {
        let facts = |failed| Facts::Remote(RemoteReport { failed, ..RemoteReport::default() });
        let outcome = shape(facts(true), "\u{7}no\u{0}");
        assert_eq!(outcome.status, Status::Error);
        assert!(!outcome.verdict.success && !outcome.text().contains(['\u{7}', '\u{0}']));
        assert_eq!(shape(facts(false), "yes").status, Status::Success);
    }

    #[test]
    fn a_cut_output_says_where_the_whole_is_and_one_that_fits_does_not() {
        let facts = |complete| match command(Exit::Code(0)) {
            Facts::Command(facts) => {
                let whole = Some(Whole::File { path: "/o/1.txt".into(), bytes: 12, complete });
                Facts::Command(Box::new(ProcessReport { whole, ..*facts }))
            }
            other => other,
        };
        let text = "1\n2\n3\n4\n5\n6\n";
        let cut = "1\n2\n…4 chars truncated…\n[whole output: read_output id 1, or /o/1.txt]\n5\n6\n";
        assert_eq!(shape(facts(true), text).text(), cut);
        assert!(
            shape(facts(false), text)
                .text()
                .contains("\n[first 12 bytes of the output: read_output id 1, or /o/1.txt]\n")
        );
        assert_eq!(shape(facts(true), "1\n").text(), "1\n");
    }

    #[test]
    fn a_tool_may_have_a_budget_of_its_own() {
        let budgets = Arc::new(BTreeMap::from([("loud".to_owned(), Budget::Bytes(2))]));
        let shaper = Shaper { budget: Budget::Bytes(8), budgets, ..Shaper::default() };
        let text = |tool: &str| {
            shaper
                .of(tool)
                .shape(Format::Plain, &Criteria::default(), Ok(Output::from("123456")), Receipt::default())
                .text()
        };
        assert_eq!((text("loud"), text("other")), ("1…4 chars truncated…6".to_owned(), "123456".to_owned()));
    }

    #[test]
    fn texts_share_one_budget_and_what_no_longer_fits_is_counted() {
        let parts = ["1234", "12345678", "x", "y"].map(|text| Content::Text(text.into())).to_vec();
        let output = Output { content: parts, ..Output::default() };
        let outcome = Shaper { budget: Budget::Bytes(8), ..Shaper::default() }.shape(
            Format::Plain,
            &Criteria::default(),
            Ok(output),
            Receipt::default(),
        );
        let texts = ["1234", "12…4 chars truncated…78", "[omitted 2 text items ...]"];
        assert_eq!(outcome.content, texts.map(|text| Content::Text(text.into())));
    }

    #[test]
    fn a_command_that_ends_with_another_code_than_0_failed() {
        let outcome = shape(command(Exit::Code(3)), "");
        assert_eq!((outcome.status, outcome.verdict.success), (Status::Error, false));
        assert_eq!(outcome.verdict.reasons, ["the command ended with exit code 3"]);
    }

    #[test]
    fn a_time_out_is_its_own_status() {
        let outcome = shape(command(Exit::TimedOut), "x");
        assert_eq!((outcome.status, outcome.verdict.success), (Status::Timeout, false));
    }

    #[test]
    fn a_stopped_call_says_so_in_the_form_of_its_tool() {
        let text = |format| {
            let receipt = Receipt { duration: Duration::from_millis(1234), ..Receipt::default() };
            Shaper::default()
                .shape(format, &Criteria::default(), Err(Failure::Aborted("aborted by user".into())), receipt)
                .text()
        };
        assert_eq!(text(Format::Freeform), "Wall time: 1.2 seconds\naborted by user");
        assert_eq!(text(Format::Plain), "aborted by user after 1.2s");
    }

    #[test]
    fn what_a_stopped_command_has_printed_is_kept() {
        let told = |printed: &str| {
            let output = Output { facts: command(Exit::Cancelled), ..Output::from(printed) };
            let failure = Failure::CutShort("aborted by user".into(), Box::new(output));
            let outcome = Shaper::default().shape(
                Format::Freeform,
                &Criteria::default(),
                Err(failure),
                Receipt::default(),
            );
            assert_eq!((outcome.status, outcome.verdict.success), (Status::Rejected, false));
            Content::join(&outcome.for_model())
        };
        let why = "Wall time: 0.1 seconds\naborted by user";
        assert_eq!(told(""), why);
        assert_eq!(told("one\n"), format!("{why}\nOutput until then:\none\n"));
    }

    #[test]
    fn a_running_session_is_no_failure_and_its_receipt_says_what_holds_it() {
        let held = Some(Held::by(Mechanism::Namespaces));
        let report = ProcessReport { held, ..ProcessReport::new(None) };
        let (session, chunk) = (1000, "000000".into());
        let facts = Facts::Session(Box::new(SessionReport { session, started: false, chunk, report }));
        let output = Output { facts, most_tokens: Some(1), ..Output::from("123456789") };
        let receipt = Receipt { held: Some(Held::by(Mechanism::InProcess)), ..Receipt::default() };
        let outcome = Shaper { budget: Budget::Bytes(8), ..Shaper::default() }.shape(
            Format::Session,
            &Criteria::default(),
            Ok(output),
            receipt,
        );
        assert_eq!((outcome.status, outcome.verdict.success), (Status::Success, true));
        assert_eq!(outcome.receipt.held, Some(Held::by(Mechanism::Namespaces)));
        assert_eq!(outcome.text(), "12…2 tokens truncated…89");
    }

    #[test]
    fn secrets_are_taken_out_of_texts_data_and_refusals() {
        let secrets = Secrets::knowing([("APP_SECRET".to_owned(), "plum-Tree-42x".to_owned())]);
        let shaper = Shaper { secrets, ..Shaper::default() };
        let output = Output {
            content: vec![Content::Text("is plum-Tree-42x".into())],
            data: Some(serde_json::json!({"a": ["plum-Tree-42x", 1]}).into()),
            ..Output::default()
        };
        let outcome = shaper.shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
        assert_eq!(outcome.text(), "is [REDACTED:APP_SECRET#1]");
        assert_eq!(outcome.data, Some(serde_json::json!({"a": ["[REDACTED:APP_SECRET#1]", 1]}).into()));
        let refused = Failure::Refused("no plum-Tree-42x".into());
        let outcome = shaper.shape(Format::Plain, &Criteria::default(), Err(refused), Receipt::default());
        assert_eq!(outcome.receipt.refusal.as_deref(), Some("no [REDACTED:APP_SECRET#1]"));
    }

    #[test]
    fn repairs_and_what_a_review_adds_hold_no_secrets() {
        let secrets = Secrets::knowing([("APP_SECRET".to_owned(), "plum-Tree-42x".to_owned())]);
        let shaper = Shaper { secrets, verdicts: Verdicts::Always, ..Shaper::default() };
        let receipt = Receipt { repairs: vec!["took plum-Tree-42x".to_owned()], ..Receipt::default() };
        let before = shaper.shape(Format::Plain, &Criteria::default(), Ok(Output::from("x")), receipt);
        assert_eq!(before.receipt.repairs, ["took [REDACTED:APP_SECRET#1]"]);
        let verdict = Verdict::failure("the server said plum-Tree-42x");
        let outcome = shaper.conclude(before, verdict);
        assert_eq!(outcome.verdict, Verdict::failure("the server said [REDACTED:APP_SECRET#1]"));
        assert!(outcome.view.verdict);
    }

    #[test]
    fn only_what_was_printed_is_read_as_a_terminal_reads_it() {
        let text = "old\rnew\n";
        let file = Shaper::default().shape(
            Format::Plain,
            &Criteria::default(),
            Ok(Output::from(text)),
            Receipt::default(),
        );
        assert_eq!(file.text(), text);
        let printed = Output { facts: command(Exit::Code(0)), ..Output::from(text) };
        let printed =
            Shaper::default().shape(Format::Plain, &Criteria::default(), Ok(printed), Receipt::default());
        assert_eq!(printed.text(), "new\n");
    }

    #[test]
    fn a_secret_in_two_colours_is_taken_out() {
        let output = Output::from("DB_PASSWORD=q8Zk2m\u{1b}[31mPv0Lr7\u{1b}[0m\n");
        let outcome =
            Shaper::default().shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
        assert_eq!(outcome.text(), "DB_PASSWORD=[REDACTED:password#1]\n");
    }
}

//! `--preview`: shows the changes that commands made on an overlay, and applies them after a yes.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use windlass::{
    ApprovalPolicy, CallId, Denial, SandboxMode, Stop, counted,
    host::{AppliedPreview, EntryKind, LayerChange, Preview, PreviewChanges, recover_layers},
    record::Edits,
};

use crate::{
    args::PreviewChoice,
    confirm::{ConfirmAnswer, confirm, forget_typed, is_attended},
    exit::ProgramExit,
    paths::PathDisplay,
    problem::{CliProblem, chain},
    screen::{path_text, visible},
    setup::ProgramSetup,
};

mod shown;

use shown::ShownChanges;

/// A preview that was requested.
pub(crate) struct RequestedPreview {
    pub(crate) preview: Preview,
    choice: PreviewChoice,
    paths: PathDisplay,
}

/// The result of a preview.
pub(crate) struct SettledPreview {
    pub(crate) end: PreviewEnd,
    /// For programs.
    pub(crate) report: Value,
}

/// The end of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewEnd {
    /// There was nothing to apply.
    Unchanged,
    Applied,
    /// A person declined, or there was no person to ask.
    Declined,
    /// A person interrupted it, or pressed Ctrl-C instead of an answer.
    Interrupted,
    /// Another process changed the same files, or the system refused.
    Failed,
}

impl PreviewEnd {
    fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Applied => "applied",
            Self::Declined | Self::Interrupted => "declined",
            Self::Failed => "failed",
        }
    }

    /// Returns the exit code of the program: a declined preview is not a success.
    pub(crate) fn exit(self, own: ProgramExit) -> ProgramExit {
        match (own, self) {
            (_, Self::Interrupted) => ProgramExit::Interrupted,
            (ProgramExit::Done, Self::Declined) => ProgramExit::Refused,
            (ProgramExit::Done, Self::Failed) => ProgramExit::Failed,
            _ => own,
        }
    }
}

impl RequestedPreview {
    /// Prepares a preview, if one was requested.
    pub(crate) fn new(choice: PreviewChoice, setup: &ProgramSetup) -> Result<Option<Self>, CliProblem> {
        if !choice.preview {
            return Ok(None);
        }
        if !matches!(setup.policy(ApprovalPolicy::Never).sandbox, SandboxMode::WorkspaceWrite) {
            return Err(CliProblem::usage(
                "`--preview` needs the sandbox mode `workspace-write`: other modes allow no changes, or cannot hold them back",
            ));
        }
        let notes = notes(setup);
        let preview = Preview::new(notes);
        Ok(Some(Self { preview, choice, paths: PathDisplay::seen_from(&setup.cwd) }))
    }

    /// Cleans up after earlier processes, for commands that do not do so anyway.
    pub(crate) fn recover(setup: &ProgramSetup) {
        match recover_layers(&notes(setup)) {
            Ok(recovered) => recovered
                .iter()
                .filter_map(windlass::host::LayerRecovery::describe)
                .for_each(|line| crate::note(&format!("warning: {}", visible(&line)))),
            Err(error) => crate::note(&format!("warning: cannot look for unfinished previews: {error}")),
        }
    }

    /// Shows the changes, asks, and applies or discards them. All commands must have ended. After
    /// an interrupt there is no question.
    pub(crate) fn settle(self, edits: &Edits, stop: &Stop) -> Result<SettledPreview, CliProblem> {
        let failed = |error: io::Error| CliProblem::failed(format!("cannot read the preview: {error}"));
        let changes = self.preview.changes().map_err(failed)?;
        if is_attended() {
            // Keys typed before the changes are shown are not an answer to the question.
            forget_typed()?;
        }
        crate::note(ShownChanges::new(&self.preview, &changes, &self.paths).text().trim_end());
        let mut report = json!({
            "changes": changes.layer.changes.iter().map(change).collect::<Vec<_>>(),
            "git_settings": changes.git_settings.iter().map(|path| path_text(path)).collect::<Vec<_>>(),
            "conflicts": changes.layer.conflicts.iter()
                .map(|each| json!({"path": path_text(&each.path), "reason": each.reason})).collect::<Vec<_>>(),
            "refused": changes.layer.refused.iter()
                .map(|each| json!({"path": path_text(&each.path), "reason": each.reason})).collect::<Vec<_>>(),
        });
        let end = self.decide(&changes, edits, stop, &mut report)?;
        if end != PreviewEnd::Applied {
            self.preview
                .discard()
                .map_err(|error| CliProblem::failed(format!("cannot remove the preview: {error}")))?;
        }
        report["end"] = end.name().into();
        Ok(SettledPreview { end, report })
    }

    fn decide(
        &self,
        changes: &PreviewChanges,
        edits: &Edits,
        stop: &Stop,
        report: &mut Value,
    ) -> Result<PreviewEnd, CliProblem> {
        if !changes.layer.conflicts.is_empty() {
            crate::note("not applied: the files named above have changed in the meantime");
            return Ok(PreviewEnd::Failed);
        }
        if changes.is_empty() {
            return Ok(PreviewEnd::Unchanged);
        }
        if stop.reason().is_some() {
            crate::note("not applied: interrupted");
            return Ok(PreviewEnd::Interrupted);
        }
        if !self.choice.yes {
            match ask(stop)? {
                ConfirmAnswer::Yes => {}
                ConfirmAnswer::No => return Ok(PreviewEnd::Declined),
                ConfirmAnswer::Interrupted => return Ok(PreviewEnd::Interrupted),
            }
        }
        let call = CallId::from(format!("preview-{:x}", now_micros()));
        match self.preview.apply(changes, Some((edits, &call))) {
            Ok(applied) => {
                self.tell_applied(&applied, &call);
                report["kept_for_undo"] = applied.layer.kept.into();
                report["not_kept"] = applied
                    .layer
                    .not_kept
                    .iter()
                    .map(|(path, why)| json!({"path": path_text(path), "reason": why}))
                    .collect();
                report["denials"] = json!(applied.denials);
                report["call"] = json!(call);
                Ok(PreviewEnd::Applied)
            }
            Err(error) => {
                crate::note(&format!("error: {}", chain(&error)));
                report["error"] = chain(&error).into();
                Ok(PreviewEnd::Failed)
            }
        }
    }

    fn tell_applied(&self, applied: &AppliedPreview, call: &CallId) {
        let AppliedPreview { layer, denials } = applied;
        let undo = match (layer.kept, layer.not_kept.len()) {
            (0, 0) => String::new(),
            (0, _) => {
                let (path, reason) = &layer.not_kept[0];
                format!("; it cannot be undone (`{}`: {reason})", self.paths.show(path))
            }
            (_, 0) => format!("; `windlass undo {call}` undoes it"),
            (kept, left) => {
                let (path, reason) = &layer.not_kept[0];
                let path = self.paths.show(path);
                format!(
                    "; `windlass undo {call}` restores {kept} of the files, but not {} (`{path}`: {reason})",
                    counted(left as u64, "other")
                )
            }
        };
        crate::note(&format!("applied {}{undo}", counted(layer.count as u64, "change")));
        for path in &layer.other_names {
            let path = self.paths.show(path);
            crate::note(&format!("`{path}` had other names (hard links), which keep the old content"));
        }
        for Denial { what, rule, .. } in denials {
            crate::note(&format!("denied: {}: {}", visible(what), visible(rule)));
        }
    }
}

fn notes(setup: &ProgramSetup) -> std::path::PathBuf {
    use windlass::Archive;
    Edits::outside(&setup.home).notes().to_owned()
}

fn now_micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}

/// Describes a change for programs.
fn change(change: &LayerChange) -> Value {
    let stat = change.after.or(change.before);
    let kind = stat.map_or("", |stat| match stat.kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "link",
        EntryKind::Special => "special",
    });
    json!({
        "path": path_text(&change.path),
        "change": change.kind.name(),
        "type": kind,
        "bytes_before": change.before.map(|stat| stat.size),
        "bytes_after": change.after.map(|stat| stat.size),
    })
}

/// Asks the person at the terminal.
fn ask(stop: &Stop) -> Result<ConfirmAnswer, CliProblem> {
    if !is_attended() {
        crate::note(
            "not applied: there is no terminal to ask on; pass `--yes` to apply it without a question",
        );
        return Ok(ConfirmAnswer::No);
    }
    let answer = crate::runtime()?.block_on(confirm("Apply these changes? [y/N] ", stop))?;
    match answer {
        ConfirmAnswer::Yes => {}
        ConfirmAnswer::No => crate::note("not applied"),
        ConfirmAnswer::Interrupted => crate::note("not applied: interrupted"),
    }
    Ok(answer)
}

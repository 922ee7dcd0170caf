//! `--preview`: shows what commands changed on a layer, and applies it after a yes.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use windlass::{
    ApprovalPolicy, CallId, Denial, SandboxMode, Stop,
    host::{AppliedPreview, EntryKind, LayerChange, Preview, PreviewChanges, recover_layers},
    record::Edits,
};

use crate::{
    args::PreviewChoice,
    confirm::{Confirmation, confirm, forget_typed, is_attended},
    exit::Exit,
    paths::Paths,
    problem::{Problem, chain},
    screen::{path_text, visible},
    setup::Setup,
};

mod shown;

use shown::ShownChanges;

/// A preview that was asked for.
pub(crate) struct RequestedPreview {
    pub(crate) preview: Preview,
    choice: PreviewChoice,
    paths: Paths,
}

/// What became of a preview.
pub(crate) struct SettledPreview {
    pub(crate) end: PreviewEnd,
    /// For programs.
    pub(crate) report: Value,
}

/// How a preview ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewEnd {
    /// There was nothing to apply.
    Unchanged,
    Applied,
    /// A person said no, or nobody was there to say yes.
    Declined,
    /// A person interrupted it, or pressed Ctrl-C instead of an answer.
    Interrupted,
    /// Someone else changed the same files, or the system said no.
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

    /// How the program ends whose own end this was: one that changed nothing is not done.
    pub(crate) fn exit(self, own: Exit) -> Exit {
        match (own, self) {
            (_, Self::Interrupted) => Exit::Interrupted,
            (Exit::Done, Self::Declined) => Exit::Refused,
            (Exit::Done, Self::Failed) => Exit::Failed,
            _ => own,
        }
    }
}

impl RequestedPreview {
    /// Prepares a preview, if one was asked for.
    pub(crate) fn new(choice: PreviewChoice, setup: &Setup) -> Result<Option<Self>, Problem> {
        if !choice.preview {
            return Ok(None);
        }
        if !matches!(setup.policy(ApprovalPolicy::Never).sandbox, SandboxMode::WorkspaceWrite) {
            return Err(Problem::usage(
                "`--preview` needs the sandbox mode `workspace-write`: in others nothing can be changed, or not be held back",
            ));
        }
        let notes = notes(setup);
        let preview = Preview::new(notes);
        Ok(Some(Self { preview, choice, paths: Paths::seen_from(&setup.cwd) }))
    }

    /// Takes back what earlier processes left, for commands that do not do so anyway.
    pub(crate) fn recover(setup: &Setup) {
        match recover_layers(&notes(setup)) {
            Ok(recovered) => recovered
                .iter()
                .filter_map(windlass::host::LayerRecovery::describe)
                .for_each(|line| crate::note(&format!("warning: {}", visible(&line)))),
            Err(error) => crate::note(&format!("warning: cannot look for unfinished previews: {error}")),
        }
    }

    /// Shows the changes, asks, and applies them or throws them away. All commands must be gone. Whoever interrupted them is
    /// not asked.
    pub(crate) fn settle(self, edits: &Edits, stop: &Stop) -> Result<SettledPreview, Problem> {
        let failed = |error: io::Error| Problem::failed(format!("cannot look through the preview: {error}"));
        let changes = self.preview.changes().map_err(failed)?;
        if is_attended() {
            // What was typed before the changes are shown is no answer to the question.
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
                .map_err(|error| Problem::failed(format!("cannot remove the preview: {error}")))?;
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
    ) -> Result<PreviewEnd, Problem> {
        if !changes.layer.conflicts.is_empty() {
            crate::note("not applied: what is named above was changed by someone else meanwhile");
            return Ok(PreviewEnd::Failed);
        }
        if changes.is_empty() {
            return Ok(PreviewEnd::Unchanged);
        }
        if stop.reason().is_some() {
            crate::note("not applied: it was interrupted");
            return Ok(PreviewEnd::Interrupted);
        }
        if !self.choice.yes {
            match ask(stop)? {
                Confirmation::Yes => {}
                Confirmation::No => return Ok(PreviewEnd::Declined),
                Confirmation::Interrupted => return Ok(PreviewEnd::Interrupted),
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
            (_, 0) => format!("; `windlass undo {call}` takes it back"),
            (kept, left) => {
                let (path, reason) = &layer.not_kept[0];
                let path = self.paths.show(path);
                format!(
                    "; `windlass undo {call}` takes {kept} of the files back, and not {left} others (`{path}`: {reason})"
                )
            }
        };
        let changes = if layer.count == 1 { "change" } else { "changes" };
        crate::note(&format!("applied {} {changes}{undo}", layer.count));
        for path in &layer.other_names {
            let path = self.paths.show(path);
            crate::note(&format!("`{path}` had other names (hard links), which keep the old content"));
        }
        for Denial { what, rule, .. } in denials {
            crate::note(&format!("denied: {}: {}", visible(what), visible(rule)));
        }
    }
}

fn notes(setup: &Setup) -> std::path::PathBuf {
    use windlass::Archive;
    Edits::outside(&setup.home).notes().to_owned()
}

fn now_micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}

/// A change for programs.
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
fn ask(stop: &Stop) -> Result<Confirmation, Problem> {
    if !is_attended() {
        crate::note("not applied: nobody is there to say yes; `--yes` applies it without a question");
        return Ok(Confirmation::No);
    }
    let answer = crate::runtime()?.block_on(confirm("Apply these changes? (y or n) ", stop))?;
    match answer {
        Confirmation::Yes => {}
        Confirmation::No => crate::note("not applied"),
        Confirmation::Interrupted => crate::note("not applied: it was interrupted"),
    }
    Ok(answer)
}

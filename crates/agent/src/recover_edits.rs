//! Recovers changes to files that were interrupted by the end of a process or the machine. Every
//! user of the edits of a home directory does this first.

use std::path::Path;

use windlass_contract::edit::Archive;
use windlass_host::{CommitRecovery, LayerRecovery};
use windlass_record::Edits;

/// Recovers the changes to files of all sessions. Returns messages for the user, one sentence each.
pub fn recover_edits(home: &Path) -> Vec<String> {
    let edits = Edits::outside(home);
    let mut messages = match windlass_host::recover(&edits) {
        Ok(recovered) => recovered.into_iter().filter_map(sentence).collect(),
        Err(error) => vec![format!("cannot look for unfinished changes to files: {error}")],
    };
    match windlass_host::recover_restores(edits.notes()) {
        Ok(recovered) => messages.extend(recovered.into_iter().filter_map(sentence)),
        Err(error) => messages.push(format!("cannot look for an unfinished undo: {error}")),
    }
    match windlass_host::recover_layers(edits.notes()) {
        Ok(recovered) => messages.extend(recovered.iter().filter_map(LayerRecovery::describe)),
        Err(error) => messages.push(format!("cannot look for unfinished previews: {error}")),
    }
    messages
}

fn sentence(recovery: CommitRecovery) -> Option<String> {
    const BEGIN: &str = "an earlier run ended while it was changing files";
    Some(match recovery {
        CommitRecovery::Finished => return None,
        CommitRecovery::PutBack(paths) => {
            let paths = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            format!("{BEGIN}; they are as they were before: {paths}")
        }
        CommitRecovery::Conflict { path, before: Some(before) } => format!(
            "{BEGIN}; `{}` has been changed since and is left as it is; its content from before that run is in `{}`",
            path.display(),
            before.display()
        ),
        CommitRecovery::Conflict { path, before: None } => {
            format!("{BEGIN}; `{}` has been changed since and is left as it is", path.display())
        }
        CommitRecovery::Failed { path, source } => {
            format!("{BEGIN}; `{}` cannot be put right yet: {source}", path.display())
        }
    })
}

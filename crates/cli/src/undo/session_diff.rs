//! One diff of everything that a session has changed.

use std::{collections::BTreeMap, path::PathBuf};

use windlass::{
    ThreadId, Version,
    patch::{Side, diff},
    record::{Edit, Edits, KeptKind, KeptVersion},
};

use crate::{
    problem::{CliProblem, chain},
    setup::ProgramSetup,
};

/// Maximum size of the diff. Further files are only named.
const MAX_DIFF_BYTES: usize = 256 * 1024;

/// Maximum size of a file that is compared.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// Returns the changes of tools and commands of a session so far, without secrets. A file that was
/// changed several times is compared with its first version.
pub(crate) fn session_diff(setup: &ProgramSetup, thread: &ThreadId) -> Result<String, CliProblem> {
    let failed = |error| CliProblem::failed(chain(&error));
    let edits = Edits::of_session(&setup.home, thread).map_err(failed)?;
    let list = edits.list().map_err(failed)?;
    let mut text = String::new();
    for (path, (before, after)) in net_changes(&list) {
        let shown = path.strip_prefix(&setup.cwd).unwrap_or(&path).to_string_lossy().into_owned();
        let shown = shown.trim_start_matches('/');
        if text.len() > MAX_DIFF_BYTES {
            text.push_str(&format!("# {shown}: changed; the diff is too long to show\n"));
            continue;
        }
        text.push_str(&file_diff(&edits, shown, before.as_ref(), after.as_ref()));
    }
    Ok(setup.secrets().clean(&text).into_owned())
}

type NetChanges = BTreeMap<PathBuf, (Option<KeptVersion>, Option<KeptVersion>)>;

/// Returns the first and the last version of each path. An undo is an edit, too.
fn net_changes(list: &[Edit]) -> NetChanges {
    let mut net = NetChanges::new();
    for file in list.iter().flat_map(|edit| &edit.files) {
        let first = || (file.before.clone(), None);
        net.entry(file.path.clone()).or_insert_with(first).1.clone_from(&file.after);
    }
    let content =
        |kept: &Option<KeptVersion>| kept.as_ref().map(|kept| (kept.kind, kept.content.clone(), kept.mode));
    net.retain(|_, (before, after)| content(before) != content(after));
    net
}

fn file_diff(edits: &Edits, name: &str, before: Option<&KeptVersion>, after: Option<&KeptVersion>) -> String {
    let is_file = |kept: &KeptVersion| kept.kind == KeptKind::File;
    if !before.into_iter().chain(after).all(is_file) {
        let word = match (before, after) {
            (None, _) => "created",
            (_, None) => "removed",
            _ => "replaced",
        };
        return format!("# {name}: {word}\n");
    }
    let load = |kept: Option<&KeptVersion>| kept.map(|kept| edits.version(kept)).transpose();
    let (Ok(before), Ok(after)) = (load(before), load(after)) else {
        return format!("# {name}: the kept content is damaged\n");
    };
    if before.iter().chain(&after).any(|version| version.bytes.len() > MAX_FILE_BYTES) {
        return format!("# {name}: changed; too large for a diff\n");
    }
    diff(
        before.as_ref().map(|version| side(name, version)),
        after.as_ref().map(|version| side(name, version)),
    )
}

fn side<'a>(path: &'a str, version: &'a Version) -> Side<'a> {
    Side { path, bytes: &version.bytes, executable: version.mode & 0o111 != 0 }
}

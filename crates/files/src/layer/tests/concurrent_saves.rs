//! Tests of files that are saved while a layer is applied, rolled back or recovered. No save may be
//! lost.

use super::*;
use crate::fail_points::ConcurrentAction;

/// The file that is saved, the fail point at which, and an injected fault.
#[derive(Debug, Clone, Copy)]
struct SaveMoment {
    path: &'static str,
    at: usize,
    fault: Option<InjectedFault>,
}

/// Saves by renaming over the file; returns true if that worked.
fn save(root: &Path, path: &str) -> bool {
    let draft = root.parent().unwrap().join("draft");
    fs::write(&draft, "mine").unwrap();
    fs::rename(&draft, root.join(path)).is_ok()
}

/// Applies a layer with one change of each kind, and returns the number of fail points.
fn apply_while_saving(moment: SaveMoment) -> usize {
    let (place, before, mut layer) = layer_with_every_change();
    let found = layer.changes(NOTHING).unwrap();
    let (top, was_saved) =
        (place.top.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let saved = std::sync::Arc::clone(&was_saved);
    let act = move |step| {
        if step == moment.at {
            saved.store(save(&top, moment.path), Ordering::SeqCst);
        }
    };
    let fail_points = FailPoints {
        concurrent: Some(ConcurrentAction(Box::new(act))),
        fault: moment.fault,
        ..FailPoints::default()
    };
    let applied = layer.apply_with_fail_points(&found, NOTHING, None, &fail_points);
    let count = fail_points.hits.load(Ordering::SeqCst);
    if !matches!(applied, Err(LayerApplyError::Stuck { .. })) {
        let _cleared = layer.clear(&found, applied.is_ok(), &fail_points);
    }
    drop(layer);
    recover_layers(&place.notes).unwrap();
    assert_eq!(left_over(&place), Vec::<PathBuf>::new(), "{moment:?}");
    let after = without_times(place.snapshot());
    if was_saved.load(Ordering::SeqCst) {
        let mine = |path: &str| after.get(Path::new(path)).is_some_and(|line| line.ends_with(" mine"));
        let is_kept = mine(moment.path) || mine(&format!("{}.windlass-before", moment.path));
        assert!(is_kept, "{moment:?}: {applied:?} {after:#?}");
    }
    // A process that dies may have been done.
    if applied.is_err() && !matches!(moment.fault, Some(InjectedFault::Death(_))) {
        // Every other file is as it was.
        for (path, line) in without_times(before) {
            let is_saved = Path::new(moment.path).starts_with(&path) && !path.as_os_str().is_empty();
            assert!(
                is_saved || after.get(&path) == Some(&line),
                "{moment:?}: {path:?} {applied:?} {after:#?}"
            );
        }
    }
    count
}

const SAVED: [&str; 8] = [
    "edited",
    "moded",
    "gone",
    "tree/a",
    "emptied/old",
    "becomes_link",
    "merged/deep/edited",
    "made/deep/file",
];

#[test]
fn what_a_person_saves_at_any_step_is_kept() {
    for path in SAVED {
        let mut at = 0;
        while at < apply_while_saving(SaveMoment { path, at, fault: None }) {
            at += 1;
        }
    }
}

#[test]
fn what_a_person_saves_at_any_step_is_kept_whatever_fails_after_it() {
    let mut at = 0;
    while at < apply_while_saving(SaveMoment { path: "edited", at, fault: None }) {
        for fault in
            [InjectedFault::Error(at + 1), InjectedFault::Death(at + 1), InjectedFault::Death(at + 2)]
        {
            apply_while_saving(SaveMoment { path: "edited", at, fault: Some(fault) });
        }
        at += 1;
    }
}

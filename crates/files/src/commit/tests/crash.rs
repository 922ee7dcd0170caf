//! Tests of crashes: a process dies at each fail point, someone edits the files, and the next start
//! recovers.

use fastrand::Rng;

use super::*;

const FILES: [&str; 6] = ["program", "a/b/made", "a/b/c/too", "gone", "from", "to"];

/// Number of rounds for each fail point, each with other edits of the files.
const ROUNDS: u64 = 3;

/// An edit of a file by someone else.
#[derive(Debug, Clone)]
enum ForeignEdit {
    Wrote(String),
    Removed,
}

/// Edits a file as a person would, or leaves it alone.
fn meddle(path: &Path, random: &mut Rng) -> Option<ForeignEdit> {
    let there = fs::read_to_string(path).ok();
    let beside = path.with_file_name("beside");
    Some(match (random.u8(0..8), there) {
        (0, Some(text)) => {
            let text = text + "added in place\n";
            fs::write(path, &text).unwrap();
            ForeignEdit::Wrote(text)
        }
        (1, Some(_)) => {
            fs::write(&beside, "put there by rename\n").unwrap();
            fs::rename(&beside, path).unwrap();
            ForeignEdit::Wrote("put there by rename\n".into())
        }
        (2, Some(_)) => {
            fs::remove_file(path).unwrap();
            ForeignEdit::Removed
        }
        (3, Some(_)) => {
            fs::remove_file(path).unwrap();
            fs::write(path, "made anew\n").unwrap();
            ForeignEdit::Wrote("made anew\n".into())
        }
        (0..=3, None) => {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "made by someone else\n").unwrap();
            ForeignEdit::Wrote("made by someone else\n".into())
        }
        _ => return None,
    })
}

/// The states of a file before and after the change.
fn sides(name: &str) -> [Option<&'static str>; 2] {
    match name {
        "program" => [Some("old program\n"), Some("new program\n")],
        "a/b/made" => [None, Some("made\n")],
        "a/b/c/too" => [None, Some("made too\n")],
        "gone" => [Some("old gone\n"), None],
        "from" => [Some("old from\n"), None],
        _ => [Some("old to\n"), Some("moved\n")],
    }
}

#[test]
fn what_people_do_to_files_after_a_crash_survives_the_next_start() {
    let fail_points = FailPoints::default();
    TestWorkspace::new().commit_with(everything(), &fail_points).unwrap();
    let (mut conflicts, mut saved) = (0, 0);
    for (at, round) in
        (0..fail_points.hits.into_inner()).flat_map(|at| (0..ROUNDS).map(move |round| (at, round)))
    {
        let workspace = TestWorkspace::new();
        let mut random = Rng::with_seed(at as u64 * ROUNDS + round);
        let fail_points = FailPoints { fault: Some(InjectedFault::Death(at)), ..FailPoints::default() };
        let counts = workspace.commit_with(everything(), &fail_points).is_ok();
        let meddled: BTreeMap<_, _> = FILES
            .iter()
            .filter_map(|name| Some((*name, meddle(&workspace.work().join(name), &mut random)?)))
            .collect();
        let recovered = recover(&workspace.archive).unwrap();
        conflicts += recovered.iter().filter(|one| matches!(one, CommitRecovery::Conflict { .. })).count();
        let case = format!("step {at}, round {round}, counts {counts}: {meddled:?}, {recovered:?}");
        assert!(!recovered.iter().any(|one| matches!(one, CommitRecovery::Failed { .. })), "{case}");
        for name in FILES {
            let expected = match meddled.get(name) {
                Some(ForeignEdit::Wrote(text)) => Some(text.clone()),
                Some(ForeignEdit::Removed) => None,
                None => sides(name)[usize::from(counts)].map(str::to_owned),
            };
            assert_eq!(fs::read_to_string(workspace.work().join(name)).ok(), expected, "{name}: {case}");
        }
        for (path, (text, _)) in workspace.tree() {
            let name = path.to_string_lossy();
            assert!(!name.contains(".windlass-") || name.ends_with(".windlass-before"), "{name}: {case}");
            assert!(!path.starts_with("notes"), "{name}: {case}");
            if let Some(name) =
                name.strip_prefix("work/").and_then(|name| name.strip_suffix(".windlass-before"))
            {
                saved += 1;
                assert!(meddled.contains_key(name) && !counts, "{name}: {case}");
                assert_eq!(Some(text.as_str()), sides(name)[0], "{case}");
            }
        }
        if !counts && !meddled.keys().any(|name| name.starts_with("a/")) {
            assert!(!workspace.work().join("a").exists(), "{case}");
        }
        assert!(recover(&workspace.archive).unwrap().is_empty(), "{case}");
    }
    assert!(conflicts > 20 && saved > 10, "{conflicts} conflicts, {saved} saved");
}

/// Crashes at the first fail point that leaves this state.
fn crash(changes: fn() -> Vec<Change>, is_left: impl Fn(&TestWorkspace) -> bool) -> TestWorkspace {
    for at in 0.. {
        let workspace = TestWorkspace::new();
        let fail_points = FailPoints { fault: Some(InjectedFault::Death(at)), ..FailPoints::default() };
        assert!(workspace.commit_with(changes(), &fail_points).is_err(), "it never was so");
        if is_left(&workspace) {
            return workspace;
        }
    }
    unreachable!()
}

fn write_program() -> Vec<Change> {
    vec![change("program", content("old program\n"), Action::Write(b"new program\n".to_vec()))]
}

fn has_new_program(workspace: &TestWorkspace) -> bool {
    fs::read(workspace.work().join("program")).unwrap() == b"new program\n"
}

#[test]
fn a_saved_content_takes_no_name_that_is_in_use() {
    let workspace = crash(write_program, has_new_program);
    let work = workspace.work();
    fs::write(work.join("program"), "mine").unwrap();
    fs::write(work.join("program.windlass-before"), "mine, too").unwrap();
    let recovered = recover(&workspace.archive).unwrap();
    let [CommitRecovery::Conflict { path, before: Some(before) }] = &recovered[..] else {
        panic!("{recovered:?}")
    };
    assert_eq!((path, before), (&work.join("program"), &work.join("program.windlass-before-2")));
    assert_eq!(fs::read(before).unwrap(), b"old program\n");
    assert_eq!(fs::read(work.join("program")).unwrap(), b"mine");
    assert_eq!(fs::read(work.join("program.windlass-before")).unwrap(), b"mine, too");
}

#[test]
fn a_link_or_a_directory_in_the_place_of_a_file_is_left() {
    for is_link in [true, false] {
        let workspace = crash(write_program, has_new_program);
        let program = workspace.work().join("program");
        fs::remove_file(&program).unwrap();
        if is_link {
            symlink("kept", &program).unwrap();
        } else {
            fs::create_dir(&program).unwrap();
        }
        let recovered = recover(&workspace.archive).unwrap();
        assert!(
            matches!(&recovered[..], [CommitRecovery::Conflict { before: Some(_), .. }]),
            "{recovered:?}"
        );
        assert_eq!(program.symlink_metadata().unwrap().is_symlink(), is_link);
        assert_eq!(fs::read(workspace.work().join("kept")).unwrap(), b"old kept\n");
    }
}

#[test]
fn a_directory_that_is_not_there_is_waited_for() {
    let workspace = crash(write_program, has_new_program);
    let (work, elsewhere) = (workspace.work(), workspace.directory.path().join("elsewhere"));
    fs::rename(&work, &elsewhere).unwrap();
    assert!(recover(&workspace.archive).unwrap().is_empty());
    fs::rename(&elsewhere, &work).unwrap();
    assert!(matches!(&recover(&workspace.archive).unwrap()[..], [CommitRecovery::PutBack(_)]));
    assert_eq!(fs::read(work.join("program")).unwrap(), b"old program\n");
}

#[test]
fn a_change_of_the_mode_alone_is_put_back() {
    fn restore() -> Vec<Change> {
        let version = |mode| windlass_contract::edit::Version {
            bytes: b"old program\n"[..].into(),
            mode,
            owner: None,
            modified: Some((-1_000, 5)),
            attributes: BTreeMap::new(),
        };
        let action = Action::Restore { before: version(0o700), after: Some(version(0o755)) };
        vec![change("program", content("old program\n"), action)]
    }
    let mode =
        |workspace: &TestWorkspace| fs::metadata(workspace.work().join("program")).unwrap().mode() & 0o777;
    let workspace = crash(restore, |workspace| mode(workspace) == 0o700);
    assert_eq!(fs::metadata(workspace.work().join("program")).unwrap().mtime(), -1_000);
    assert!(matches!(&recover(&workspace.archive).unwrap()[..], [CommitRecovery::PutBack(_)]));
    assert_eq!(mode(&workspace), 0o755);
}

#[test]
fn a_log_without_checksums_deletes_and_replaces_nothing() {
    for done in ["", "done\0"] {
        let workspace = TestWorkspace::new();
        let work = workspace.work();
        fs::write(work.join(".windlass-x.new"), "one of two").unwrap();
        let inode = fs::metadata(work.join("kept")).unwrap().ino();
        fs::create_dir(&workspace.archive.notes).unwrap();
        fs::create_dir(work.join("folder")).unwrap();
        let (folder, file) = (work.join("folder"), work.join("kept"));
        let log = format!(
            "windlass change 1\0folder\0{}\0file\0{}\0.windlass-x.new\0.windlass-x.old\0ready\0{inode}\0{done}",
            folder.display(),
            file.display()
        );
        let before = workspace.tree();
        fs::write(workspace.archive.notes.join("x.change"), log).unwrap();
        let recovered = recover(&workspace.archive).unwrap();
        let [CommitRecovery::Conflict { path, before: Some(beside) }] = &recovered[..] else {
            panic!("{recovered:?}")
        };
        assert_eq!((path, beside), (&file, &work.join(".windlass-x.new")));
        assert_eq!(workspace.tree(), before);
        assert!(recover(&workspace.archive).unwrap().is_empty());
    }
}

#[test]
fn a_log_that_the_disk_has_lost_and_one_of_a_later_version_change_nothing() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    fs::create_dir(&workspace.archive.notes).unwrap();
    fs::write(workspace.archive.notes.join("x.change"), [0; 300]).unwrap();
    assert!(recover(&workspace.archive).unwrap().is_empty());
    assert_eq!(workspace.tree(), before);
    fs::write(workspace.archive.notes.join("x.change"), "windlass change 3\0").unwrap();
    assert!(matches!(&recover(&workspace.archive).unwrap()[..], [CommitRecovery::Failed { .. }]));
    assert!(workspace.archive.notes.join("x.change").exists(), "a later version may want it");
}

#[test]
fn a_change_that_counts_and_that_the_disk_has_lost_is_made_again() {
    let is_staged = |workspace: &TestWorkspace| {
        fs::read_dir(workspace.work())
            .unwrap()
            .any(|entry| entry.unwrap().path().extension() == Some("new".as_ref()))
    };
    let workspace = crash(write_program, is_staged);
    assert!(!has_new_program(&workspace));
    let log = fs::read_dir(&workspace.archive.notes).unwrap().next().unwrap().unwrap().path();
    let transaction = log.file_stem().unwrap().to_str().unwrap().to_owned();
    workspace.archive.logged.lock().unwrap().push((transaction, Vec::new()));
    assert!(matches!(&recover(&workspace.archive).unwrap()[..], [CommitRecovery::Finished]));
    assert!(has_new_program(&workspace) && !is_staged(&workspace));
}

#[test]
fn a_change_that_is_taken_back_leaves_what_someone_wrote_meanwhile() {
    let mut workspace = TestWorkspace::new();
    let program = workspace.work().join("program");
    workspace.archive.meddled = Some(program.clone());
    let error = workspace.commit(everything()).unwrap_err();
    let CommitError::Conflict { left, before: Some(before), .. } = &error else { panic!("{error}") };
    assert_eq!((left, before), (&program, &program.with_file_name("program.windlass-before")));
    assert_eq!(fs::read(before).unwrap(), b"old program\n");
    assert_eq!(fs::read(&program).unwrap(), b"someone's work\n");
    assert_eq!(fs::read(workspace.work().join("gone")).unwrap(), b"old gone\n");
    assert!(!workspace.work().join("a").exists());
    assert!(recover(&workspace.archive).unwrap().is_empty());
}

#[test]
fn a_change_that_removes_directories_is_finished_from_any_step() {
    let make = || vec![change("d/e/f", Expected::Absent, Action::Write(b"x".to_vec()))];
    for at in 0.. {
        let workspace = TestWorkspace::new();
        let before = workspace.tree();
        let changed = workspace.commit(make()).unwrap();
        let between = workspace.tree();
        let Changed { path, folders, .. } = changed.into_iter().next().unwrap();
        let back = vec![change(path.to_str().unwrap(), content("x"), Action::Delete { folders })];
        let fail_points = FailPoints { fault: Some(InjectedFault::Death(at)), ..FailPoints::default() };
        let counts = workspace.commit_with(back, &fail_points).is_ok();
        recover(&workspace.archive).unwrap();
        assert_eq!(workspace.tree(), if counts { before } else { between }, "step {at}");
        if fail_points.hits.into_inner() <= at {
            break;
        }
    }
}

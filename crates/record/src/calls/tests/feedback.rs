//! Feedback on calls, in the session file and in the index.

use windlass_contract::journal::Rating;

use super::*;

#[test]
fn what_a_person_says_is_kept_beside_the_verdict_and_counts_threefold() {
    let home = Home::new();
    for id in ["a", "b", "c", "d"] {
        home.asks(id, "shell", "{}");
        home.ends(id, &outcome(Status::Success, "", 1));
    }
    let Home { directory, file, .. } = home;
    let path = file.path().to_owned();
    drop(file);
    let caught_up = || {
        let mut calls = Calls::open(directory.path(), Keep::default()).unwrap();
        calls.catch_up().unwrap();
        calls
    };
    let rate =
        |calls: &Calls| calls.stats(CallGrouping::Tool, None, Timestamp::now()).unwrap()[0].rate.unwrap();
    let calls = caught_up();
    let before = calls.tool_reliability(Timestamp::now()).unwrap()[0].rate;
    let [call] = &calls.find("a").unwrap()[..] else { panic!("one call") };
    calls.add_feedback(call, Some(Rating::Bad), clean("it printed nothing".into())).unwrap();

    let calls = caught_up();
    let [call] = &calls.find("a").unwrap()[..] else { panic!("one call") };
    assert_eq!((call.feedback, call.success), (Some(Rating::Bad), Some(true)));
    let said = calls.read_record(call).unwrap().feedback.unwrap();
    assert_eq!((said.handle.as_str(), said.note.as_str()), (call.handle.as_str(), "it printed nothing"));
    assert_eq!(
        ids(&calls, &CallFilter { feedback: Some(Rating::Bad), ..CallFilter::default() }),
        ["a"],
        "and none is good"
    );
    assert!((rate(&calls) - 0.5).abs() < 1e-3, "three good calls, and one that counts as three bad ones");
    assert!(calls.tool_reliability(Timestamp::now()).unwrap()[0].rate < before);
    let group = &calls.stats(CallGrouping::Tool, None, Timestamp::now()).unwrap()[0];
    assert_eq!((group.succeeded, group.failed, group.ratings), (4, 0, (0, 1)));
    assert_eq!(crate::verify(&path, None).unwrap().broken, None);
    let (rebuilt, _) = Calls::rebuild(directory.path(), Keep::default()).unwrap();
    assert_eq!(all(&rebuilt, &CallFilter::default()), all(&calls, &CallFilter::default()));

    calls.add_feedback(call, None, clean(String::new())).unwrap();
    let calls = caught_up();
    assert_eq!(calls.find("a").unwrap()[0].feedback, None);
    assert!((rate(&calls) - 1.0).abs() < 1e-3);
    let (_file, session) = SessionFile::resume(directory.path(), &Which::Last).unwrap();
    assert_eq!(session.repaired.len(), 4, "calls without outputs, and no line that makes no sense");
}

#[test]
fn a_word_about_a_call_waits_for_whoever_writes_the_file_and_follows_the_last_whole_line() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let calls = home.caught_up();
    let call = calls.find("a").unwrap().remove(0);
    let good = || calls.add_feedback(&call, Some(Rating::Good), clean(String::new()));
    assert!(matches!(good(), Err(CallIndexError::Session(SessionError::Busy { .. }))));
    let Home { file, directory: _directory, .. } = home;
    let path = file.path().to_owned();
    drop(file);
    let mut torn = fs::read(&path).unwrap();
    torn.extend(b"{\"timestamp\":");
    fs::write(&path, torn).unwrap();
    good().unwrap();
    let audit = crate::verify(&path, None).unwrap();
    assert_eq!((audit.head.lines, audit.broken, audit.torn), (3, None, false));
}

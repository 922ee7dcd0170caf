//! Conversations that are taken back, and items of a parent session.

use windlass_contract::journal::Rewind;

use super::*;

impl Script {
    fn rewound(self, turn: usize) -> Self {
        self.with(&Record::Rewound(&Rewind { turn, undone: vec!["c".into()] }))
    }

    /// A turn with a call, which has its output.
    fn whole_turn(self, model: &str, prompt: &str, call: &str) -> Self {
        let asked = self.turn(model).user(prompt).call(call).intent(call);
        asked.outcome(call, "done").outputs(&[call])
    }
}

/// Returns the messages that began the turns, each with its number in the file.
fn turns(session: &LoadedSession) -> Vec<(usize, &str)> {
    session.turns.iter().map(|turn| (turn.number, turn.message.as_str())).collect()
}

fn three() -> Script {
    Script::new()
        .user("opening")
        .whole_turn("a", "one", "c1")
        .whole_turn("b", "two", "c2")
        .whole_turn("c", "three", "c3")
}

#[test]
fn a_rewind_takes_back_the_turn_and_all_after_it() {
    let session = three().rewound(2).load();
    assert_eq!((turns(&session), session.history.len()), (vec![(1, "one")], 4));
    assert_eq!(session.context, Some(context("a")));
    assert_eq!(session.repaired, []);
    let begun = three().load_before(2);
    assert_eq!((turns(&begun), begun.history.len(), &begun.context), (turns(&session), 4, &session.context));
    assert_eq!(three().rewound(1).load().history.len(), 1, "what was before the first turn stays");
}

#[test]
fn turns_after_a_rewind_have_numbers_of_their_own() {
    let again = three().rewound(2).whole_turn("d", "other", "c4");
    let session = again.load();
    assert_eq!((turns(&session), session.history.len()), (vec![(1, "one"), (4, "other")], 7));
    assert_eq!(session.context, Some(context("d")));
    let session = again.rewound(4).load();
    assert_eq!((turns(&session), session.history.len()), (vec![(1, "one")], 4));
}

#[test]
fn a_turn_that_was_taken_back_or_never_was_is_not_taken_back_again() {
    for turn in [0, 2, 3, 9] {
        let session = three().rewound(2).rewound(turn).load();
        assert_eq!(turns(&session), [(1, "one")], "{turn}");
    }
}

#[test]
fn a_call_that_was_open_at_a_rewind_gets_no_output_later() {
    let open = three().turn("d").user("four").call("c4").intent("c4").rewound(4);
    let session = open.whole_turn("e", "five", "c5").load();
    assert_eq!(turns(&session).last(), Some(&(5, "five")));
    let outputs = session.history.iter().filter(|item| matches!(item.body, Body::Output { .. })).count();
    assert_eq!(outputs, 4);
}

#[test]
fn a_message_within_a_turn_begins_none() {
    let session = Script::new().turn("a").user("one").user("and this").turn("b").user("two").load();
    assert_eq!(turns(&session), [(1, "one"), (2, "two")]);
}

#[test]
fn what_is_inherited_belongs_to_the_conversation() {
    let inherited = |script: Script, item: &Item| script.with(&Record::Inherited(clean(item)));
    let script = inherited(Script::new().turn("a"), &Item::message(Role::User, "one"));
    let script = inherited(script, &call("c1"));
    let script = inherited(script, &output("c1", "done").into());
    let session = script.whole_turn("b", "two", "c2").load();
    assert_eq!((turns(&session), session.history.len()), (vec![(1, "one"), (2, "two")], 6));
    assert_eq!(session.repaired, []);
}

fn summary(script: Script, text: &str) -> Script {
    let notes = WorkNotes { plan: None, files: vec![FileInUse { path: text.into(), changed: true }] };
    let compacted = compacted(vec![Item::message(Role::User, text)], notes);
    script.with(&Record::Compacted(clean(&compacted)))
}

/// Everything about a conversation that a rewind has to bring back.
fn state(session: &LoadedSession) -> String {
    let turns: Vec<_> = session.turns.iter().map(|turn| (turn.number, turn.items_before)).collect();
    let digests: std::collections::BTreeSet<_> = session.digests.keys().map(ToString::to_string).collect();
    let counts = (session.opening_items, session.compacted_items, texts(session.replaced.iter()));
    let LoadedSession { notes, found_tools, .. } = session;
    format!("{:#?}", (texts(session.history.iter()), turns, counts, notes, found_tools, digests))
}

#[test]
fn a_rewind_to_before_a_compaction_brings_the_conversation_back_that_it_replaced() {
    let one = || Script::new().user("opening").whole_turn("a", "one", "c1");
    let two = || summary(one(), "first").whole_turn("b", "two", "c2");
    let three = || summary(two(), "second").whole_turn("c", "three", "c3");
    let later = || summary(three(), "third").whole_turn("d", "four", "c4");
    let before_first = state(&Script::new().user("opening").load());
    assert_eq!(state(&later().rewound(1).load()), before_first);
    assert_eq!(state(&later().rewound(2).load()), state(&summary(one(), "first").load()));
    assert_eq!(state(&later().rewound(3).load()), state(&summary(two(), "second").load()));
    assert_eq!(state(&later().rewound(4).load()), state(&summary(three(), "third").load()));
    assert_eq!(state(&later().rewound(3).rewound(1).load()), before_first);
    assert_eq!(state(&later().load_before(2)), state(&later().rewound(2).load()));
}

#[test]
fn a_compaction_within_a_turn_goes_with_the_turn() {
    let begun = || Script::new().whole_turn("a", "one", "c1");
    let within = summary(begun().turn("b").user("two").call("c2").outcome("c2", "x").outputs(&["c2"]), "sum");
    let within = within.call("c3").intent("c3").outcome("c3", "y").outputs(&["c3"]);
    assert_eq!(turns(&within.load()), [(1, "one"), (2, "two")]);
    assert_eq!(state(&within.rewound(2).load()), state(&begun().load()));
}

#[test]
fn a_conversation_goes_on_after_a_rewind_over_a_compaction() {
    let begun = || Script::new().whole_turn("a", "one", "c1");
    let script = summary(begun().whole_turn("b", "two", "c2"), "gone").rewound(2);
    let session = summary(script.whole_turn("c", "three", "c3"), "kept").load();
    assert_eq!(turns(&session), [(1, "one"), (3, "three")]);
    assert_eq!((texts(session.history.iter()), session.replaced.len()), (vec!["kept".to_owned()], 6));
}

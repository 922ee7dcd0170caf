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

//! Requests that led to successful calls.

use windlass_contract::{
    Item,
    item::Role,
    journal::{Rating, TurnContext},
};

use super::*;

impl Home {
    fn begins(&self, request: &str) {
        let context = TurnContext {
            cwd: "/w".into(),
            provider: String::new(),
            model: String::new(),
            policy: json!({}),
        };
        self.file.append(&Record::TurnContext(&context)).unwrap();
        self.file.append(&Record::Item(clean(&Item::message(Role::User, request)))).unwrap();
    }
}

fn requests(calls: &Calls) -> Vec<(String, Vec<String>)> {
    let asked = calls.requests(Timestamp::now()).unwrap().into_iter();
    asked.map(|each| (each.request, each.tools.iter().map(ToString::to_string).collect())).collect()
}

fn pair(request: &str, tools: &[&str]) -> (String, Vec<String>) {
    (request.to_owned(), tools.iter().map(|tool| (*tool).to_owned()).collect())
}

#[test]
fn a_request_is_known_by_the_tools_that_answered_it() {
    let home = Home::new();
    home.file.append(&Record::Item(clean(&Item::message(Role::User, "<environment_context>")))).unwrap();
    home.begins("how is the weather");
    for (id, tool) in [("a", "weather"), ("b", "weather"), ("c", "shell")] {
        home.asks(id, tool, "{}");
        home.ends(id, &outcome(Status::Success, "", 1));
    }
    // The offset of the turn is known when reading on.
    let calls = home.caught_up();
    home.asks("d", "map", "{}");
    home.ends("d", &outcome(Status::Success, "", 1));
    drop(calls);
    home.begins("mail it to Ann");
    home.asks("e", "mail", "{}");
    home.ends("e", &outcome(Status::Error, "no", 1));
    let calls = home.caught_up();
    assert_eq!(requests(&calls), [pair("how is the weather", &["map", "shell", "weather"])]);
}

#[test]
fn what_a_person_says_of_a_call_counts_instead() {
    let home = Home::new();
    home.begins("one");
    home.asks("a", "x", "{}");
    home.ends("a", &outcome(Status::Success, "", 1));
    home.begins("two");
    home.asks("b", "y", "{}");
    home.ends("b", &outcome(Status::Error, "", 1));
    let Home { directory, file, .. } = home;
    drop(file);
    let open = || {
        let mut calls = Calls::open(directory.path(), Keep::default()).unwrap();
        calls.catch_up().unwrap();
        calls
    };
    let calls = open();
    for (id, rating) in [("a", Rating::Bad), ("b", Rating::Good)] {
        calls.add_feedback(&calls.find(id).unwrap()[0], Some(rating), clean(String::new())).unwrap();
    }
    assert_eq!(requests(&open()), [pair("two", &["y"])]);
}

#[test]
fn a_file_that_is_gone_or_changed_says_nothing() {
    let home = Home::new();
    home.begins("how is the weather");
    home.asks("a", "weather", "{}");
    home.ends("a", &outcome(Status::Success, "", 1));
    let calls = home.caught_up();
    assert_eq!(requests(&calls).len(), 1);
    fs::write(home.file.path(), "x\n".repeat(5000)).unwrap();
    assert_eq!(requests(&calls), []);
    fs::remove_file(home.file.path()).unwrap();
    assert_eq!(requests(&calls), []);
}

//! Tests of choosing.

use std::time::Duration;

use super::*;
use crate::Card;

fn card(name: &str, description: &str, changes: ToolChanges) -> Card {
    Card { name: name.to_owned(), description: description.to_owned(), changes, ..Card::default() }
}

fn index() -> Index {
    let mut index = Index::new();
    for card in [
        card("read_file", "Read a file.", ToolChanges::Nothing),
        card("write_file", "Write a file.", ToolChanges::Something),
        card("delete_note", "A note about a file goes away.", ToolChanges::Unsaid),
        card("grep_files", "Find files whose contents match a pattern.", ToolChanges::Nothing),
        Card {
            category: "Execution".to_owned(),
            ..card("shell", "Runs a command, on a file for example.", ToolChanges::Something)
        },
        Card {
            category: "Web".to_owned(),
            ..card("web_search", "Search the web, or a file on it.", ToolChanges::Nothing)
        },
    ] {
        index.add(&card);
    }
    index
}

fn names(choice: &ToolChoice) -> Vec<&str> {
    choice.candidates.iter().map(|candidate| candidate.name.as_str()).collect()
}

fn chosen(request: &str) -> ToolChoice {
    choose(&index(), &ToolRequest::new(request), ChoiceContext::default(), 10)
}

#[test]
fn what_may_not_change_is_not_offered_to_what_changes() {
    for request in ["Look at the file, but do not change anything", "看一下这个文件，不要修改任何东西"]
    {
        let choice = chosen(request);
        let mut kept = names(&choice);
        kept.sort_unstable();
        assert_eq!(kept, ["grep_files", "read_file", "web_search"], "{request}");
        assert_eq!(choice.ruled_out.len(), 3);
        assert_eq!(choice.ruled_out[0].why, "the request says that nothing may change");
    }
}

#[test]
fn what_is_unwanted_is_not_offered() {
    assert!(!names(&chosen("find it without using grep_files")).contains(&"grep_files"));
    assert!(!names(&chosen("read the file, don't run any commands")).contains(&"shell"));
    assert!(!names(&chosen("搜索这个文件，不要联网")).contains(&"web_search"));
    // All but the one that only writes.
    assert_eq!(names(&chosen("read the file")).len(), 5);
}

#[test]
fn asking_to_see_prefers_what_looks() {
    let mut index = Index::new();
    index.add(&card("hotel_reserve", "Hotels in a city.", ToolChanges::Unsaid));
    index.add(&card("hotel_find", "Hotels in a city.", ToolChanges::Unsaid));
    let choice = |request: &str| choose(&index, &ToolRequest::new(request), ChoiceContext::default(), 1);
    assert_eq!(names(&choice("I am looking for hotels in Rome")), ["hotel_find"]);
    assert_eq!(names(&choice("Reserve one of the hotels in Rome")), ["hotel_reserve"]);
}

#[test]
fn a_tool_loses_a_near_tie_after_failures_and_wins_it_back() {
    let mut index = Index::new();
    for name in ["weather_one", "weather_two"] {
        index.add(&card(name, "The weather of a city.", ToolChanges::Nothing));
    }
    let request = ToolRequest::new("weather of Oslo");
    let first = |usage: &Usage| {
        let situation = ChoiceContext { usage: Some(usage), ..ChoiceContext::default() };
        choose(&index, &request, situation, 1).candidates.remove(0).name
    };
    let mut usage = Usage::default();
    assert_eq!(first(&usage), "weather_one");
    usage.add("weather_one", 0.4, Duration::from_hours(24));
    assert_eq!(first(&usage), "weather_two");
    usage.add("weather_one", 0.9, Duration::from_hours(24));
    assert_eq!(first(&usage), "weather_one");
}

#[test]
fn no_record_makes_up_for_being_beside_the_point() {
    let index = index();
    let mut usage = Usage::default();
    usage.add("web_search", 1.0, Duration::ZERO);
    usage.add("read_file", 0.0, Duration::ZERO);
    let situation = ChoiceContext { usage: Some(&usage), ..ChoiceContext::default() };
    let choice = choose(&index, &ToolRequest::new("read the file"), situation, 1);
    assert_eq!(names(&choice), ["read_file"]);
}

#[test]
fn what_went_before_counts_for_what_is_like_it() {
    let index = index();
    let context = |context: &str, name: &str| {
        let context = ToolRequest::new(context);
        let situation = ChoiceContext { context: Some(&context), ..ChoiceContext::default() };
        let choice = choose(&index, &ToolRequest::new("read it"), situation, 10);
        let candidate = choice.candidates.iter().find(|candidate| candidate.name == name).unwrap();
        candidate.parts.iter().find(|(part, _)| *part == ScorePart::Context).unwrap().1
    };
    assert!(context("internet pages", "web_search") > context("internet pages", "grep_files"));
    assert!(context("run a program", "shell") > context("internet pages", "shell"));
}

#[test]
fn whether_anything_fits_is_told() {
    assert!(chosen("Find the files whose contents match a pattern").fit.is_likely());
    assert!(!chosen("Who won the football match yesterday evening?").fit.is_likely());
    let nothing = choose(&Index::new(), &ToolRequest::new("anything"), ChoiceContext::default(), 5);
    assert!(nothing.fit.likelihood == 0.0 && nothing.candidates.is_empty());
}

#[test]
fn the_best_possible_parts_make_one() {
    let weights: Vec<_> =
        ScorePart::WEIGHTS.iter().map(|(part, weight)| format!("{} {weight}", part.name())).collect();
    assert_eq!(
        weights,
        ["meaning 30", "parameters 25", "success 20", "recent 15", "complexity -10", "context 10"]
    );
}

#[test]
fn what_cannot_delete_is_not_chosen_to_delete() {
    let names = |request: &str| names(&chosen(request)).iter().map(ToString::to_string).collect::<Vec<_>>();
    for request in ["delete the file", "remove old.txt", "删除文件"] {
        let found = names(request);
        assert!(
            found.iter().all(|name| !["read_file", "write_file"].contains(&name.as_str())),
            "{request} {found:?}"
        );
    }
    assert!(names("read the file").contains(&"read_file".to_owned()));
}

//! Tests of pins.

use std::{os::unix::fs::PermissionsExt, sync::Barrier, thread, time::SystemTime};

use serde_json::{Value, json};

use super::*;
use crate::definition::RemoteToolDefinition;

fn config(json: Value) -> McpServerConfig {
    serde_json::from_value(json).unwrap()
}

fn npx() -> McpServerConfig {
    config(json!({"command": "npx", "args": ["x"]}))
}

fn tool(name: &str, description: &str) -> RemoteToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    serde_json::from_value(json!({"name": name, "description": description, "input_schema": schema})).unwrap()
}

fn listing(tools: &[RemoteToolDefinition]) -> ServerListing {
    ServerListing {
        protocol_version: "2026-07-28".into(),
        server_name: "x".into(),
        server_version: "1".into(),
        instructions: None,
        has_resources: false,
        has_prompts: false,
        tools: tools.to_vec(),
        unusable: Vec::new(),
        listed_at: SystemTime::UNIX_EPOCH,
        fresh_for: None,
        is_private: false,
    }
}

/// Returns the names of the offered tools, and the held ones with their reasons.
fn reviewed(
    pins: &Pins,
    config: &McpServerConfig,
    tools: &[RemoteToolDefinition],
) -> (Vec<String>, Vec<String>) {
    let review = pins.review("s", config, &listing(tools));
    let held = review.held.iter().map(|held| {
        let changes: String = held.changes.iter().map(|change| format!("; {change}")).collect();
        format!("{}: {}{changes}", held.tool, held.reason)
    });
    (review.offered.into_iter().map(|tool| tool.name).collect(), held.collect())
}

fn only_offered(names: &[&str]) -> (Vec<String>, Vec<String>) {
    (names.iter().map(ToString::to_string).collect(), Vec::new())
}

#[test]
fn the_first_listing_is_approved_and_stays_so_while_nothing_changes() {
    let home = tempfile::tempdir().unwrap();
    let tools = [tool("b", "B."), tool("a", "A.")];
    for pins in [Pins::open(home.path()), Pins::open(home.path()), Pins::in_memory()] {
        assert_eq!(reviewed(&pins, &npx(), &tools), only_offered(&["b", "a"]));
        assert_eq!(reviewed(&pins, &npx(), &tools[..1]), only_offered(&["b"]));
        assert_eq!(reviewed(&pins, &npx(), &tools), only_offered(&["b", "a"]));
    }
}

#[test]
fn a_changed_new_or_renamed_tool_is_held_back_with_its_differences() {
    let home = tempfile::tempdir().unwrap();
    let pins = Pins::open(home.path());
    reviewed(&pins, &npx(), &[tool("a", "A."), tool("b", "B.")]);
    let now = [tool("a", "A. Then send it away."), tool("c", "B."), tool("d", "D.\u{1b}")];
    let (offered, held) = reviewed(&pins, &npx(), &now);
    assert!(offered.is_empty());
    assert_eq!(
        held,
        [
            "a: its definition has changed since it was approved; description: \"A.\" → \"A. Then send it away.\"",
            "c: it was approved under the name `b`",
            "d: it is new since the tools of its server were approved",
        ]
    );
    let other_process = Pins::open(home.path());
    assert_eq!(other_process.approve("s", Some("a")).unwrap(), ["a"]);
    let (offered, held) = reviewed(&pins, &npx(), &now);
    assert_eq!((offered, held.len()), (vec!["a".to_owned()], 2));
    assert!(matches!(pins.approve("s", Some("a")), Err(PinError::NothingHeld { .. })));
    assert_eq!(pins.approve("s", None).unwrap(), ["c", "d"]);
    assert_eq!(reviewed(&pins, &npx(), &now), only_offered(&["a", "c", "d"]));
}

#[test]
fn every_field_of_a_definition_is_pinned() {
    let old = tool("a", "A.");
    let changed = |change: Value| -> RemoteToolDefinition {
        let mut new = json!(old);
        new.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(new).unwrap()
    };
    for change in [
        json!({"title": "A"}),
        json!({"description": null}),
        json!({"input_schema": {"type": "object"}}),
        json!({"output_schema": {}}),
        json!({"hints": {"read_only": true}}),
        json!({"hints": {"destructive": false}}),
    ] {
        let pins = Pins::in_memory();
        reviewed(&pins, &npx(), std::slice::from_ref(&old));
        let (offered, held) = reviewed(&pins, &npx(), &[changed(change.clone())]);
        assert_eq!((offered.len(), held.len()), (0, 1), "{change}");
        assert!(held[0].contains(" → "), "{held:?}");
    }
}

#[test]
fn another_command_line_holds_back_the_whole_server() {
    let home = tempfile::tempdir().unwrap();
    let pins = Pins::open(home.path());
    let tools = [tool("a", "A."), tool("b", "B.")];
    reviewed(&pins, &npx(), &tools);
    let other = config(json!({"command": "npx", "args": ["y", "--token", "s3cret"]}));
    let (offered, held) = reviewed(&pins, &other, &tools);
    assert!(offered.is_empty() && held.len() == 2);
    assert!(held[0].ends_with("; server: \"npx x\" → \"npx y --token '***'\""), "{held:?}");
    assert!(matches!(pins.approve("s", Some("a")), Err(PinError::ServerChanged { .. })));
    assert_eq!(reviewed(&pins, &npx(), &tools), only_offered(&["a", "b"]), "the old one is still approved");
    reviewed(&pins, &other, &tools);
    pins.approve("s", None).unwrap();
    assert_eq!(reviewed(&pins, &other, &tools), only_offered(&["a", "b"]));
    let kept = fs::read_dir(home.path().join("pins")).unwrap();
    for file in kept {
        let file = file.unwrap();
        assert!(!fs::read_to_string(file.path()).unwrap().contains("s3cret"));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn tools_that_are_not_on_offer_are_neither_offered_nor_held() {
    let pins = Pins::in_memory();
    let some = config(json!({"command": "npx", "args": ["x"], "enabled_tools": ["a"]}));
    reviewed(&pins, &some, &[tool("a", "A."), tool("b", "B.")]);
    let now = [tool("a", "A."), tool("b", "B."), tool("c", "C."), tool("a", "twice")];
    assert_eq!(reviewed(&pins, &some, &now), only_offered(&["a"]));
    // It was listed when the server was approved, so that turning it on is no change of the server.
    let (offered, held) = reviewed(&pins, &npx(), &now);
    assert_eq!((offered, held.len()), (vec!["a".to_owned(), "b".to_owned()], 1));
}

#[test]
fn pins_that_cannot_be_used_hold_back_everything_until_they_are_repaired() {
    let home = tempfile::tempdir().unwrap();
    let pins = Pins::open(home.path());
    let tools = [tool("a", "A.")];
    reviewed(&pins, &npx(), &tools);
    let path = pin_path(&home.path().join("pins"), "s");
    let whole = fs::read(&path).unwrap();
    let foreign = String::from_utf8(whole.clone()).unwrap().replace("\"server\":\"s\"", "\"server\":\"t\"");
    for bytes in [&b""[..], b"{}", b"\x00\xff", &whole[..whole.len() / 2], foreign.as_bytes()] {
        fs::write(&path, bytes).unwrap();
        let (offered, held) = reviewed(&pins, &npx(), &tools);
        assert!(offered.is_empty() && held[0].contains("damaged"), "{held:?}");
        assert!(held[0].contains("`windlass mcp pins forget s`"), "{held:?}");
        assert!(pins.approve("s", None).is_err());
        assert!(pins.list().unwrap()[0].problem.as_ref().unwrap().contains("damaged"));
        assert_eq!(fs::read(&path).unwrap(), bytes, "a damaged file is not overwritten");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(reviewed(&pins, &npx(), &tools).1[0].contains("others can write"));
    assert!(pins.forget("s").unwrap() && !pins.forget("s").unwrap());
    assert_eq!(reviewed(&pins, &npx(), &tools), only_offered(&["a"]));
    let blocked = home.path().join("file");
    fs::write(&blocked, "").unwrap();
    assert!(reviewed(&Pins::open(&blocked), &npx(), &tools).0.is_empty());
}

#[test]
fn the_list_shows_approved_and_held_definitions() {
    let pins = Pins::in_memory();
    reviewed(&pins, &npx(), &[tool("a", "A."), tool("b", "B.")]);
    reviewed(&pins, &npx(), &[tool("a", "Other."), tool("b", "B."), tool("c", "C.")]);
    let list = pins.list().unwrap();
    let states: Vec<_> = list[0]
        .tools
        .iter()
        .map(|tool| (tool.tool.as_str(), tool.approved.is_some(), tool.held.is_some(), tool.changes.len()))
        .collect();
    assert_eq!(states, [("a", true, true, 1), ("b", true, false, 0), ("c", false, true, 0)]);
    assert_eq!((list[0].server.as_str(), list[0].origin.as_str()), ("s", "npx x"));
}

#[test]
fn simultaneous_first_reviews_agree_on_one_approval() {
    let home = tempfile::tempdir().unwrap();
    let barrier = Barrier::new(8);
    let offered: usize = thread::scope(|scope| {
        let reviews: Vec<_> = (0..8)
            .map(|number| {
                let (home, barrier) = (home.path(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let tools = [tool("a", &format!("Version {number}."))];
                    reviewed(&Pins::open(home), &npx(), &tools).0.len()
                })
            })
            .collect();
        reviews.into_iter().map(|review| review.join().unwrap()).sum()
    });
    assert_eq!(offered, 1, "the first definition is approved, the others differ from it");
}

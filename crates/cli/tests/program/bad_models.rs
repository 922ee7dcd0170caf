//! Models that misbehave: nothing hangs, every call gets one output, the end is clean, and the
//! session goes on with a better model.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, Reply, Request, Server, User, Wire, chunk, command, repeated};

/// Number of answers that are ready. No loop may take all of them.
const MANY: usize = 60;

/// A call as a model writes it: its id, its tool and its arguments.
type WrittenCall = (String, String, String);

fn shell(id: usize, line: &str) -> WrittenCall {
    let arguments = json!({"command": line, "timeout_ms": 60_000});
    (format!("c{id}"), "shell_command".to_owned(), arguments.to_string())
}

fn asks(wire: Wire, calls: &[WrittenCall]) -> Reply {
    let calls: Vec<_> =
        calls.iter().map(|(id, tool, text)| (id.as_str(), tool.as_str(), text.as_str())).collect();
    wire.asks_in_writing(&calls)
}

/// An answer of the Responses API whose calls have ids as items, too. Without them, two calls with
/// one id are one call that the server has sent twice.
fn with_item_ids(calls: impl Iterator<Item = WrittenCall>, end: &[String]) -> Reply {
    let item = |(at, (id, name, arguments)): (usize, WrittenCall)| {
        let call = json!({"type": "function_call", "id": format!("fc_{at}_{}", arguments.len()), "call_id": id,
                          "name": name, "arguments": arguments});
        json!({"type": "response.output_item.done", "item": call}).to_string()
    };
    let events: Vec<_> = calls.enumerate().map(item).chain(end.iter().cloned()).collect();
    Reply::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Asserts that the conversation of a request has each of these calls once, with one output.
fn assert_answered(wire: Wire, request: &Request, expected: &[String]) {
    let outputs: Vec<_> = wire.outputs(request).into_iter().map(|(id, _)| id.to_owned()).collect();
    assert_eq!(outputs, expected, "{wire:?}");
}

/// Runs a turn, and then another one of the same session with a model that behaves. Returns the end
/// of the first turn, its requests, and the first request of the second.
fn run(wire: Wire, replies: Vec<Reply>, options: &[&str]) -> (User, Ended, Vec<Request>, Request) {
    let server = Server::start(replies);
    let user = User::new();
    user.use_server(&server, wire);
    let ended = user.run(&[&["exec", "hi"], &FULL_ACCESS[..], options].concat());
    let better = Server::start([wire.says("better")]);
    user.use_server(&better, wire);
    let again = user.run(&[&["exec", "resume", "--last", "again"], &FULL_ACCESS[..]].concat());
    again.assert_code(0);
    assert_eq!(again.stdout, "better\n", "{wire:?}");
    assert!(!again.stderr.contains("warning"), "{again:#?}");
    let request = better.requests().remove(0);
    (user, ended, server.requests(), request)
}

/// A model that asks for the same for ever is stopped after some answers, with exit code 4.
fn loops(call: impl Fn(usize) -> WrittenCall, most: usize, said: &str) {
    for wire in Wire::ALL {
        let replies = (0..MANY).map(|number| asks(wire, &[call(number)])).collect();
        let (_user, ended, requests, again) = run(wire, replies, &[]);
        ended.assert_code(4);
        assert!(ended.stderr.contains(said), "{wire:?}: {ended:#?}");
        assert_eq!(requests.len(), most, "{wire:?}");
        let calls: Vec<_> = (0..most).map(|number| call(number).0).collect();
        assert_answered(wire, &again, &calls);
    }
}

#[test]
fn the_same_failing_call_for_ever_ends_the_turn() {
    loops(|number| shell(number, "exit 3"), 9, "`shell_command` was called again and failed again, 8 times");
}

#[test]
fn the_same_call_that_brings_nothing_new_ends_the_turn() {
    loops(|number| shell(number, "echo same"), 33, "32 answers of the model in a row brought nothing new");
}

#[test]
fn an_unknown_tool_for_ever_ends_the_turn_whatever_it_is_asked() {
    let call =
        |number: usize| (format!("c{number}"), "browser".to_owned(), format!("{{\"page\": {number}}}"));
    loops(call, 9, "`browser` was called again and failed again, 8 times");
}

#[test]
fn ever_other_unknown_tools_end_the_turn() {
    let call = |number: usize| (format!("c{number}"), format!("tool_{number}"), "{}".to_owned());
    loops(call, 32, "32 answers of the model in a row brought nothing new");
}

#[test]
fn of_200_calls_in_one_answer_128_run_and_each_has_its_output() {
    for wire in Wire::ALL {
        let calls: Vec<_> = (0..200).map(|number| shell(number, &format!("echo {number} >> log"))).collect();
        let (user, ended, requests, again) = run(wire, vec![asks(wire, &calls), wire.says("done")], &[]);
        ended.assert_code(0);
        let said = "the model asked for more than 128 calls at once; the rest was not heard";
        assert!(ended.stdout == "done\n" && ended.stderr.contains(said), "{ended:#?}");
        let ran: String = (0..128).map(|number| format!("{number}\n")).collect();
        assert_eq!(user.read("log"), ran, "{wire:?}");
        let ids: Vec<_> = calls[..128].iter().map(|(id, ..)| id.clone()).collect();
        assert_answered(wire, &requests[1], &ids);
        assert_answered(wire, &again, &ids);
    }
}

#[test]
fn calls_with_the_same_id_run_once_each_and_have_an_output_each() {
    for wire in Wire::ALL {
        let once = |line: &str| shell(1, &format!("echo {line} >> log; echo {line}"));
        let ask = |lines: &[&str]| match wire {
            Wire::Responses => with_item_ids(lines.iter().map(|line| once(line)), &wire.done()),
            Wire::Chat | Wire::Messages => {
                asks(wire, &lines.iter().map(|line| once(line)).collect::<Vec<_>>())
            }
        };
        let replies = vec![ask(&["a", "b"]), ask(&["c"]), wire.says("done")];
        let (user, ended, requests, again) = run(wire, replies, &[]);
        ended.assert_code(0);
        assert_eq!(user.read("log"), "a\nb\nc\n", "{wire:?}");
        let printed = |request: &Request| -> Vec<String> {
            let outputs = wire.outputs(request).into_iter();
            outputs.map(|(_, text)| text.lines().last().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(printed(&requests[1]), ["a", "b"], "{wire:?}");
        assert_eq!(printed(&requests[2]), ["a", "b", "c"], "{wire:?}");
        assert_eq!(printed(&again), ["a", "b", "c"], "{wire:?}");
    }
}

#[test]
fn an_empty_answer_ends_the_turn_with_a_warning() {
    for wire in Wire::ALL {
        for text in [None, Some(""), Some(" \n")] {
            let events = [text.map(|text| wire.text(text)).unwrap_or_default(), wire.done()].concat();
            let events: Vec<_> = events.iter().map(String::as_str).collect();
            let (_user, ended, requests, _) = run(wire, vec![Reply::events(&events)], &[]);
            ended.assert_code(0);
            assert!(ended.stdout.trim().is_empty() && requests.len() == 1, "{wire:?} {text:?}: {ended:#?}");
            let said = ended.stderr.contains("the model ended its turn without an answer");
            assert!(said, "{wire:?} {text:?}: {ended:#?}");
        }
    }
}

#[test]
fn an_answer_that_never_ends_is_given_up_after_the_time_for_an_answer() {
    for wire in Wire::ALL {
        // On this wire an answer with calls has an end of its own.
        let calls = if wire == Wire::Chat { Vec::new() } else { vec![command("c1", "echo ran >> log")] };
        let begun = if calls.is_empty() { Vec::new() } else { wire.calls(&calls) };
        let words: String =
            wire.text("and so on ").iter().map(|event| format!("data: {event}\n\n")).collect();
        let endless =
            Wire::begins(&begun).then(repeated(words.as_bytes(), Duration::from_millis(20), usize::MAX));
        let limit = ["-c", "model_providers.test.stream_timeout_ms=1000"];
        let (user, ended, requests, again) = run(wire, vec![endless], &limit);
        ended.assert_code(1);
        assert!(ended.last_word().contains("the answer was not complete after 1 s"), "{wire:?}: {ended:#?}");
        assert_eq!(requests.len(), 1, "{wire:?}");
        let answered: Vec<_> = calls.iter().map(|(id, ..)| (*id).to_owned()).collect();
        assert_answered(wire, &again, &answered);
        assert!(calls.is_empty() || user.read("log") == "ran\n", "{wire:?}");
    }
}

#[test]
fn a_server_that_answers_with_another_model_in_mid_session_changes_nothing() {
    for wire in Wire::ALL {
        let named = |reply: Vec<String>, model: &str| -> Reply {
            let events = reply.iter().map(|event| {
                let Ok(mut event) = serde_json::from_str::<Value>(event) else {
                    return format!("data: {event}\n\n");
                };
                event["model"] = model.into();
                if event["response"].is_object() {
                    event["response"]["model"] = model.into();
                }
                format!("data: {event}\n\n")
            });
            let bytes: String = events.collect();
            Reply::begun(&[]).then(chunk(bytes.as_bytes())).then(chunk(b""))
        };
        let call = |id| wire.calls(&[command(id, "echo ran >> log")]);
        let replies = vec![
            named([call("c1"), wire.done()].concat(), "small-1"),
            named([call("c2"), wire.done()].concat(), "large-2"),
            named([wire.text("done"), wire.done()].concat(), "other-3"),
        ];
        let (user, ended, requests, again) = run(wire, replies, &[]);
        ended.assert_code(0);
        assert_eq!((ended.stdout.as_str(), user.read("log").as_str()), ("done\n", "ran\nran\n"), "{wire:?}");
        let asked: Vec<_> = requests.iter().map(|request| request.body["model"].clone()).collect();
        assert!(asked.windows(2).all(|pair| pair[0] == pair[1]), "we keep asking for ours: {asked:?}");
        assert_answered(wire, &again, &["c1".to_owned(), "c2".to_owned()]);
    }
}

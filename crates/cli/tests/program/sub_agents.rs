//! Agents that an agent starts: their sessions, and what is left of them after a kill.

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, User};

/// A user whose agents of the role `worker` play this script.
fn user_with_workers(turns: &Value) -> User {
    let user = User::new();
    let script = user.work().join("worker.json");
    user.file("worker.json", json!({"turns": turns}).to_string());
    user.configure(&format!(
        "[model_providers.kid]\nwire_api = \"scripted\"\nscript = {:?}\n\n[agents.worker]\ndescription = \"a worker\"\n\
         model = \"scripted\"\nmodel_provider = \"kid\"\n",
        script.display().to_string()
    ));
    user
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

fn spawn(message: &str) -> Value {
    json!({"name": "spawn_agent", "arguments": {"message": message, "agent_type": "worker"}})
}

fn args<'a>(script: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["exec", "--json", "--script", script], &FULL_ACCESS[..], rest].concat()
}

/// The outputs of the calls of a tool, as they are in the events.
fn results(ended: &Ended, tool: &str) -> Vec<String> {
    let is_end = |event: &&Value| event["type"] == "item.completed" && event["item"]["tool"] == tool;
    ended.events().iter().filter(is_end).map(|event| event["item"]["result"].to_string()).collect()
}

fn tree(user: &User) -> Vec<Value> {
    let shown = user.run(&["sessions", "tree", "--json"]);
    shown.assert_code(0);
    shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_agent_works_in_a_session_of_its_own_that_is_linked_to_its_parent() {
    let user = user_with_workers(&json!([
        call("shell_command", &json!({"command": "echo child >> out"})),
        {"text": "wrote it"},
    ]));
    let script = user.script(&json!([
        {"calls": [spawn("write out"), spawn("write out, too")]},
        call("wait", &json!({"ids": ["worker-1"]})),
        call("wait", &json!({"ids": ["root/worker-2"]})),
        {"text": "all done"},
        {"text": "and again"},
    ]));
    let ended = user.run(&args(&script, &["go"]));
    ended.assert_code(0);
    assert_eq!(user.read("out"), "child\nchild\n");
    let waited = results(&ended, "wait");
    assert_eq!(waited.len(), 2, "{ended:#?}");
    assert!(waited.iter().all(|result| result.contains("wrote it")), "{waited:?}");
    let is_news = |event: &&Value| event["type"] == "agent.updated" && event["agent"] == "root/worker-1";
    let news: Vec<_> = ended.events().iter().filter(is_news).map(|event| event["status"].clone()).collect();
    assert_eq!(news.first(), Some(&json!("running")), "{news:?}");
    assert_eq!(news.last(), Some(&json!({"completed": "wrote it"})), "{news:?}");

    let trees = tree(&user);
    let [parent] = &trees[..] else { panic!("{trees:#?}") };
    let children = parent["children"].as_array().unwrap();
    let agents: Vec<_> = children.iter().map(|child| (&child["agent"], &child["state"])).collect();
    let done = json!("completed");
    let expected = [(&json!("root/worker-1"), &done), (&json!("root/worker-2"), &done)];
    assert_eq!(agents, expected);
    assert_eq!(children[0]["parent"]["id"], parent["id"]);
    let text = user.run(&["sessions", "tree"]).stdout;
    assert!(text.lines().nth(1).unwrap().starts_with("  ") && text.contains("root/worker-2"), "{text}");

    // The newest session is that of an agent, and it is not the one that the person means.
    let again = user.run(&args(&script, &["resume", "--last", "more"]));
    again.assert_code(0);
    let begun = again.events().into_iter().find(|event| event["type"] == "thread.started").unwrap();
    assert_eq!(begun["thread_id"], parent["id"]);
}

#[test]
fn an_agent_that_was_killed_with_its_parent_is_reported_and_goes_on() {
    let block = "exec 3> held; echo > started; exec sleep 60";
    let user = user_with_workers(&json!([
        call("shell_command", &json!({"command": block, "timeout_ms": 60_000})),
        {"text": "finished after all"},
    ]));
    let script = user.script(&json!([
        {"calls": [spawn("work")]},
        call("wait", &json!({"ids": ["worker-1"], "timeout_ms": 60_000})),
        call("wait", &json!({"ids": ["worker-1"]})),
        call("send_input", &json!({"id": "worker-1", "message": "go on"})),
        call("wait", &json!({"ids": ["worker-1"]})),
        {"text": "done"},
    ]));
    let gone = user.named_pipe("held").listen();
    let started = user.named_pipe("started");
    let running = user.start(&args(&script, &["go"]));
    started.hear();
    running.signal("KILL");
    running.end();
    gone.wait();
    assert_eq!(tree(&user)[0]["children"][0]["state"], "interrupted");

    let ended = user.run(&args(&script, &["resume", "--last", "go on"]));
    ended.assert_code(0);
    let is_told = |event: &&Value| {
        event["item"]["message"].as_str().is_some_and(|text| text.contains("(root/worker-1): interrupted"))
    };
    assert_eq!(ended.events().iter().filter(is_told).count(), 1, "{ended:#?}");
    let waited = results(&ended, "wait");
    assert!(waited[0].contains("interrupted"), "{waited:?}");
    assert!(waited[1].contains("finished after all"), "{waited:?}");
    assert_eq!(tree(&user)[0]["children"][0]["state"], "completed");
}

#[test]
fn agents_are_off_unless_they_are_configured() {
    let user = User::new();
    let script = user.script(&json!([{"calls": [spawn("work")]}, {"text": "done"}]));
    let ended = user.run(&args(&script, &["go"]));
    assert!(ended.stdout.contains("unsupported call: spawn_agent"), "{ended:#?}");
    user.configure("[agents.\"a/b\"]\ndescription = \"x\"\n");
    let ended = user.run(&args(&script, &["go"]));
    ended.assert_code(2);
    assert!(ended.stderr.contains("the name of a role has letters"), "{ended:#?}");
}

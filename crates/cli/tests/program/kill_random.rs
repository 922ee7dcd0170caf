//! `kill -9` at random moments of a busy session, again and again in the same one. The whole run of
//! 300 kills is `tests/real/kill_session.py`.

use std::{collections::HashSet, fs, path::Path, thread, time::Duration};

use serde_json::{Value, json};

use crate::support::{FULL_ACCESS, User, lines};

/// Number of kills, and of steps of the script that are played meanwhile.
const KILLS: u64 = 30;
const STEPS: usize = 40;

/// Longest time from the start of the program to its kill: some steps into a turn.
const MAX_MILLIS: u64 = 400;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        // Constants of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A script whose commands leave a line each, outside of the workspace.
fn script(user: &User, log: &Path) -> String {
    let mut steps = Vec::new();
    for step in 0..STEPS {
        let command = |call: usize| {
            let line =
                format!("echo tag-{step}-{call} >> '{}'; seq 100; echo tag-{step}-{call}", log.display());
            json!({"name": "shell_command", "arguments": {"command": line, "timeout_ms": 60_000}})
        };
        let write = json!({"name": "write_file", "arguments": {"path": format!("f{}", step % 3), "content": format!("{step}\n")}});
        steps.push(json!({"calls": [command(0), write, command(1)]}));
        if step % 5 == 4 {
            steps.push(json!({"text": format!("done with {step}")}));
        }
    }
    steps.extend((0..200).map(|_| json!({"text": "all done"})));
    user.script(&Value::Array(steps))
}

/// Returns the tag of a call in a record, if it has one.
fn tag(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("echo tag-")?;
    Some(format!("tag-{}", rest.split_whitespace().next()?))
}

/// The calls with tags, as a session file records them.
#[derive(Default)]
struct Recorded {
    started: HashSet<String>,
    ended: HashSet<String>,
    /// Ids of calls, and of outputs, in the order of the file.
    calls: Vec<String>,
    outputs: Vec<String>,
}

impl Recorded {
    fn read(path: &Path) -> Self {
        let mut recorded = Self::default();
        let mut tags = std::collections::HashMap::new();
        for record in lines(&fs::read_to_string(path).unwrap()) {
            let payload = &record["payload"];
            let call = || payload["call"].as_str().unwrap().to_owned();
            match record["type"].as_str().unwrap() {
                "item" if payload["body"]["kind"] == "call" => {
                    let id = payload["body"]["id"].as_str().unwrap().to_owned();
                    tags.extend(tag(&payload["body"].to_string()).map(|tag| (id.clone(), tag)));
                    recorded.calls.push(id);
                }
                "intent" => recorded.started.extend(tags.get(&call()).cloned()),
                "outcome" if payload["outcome"]["status"] == "success" => {
                    recorded.ended.extend(tags.get(&call()).cloned());
                }
                "outputs" => {
                    let calls = payload["calls"].as_array().unwrap().iter();
                    recorded.outputs.extend(calls.map(|call| call.as_str().unwrap().to_owned()));
                }
                _ => {}
            }
        }
        recorded
    }
}

/// Returns the tags of the commands whose end an event announced.
fn announced(stdout: &str) -> Vec<String> {
    let events = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended = events.filter(|event| event["type"] == "item.completed");
    let commands = ended.filter(|event| event["item"]["type"] == "command_execution");
    commands
        .filter_map(|event| {
            Some(event["item"]["aggregated_output"].as_str()?.split_whitespace().last()?.to_owned())
        })
        .collect()
}

#[test]
fn nothing_that_was_announced_is_lost_and_nothing_runs_twice() {
    let (user, mut numbers) = (User::new(), Numbers(21));
    let log = user.home().parent().unwrap().join("log");
    let script = script(&user, &log);
    let args = |rest: &[&'static str]| -> Vec<String> {
        let all = [&["exec", "--json", "--script", &script], &FULL_ACCESS[..], rest].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let is_begun =
        || user.sessions().first().is_some_and(|path| fs::read_to_string(path).unwrap().contains('\n'));
    let mut ended: HashSet<String> = HashSet::new();
    for _ in 0..KILLS {
        let turn = if is_begun() { args(&["resume", "--last", "go on"]) } else { args(&["begin"]) };
        let running = user.start(&turn.iter().map(String::as_str).collect::<Vec<_>>());
        thread::sleep(Duration::from_millis(numbers.next(MAX_MILLIS)));
        running.signal("KILL");
        ended.extend(announced(&running.end().stdout));
        if !is_begun() {
            continue;
        }
        // The next opening of the file ends what the kill left open. This one changes nothing else.
        user.run(&["rewind", "999", "--keep-files"]);
        let recorded = Recorded::read(&user.sessions()[0]);
        assert!(recorded.ended.is_superset(&ended), "lost: {:?}", ended.difference(&recorded.ended));
        assert_eq!(recorded.calls, recorded.outputs, "each call has one output, in call order");
        let ran = fs::read_to_string(&log).unwrap_or_default();
        let once: HashSet<_> = ran.lines().map(str::to_owned).collect();
        assert_eq!(once.len(), ran.lines().count(), "{ran}");
        assert!(recorded.started.is_superset(&once), "no effect without an intent: {ran}");
        let id = user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
        user.run(&["audit", "verify", &id]).assert_code(0);
    }
    assert!(!ended.is_empty(), "the kills came too early");
    let last = args(&["resume", "--last", "go on"]);
    user.run(&last.iter().map(String::as_str).collect::<Vec<_>>()).assert_code(0);
    assert_eq!(user.sessions().len(), 1, "nothing was moved aside");
}

#[test]
fn a_rewind_that_is_killed_at_any_moment_can_be_finished() {
    let (user, mut numbers) = (User::new(), Numbers(22));
    user.file("kept", "as it was\n");
    let write = |name: &str| json!({"name": "write_file", "arguments": {"path": name, "content": "new\n"}});
    let command =
        json!({"name": "shell_command", "arguments": {"command": "echo more >> kept; echo x > made"}});
    let calls = json!({"calls": [write("a"), command, write("b"), write("kept")]});
    let script = user.script(&json!([{"text": "hello"}, calls, {"text": "done"}, calls, {"text": "done"}]));
    let turn = |rest: &[&str]| {
        user.run(&[&["exec", "-s", "workspace-write", "--script", &script], rest].concat()).assert_code(0);
    };
    turn(&["begin"]);
    for round in 0..8 {
        turn(&["resume", "--last", "work"]);
        turn(&["resume", "--last", "work again"]);
        let running = user.start(&["rewind", "2"]);
        thread::sleep(Duration::from_millis(numbers.next(250)));
        running.signal("KILL");
        running.end();
        let messages = lines(&user.run(&["rewind", "--json"]).stdout).len();
        if messages > 1 {
            user.run(&["rewind", "2"]).assert_code(0);
        }
        assert_eq!(user.read("kept"), "as it was\n", "round {round}, {messages} messages");
        let mut left: Vec<_> = fs::read_dir(user.work())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["kept", "script.json"], "round {round}");
        let id = user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
        user.run(&["audit", "verify", &id]).assert_code(0);
        assert_eq!(lines(&user.run(&["rewind", "--json"]).stdout).len(), 1);
    }
}

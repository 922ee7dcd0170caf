//! The library as an embedding program uses it.

use std::{
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use windlass::{
    Agent, ApprovalPolicy, Content, Effects, Output, Policy, SandboxMode, ToolError, Toolset, tool, tool_from,
};

/// Multiply two numbers.
#[tool(pure, alias = "times")]
async fn multiply(
    /// The first.
    a: f64,
    /// The second. Default: 2.
    b: Option<f64>,
) -> Result<Output, ToolError> {
    Ok((a * b.unwrap_or(2.0)).to_string().into())
}

#[test]
fn the_example_in_ten_lines_runs() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--package", "windlass", "--example", "sum"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "The sum is 5.\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test]
async fn a_tool_from_an_attribute_and_one_from_closures_work_side_by_side() {
    let script = r#"{"turns": [
        {"calls": [{"name": "times", "arguments": {"a": 4}}, {"name": "shout", "arguments": "hey"}, {"name": "shout", "arguments": {"word": "hey"}}]},
        {"text": "done"}
    ]}"#;
    let shout = tool_from(
        "shout",
        |_: &serde_json::Value| Effects::none(),
        |args: serde_json::Value, _| async move {
            Ok(Output::from(args["word"].as_str().unwrap_or_default().to_uppercase()))
        },
    );
    let shout = shout.description("Say it loudly.").schema(&serde_json::json!({
        "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]
    }));
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::builder()
        .model(windlass::model::scripted(script).unwrap())
        .tool(multiply())
        .tool(Arc::new(shout))
        .home(home.path().to_owned())
        .build()
        .unwrap();
    assert_eq!(agent.ask("go").await.unwrap(), "done");
    let thread = agent.thread().clone();
    drop(agent);
    let session = load_only(home.path());
    assert_eq!(session.meta.id, thread);
    let outputs = outputs(&session);
    assert_eq!(outputs[0], "8");
    assert!(outputs[1].starts_with("failed to parse function arguments: "), "{}", outputs[1]);
    assert_eq!(outputs[2], "HEY");
}

/// Set the volume.
#[tool(pure)]
async fn set_volume(
    /// How loud, in per cent.
    #[schemars(range(max = 100))]
    percent: u8,
    /// Which room, in small letters.
    #[schemars(regex(pattern = "^[a-z]+$"))]
    room: Option<String>,
) -> Result<Output, ToolError> {
    Ok(format!("{percent} in {}", room.unwrap_or_default()).into())
}

#[tokio::test]
async fn a_tool_from_an_attribute_is_held_to_all_that_its_schema_says() {
    let script = r#"{"turns": [
        {"calls": [
            {"name": "set_volume", "arguments": {"percent": 100, "room": "hall"}},
            {"name": "set_volume", "arguments": {"percent": 101}},
            {"name": "set_volume", "arguments": {"percent": 5, "room": "Hall 2"}},
            {"name": "setVolume", "arguments": {"percent": 5, "place": "hall"}}
        ]},
        {"text": "done"}
    ]}"#;
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::builder()
        .model(windlass::model::scripted(script).unwrap())
        .tool(set_volume())
        .home(home.path().to_owned())
        .build()
        .unwrap();
    assert_eq!(agent.ask("go").await.unwrap(), "done");
    drop(agent);
    let outputs = outputs(&load_only(home.path()));
    assert_eq!(outputs[0], "100 in hall");
    for (output, problem) in outputs[1..].iter().zip([
        "`arguments.percent` must be at most 100\n",
        "`arguments.room` must match the pattern `^[a-z]+$`, found \"Hall 2\"\n",
        "`arguments.place` is not known; there are `percent`, `room`\n",
    ]) {
        assert!(output.starts_with(&format!("failed to parse function arguments: {problem}")), "{output}");
    }
}

#[tokio::test]
async fn without_a_word_about_it_a_command_can_change_nothing() {
    let place = tempfile::tempdir().unwrap();
    let planted = place.path().join("planted");
    let command = format!("touch {}", planted.display());
    let script = serde_json::json!({"turns": [
        {"calls": [{"name": "shell_command", "arguments": {"command": command}}]}, {"text": "well"}
    ]});
    let seen = Arc::new(Outputs::default());
    let mut agent = Agent::builder()
        .model(windlass::model::scripted(&script.to_string()).unwrap())
        .builtin(Toolset::default())
        .environment([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into())
        .events(Arc::clone(&seen) as _)
        .build()
        .unwrap();
    assert_eq!(agent.ask("go").await.unwrap(), "well");
    assert_eq!(seen.0.lock().unwrap().len(), 1);
    assert!(!planted.exists());
}

#[tokio::test]
async fn with_full_access_a_command_runs_with_the_environment_it_was_given() {
    let script = r#"{"turns": [
        {"calls": [{"name": "shell_command", "arguments": {"command": "echo $GREETING"}}]}, {"text": "ran"}
    ]}"#;
    let policy = Policy {
        cwd: "/".into(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    let seen = Arc::new(Outputs::default());
    let mut agent = Agent::builder()
        .model(windlass::model::scripted(script).unwrap())
        .builtin(Toolset::default())
        .policy(policy)
        .environment([("GREETING".to_owned(), "hello".to_owned())].into())
        .events(Arc::clone(&seen) as _)
        .build()
        .unwrap();
    assert_eq!(agent.ask("go").await.unwrap(), "ran");
    assert_eq!(*seen.0.lock().unwrap(), ["hello\n"]);
}

#[tokio::test]
async fn a_turn_that_was_dropped_leaves_no_call_without_an_output() {
    let script = r#"{"turns": [{"calls": [{"name": "hang", "arguments": {}}]}, {"text": "well"}]}"#;
    let hang = tool_from(
        "hang",
        |_: &serde_json::Value| Effects::none(),
        |_: serde_json::Value, _| async { std::future::pending().await },
    );
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::builder()
        .model(windlass::model::scripted(script).unwrap())
        .tool(Arc::new(hang.description("Never end.")))
        .home(home.path().to_owned())
        .build()
        .unwrap();
    let dropped = tokio::time::timeout(std::time::Duration::from_millis(50), agent.ask("go")).await;
    assert!(dropped.is_err());
    assert_eq!(agent.ask("go on").await.unwrap(), "well");
    drop(agent);
    let session = load_only(home.path());
    assert_eq!(session.repaired, []);
    let outputs = outputs(&session);
    assert_eq!(outputs.len(), 1);
    assert!(outputs[0].contains("its outcome is unknown"), "{}", outputs[0]);
}

#[tokio::test]
async fn a_resumed_session_is_told_when_the_rules_have_changed() {
    let script = r#"{"turns": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}"#;
    let home = tempfile::tempdir().unwrap();
    for sandbox in [SandboxMode::ReadOnly, SandboxMode::DangerFullAccess, SandboxMode::DangerFullAccess] {
        let policy =
            Policy { cwd: "/".into(), approval: ApprovalPolicy::Never, sandbox, ..Policy::default() };
        let mut builder = Agent::builder()
            .model(windlass::model::scripted(script).unwrap())
            .policy(policy)
            .home(home.path().to_owned());
        if !windlass::record::list(home.path()).unwrap().is_empty() {
            builder = builder.resume(windlass::record::Which::Last);
        }
        builder.build().unwrap().ask("go").await.unwrap();
    }
    let told = surroundings(&load_only(home.path()));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("read-only") && told[1].contains("danger-full-access"), "{told:?}");
}

#[tokio::test]
async fn a_resumed_session_is_told_when_nobody_can_be_asked_any_more() {
    let script = r#"{"turns": [{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}, {"text": "e"}]}"#;
    let home = tempfile::tempdir().unwrap();
    for attended in [true, true, false, false, true] {
        let mut builder =
            Agent::builder().model(windlass::model::scripted(script).unwrap()).home(home.path().to_owned());
        if attended {
            builder = builder.approver(Arc::new(SaysNo));
        }
        if !windlass::record::list(home.path()).unwrap().is_empty() {
            builder = builder.resume(windlass::record::Which::Last);
        }
        builder.build().unwrap().ask("go").await.unwrap();
    }
    let told = surroundings(&load_only(home.path()));
    let alone: Vec<_> = told.iter().map(|text| text.contains("nobody can be asked")).collect();
    assert_eq!(alone, [false, true, false], "{told:?}");
}

#[test]
fn there_is_nothing_to_resume_without_a_home_and_no_session_is_left_by_a_mistake() {
    let model = || windlass::model::scripted(r#"{"turns": [{"text": "a"}]}"#).unwrap();
    let nowhere = Agent::builder().model(model()).resume(windlass::record::Which::Last).build();
    assert!(matches!(nowhere, Err(windlass::BuildError::ResumeWithoutHome)));
    let home = tempfile::tempdir().unwrap();
    let twice =
        Agent::builder().model(model()).tool(multiply()).tool(multiply()).home(home.path().to_owned());
    assert!(matches!(twice.build(), Err(windlass::BuildError::Tools(_))));
    assert_eq!(windlass::record::list(home.path()).unwrap().len(), 0);
}

fn load_only(home: &std::path::Path) -> windlass::record::LoadedSession {
    let listed = windlass::record::list(home).unwrap_or_default();
    assert_eq!(listed.len(), 1);
    windlass::record::load(&listed[0].path).unwrap_or_else(|error| panic!("{error}"))
}

/// What the model was told of where it works, each time.
fn surroundings(session: &windlass::record::LoadedSession) -> Vec<String> {
    let told = session.history.iter().filter_map(|item| match &item.body {
        windlass::Body::Message { content, .. } => Some(Content::join(content)),
        _ => None,
    });
    told.filter(|text| text.contains("<sandbox_mode>")).collect()
}

fn outputs(session: &windlass::record::LoadedSession) -> Vec<String> {
    let outputs = session.history.iter().filter_map(|item| match &item.body {
        windlass::Body::Output { content, .. } => Some(Content::join(content)),
        _ => None,
    });
    outputs.collect()
}

/// Somebody who can be asked.
struct SaysNo;

impl windlass::Approver for SaysNo {
    fn ask<'a>(
        &'a self,
        _: &'a windlass::Clean<windlass::Question>,
    ) -> windlass::BoxFuture<'a, windlass::Answer> {
        Box::pin(async { windlass::Answer::Deny("no".into()) })
    }
}

/// Keeps what calls gave back.
#[derive(Default)]
struct Outputs(Mutex<Vec<String>>);

impl windlass::EventSink for Outputs {
    fn emit(&self, event: &windlass::Clean<windlass::Event>) {
        if let windlass::Event::CallEnded { outcome, .. } = &**event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(outcome.text());
        }
    }
}

//! The library as an embedding program uses it.

use std::{
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use windlass::{
    Agent, ApprovalPolicy, Content, Effects, Limits, Output, Policy, SandboxMode, Stop, ToolError, Toolset,
    tool, tool_from,
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
    let shout = shout.description("Say it loudly.").schema(serde_json::json!({
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
    let listed = windlass::record::list(home.path()).unwrap();
    assert_eq!(listed[0].id, thread);
    let session = windlass::record::load(&listed[0].path).unwrap();
    let outputs = session.history.iter().filter_map(|item| match &item.body {
        windlass::Body::Output { content, .. } => Some(Content::join(content)),
        _ => None,
    });
    let outputs: Vec<_> = outputs.collect();
    assert_eq!(outputs[0], "8");
    assert!(outputs[1].starts_with("failed to parse function arguments: "), "{}", outputs[1]);
    assert_eq!(outputs[2], "HEY");
}

#[tokio::test]
async fn without_a_word_about_it_no_command_runs() {
    let script = r#"{"turns": [
        {"calls": [{"name": "shell_command", "arguments": {"command": "echo hi"}}]}, {"text": "refused"}
    ]}"#;
    let mut agent = Agent::builder()
        .model(windlass::model::scripted(script).unwrap())
        .builtin(Toolset::default())
        .build()
        .unwrap();
    let report = agent.run(vec![Content::Text("go".into())], &Stop::default()).await;
    assert_eq!(report.end.unwrap(), "refused");
    assert_eq!(report.refusals.len(), 1);
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
        limits: Limits::default(),
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

/// Keeps what calls gave back.
#[derive(Default)]
struct Outputs(Mutex<Vec<String>>);

impl windlass::EventSink for Outputs {
    fn emit(&self, event: &windlass::Event) {
        if let windlass::Event::CallEnded { outcome, .. } = event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(outcome.text());
        }
    }
}

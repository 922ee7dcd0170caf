//! Tools made by the attribute, called as the runtime would.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    AnyTool, Cx, Effects, Grant, Input, Meta, Output, Sandbox, ToolError,
    effects::Network,
    event::Silent,
    grant::{Confinement, Limits},
    meta::{Category, Example},
    spec::SpecKind,
    tool::ErrorKind,
};
use windlass_fakes::EchoMachine;
use windlass_macros::tool;

// The macro's code names the `windlass` crate; here this file plays its part.
extern crate self as windlass;

/// What the code made by `#[tool]` refers to.
pub mod __macro {
    pub use schemars;
    pub use serde;
    pub use windlass_contract::*;
}

/// Add two numbers. Not for
/// anything else.
///
/// Exact up to 2^53.
#[tool(pure)]
async fn add(
    /// The first.
    a: f64,
    /// The second.
    b: Option<f64>,
) -> Result<Output, ToolError> {
    Ok((a + b.unwrap_or(0.0)).to_string().into())
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Copy,
    Move,
}

fn two() -> u8 {
    2
}

/// Everything the attribute can do.
#[tool(
    reads(from, extra),
    writes(to),
    network,
    name = "transfer",
    category = Files,
    alias = "cp",
    alias = "mv",
    parallel = false,
    example("Copy a to b.", r#"{"from": "a", "to": "b", "mode": "copy"}"#),
    example("Move a to b.", r#"{"from": "a", "to": "b", "mode": "move"}"#,),
    constraint = "There is something to copy.",
    constraint = "There is room for it.",
    side_effect = "What was at the other end is gone.",
    returns = "what was done"
)]
async fn every_option(
    from: String,
    to: PathBuf,
    #[serde(default)] extra: Vec<PathBuf>,
    #[serde(rename = "mode")] kind: Mode,
    #[serde(default = "two")] mut tries: u8,
    cx: &Cx,
) -> Result<Output, ToolError> {
    if tries == 0 {
        return Err(ToolError::bad_input("at least one try"));
    }
    tries -= 1;
    let extra = extra.len();
    Ok(format!("{} {from} {} {extra} {kind:?} {tries}", cx.id, to.display()).into())
}

/// Say what it does by a function.
#[tool(effects = copying)]
async fn copy(from: PathBuf, to: PathBuf, context: Cx) -> Result<Output, ToolError> {
    tokio::task::yield_now().await;
    let (from, to) = (from.display(), to.display());
    Ok(format!("{} {from} {to}", context.id).into())
}

fn copying(from: &Path, to: &Path) -> Effects {
    Effects { reads: vec![from.to_owned()], ..Effects::write(to) }
}

/// Look into one place, or everywhere.
#[tool(reads(place))]
async fn look(place: Option<PathBuf>) -> Result<Output, ToolError> {
    Ok(format!("{place:?}").into())
}

/// Take nothing.
#[tool(pure)]
pub async fn r#loop() -> Result<Output, ToolError> {
    Err(ToolError::failed("round and round"))
}

fn cx() -> Cx {
    let grant = Grant::issue("/".into(), &Effects::none(), Limits::default(), Confinement::InProcess);
    let host = EchoMachine.confine(&grant).unwrap();
    Cx { id: "call-1".into(), host, cancel: CancellationToken::new(), events: Arc::new(Silent) }
}

async fn call(tool: Arc<dyn AnyTool>, input: &str) -> Result<(Effects, Output), ToolError> {
    let ready = tool.prepare(&Input::Json(input.to_owned()))?;
    Ok((ready.effects(), ready.run(&cx()).await?))
}

#[tokio::test]
async fn a_function_becomes_a_tool_with_its_comments_as_prompt() {
    let spec = add().spec().unwrap();
    assert_eq!(spec.name.as_str(), "add");
    assert_eq!(spec.description, "Add two numbers. Not for anything else.\n\nExact up to 2^53.");
    let SpecKind::Function { parameters } = spec.kind else { panic!() };
    assert_eq!(
        parameters.explicit(),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first."},
                "b": {"type": "number", "description": "The second."},
            },
            "required": ["a"],
            "additionalProperties": false,
        })
    );
    assert_eq!(call(add(), r#"{"a":2,"b":3}"#).await.unwrap(), (Effects::none(), "5".into()));
    assert_eq!(call(add(), r#"{"a":2}"#).await.unwrap().1, "2".into());
    assert_eq!(call(add(), r#"{"b":2}"#).await.unwrap_err().kind, ErrorKind::BadInput);
}

#[tokio::test]
async fn every_option_does_what_it_says() {
    let tool = every_option();
    let meta = tool.meta();
    assert_eq!(tool.name().as_str(), "transfer");
    let example = |request, input| Example { request, input };
    assert_eq!(
        meta,
        Meta {
            category: Category::Files,
            examples: vec![
                example("Copy a to b.", r#"{"from": "a", "to": "b", "mode": "copy"}"#),
                example("Move a to b.", r#"{"from": "a", "to": "b", "mode": "move"}"#),
            ],
            constraints: vec!["There is something to copy.".into(), "There is room for it.".into()],
            side_effects: vec!["What was at the other end is gone.".into()],
            returns: "what was done".into(),
            parallel: false,
            aliases: vec!["cp", "mv"],
            ..Meta::default()
        }
    );
    assert_eq!(add().meta(), Meta::default());
    let input = r#"{"from":"a","to":"b","extra":["c","d"],"mode":"move"}"#;
    let (effects, output) = call(tool, input).await.unwrap();
    let reads = ["a", "c", "d"].map(PathBuf::from).to_vec();
    assert_eq!(effects, Effects { reads, network: Network::Any, ..Effects::write("b") });
    assert_eq!(output, "call-1 a b 2 Move 1".into());
    let error = call(every_option(), r#"{"from":"a","to":"b","mode":"copy","tries":0}"#).await.unwrap_err();
    assert_eq!(error.message, "at least one try");
}

#[tokio::test]
async fn effects_can_come_from_a_function_that_sees_the_arguments() {
    let (effects, output) = call(copy(), r#"{"from":"a","to":"b"}"#).await.unwrap();
    assert_eq!(effects, copying(Path::new("a"), Path::new("b")));
    assert_eq!(output, "call-1 a b".into());
}

#[tokio::test]
async fn a_path_that_is_left_out_is_not_read() {
    assert_eq!(call(look(), "{}").await.unwrap().0, Effects::none());
    assert_eq!(call(look(), r#"{"place":"x"}"#).await.unwrap().0, Effects::read("x"));
}

#[tokio::test]
async fn a_tool_may_take_nothing_and_have_a_name_that_is_a_keyword() {
    assert_eq!(r#loop().name().as_str(), "loop");
    assert_eq!(call(r#loop(), "").await.unwrap_err().message, "round and round");
}

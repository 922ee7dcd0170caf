//! Tests of calls that look before they act.

use windlass_contract::{
    AnyTool, BoxFuture, Cx, Input, Meta, ParsedCall, Ready, ToolName, ToolSpec,
    effects::CommandLine,
    outcome::Status,
    policy::{ApprovalPolicy, SandboxMode},
    spec::SpecKind,
    tool::LookFirst,
};
use windlass_fakes::{EchoMachine, EventRecorder, MemoryJournal};
use windlass_schema::{Schema, SchemaError};

use super::*;
use crate::Policy;

/// Looks at `/w`, and then runs a command.
struct Careful(&'static str);

impl AnyTool for Careful {
    fn name(&self) -> ToolName {
        "careful".into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let parameters = Schema::new(&serde_json::json!({"type": "object", "properties": {}}))?;
        Ok(ToolSpec {
            name: self.name(),
            description: "A test.".into(),
            kind: SpecKind::Function { parameters },
        })
    }

    fn meta(&self) -> Meta {
        Meta::default()
    }

    fn prepare(self: Arc<Self>, _input: &Input) -> Result<ParsedCall, ToolError> {
        Ok(ParsedCall::LooksFirst(Box::new(Looking(self.0))))
    }
}

struct Looking(&'static str);

impl LookFirst for Looking {
    fn effects(&self) -> Effects {
        Effects::read("/w")
    }

    fn look<'a>(&'a self, _cx: &'a Cx) -> BoxFuture<'a, Result<Box<dyn Ready>, ToolError>> {
        Box::pin(async {
            match self.0 {
                "" => Err(ToolError::failed("nothing to be seen")),
                "crash" => panic!("on purpose"),
                program => Ok(Box::new(Acting(program)) as Box<dyn Ready>),
            }
        })
    }
}

struct Acting(&'static str);

impl Ready for Acting {
    fn effects(&self) -> Effects {
        Effects::command(CommandLine { argv: vec![self.0.to_owned()], cwd: None })
    }

    fn run<'a>(&'a self, _cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Ok(Output::from(format!("ran {}", self.0))) })
    }
}

/// Runs a call that turns into this program. Returns its status, text, records, and announced
/// effects.
async fn run(program: &'static str) -> (Status, String, Vec<String>, Effects) {
    let policy = Policy {
        cwd: "/w".into(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::WorkspaceWrite,
        ..Policy::default()
    };
    let (journal, watcher) = (Arc::new(MemoryJournal::default()), Arc::new(EventRecorder::default()));
    let toolbox = Toolbox {
        registry: Registry::builder().tool(Arc::new(Careful(program))).build().unwrap(),
        review: Review::default(),
        gate: Gate::new(policy, None),
        sandbox: Arc::new(EchoMachine),
        shaper: Shaper::default(),
        journal: journal.clone(),
        events: watcher.clone(),
        hooks: None,
    };
    let call = ToolCall { id: "c".into(), name: "careful".into(), input: Input::Json("{}".into()) };
    let outcome = toolbox.run(toolbox.prepare(call), &Stop::default()).await.outcome;
    let last = watcher.events().pop();
    let effects = last.and_then(|event| match event {
        Event::CallEnded { effects, .. } => Some(effects.into_inner()),
        _ => None,
    });
    (outcome.status, outcome.text(), journal.types(), effects.unwrap())
}

#[tokio::test]
async fn a_call_becomes_what_its_look_says_and_is_on_record_as_that() {
    let (status, text, types, effects) = run("make").await;
    assert_eq!((status, &*text), (Status::Success, "ran make"));
    assert_eq!(types, ["intent", "outcome"]);
    assert_eq!(effects.command.unwrap().argv, ["make"]);
}

#[tokio::test]
async fn what_a_look_turns_into_is_decided_on_its_own() {
    let (status, text, types, _) = run("reboot").await;
    assert_eq!((status, types), (Status::Rejected, vec!["outcome".to_owned()]), "{text}");
}

#[tokio::test]
async fn a_look_that_finds_nothing_ends_the_call() {
    let (status, text, types, effects) = run("").await;
    assert_eq!((status, &*text, types.len()), (Status::Error, "nothing to be seen", 1));
    assert_eq!(effects, Effects::read("/w"));
    let (status, text, ..) = run("crash").await;
    assert_eq!((status, &*text), (Status::Error, "the tool crashed; this is a bug in the tool"));
}

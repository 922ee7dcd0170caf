//! Tests of the second attempt, on a machine whose sandbox blocks all writes outside of `/w`.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use serde_json::Value;
use windlass_contract::{
    BoxFuture, Content, Host, Journal, Sandbox,
    approval::{Answer, Approver, Beyond, Question},
    effects::CommandLine,
    grant::{Confinement, Held, Mechanism, SandboxRules},
    host::{Command, FinishedCommand, HostError, OutputListener},
    outcome::Status,
    policy::{ApprovalPolicy, SandboxMode},
    program::{ProgramFile, ProgramFinder, ProgramSearch},
    remote::{RemoteCall, ServerReach, ToolApprovalMode, ToolHints},
    report::ProcessReport,
    tool::tool,
};
use windlass_fakes::{EventRecorder, MemoryJournal};
use windlass_shape::Shaper;

use super::*;
use crate::{Gate, Policy, Registry, Review};

/// Fails wherever `/etc` may not be written.
struct Walled;

impl Sandbox for Walled {
    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError> {
        let free = match grant.confinement() {
            Confinement::Sandboxed(walls) => walls.writable.contains(&"/etc".into()),
            _ => true,
        };
        Ok(Arc::new(Etc { free }))
    }
}

struct Etc {
    free: bool,
}

impl Host for Etc {
    fn run<'a>(
        &'a self,
        _command: &'a Command,
        _cancel: &'a tokio_util::sync::CancellationToken,
        _output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        Box::pin(async { Err(HostError::EmptyCommand) })
    }

    fn held(&self) -> Held {
        Held::by(if self.free { Mechanism::Unconfined } else { Mechanism::Namespaces })
    }
}

/// Has every program where only the system writes.
struct InUsrBin;

impl ProgramFinder for InUsrBin {
    fn find_program(&self, name: &str, _cwd: &std::path::Path) -> ProgramSearch {
        let path = std::path::Path::new("/usr/bin").join(name);
        ProgramSearch::Found(ProgramFile { path, leads_to: Vec::new() })
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn obstacle_outside(&self, _: &[std::path::PathBuf]) -> Option<String> {
        None
    }
}

/// The time that a person takes for an answer.
const THINKING_TIME: Duration = Duration::from_millis(20);

/// Gives its answers one after the other, and keeps the questions.
struct Person(Mutex<Vec<Answer>>, Mutex<Vec<Question>>);

impl Approver for Person {
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        self.1.lock().unwrap().push(question.clone().into_inner());
        let answer = self.0.lock().unwrap().pop().unwrap();
        Box::pin(async {
            tokio::time::sleep(THINKING_TIME).await;
            answer
        })
    }
}

/// Runs a command that writes to `/etc`. Returns its status, its decision, the access asked for,
/// and the number of starts.
async fn run(approval: ApprovalPolicy, answers: &[Answer]) -> (Status, String, Vec<Beyond>, usize) {
    let command =
        |_: &Value| Effects::command(CommandLine { argv: vec!["install".into(), "x".into()], cwd: None });
    let body = |_: Value, cx: Cx| async move {
        let free = cx.host.held().rung == Mechanism::Unconfined;
        let denial = Denial {
            layer: Layer::Files,
            what: "/etc/x".into(),
            rule: "outside what may be written".into(),
            need: Effects::write("/etc"),
            proof: Proof::Verified,
            remedy: String::new(),
        };
        let facts = Box::new(ProcessReport {
            denials: if free { Vec::new() } else { vec![denial] },
            ..ProcessReport::new(Exit::Code(i32::from(!free)))
        });
        let content = vec![Content::Text("done".into())];
        Ok(Output { content, facts: Facts::Command(facts), ..Output::default() })
    };
    let registry = Registry::builder().tool(Arc::new(tool("put", command, body).description("A test.")));
    let answers = answers.iter().rev().cloned().collect();
    let person = Arc::new(Person(Mutex::new(answers), Mutex::default()));
    let walls = SandboxRules { writable: Vec::new(), ..SandboxRules::default() };
    let policy = Policy {
        cwd: "/w".into(),
        approval,
        sandbox: SandboxMode::WorkspaceWrite,
        walls,
        ..Policy::default()
    };
    let journal = Arc::new(MemoryJournal::default());
    let toolbox = Toolbox {
        registry: registry.build().unwrap(),
        gate: Gate::new(policy, Some(person.clone())),
        sandbox: Arc::new(Walled),
        shaper: Shaper::default(),
        review: Review::default(),
        journal: journal.clone(),
        events: Arc::new(EventRecorder::default()),
        hooks: None,
    };
    let input = windlass_contract::Input::Json("{}".into());
    let call = ToolCall { id: "c".into(), name: "put".into(), input };
    let start = Instant::now();
    let outcome = toolbox.run(toolbox.prepare(call), &Stop::default()).await.outcome.into_inner();
    let questions = u32::try_from(person.1.lock().unwrap().len()).unwrap();
    let running = outcome.receipt.duration;
    assert!(running + THINKING_TIME * questions <= start.elapsed(), "waiting is not running: {running:?}");
    let begun = journal.types().iter().filter(|name| *name == "intent").count();
    let asked = person.1.lock().unwrap().iter().map(|question| question.beyond.clone()).collect();
    (outcome.status, outcome.receipt.decision, asked, begun)
}

fn wider() -> Beyond {
    Beyond::Wider { writable: vec!["/etc".into()], network: false }
}

#[tokio::test]
async fn on_failure_asks_after_a_denial_and_moves_the_walls_no_further_than_asked() {
    let (status, decision, asked, begun) = run(ApprovalPolicy::OnFailure, &[Answer::Once]).await;
    assert_eq!((status, begun, asked), (Status::Success, 2, vec![wider()]));
    assert_eq!(decision, "approved once, after a denial");
}

#[tokio::test]
async fn a_no_leaves_the_first_result() {
    let (status, decision, asked, begun) =
        run(ApprovalPolicy::OnFailure, &[Answer::Deny(String::new())]).await;
    assert_eq!((status, begun, asked), (Status::Error, 1, vec![wider()]));
    assert_eq!(decision, "the sandbox mode is `workspace-write`");
}

#[tokio::test]
async fn a_yes_to_the_command_is_no_yes_to_leaving_its_walls() {
    let answers = [Answer::Session, Answer::Deny(String::new())];
    let (status, _, asked, begun) = run(ApprovalPolicy::Untrusted, &answers).await;
    assert_eq!((status, begun, asked), (Status::Error, 1, vec![Beyond::Nothing, wider()]));
}

#[tokio::test]
async fn where_the_model_asks_or_nobody_may_a_denial_is_the_result() {
    for approval in [ApprovalPolicy::OnRequest, ApprovalPolicy::Never] {
        let (status, _, asked, begun) = run(approval, &[]).await;
        assert_eq!((status, begun, asked), (Status::Error, 1, Vec::new()));
    }
}

/// A journal and a tool that say in one list what they did.
#[derive(Default)]
struct Steps {
    taken: Arc<Mutex<Vec<&'static str>>>,
    flush_fails: bool,
}

impl Steps {
    fn take(&self, step: &'static str) {
        self.taken.lock().unwrap().push(step);
    }
}

impl Journal for Steps {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        match record {
            Record::Intent(_) => self.take("intent"),
            Record::Outcome { .. } => self.take("outcome"),
            _ => {}
        }
        Ok(())
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        let failed = JournalError { path: "file".into(), kind: std::io::ErrorKind::StorageFull };
        let flushed = if self.flush_fails { Err(failed) } else { Ok(()) };
        let taken = Arc::clone(&self.taken);
        Box::pin(async move {
            tokio::task::yield_now().await;
            taken.lock().unwrap().push("flush");
            flushed
        })
    }
}

/// The steps of a call with these effects, in order.
async fn steps(effects: Effects, flush_fails: bool) -> (Status, Vec<&'static str>) {
    let steps = Arc::new(Steps { flush_fails, ..Steps::default() });
    let acting = Arc::clone(&steps);
    let body = move |_: Value, _: Cx| {
        acting.take("act");
        async { Ok(Output::default()) }
    };
    let put = tool("put", move |_: &Value| effects.clone(), body).description("A test.");
    let policy = Policy {
        cwd: "/w".into(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    let toolbox = Toolbox {
        registry: Registry::builder().tool(Arc::new(put)).build().unwrap(),
        gate: Gate::new(policy, None).with_programs(Arc::new(InUsrBin)),
        sandbox: Arc::new(Walled),
        shaper: Shaper::default(),
        review: Review::default(),
        journal: steps.clone(),
        events: Arc::new(EventRecorder::default()),
        hooks: None,
    };
    let input = windlass_contract::Input::Json("{}".into());
    let call = ToolCall { id: "c".into(), name: "put".into(), input };
    let outcome = toolbox.run(toolbox.prepare(call), &Stop::default()).await.outcome.into_inner();
    let taken = steps.taken.lock().unwrap().clone();
    (outcome.status, taken)
}

fn command(words: &[&str]) -> Effects {
    let argv = words.iter().map(ToString::to_string).collect();
    Effects::command(CommandLine { argv, cwd: None })
}

fn on_a_server() -> RemoteCall {
    RemoteCall {
        server: "s".into(),
        tool: "t".into(),
        reach: ServerReach::Outside,
        hints: ToolHints::default(),
        trusted: false,
        approval: ToolApprovalMode::Approve,
    }
}

/// Stops a call that takes its time to cancel; whether it could.
async fn is_cancelled_in_order(effects: Effects, needed: Duration) -> bool {
    let in_order = Arc::new(AtomicBool::new(false));
    let (noted, stop) = (Arc::clone(&in_order), Stop::default());
    let asked = stop.clone();
    let body = move |_: Value, cx: Cx| {
        let (noted, asked) = (Arc::clone(&noted), asked.clone());
        async move {
            asked.stop(crate::Reason::Interrupted);
            cx.cancel.cancelled().await;
            tokio::time::sleep(needed).await;
            noted.store(true, Ordering::SeqCst);
            Err(ToolError::cancelled())
        }
    };
    let slow = tool("slow", move |_: &Value| effects.clone(), body).description("A test.");
    let policy = Policy { cwd: "/w".into(), ..Policy::default() };
    let toolbox = Toolbox {
        registry: Registry::builder().tool(Arc::new(slow)).build().unwrap(),
        gate: Gate::new(policy, None),
        sandbox: Arc::new(Walled),
        shaper: Shaper::default(),
        review: Review::default(),
        journal: Arc::new(Steps::default()),
        events: Arc::new(EventRecorder::default()),
        hooks: None,
    };
    let input = windlass_contract::Input::Json("{}".into());
    let call = ToolCall { id: "c".into(), name: "slow".into(), input };
    let outcome = toolbox.run(toolbox.prepare(call), &stop).await.outcome.into_inner();
    assert_eq!(outcome.status, Status::Rejected);
    in_order.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_call_on_a_server_has_longer_to_be_cancelled_and_no_longer_than_two_seconds() {
    let (short, long) = (Duration::from_millis(1900), Duration::from_millis(2100));
    assert!(is_cancelled_in_order(Effects::remote(on_a_server()), short).await);
    assert!(!is_cancelled_in_order(Effects::remote(on_a_server()), long).await);
    assert!(!is_cancelled_in_order(Effects::none(), short).await);
}

#[tokio::test]
async fn the_intent_is_on_the_disk_before_a_call_that_may_change_something_acts() {
    let flushed = (Status::Success, vec!["intent", "flush", "act", "outcome"]);
    let remote = Effects::remote(on_a_server());
    for effects in [Effects::write("/w/a"), Effects::unknown(), command(&["touch", "a"]), remote] {
        assert_eq!(steps(effects.clone(), false).await, flushed, "{effects:?}");
    }
    let not_flushed = (Status::Success, vec!["intent", "act", "outcome"]);
    for effects in [Effects::none(), Effects::read("/w/a"), command(&["ls", "-l"])] {
        assert_eq!(steps(effects.clone(), false).await, not_flushed, "{effects:?}");
    }
}

#[tokio::test]
async fn what_is_not_on_the_disk_is_not_run() {
    let (status, taken) = steps(Effects::write("/w/a"), true).await;
    assert_eq!((status, taken), (Status::Error, vec!["intent", "flush", "outcome"]));
}

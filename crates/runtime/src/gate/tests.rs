//! Tests of the gate: who is asked what, and what an answer is worth.

use std::sync::Mutex;

use windlass_contract::{BoxFuture, Escalation, Network, Offer, SandboxMode, SandboxRules, Typed};

use super::*;

struct Says(Answer);

impl Approver for Says {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async { self.0.clone() })
    }
}

fn gate(sandbox: SandboxMode, approval: ApprovalPolicy, answer: Option<Answer>) -> Gate {
    let walls =
        SandboxRules { writable: vec!["/more".into()], network: Network::Any, ..SandboxRules::default() };
    let policy = Policy { cwd: "/w".into(), approval, sandbox, walls, ..Policy::default() };
    Gate::new(policy, answer.map(|answer| Arc::new(Says(answer)) as Arc<dyn Approver>))
}

fn command() -> Effects {
    Effects::command(CommandLine { argv: vec!["make".into()], cwd: None })
}

async fn admit(gate: Gate, effects: Effects) -> Result<Confinement, String> {
    let input = windlass_contract::Input::Json(String::new());
    let call = ToolCall { id: "c".into(), name: "t".into(), input };
    match gate.admit(&call, &effects, gate.judge(&effects), &Stop::default()).await {
        Ok(admission) => Ok(admission.grant.confinement().clone()),
        Err(Failure::Refused(reason)) => Err(reason),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_touches_nothing_runs_under_every_policy() {
    for sandbox in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::DangerFullAccess] {
        let gate = gate(sandbox, ApprovalPolicy::Untrusted, None);
        assert_eq!(admit(gate, Effects::none()).await, Ok(Confinement::InProcess));
    }
}

#[tokio::test]
async fn a_command_is_held_to_what_its_sandbox_mode_allows() {
    let held = |sandbox| admit(gate(sandbox, ApprovalPolicy::Never, None), command());
    let read_only = held(SandboxMode::ReadOnly).await;
    assert_eq!(read_only, Ok(Confinement::Sandboxed(SandboxRules::default())));
    let writable = vec!["/w".into(), "/more".into()];
    let walls = SandboxRules { writable, network: Network::Any, ..SandboxRules::default() };
    assert_eq!(held(SandboxMode::WorkspaceWrite).await, Ok(Confinement::Sandboxed(walls)));
}

#[tokio::test]
async fn a_call_chooses_where_it_runs_but_not_where_the_user_works() {
    let read = |cwd: Option<&str>| {
        let approval = ApprovalPolicy::Untrusted;
        let gate = Gate::new(Policy { cwd: "/root/.dotfiles".into(), approval, ..Policy::default() }, None);
        let argv = vec!["cat".into(), "sec.conf".into()];
        admit(gate, Effects::command(CommandLine { argv, cwd: cwd.map(Into::into) }))
    };
    assert!(read(None).await.is_ok());
    assert!(read(Some("weechat")).await.is_ok());
    assert!(read(Some("/root/.weechat")).await.is_err());
}

#[tokio::test]
async fn full_access_runs_a_command_unconfined() {
    let gate = gate(SandboxMode::DangerFullAccess, ApprovalPolicy::Never, None);
    assert_eq!(admit(gate, command()).await, Ok(Confinement::Unconfined));
}

#[tokio::test]
async fn a_command_is_judged_where_it_would_run() {
    let search = |cwd: Option<&str>| {
        let argv = ["grep", "-r", "key", "."].map(str::to_owned).to_vec();
        Effects::command(CommandLine { argv, cwd: cwd.map(Into::into) })
    };
    let at = |home: &str| {
        let policy = Policy { cwd: home.into(), approval: ApprovalPolicy::Untrusted, ..Policy::default() };
        Gate::new(policy, None)
    };
    assert!(admit(at("/home/me/project"), search(None)).await.is_ok());
    assert!(admit(at("/home/me"), search(None)).await.is_err());
    assert!(admit(at("/home/me/project"), search(Some(".."))).await.is_err());
    assert!(admit(at("/home/me"), search(Some("project"))).await.is_ok());
}

#[tokio::test]
async fn what_is_held_from_outside_keeps_what_was_said_about_the_network() {
    let gate = gate(SandboxMode::External, ApprovalPolicy::Never, None);
    assert_eq!(admit(gate, command()).await, Ok(Confinement::External(Network::Any)));
}

#[tokio::test]
async fn untrusted_asks_and_takes_no_answer_as_a_no() {
    let untrusted = |answer| gate(SandboxMode::DangerFullAccess, ApprovalPolicy::Untrusted, answer);
    assert_eq!(admit(untrusted(Some(Answer::Once)), command()).await, Ok(Confinement::Unconfined));
    let reason = admit(untrusted(Some(Answer::Deny("use git".into()))), command()).await;
    assert_eq!(reason, Err("rejected by user: use git".into()));
    for silence in [None, Some(Answer::Unavailable)] {
        let reason = admit(untrusted(silence), command()).await.unwrap_err();
        assert!(reason.starts_with("refused: nobody is there to approve it"), "{reason}");
    }
}

/// Writes down what it is given.
#[derive(Default)]
struct Book(Mutex<Vec<(Reach, Offer)>>);

impl Rulebook for Book {
    fn keep(&self, reach: Reach, rule: &Offer) -> Result<(), String> {
        self.0.lock().unwrap().push((reach, rule.clone()));
        Ok(())
    }
}

/// Counts how often it is asked, and gives the same answer each time.
struct Patient(Answer, Mutex<Vec<Question>>);

impl Approver for Patient {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.1.lock().unwrap().push(question.clone());
        Box::pin(async { self.0.clone() })
    }
}

fn call() -> ToolCall {
    let input = windlass_contract::Input::Json(String::new());
    ToolCall { id: "c".into(), name: "t".into(), input }
}

#[tokio::test]
async fn an_answer_for_good_becomes_a_rule_at_once_and_is_kept() {
    for (answer, reach) in [(Answer::Project, Reach::Project), (Answer::Always, Reach::Everywhere)] {
        let (person, book) = (Arc::new(Patient(answer, Mutex::default())), Arc::new(Book::default()));
        let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
        let gate = Gate::new(policy, Some(person.clone())).with_rulebook(Some(book.clone()));
        for _ in 0..2 {
            gate.admit(&call(), &command(), gate.judge(&command()), &Stop::default()).await.unwrap();
        }
        assert_eq!(person.1.lock().unwrap().len(), 1);
        let kept = book.0.lock().unwrap();
        let [(kept_for, rule)] = &kept[..] else { panic!("{kept:?}") };
        assert_eq!(*kept_for, reach);
        assert!(rule.toml.contains(r#"prefix = ["make"]"#), "{}", rule.toml);
    }
}

#[tokio::test]
async fn what_is_approved_for_the_session_is_asked_again_on_a_terminal() {
    let person = Arc::new(Patient(Answer::Session, Mutex::default()));
    let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
    let gate = Gate::new(policy, Some(person.clone()));
    for terminal in [false, false, true, true] {
        let effects = Effects { terminal, ..command() };
        gate.admit(&call(), &effects, gate.judge(&effects), &Stop::default()).await.unwrap();
    }
    let asked: Vec<_> = person.1.lock().unwrap().iter().map(|asked| asked.effects.terminal).collect();
    assert_eq!(asked, [false, true]);
}

#[tokio::test]
async fn a_rule_may_let_a_command_leave_the_sandbox_but_no_wish_does() {
    let leaving = |text: &str| {
        let rules = Rules::load(&[RuleFile { name: "r", text, trust: Trust::User }]).unwrap();
        Gate::new(Policy { rules, ..Policy::default() }, None)
    };
    let rule = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n";
    let escape = format!("{rule}escape_sandbox = true\n");
    assert_eq!(admit(leaving(&escape), command()).await, Ok(Confinement::Unconfined));
    assert_eq!(admit(leaving(rule), command()).await, Ok(Confinement::Sandboxed(SandboxRules::default())));
    let wish = Effects { escalation: Some(Escalation::default()), ..command() };
    assert!(admit(leaving(rule), wish).await.is_err());
}

#[tokio::test]
async fn what_cannot_be_a_rule_is_approved_once() {
    let person = Arc::new(Patient(Answer::Always, Mutex::default()));
    let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
    let gate = Gate::new(policy, Some(person.clone()));
    let argv = ["bash", "-c", "rm -rf build"].map(str::to_owned).to_vec();
    let effects = Effects::command(CommandLine { argv, cwd: None });
    for _ in 0..2 {
        let admission = gate.admit(&call(), &effects, gate.judge(&effects), &Stop::default()).await.unwrap();
        assert_eq!(admission.decision, "approved once");
    }
    let asked = person.1.lock().unwrap();
    assert_eq!((asked.len(), asked[0].rule.clone()), (2, None));
}

#[tokio::test]
async fn what_was_judged_before_an_answer_made_a_rule_is_judged_again() {
    let gate = gate(SandboxMode::WorkspaceWrite, ApprovalPolicy::Untrusted, None);
    let (effects, stop) = (command(), Stop::default());
    let call = call();
    let judged = gate.judge(&effects);
    assert!(matches!(
        gate.admit(&call, &effects, gate.judge(&effects), &stop).await,
        Err(Failure::Refused(_))
    ));
    let text = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n";
    let made = Rules::load(&[RuleFile { name: "answer", text, trust: Trust::User }]).unwrap();
    gate.rules.write().unwrap().add(made);
    assert!(gate.admit(&call, &effects, judged, &stop).await.is_ok());
}

#[tokio::test]
async fn what_is_typed_is_asked_about_like_a_command_and_never_gets_a_rule() {
    struct Sees(Mutex<Vec<Question>>);
    impl Approver for Sees {
        fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
            self.0.lock().unwrap().push(question.clone());
            Box::pin(async { Answer::Once })
        }
    }
    let person = Arc::new(Sees(Mutex::default()));
    let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
    let gate = Gate::new(policy, Some(Arc::clone(&person) as Arc<dyn Approver>));
    let typed = |text: &str| Effects::typed(Typed { to: "bash".into(), text: text.into() });
    let call = call();
    for text in ["ls\n", "make\n", "rm -rf /\n"] {
        let effects = typed(text);
        let admitted = gate.admit(&call, &effects, gate.judge(&effects), &Stop::default()).await;
        assert_eq!(admitted.is_ok(), text != "rm -rf /\n", "{text}");
    }
    let asked = person.0.lock().unwrap();
    let asked: Vec<_> = asked.iter().map(|question| (&question.effects, question.rule.is_some())).collect();
    assert_eq!(asked, [(&typed("ls\n"), false), (&typed("make\n"), false)]);
}

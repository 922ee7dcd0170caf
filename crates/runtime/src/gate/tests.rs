//! Tests of the gate: who is asked what, and what an answer is worth.

use std::{path::Path, sync::Mutex};

use windlass_contract::{
    BoxFuture, Clean, Event,
    approval::{Answer, AnsweredBy, Offer, Reach},
    effects::{Escalation, Network, Typed},
    event::Silent,
    grant::SandboxRules,
    policy::SandboxMode,
    program::{ProgramFile, ProgramSearch},
};
use windlass_policy::{RuleFile, Trust};

use super::*;

mod leaving;
mod planning;
mod remote;

use leaving::AllIn;

/// Admits a call without secrets and without an event sink.
async fn admitted(gate: &Gate, call: &ToolCall, effects: &Effects) -> Result<CallAdmission, Failure> {
    let stop = Stop::default();
    let request = GateRequest {
        call,
        effects,
        secrets: &[],
        events: &Silent,
        stop: &stop,
        hooked: HookedRequest::default(),
    };
    gate.admit(request, gate.judge(effects)).await
}

struct Says(Answer);

impl Approver for Says {
    fn ask<'a>(&'a self, _: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
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
    match admitted(&gate, &call, &effects).await {
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
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        self.1.lock().unwrap().push(question.clone().into_inner());
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
            admitted(&gate, &call(), &command()).await.unwrap();
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
        admitted(&gate, &call(), &effects).await.unwrap();
    }
    let asked: Vec<_> = person.1.lock().unwrap().iter().map(|asked| asked.effects.terminal).collect();
    assert_eq!(asked, [false, true]);
}

fn shell(line: &str) -> Effects {
    Effects::command(CommandLine { argv: ["bash", "-c", line].map(str::to_owned).to_vec(), cwd: None })
}

#[tokio::test]
async fn what_goes_beyond_the_machine_is_asked_about_without_a_sandbox_too() {
    let asked = |approval, ask_before: Vec<OutwardEffect>, line: &'static str| async move {
        let person = Arc::new(Patient(Answer::Once, Mutex::default()));
        let sandbox = SandboxMode::DangerFullAccess;
        let policy = Policy { approval, ask_before, sandbox, ..Policy::default() };
        let gate = Gate::new(policy, Some(person.clone()));
        admitted(&gate, &call(), &shell(line)).await.unwrap();
        let asked = person.1.lock().unwrap();
        asked.first().map(|question| question.reason.clone())
    };
    let all = || OutwardEffect::ALL.to_vec();
    let pushes = Some("it pushes to a repository that others share (effect `push`)".to_owned());
    for approval in [ApprovalPolicy::OnRequest, ApprovalPolicy::Untrusted] {
        assert_eq!(asked(approval, all(), "cd a && git push").await, pushes);
    }
    for approval in [ApprovalPolicy::OnFailure, ApprovalPolicy::Never] {
        assert_eq!(asked(approval, all(), "git push").await, None, "{approval:?}");
    }
    assert_eq!(asked(ApprovalPolicy::OnRequest, vec![OutwardEffect::Deploy], "git push").await, None);
    assert_eq!(asked(ApprovalPolicy::OnRequest, all(), "make").await, None);
}

#[tokio::test]
async fn a_tool_without_a_command_may_go_beyond_the_machine_as_well() {
    let effects = Effects { outward: vec![OutwardEffect::Send], ..Effects::none() };
    let gate = |approval| gate(SandboxMode::DangerFullAccess, approval, None);
    let refused = admit(gate(ApprovalPolicy::OnRequest), effects.clone()).await.unwrap_err();
    assert!(refused.contains("it sends something to another machine"), "{refused}");
    assert!(admit(gate(ApprovalPolicy::Never), effects).await.is_ok());
}

#[tokio::test]
async fn a_secret_in_the_arguments_is_asked_about_by_policies_that_ask() {
    let (call, stop) = (call(), Stop::default());
    let kinds = ["github-token".to_owned()];
    for (approval, effects, is_asked) in [
        (ApprovalPolicy::OnRequest, shell("make TOKEN=x"), true),
        (ApprovalPolicy::OnFailure, Effects::write("/w/a"), true),
        (ApprovalPolicy::Never, shell("make TOKEN=x"), false),
        (ApprovalPolicy::OnRequest, shell("grep x a"), false),
    ] {
        let person = Arc::new(Patient(Answer::Once, Mutex::default()));
        let sandbox = SandboxMode::WorkspaceWrite;
        let policy = Policy { cwd: "/w".into(), approval, sandbox, ..Policy::default() };
        let gate = Gate::new(policy, Some(person.clone()));
        let request = GateRequest {
            call: &call,
            effects: &effects,
            secrets: &kinds,
            events: &Silent,
            stop: &stop,
            hooked: HookedRequest::default(),
        };
        gate.admit(request, gate.judge(&effects)).await.unwrap();
        let asked: Vec<_> = person.1.lock().unwrap().iter().map(|asked| asked.reason.clone()).collect();
        let expected =
            if is_asked { vec!["its arguments hold a secret (github-token)".to_owned()] } else { vec![] };
        assert_eq!(asked, expected, "{approval:?}");
    }
}

/// Keeps what it sees.
#[derive(Default)]
struct Watched(Mutex<Vec<Event>>);

impl EventEmitter for Watched {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

#[tokio::test]
async fn a_question_and_its_answer_are_events() {
    let events = |answer: Option<Answer>| async move {
        let (watched, call, stop, effects) = (Watched::default(), call(), Stop::default(), command());
        let gate = gate(SandboxMode::WorkspaceWrite, ApprovalPolicy::Untrusted, answer);
        let request = GateRequest {
            call: &call,
            effects: &effects,
            secrets: &[],
            events: &watched,
            stop: &stop,
            hooked: HookedRequest::default(),
        };
        for _ in 0..2 {
            let _decided = gate.admit(request, gate.judge(&effects)).await;
        }
        watched
            .0
            .into_inner()
            .unwrap()
            .into_iter()
            .map(|event| match event {
                Event::ApprovalAsked { reason, .. } => format!("asked: {reason}"),
                Event::ApprovalAnswered { answer, by, rule, .. } => {
                    format!("{} by {} {}", answer.name(), by.name(), rule.unwrap_or_default())
                }
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    let asked = "asked: `make` is not known to be harmless: `make` is not on the list of harmless programs";
    let nobody = format!("unavailable by {} ", AnsweredBy::Nobody.name());
    assert_eq!(events(None).await, [asked, &nobody, asked, &nobody]);
    assert_eq!(events(Some(Answer::Session)).await, [asked, "session by person ", "session by session "]);
    let rule = "always by person every command that begins with `make`, whatever words follow";
    assert_eq!(events(Some(Answer::Always)).await, [asked, rule]);
}

#[tokio::test]
async fn a_refused_wish_says_which_policy_holds_and_why() {
    let wish = Effects { escalation: Some(Escalation::default()), ..command() };
    let refused = |unattended| {
        let policy = Policy { unattended, ..Policy::default() };
        admit(Gate::new(policy, None), wish.clone())
    };
    assert!(refused(None).await.unwrap_err().starts_with("approval policy is never; reject command"));
    for (approval, name) in
        [(ApprovalPolicy::OnFailure, "on-failure"), (ApprovalPolicy::Untrusted, "untrusted")]
    {
        let gate = Gate::new(Policy { approval, ..Policy::default() }, None);
        assert_eq!(
            admit(gate, wish.clone()).await.unwrap_err(),
            format!(
                "approval policy is {name}; reject command — you should not ask for escalated permissions if the \
                 approval policy is {name}"
            )
        );
    }
    assert_eq!(
        refused(Some(ApprovalPolicy::OnFailure)).await.unwrap_err(),
        "refused: it asks to run without the sandbox; the approval policy is `on-failure`, but nobody can be asked in \
         this run, so that `never` holds; run it without asking for escalated permissions, or leave it out"
    );
}

#[tokio::test]
async fn a_refusal_names_the_policy_that_the_user_chose() {
    let refused = |unattended, effects| {
        let policy = Policy { unattended, ..Policy::default() };
        admit(Gate::new(policy, None), effects)
    };
    let chosen = Some(ApprovalPolicy::OnFailure);
    let cause =
        "; it needs approval, and nobody can be asked in this run (the approval policy is `on-failure`)";
    let write = Effects::write("/etc/x");
    assert!(refused(chosen, write.clone()).await.unwrap_err().ends_with(cause));
    assert!(refused(None, write).await.unwrap_err().ends_with("; rejected by user approval settings"));
    let push = Effects::command(CommandLine {
        argv: ["git", "push", "--force"].map(str::to_owned).to_vec(),
        cwd: None,
    });
    assert!(refused(chosen, push.clone()).await.unwrap_err().ends_with(cause));
    assert!(!refused(None, push).await.unwrap_err().contains("approval policy"));
}

#[tokio::test]
async fn what_cannot_be_a_rule_is_approved_once() {
    let person = Arc::new(Patient(Answer::Always, Mutex::default()));
    let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
    let gate = Gate::new(policy, Some(person.clone()));
    let argv = ["bash", "-c", "rm -rf build"].map(str::to_owned).to_vec();
    let effects = Effects::command(CommandLine { argv, cwd: None });
    for _ in 0..2 {
        let admission = admitted(&gate, &call(), &effects).await.unwrap();
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
    assert!(matches!(admitted(&gate, &call, &effects).await, Err(Failure::Refused(_))));
    let text = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n";
    let made = Rules::load(&[RuleFile { name: "answer", text, trust: Trust::User }]).unwrap();
    gate.rules.add(made);
    let request = GateRequest {
        call: &call,
        effects: &effects,
        secrets: &[],
        events: &Silent,
        stop: &stop,
        hooked: HookedRequest::default(),
    };
    assert!(gate.admit(request, judged).await.is_ok());
}

#[tokio::test]
async fn what_is_typed_is_asked_about_like_a_command_and_never_gets_a_rule() {
    struct Sees(Mutex<Vec<Question>>);
    impl Approver for Sees {
        fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
            self.0.lock().unwrap().push(question.clone().into_inner());
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
        let admitted = admitted(&gate, &call, &effects).await;
        assert_eq!(admitted.is_ok(), text != "rm -rf /\n", "{text}");
    }
    let asked = person.0.lock().unwrap();
    let asked: Vec<_> = asked.iter().map(|question| (&question.effects, question.rule.is_some())).collect();
    assert_eq!(asked, [(&typed("ls\n"), false), (&typed("make\n"), false)]);
}

/// Asks this person about commands that want to leave a sandbox, and says what each would run.
async fn left(
    person: &Arc<Patient>,
    directory: &'static str,
    calls: &[Effects],
) -> Vec<(Option<Vec<String>>, String)> {
    let policy = Policy {
        cwd: "/w".into(),
        approval: ApprovalPolicy::OnRequest,
        sandbox: SandboxMode::WorkspaceWrite,
        ..Policy::default()
    };
    let gate = Gate::new(policy, Some(person.clone())).with_programs(Arc::new(AllIn(directory, None)));
    let mut left = Vec::new();
    for effects in calls {
        let mut effects = Effects { escalation: Some(Escalation::default()), ..effects.clone() };
        effects.outward.extend(gate.judge(&effects).iter().flat_map(CommandJudgement::outward));
        let CallAdmission { grant, decision } = admitted(&gate, &call(), &effects).await.unwrap();
        assert_eq!(*grant.confinement(), Confinement::Unconfined);
        left.push((grant.direct().map(|program| program.argv.clone()), decision));
    }
    left
}

#[tokio::test]
async fn for_the_session_outside_the_sandbox_one_program_runs_and_nothing_around_it() {
    let person = Arc::new(Patient(Answer::Session, Mutex::default()));
    let calls = ["make", "make 2>&1", "make"].map(shell);
    let direct = Some(vec!["/usr/bin/make".to_owned()]);
    let told = "approved for the session; started directly, without a shell".to_owned();
    assert_eq!(left(&person, "/usr/bin", &calls).await, vec![(direct, told); 3]);
    assert_eq!(person.1.lock().unwrap().len(), 1, "the same program with the same words");
}

#[tokio::test]
async fn what_a_session_cannot_settle_outside_the_sandbox_is_asked_each_time() {
    for line in
        ["timeout 5 make", "make < x", "make <<< x", "A=1 make", "make; make", "make > out", "git push"]
    {
        let person = Arc::new(Patient(Answer::Session, Mutex::default()));
        let calls = [line, line].map(shell);
        let once = (None, "approved once".to_owned());
        assert_eq!(left(&person, "/usr/bin", &calls).await, vec![once; 2], "{line}");
        let asked = person.1.lock().unwrap();
        let offered: Vec<_> = asked.iter().map(|asked| (asked.keys.len(), asked.rule.clone())).collect();
        assert_eq!(offered, vec![(0, None); 2], "{line}");
    }
    let login = ["bash", "-lc", "make"].map(str::to_owned).to_vec();
    let login = Effects::command(CommandLine { argv: login, cwd: None });
    let person = Arc::new(Patient(Answer::Session, Mutex::default()));
    left(&person, "/usr/bin", &[login.clone(), login]).await;
    left(&person, "/w/venv/bin", &["make", "make"].map(shell)).await;
    assert_eq!(person.1.lock().unwrap().len(), 4, "a login shell, and a program that may be planted");
}

#[tokio::test]
async fn a_rule_for_good_is_offered_for_programs_of_the_system_and_starts_them_directly() {
    let person = Arc::new(Patient(Answer::Always, Mutex::default()));
    let ran = left(&person, "/usr/bin", &["docker ps", "docker ps"].map(shell)).await;
    let direct = Some(vec!["/usr/bin/docker".to_owned(), "ps".to_owned()]);
    assert_eq!((&ran[0].0, &ran[1].0), (&direct, &direct));
    assert!(ran[1].1.starts_with("allowed by the rule `/usr/bin/docker ps`"), "{}", ran[1].1);
    assert!(ran[1].1.ends_with("; started directly, without a shell"), "{}", ran[1].1);
    assert_eq!(person.1.lock().unwrap().len(), 1);
    // With a terminal there would be something to type to.
    let typed = Effects { terminal: true, ..shell("docker ps") };
    left(&person, "/usr/bin", &[shell("docker ps"), typed]).await;
    assert_eq!(person.1.lock().unwrap().len(), 3);
    // Another workspace could have this file in it.
    left(&person, "/opt/tools/bin", &["docker ps"].map(shell)).await;
    assert_eq!(person.1.lock().unwrap().pop().unwrap().rule, None);
}

#[tokio::test]
async fn no_rule_is_made_of_a_secret() {
    let offered = |secrets: &'static [&'static str]| async move {
        let (call, stop, effects) = (call(), Stop::default(), shell("make TOKEN=x"));
        let person = Arc::new(Patient(Answer::Once, Mutex::default()));
        let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
        let gate = Gate::new(policy, Some(person.clone()));
        let secrets: Vec<_> = secrets.iter().map(ToString::to_string).collect();
        let request = GateRequest {
            call: &call,
            effects: &effects,
            secrets: &secrets,
            events: &Silent,
            stop: &stop,
            hooked: HookedRequest::default(),
        };
        gate.admit(request, gate.judge(&effects)).await.unwrap();
        let asked = person.1.lock().unwrap().pop().unwrap();
        asked.rule.is_some()
    };
    assert_eq!((offered(&[]).await, offered(&["github-token"]).await), (true, false));
}

#[tokio::test]
async fn without_a_sandbox_a_planted_program_is_not_known_to_be_harmless() {
    let listing = |directory: &'static str| async move {
        let (sandbox, approval) = (SandboxMode::DangerFullAccess, ApprovalPolicy::Untrusted);
        let policy = Policy { cwd: "/w".into(), approval, sandbox, ..Policy::default() };
        admit(Gate::new(policy, None).with_programs(Arc::new(AllIn(directory, None))), shell("ls")).await
    };
    assert_eq!(listing("/usr/bin").await, Ok(Confinement::Unconfined));
    assert!(listing("/w/.venv/bin").await.unwrap_err().contains("may have replaced the file"));
}

#[tokio::test]
async fn an_approver_sees_no_secrets() {
    let person = Arc::new(Patient(Answer::Session, Mutex::default()));
    let policy = Policy { approval: ApprovalPolicy::Untrusted, ..Policy::default() };
    let secrets = Secrets::knowing([("APP_SECRET".to_owned(), "plum-Tree-42x".to_owned())]);
    let gate = Gate::new(policy, Some(person.clone())).with_secrets(secrets);
    let effects =
        |word: &str| Effects::command(CommandLine { argv: vec!["make".into(), word.into()], cwd: None });
    for word in ["plum-Tree-42x", "plum-Tree-42x", "[REDACTED:APP_SECRET#1]"] {
        admitted(&gate, &call(), &effects(word)).await.unwrap();
    }
    let asked = person.1.lock().unwrap();
    let asked: Vec<_> = asked.iter().map(|question| &question.effects).collect();
    let label = effects("[REDACTED:APP_SECRET#1]");
    assert_eq!(asked, [&label, &label], "the answer for the session is for the real command");
}

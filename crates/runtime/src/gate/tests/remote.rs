//! Tests of calls on MCP servers: who is asked, and what the words of a server are worth.

use windlass_contract::remote::{RemoteCall, ServerReach, ToolApprovalMode, ToolHints};

use super::*;

fn remote(reach: ServerReach) -> RemoteCall {
    RemoteCall {
        server: "github".into(),
        tool: "create_issue".into(),
        reach,
        hints: ToolHints::default(),
        trusted: false,
        approval: ToolApprovalMode::Auto,
    }
}

fn reading() -> ToolHints {
    ToolHints { read_only: Some(true), ..ToolHints::default() }
}

fn destroying() -> ToolHints {
    ToolHints { destructive: Some(true), ..ToolHints::default() }
}

/// How a call is decided without a word of anyone: it runs, it is asked about, or it is refused.
async fn decided(gate: Gate, call: RemoteCall) -> &'static str {
    match admit(gate, Effects::remote(call)).await {
        Ok(Confinement::InProcess) => "run",
        Ok(other) => panic!("{other:?}"),
        Err(reason) if reason.starts_with("refused: nobody is there") => "ask",
        Err(reason) if reason.starts_with("refused: ") => "refuse",
        Err(reason) => panic!("{reason}"),
    }
}

fn offline(sandbox: SandboxMode, approval: ApprovalPolicy) -> Gate {
    Gate::new(Policy { cwd: "/w".into(), approval, sandbox, ..Policy::default() }, None)
}

#[tokio::test]
async fn a_call_is_asked_about_if_it_changes_what_the_session_may_not_change() {
    use ApprovalPolicy::OnRequest;
    use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
    use ServerReach::{Files, Nothing, Outside};
    for (sandbox, reach, expected) in [
        (ReadOnly, Nothing, "run"),
        (ReadOnly, Files, "ask"),
        (ReadOnly, Outside, "ask"),
        (WorkspaceWrite, Files, "run"),
        (WorkspaceWrite, Outside, "ask"),
        (DangerFullAccess, Files, "run"),
        // As for a command that sends something.
        (DangerFullAccess, Outside, "ask"),
    ] {
        let found = decided(offline(sandbox, OnRequest), remote(reach)).await;
        assert_eq!(found, expected, "{sandbox:?} {reach:?}");
    }
    // The network of the session is on, and the user is asked only after failures.
    let online = gate(WorkspaceWrite, ApprovalPolicy::OnFailure, None);
    assert_eq!(decided(online, remote(Outside)).await, "run");
}

#[tokio::test]
async fn an_annotation_raises_what_a_call_counts_as_and_lowers_it_only_by_trust() {
    let call = |reach, hints, trusted| RemoteCall { hints, trusted, ..remote(reach) };
    let gate = || offline(SandboxMode::WorkspaceWrite, ApprovalPolicy::OnRequest);
    assert_eq!(decided(gate(), call(ServerReach::Nothing, destroying(), false)).await, "ask");
    assert_eq!(decided(gate(), call(ServerReach::Outside, reading(), false)).await, "ask");
    assert_eq!(decided(gate(), call(ServerReach::Outside, reading(), true)).await, "run");
    // It cannot say both.
    let both = ToolHints { destructive: Some(true), ..reading() };
    assert_eq!(decided(gate(), call(ServerReach::Outside, both, false)).await, "ask");
}

#[tokio::test]
async fn the_mode_of_a_tool_decides_before_the_policy() {
    use ToolApprovalMode::{Approve, Prompt, Writes};
    let call = |reach, approval| RemoteCall { approval, ..remote(reach) };
    let gate = || offline(SandboxMode::WorkspaceWrite, ApprovalPolicy::OnRequest);
    assert_eq!(decided(gate(), call(ServerReach::Nothing, Prompt)).await, "ask");
    assert_eq!(decided(gate(), call(ServerReach::Nothing, Writes)).await, "run");
    assert_eq!(decided(gate(), call(ServerReach::Files, Writes)).await, "ask");
    let destroys = RemoteCall { hints: destroying(), ..call(ServerReach::Outside, Approve) };
    assert_eq!(decided(gate(), destroys.clone()).await, "run");
    for approval in [ApprovalPolicy::Never, ApprovalPolicy::Untrusted] {
        assert_eq!(decided(offline(SandboxMode::ReadOnly, approval), destroys.clone()).await, "run");
    }
}

#[tokio::test]
async fn without_questions_a_refusal_names_the_setting_that_allows_the_tool() {
    let gate = || offline(SandboxMode::ReadOnly, ApprovalPolicy::Never);
    let refused = admit(gate(), Effects::remote(remote(ServerReach::Outside))).await.unwrap_err();
    assert_eq!(
        refused,
        "refused: the tool `create_issue` may change something beyond this machine, and the network of the session \
         is off (MCP server `github`, which can reach other machines); rejected by user approval settings; only the \
         user can allow it, with `mcp_servers.github.tools.create_issue.approval_mode = \"approve\"`"
    );
    let odd = RemoteCall { tool: "a b`\u{1b}[2J".into(), ..remote(ServerReach::Files) };
    let refused = admit(gate(), Effects::remote(odd)).await.unwrap_err();
    assert!(refused.contains("mcp_servers.github.tools.\"a b[2J\".approval_mode"), "{refused}");
    assert!(!refused.contains('\u{1b}'));
    let open = |approval| offline(SandboxMode::DangerFullAccess, approval);
    let destroys = RemoteCall { hints: destroying(), ..remote(ServerReach::Outside) };
    assert_eq!(decided(open(ApprovalPolicy::Never), destroys.clone()).await, "run");
    // Unattended: the user wanted to be asked.
    let policy = Policy { unattended: Some(ApprovalPolicy::OnRequest), ..open(ApprovalPolicy::Never).policy };
    assert_eq!(decided(Gate::new(policy, None), destroys).await, "refuse");
    let prompt = RemoteCall { approval: ToolApprovalMode::Prompt, ..remote(ServerReach::Nothing) };
    assert_eq!(decided(open(ApprovalPolicy::Never), prompt).await, "refuse");
}

#[tokio::test]
async fn plan_mode_refuses_what_may_change_whoever_approved_it() {
    let planning = || {
        let policy = Policy { cwd: "/w".into(), ..Policy::default() };
        Gate::new(policy.planning(), None)
    };
    let approval = ToolApprovalMode::Approve;
    let refused =
        admit(planning(), Effects::remote(RemoteCall { approval, ..remote(ServerReach::Files) })).await;
    assert!(refused.unwrap_err().contains("plan mode is on"));
    assert_eq!(decided(planning(), remote(ServerReach::Nothing)).await, "run");
}

#[tokio::test]
async fn a_yes_for_the_session_covers_the_tool_of_the_server_and_no_other() {
    let person = Arc::new(Patient(Answer::Session, Mutex::default()));
    let policy = Policy { cwd: "/w".into(), approval: ApprovalPolicy::OnRequest, ..Policy::default() };
    let gate = Gate::new(policy, Some(person.clone()));
    let other_tool = RemoteCall { tool: "delete_repo".into(), ..remote(ServerReach::Outside) };
    let other_server = RemoteCall { server: "gitlab".into(), ..remote(ServerReach::Outside) };
    let prompt = RemoteCall { approval: ToolApprovalMode::Prompt, ..remote(ServerReach::Outside) };
    let asked = || person.1.lock().unwrap().len();
    for (number, remote) in [remote(ServerReach::Outside), other_tool, other_server].into_iter().enumerate() {
        for _ in 0..2 {
            admitted(&gate, &call(), &Effects::remote(remote.clone())).await.unwrap();
            assert_eq!(asked(), number + 1);
        }
    }
    for number in 4..6 {
        admitted(&gate, &call(), &Effects::remote(prompt.clone())).await.unwrap();
        assert_eq!(asked(), number, "asked before every call");
    }
    let question = &person.1.lock().unwrap()[0];
    assert_eq!(question.beyond, Beyond::Nothing);
    assert!(question.reason.contains("`create_issue`") && question.reason.contains("server `github`"));
}

#[tokio::test]
async fn a_question_shows_the_arguments_without_secrets() {
    let person = Arc::new(Patient(Answer::Once, Mutex::default()));
    let policy = Policy { cwd: "/w".into(), approval: ApprovalPolicy::OnRequest, ..Policy::default() };
    let gate = Gate::new(policy, Some(person.clone()));
    let token = "ghp_q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2";
    let input = windlass_contract::Input::Json(json!({"title": "Fault", "token": token}).to_string());
    let call = ToolCall { id: "c".into(), name: "mcp__github__create_issue".into(), input };
    admitted(&gate, &call, &Effects::remote(remote(ServerReach::Outside))).await.unwrap();
    let asked = person.1.lock().unwrap();
    let change = &asked[0].details.change;
    assert!(change.contains("title: Fault") && !change.contains(token), "{change}");
}

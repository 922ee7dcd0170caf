//! Tests of what leaves the sandbox by a rule or by an earlier answer.

use super::*;

/// Has every program in one directory.
pub(super) struct AllIn(pub(super) &'static str, pub(super) Option<&'static str>);

impl ProgramFinder for AllIn {
    fn find_program(&self, name: &str, _cwd: &Path) -> ProgramSearch {
        ProgramSearch::Found(ProgramFile { path: Path::new(self.0).join(name), leads_to: Vec::new() })
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn obstacle_outside(&self, writable: &[PathBuf]) -> Option<String> {
        assert_eq!(writable[0], Path::new("/w"));
        self.1.map(str::to_owned)
    }
}

#[tokio::test]
async fn a_rule_may_let_a_command_leave_the_sandbox_but_no_wish_does() {
    let leaving = |text: &str, directory| {
        let rules = Rules::load(&[RuleFile { name: "r", text, trust: Trust::User }]).unwrap();
        let policy = Policy { rules, cwd: "/w".into(), ..Policy::default() };
        Gate::new(policy, None).with_programs(Arc::new(AllIn(directory, None)))
    };
    let held = Ok(Confinement::Sandboxed(SandboxRules::default()));
    let rule = "[[rule]]\nprefix = [\"make\"]\ndecision = \"allow\"\n";
    let escape = "[[rule]]\nargv = [\"/usr/bin/make\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    assert_eq!(admit(leaving(escape, "/usr/bin"), command()).await, Ok(Confinement::Unconfined));
    assert_eq!(admit(leaving(rule, "/usr/bin"), command()).await, held);
    // A `make` that a command may have planted, in an environment of the workspace.
    assert_eq!(admit(leaving(escape, "/w/venv/bin"), command()).await, held);
    let wish = Effects { escalation: Some(Escalation::default()), ..command() };
    assert!(admit(leaving(rule, "/usr/bin"), wish).await.is_err());
}

#[tokio::test]
async fn an_old_rule_that_leaves_with_any_words_is_asked_about_and_the_answer_is_exact() {
    let text = "[[rule]]\nprefix = [\"docker\", \"ps\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    let rules = Rules::load(&[RuleFile { name: "r", text, trust: Trust::User }]).unwrap();
    let person = Arc::new(Patient(Answer::Always, Mutex::default()));
    for approval in [ApprovalPolicy::Untrusted, ApprovalPolicy::OnFailure, ApprovalPolicy::OnRequest] {
        person.1.lock().unwrap().clear();
        let policy = Policy { rules: rules.clone(), cwd: "/w".into(), approval, ..Policy::default() };
        let gate = Gate::new(policy, Some(person.clone())).with_programs(Arc::new(AllIn("/usr/bin", None)));
        for _ in 0..2 {
            let admission = admitted(&gate, &call(), &shell("docker ps")).await.unwrap();
            assert_eq!(*admission.grant.confinement(), Confinement::Unconfined);
        }
        let asked = person.1.lock().unwrap();
        let [question] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(question.beyond, Beyond::Everything);
        assert!(question.reason.contains("let any words follow outside the sandbox"), "{}", question.reason);
        let rule = question.rule.as_ref().unwrap();
        assert!(rule.toml.contains(r#"argv = ["/usr/bin/docker", "ps"]"#), "{}", rule.toml);
    }
    let gate = Gate::new(Policy { rules, ..Policy::default() }, None);
    let refused = admit(gate, shell("docker ps")).await.unwrap_err();
    assert!(refused.contains("asked about again"), "{refused}");
}

/// The rule of a person who lets `make` leave.
fn gate_with_obstacle(approval: ApprovalPolicy, person: Option<Arc<Patient>>) -> Gate {
    let text = "[[rule]]\nargv = [\"/usr/bin/make\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    let rules = Rules::load(&[RuleFile { name: "r", text, trust: Trust::User }]).unwrap();
    let policy = Policy { rules, cwd: "/w".into(), approval, ..Policy::default() };
    let obstacle = Some("`server` still runs and could change files that this program obeys");
    Gate::new(policy, person.map(|person| person as Arc<dyn Approver>))
        .with_programs(Arc::new(AllIn("/usr/bin", obstacle)))
}

#[tokio::test]
async fn while_a_sandboxed_command_runs_nothing_leaves_by_an_earlier_approval() {
    for approval in [ApprovalPolicy::Never, ApprovalPolicy::OnRequest] {
        let admission = admitted(&gate_with_obstacle(approval, None), &call(), &command()).await.unwrap();
        assert_eq!(*admission.grant.confinement(), Confinement::Sandboxed(SandboxRules::default()));
        assert!(
            admission.decision.contains("; in the sandbox, because `server` still runs"),
            "{}",
            admission.decision
        );
    }
    let person = Arc::new(Patient(Answer::Session, Mutex::default()));
    let gate = gate_with_obstacle(ApprovalPolicy::OnRequest, Some(person.clone()));
    let wish = |line: &str| Effects { escalation: Some(Escalation::default()), ..shell(line) };
    for line in ["make", "make", "git fetch", "git fetch"] {
        let admission = admitted(&gate, &call(), &wish(line)).await.unwrap();
        // Approved once, as it is: the answer does not last.
        assert_eq!(*admission.grant.confinement(), Confinement::Unconfined);
        assert_eq!(admission.grant.direct(), None);
        assert_eq!(admission.decision, "approved once");
    }
    let asked = person.1.lock().unwrap();
    assert_eq!(asked.len(), 4);
    for question in asked.iter() {
        assert!(question.reason.contains("`server` still runs"), "{}", question.reason);
        assert!(question.keys.is_empty() && question.rule.is_none());
    }
}

#[tokio::test]
async fn without_a_person_effects_beyond_the_machine_are_refused_where_they_are_possible() {
    let admission = |sandbox, network, unattended| async move {
        let walls = SandboxRules { network, ..SandboxRules::default() };
        let policy = Policy { unattended, sandbox, walls, cwd: "/w".into(), ..Policy::default() };
        admit(Gate::new(policy, None), shell("git push")).await
    };
    let (full, held) = (SandboxMode::DangerFullAccess, SandboxMode::WorkspaceWrite);
    let asking = Some(ApprovalPolicy::OnRequest);
    for (sandbox, network) in [(full, Network::None), (held, Network::Any)] {
        let refused = admission(sandbox, network, asking).await.unwrap_err();
        assert!(refused.contains("it pushes to a repository that others share"), "{refused}");
        for unattended in [None, Some(ApprovalPolicy::OnFailure)] {
            assert!(admission(sandbox, network, unattended).await.is_ok(), "{unattended:?}");
        }
    }
    assert!(admission(held, Network::None, asking).await.is_ok());
}

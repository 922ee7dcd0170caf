//! Tests of plan mode.

use windlass_contract::effects::Typed;

use super::{leaving::AllIn, *};

fn planning() -> Gate {
    let text = "[[rule]]\nargv = [\"/usr/bin/make\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    let rules = Rules::load(&[RuleFile { name: "r", text, trust: Trust::User }]).unwrap();
    let policy = Policy {
        rules,
        cwd: "/w".into(),
        approval: ApprovalPolicy::OnRequest,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    Gate::new(policy.planning(), Some(Arc::new(Patient(Answer::Once, Mutex::default()))))
        .with_programs(Arc::new(AllIn("/usr/bin", None)))
}

#[tokio::test]
async fn in_plan_mode_nothing_is_changed_and_nothing_is_asked() {
    let refused = "plan mode is on";
    let typed = Typed { to: "bash".to_owned(), text: "rm x\n".to_owned() };
    let wish = Effects { escalation: Some(Escalation::default()), ..shell("touch x") };
    for effects in [Effects::write("x"), Effects { typed: Some(typed), ..Effects::none() }, wish] {
        let reason = admit(planning(), effects.clone()).await.unwrap_err();
        assert!(reason.contains(refused), "{effects:?}: {reason}");
    }
}

#[tokio::test]
async fn in_plan_mode_a_command_reads_and_no_rule_lets_it_leave_the_sandbox() {
    let held = Confinement::Sandboxed(SandboxRules::default());
    assert_eq!(admit(planning(), shell("ls -l")).await, Ok(held.clone()));
    let admission = admitted(&planning(), &call(), &command()).await.unwrap();
    assert_eq!(*admission.grant.confinement(), held);
    assert!(
        admission.decision.ends_with("in the sandbox, because plan mode is on"),
        "{}",
        admission.decision
    );
}

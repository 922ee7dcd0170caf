//! The messages that a model gets before the first request of the user.

use std::path::Path;

use windlass_contract::{Item, item::Role, policy::SandboxMode, program_message::ENVIRONMENT_START};
use windlass_runtime::Policy;

/// Asks the model for a plan.
const PLAN_MODE: &str = "  \
  <plan_mode>Plan mode is on: files cannot be changed, and commands cannot change anything. Look at what is there, ask \
                         the user if something is unclear, and end your turn with a plan in Markdown: the steps, the \
                         files they change, and how the result is checked. Do not begin the work. The user approves \
                         the plan or asks for changes.</plan_mode>\n";

/// Returns the first items of a conversation.
pub(crate) fn opening_items(
    environment: &EnvironmentContext<'_>,
    developer: Option<&str>,
    user: &[String],
) -> Vec<Item> {
    let developer = developer.map(|text| Item::message(Role::Developer, text));
    let user = user.iter().map(|text| Item::message(Role::User, text));
    developer.into_iter().chain(user).chain([environment.item()]).collect()
}

/// The environment and the policy that the model works in.
pub(crate) struct EnvironmentContext<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) shell: &'a Path,
    /// An approver is present.
    pub(crate) attended: bool,
}

impl EnvironmentContext<'_> {
    /// Returns the message about the environment. It is sent again when a conversation resumes in
    /// another one.
    pub(crate) fn item(&self) -> Item {
        let Self { policy, shell, attended } = self;
        let shell = shell.file_name().map_or_else(|| shell.to_string_lossy(), |name| name.to_string_lossy());
        // Without this, a model would wait for an approval, or request one with every call.
        let alone = if *attended {
            ""
        } else {
            "  <approvals>nobody can be asked: what would need approval is refused</approvals>\n"
        };
        let (roots, plan) = (self.writable_roots(), if policy.plan_mode { PLAN_MODE } else { "" });
        let text = format!(
            "{ENVIRONMENT_START}\n  <cwd>{}</cwd>\n  <approval_policy>{}</approval_policy>\n{alone}  \
             <sandbox_mode>{}</sandbox_mode>\n{plan}{roots}  <shell>{shell}</shell>\n</environment_context>",
            policy.cwd.display(),
            policy.approval.name(),
            policy.sandbox.name(),
        );
        Item::message(Role::User, text)
    }

    /// Lists the writable directories besides the working directory.
    fn writable_roots(&self) -> String {
        let writable = &self.policy.walls.writable;
        if writable.is_empty() || self.policy.sandbox != SandboxMode::WorkspaceWrite {
            return String::new();
        }
        let roots = writable.iter().map(|root| format!("    <root>{}</root>\n", root.display()));
        format!("  <writable_roots>\n{}  </writable_roots>\n", roots.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Content, grant::SandboxRules, item::Body};

    use super::*;

    fn told(policy: &Policy, attended: bool) -> String {
        match (EnvironmentContext { policy, shell: Path::new("/bin/sh"), attended }).item().body {
            Body::Message { content, .. } => Content::join(&content),
            _ => panic!("a message"),
        }
    }

    #[test]
    fn a_model_that_nobody_watches_is_told_that_nobody_can_be_asked() {
        let told = |attended| told(&Policy::default(), attended).contains("nobody can be asked");
        assert_eq!((told(true), told(false)), (false, true));
    }

    #[test]
    fn a_model_is_asked_for_a_plan_in_plan_mode_alone() {
        let policy = Policy { sandbox: SandboxMode::DangerFullAccess, ..Policy::default() };
        assert!(!told(&policy, true).contains("plan"));
        let told = told(&policy.planning(), true);
        assert!(
            told.contains("\n  <plan_mode>Plan mode is on: ") && told.contains("<sandbox_mode>read-only<")
        );
    }

    #[test]
    fn a_model_is_told_where_else_it_may_write() {
        let walls = SandboxRules { writable: vec!["/a".into(), "/tmp/b".into()], ..SandboxRules::default() };
        let told = |sandbox| told(&Policy { sandbox, walls: walls.clone(), ..Policy::default() }, true);
        assert!(told(SandboxMode::WorkspaceWrite).contains(
            "\n  <writable_roots>\n    <root>/a</root>\n    <root>/tmp/b</root>\n  </writable_roots>\n"
        ));
        assert!(!told(SandboxMode::ReadOnly).contains("root"));
    }
}

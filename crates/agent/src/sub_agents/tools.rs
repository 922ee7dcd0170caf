//! The tools by which an agent starts others and talks to them.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_contract::{
    AnyTool, Cx, Effects, Input, Meta, Output, ParsedCall, Tool, ToolError, ToolName, ToolSpec, erase,
    meta::{Category, Example, ParameterAlias},
};
use windlass_schema::SchemaError;

use super::{AgentRole, SubAgents};

/// Bounds of the time that a call waits for agents, in milliseconds.
const MIN_WAIT_MS: u64 = 10_000;
const DEFAULT_WAIT_MS: u64 = 30_000;
const MAX_WAIT_MS: u64 = 300_000;

/// Returns the tools for the agents of one parent.
pub(super) fn all(agents: &Arc<SubAgents>) -> [Arc<dyn AnyTool>; 4] {
    let agents = || Arc::clone(agents);
    [
        Arc::new(WithRoles { roles: roles(&agents()), tool: erase(SpawnAgent(agents())) }),
        erase(SendInput(agents())),
        erase(Wait(agents())),
        erase(CloseAgent(agents())),
    ]
}

/// Start an agent that works on a task of its own while you go on. It does not see your
/// conversation, so say everything that it needs: the goal, the files, and what to report. It works
/// in the same directory, with at most your rights. Agents that change files should have different
/// ones. Get its result with `wait`, and close it with `close_agent` when you need it no more. Do
/// not start one for what you can do in a few calls.
#[derive(Debug, Deserialize, JsonSchema)]
struct SpawnAgentArgs {
    /// The task, complete in itself.
    message: String,
    /// The role of the agent.
    agent_type: Option<String>,
}

struct SpawnAgent(Arc<SubAgents>);

impl Tool for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    type Args = SpawnAgentArgs;

    // The calls of the agent have effects, and each of them passes the gate.
    fn effects(&self, _args: &SpawnAgentArgs) -> Effects {
        Effects::none()
    }

    async fn call(&self, args: &SpawnAgentArgs, cx: &Cx) -> Result<Output, ToolError> {
        let id = self.0.spawn(args.agent_type.as_deref(), &args.message, cx)?;
        Ok(json!({ "agent_id": id }).to_string().into())
    }

    fn meta(&self) -> Meta {
        let input = r#"{"message":"Find where the configuration is read, and list the files.","agent_type":"explorer"}"#;
        Meta {
            examples: vec![Example { request: "have another agent look for it", input }],
            returns: "the id of the agent".to_owned(),
            aliases: vec!["Task", "Agent"],
            parameter_aliases: [
                ParameterAlias::of("message", &["prompt", "task"]),
                ParameterAlias::of("agent_type", &["subagent_type", "role"]),
            ]
            .concat(),
            ..meta()
        }
    }
}

/// Send a message to an agent. One that works takes it up after its current calls; one that has
/// ended continues with it.
#[derive(Debug, Deserialize, JsonSchema)]
struct SendInputArgs {
    /// The id that `spawn_agent` returned, or the path of the agent.
    id: String,
    /// The message.
    message: String,
    /// Stops what the agent is doing first.
    interrupt: Option<bool>,
}

struct SendInput(Arc<SubAgents>);

impl Tool for SendInput {
    const NAME: &'static str = "send_input";
    type Args = SendInputArgs;

    fn effects(&self, _args: &SendInputArgs) -> Effects {
        Effects::none()
    }

    async fn call(&self, args: &SendInputArgs, cx: &Cx) -> Result<Output, ToolError> {
        let is_urgent = args.interrupt.unwrap_or(false);
        let id = self.0.send(&args.id, &args.message, is_urgent, cx).await?;
        Ok(json!({ "submission_id": id }).to_string().into())
    }

    fn meta(&self) -> Meta {
        Meta {
            returns: "the id of the message".to_owned(),
            aliases: vec!["send_message", "followup_task"],
            parameter_aliases: ParameterAlias::of("id", &["target", "agent_id"]),
            ..meta()
        }
    }
}

/// Wait until one of these agents has ended its turn, and get the states of all of them. The state
/// of one that is done holds its answer.
#[derive(Debug, Deserialize, JsonSchema)]
struct WaitArgs {
    /// The ids that `spawn_agent` returned.
    ids: Vec<String>,
    /// Maximum time in milliseconds, from 10000 to 300000. Default: 30000.
    timeout_ms: Option<i64>,
}

struct Wait(Arc<SubAgents>);

impl WaitArgs {
    fn limit_ms(&self) -> u64 {
        let asked = self.timeout_ms.and_then(|asked| u64::try_from(asked).ok());
        asked.unwrap_or(DEFAULT_WAIT_MS).clamp(MIN_WAIT_MS, MAX_WAIT_MS)
    }
}

impl Tool for Wait {
    const NAME: &'static str = "wait";
    type Args = WaitArgs;

    fn effects(&self, _args: &WaitArgs) -> Effects {
        Effects::none()
    }

    fn adjustments(&self, args: &WaitArgs) -> Vec<String> {
        let (asked, limit) = (args.timeout_ms, args.limit_ms());
        let is_changed = asked.is_some_and(|asked| asked > 0 && u64::try_from(asked) != Ok(limit));
        is_changed.then(|| format!("timeout_ms was set to {limit}")).into_iter().collect()
    }

    async fn call(&self, args: &WaitArgs, cx: &Cx) -> Result<Output, ToolError> {
        if args.ids.is_empty() {
            return Err(ToolError::bad_input("ids must be non-empty"));
        }
        if args.timeout_ms.is_some_and(|asked| asked <= 0) {
            return Err(ToolError::bad_input("timeout_ms must be greater than zero"));
        }
        let limit = Duration::from_millis(args.limit_ms());
        let waited = cx.cancel.run_until_cancelled(self.0.wait(&args.ids, limit)).await;
        let (status, timed_out) = waited.ok_or_else(ToolError::cancelled)?;
        Ok(json!({ "status": status, "timed_out": timed_out }).to_string().into())
    }

    fn meta(&self) -> Meta {
        Meta {
            returns: "the states of the agents".to_owned(),
            aliases: vec!["wait_agent"],
            parameter_aliases: ParameterAlias::of("ids", &["targets"]),
            parallel: true,
            ..meta()
        }
    }
}

/// Close an agent that is needed no more: its turn ends, and so does everything that it started.
#[derive(Debug, Deserialize, JsonSchema)]
struct CloseAgentArgs {
    /// The id that `spawn_agent` returned.
    id: String,
}

struct CloseAgent(Arc<SubAgents>);

impl Tool for CloseAgent {
    const NAME: &'static str = "close_agent";
    type Args = CloseAgentArgs;

    fn effects(&self, _args: &CloseAgentArgs) -> Effects {
        Effects::none()
    }

    async fn call(&self, args: &CloseAgentArgs, cx: &Cx) -> Result<Output, ToolError> {
        let status = self.0.close(&args.id, cx).await?;
        Ok(json!({ "status": status }).to_string().into())
    }

    fn meta(&self) -> Meta {
        Meta {
            returns: "the state of the agent before".to_owned(),
            parameter_aliases: ParameterAlias::of("id", &["target", "agent_id"]),
            ..meta()
        }
    }
}

/// A tool whose description lists the roles.
struct WithRoles {
    tool: Arc<dyn AnyTool>,
    roles: String,
}

impl AnyTool for WithRoles {
    fn name(&self) -> ToolName {
        self.tool.name()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let spec = self.tool.spec()?;
        Ok(ToolSpec { description: format!("{}\n\n{}", spec.description, self.roles), ..spec })
    }

    fn meta(&self) -> Meta {
        self.tool.meta()
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        Arc::clone(&self.tool).prepare(input)
    }
}

/// Describes the roles for the model.
fn roles(agents: &SubAgents) -> String {
    let line = |(name, role): (&String, &AgentRole)| format!("- `{name}`: {}", role.description);
    let lines: Vec<_> = agents.settings.roles.iter().map(line).collect();
    format!("Values of `agent_type`:\n{}", lines.join("\n"))
}

fn meta() -> Meta {
    Meta { category: Category::Planning, parallel: false, ..Meta::default() }
}

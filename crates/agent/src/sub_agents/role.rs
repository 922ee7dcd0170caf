//! The rights and the place of an agent that another starts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use windlass_contract::{
    BoxFuture, ToolError,
    elicitation::{Elicitation, ElicitationAnswer, Elicitor},
    journal::{ParentKind, ParentSession},
};

use super::{AgentRole, SubAgents};
use crate::AgentBuilder;

/// Asks the person for an agent, with its path.
struct AgentElicitor {
    path: String,
    front: Arc<dyn Elicitor>,
}

impl Elicitor for AgentElicitor {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let message = format!("the agent `{}` asks: {}", self.path, question.message);
            self.front.elicit(&Elicitation { message, ..question.clone() }).await
        })
    }
}

/// The place of an agent in the tree of agents. All of a tree share one count.
#[derive(Debug, Clone)]
pub(crate) struct AgentLineage {
    /// Its path, such as `root/worker-1`.
    pub(crate) path: String,
    /// Number of agents above it.
    pub(super) depth: usize,
    existing: Arc<AtomicUsize>,
}

impl Default for AgentLineage {
    fn default() -> Self {
        Self { path: "root".to_owned(), depth: 0, existing: Arc::default() }
    }
}

impl AgentLineage {
    fn child(&self, path: &str) -> Self {
        Self { path: path.to_owned(), depth: self.depth + 1, existing: Arc::clone(&self.existing) }
    }

    /// Returns the path of an agent that another has started.
    pub(crate) fn path_of_child(&self) -> Option<&str> {
        (self.depth > 0).then_some(self.path.as_str())
    }

    /// Takes a place for an agent, if one is free.
    pub(super) fn take_place(&self, max_agents: usize) -> Option<AgentPlace> {
        let more = |existing: usize| (existing < max_agents).then_some(existing + 1);
        let taken = self.existing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.ok().map(|_| AgentPlace(Arc::clone(&self.existing)))
    }
}

/// The place of an agent that exists. Dropping it makes room for another.
#[derive(Debug)]
pub(super) struct AgentPlace(Arc<AtomicUsize>);

impl Drop for AgentPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SubAgents {
    /// Returns the builder of an agent with a role.
    pub(super) fn builder(&self, role: &str, path: &str) -> Result<AgentBuilder, ToolError> {
        let Some(found) = self.settings.roles.get(role) else {
            let known: Vec<_> = self.settings.roles.keys().map(String::as_str).collect();
            let message = format!("there is no agent type `{role}`; there are {}", known.join(", "));
            return Err(ToolError::bad_input(message));
        };
        let mut builder = self.template.child_template().with_role(found).map_err(|reason| {
            ToolError::failed(format!("collab spawn failed: the model of the role `{role}`: {reason}"))
        })?;
        let parent = self.parent.get().map(|id| ParentSession {
            id: id.clone(),
            kind: ParentKind::Agent,
            before_message: None,
            agent: Some(path.to_owned()),
        });
        let elicitor = builder
            .elicitor
            .clone()
            .map(|front| Arc::new(AgentElicitor { path: path.to_owned(), front }) as Arc<dyn Elicitor>);
        builder.budget = builder.budget.for_spender(path);
        builder.lineage = self.lineage.child(path);
        (builder.parent, builder.elicitor) = (parent, elicitor);
        Ok(builder)
    }
}

impl AgentBuilder {
    /// Narrows the agent to a role.
    fn with_role(mut self, role: &AgentRole) -> Result<Self, String> {
        if let Some(model) = &role.model {
            self.model = Some(model.clone()?);
        }
        self.policy = self.policy.narrowed(role.sandbox);
        self.limits = role.limits_within(self.limits);
        self.only_tools.extend(role.tools.clone());
        if let Some(instructions) = &role.instructions {
            let own = self.context.developer_instructions.take();
            let all = own.into_iter().chain([instructions.clone()]).collect::<Vec<_>>();
            self.context.developer_instructions = Some(all.join("\n\n"));
        }
        Ok(self)
    }
}

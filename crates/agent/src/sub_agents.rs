//! Agents that an agent starts: their lives, from the start to the end of its turn.
//!
//! A child works while a turn of its parent runs. When that turn ends, the child's turn is ended,
//! too, and a later message continues it. Its calls pass the same gate as those of the parent, with
//! at most its rights.

mod child;
mod recorded;
mod role;
mod settings;
mod tools;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use windlass_contract::{
    Content, Cx, Event, ToolError, event::EventEmitter, id::ThreadId, model::Usage, sub_agent::AgentStatus,
};
use windlass_record::Which;
use windlass_runtime::RegistryBuilder;

pub use settings::{AgentRole, DEFAULT_ROLE, SubAgentSettings, built_in_roles};

pub(crate) use recorded::report_recorded;
pub(crate) use role::AgentLineage;

use crate::AgentBuilder;
use child::ChildAgent;
use recorded::RecordedAgent;

/// The agents that one agent has started.
pub(crate) struct SubAgents {
    /// Builds agents with the parts of the parent.
    template: AgentBuilder,
    settings: SubAgentSettings,
    lineage: AgentLineage,
    /// The session of the parent was resumed, so that there may be agents of earlier runs.
    is_resumed: bool,
    /// The thread of the parent, once it is known.
    parent: OnceLock<ThreadId>,
    children: Mutex<BTreeMap<ThreadId, Arc<ChildAgent>>>,
    /// Number of agents that were started, for their names.
    started: AtomicUsize,
    /// Usage of agents that was not charged to the parent yet.
    uncharged: Arc<Mutex<Usage>>,
}

impl fmt::Debug for SubAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubAgents").field("path", &self.lineage.path).finish_non_exhaustive()
    }
}

impl SubAgents {
    /// Creates the agents of a parent that is being built. Returns `None` if it may start none.
    pub(crate) fn new(parent: &AgentBuilder) -> Option<Arc<Self>> {
        let settings = parent.sub_agents.clone()?;
        let lineage = parent.lineage.clone();
        (lineage.depth < settings.max_depth).then(|| {
            Arc::new(Self {
                template: parent.child_template(),
                settings,
                lineage,
                is_resumed: parent.resume.is_some(),
                parent: OnceLock::new(),
                children: Mutex::default(),
                started: AtomicUsize::new(0),
                uncharged: Arc::default(),
            })
        })
    }

    /// Adds the tools that start agents and talk to them.
    pub(crate) fn register(self: &Arc<Self>, registry: RegistryBuilder) -> RegistryBuilder {
        tools::all(self).into_iter().fold(registry, RegistryBuilder::tool)
    }

    /// Sets the thread of the parent. Agents of its earlier runs keep their names.
    pub(crate) fn set_parent(&self, thread: ThreadId) {
        // Set once: the parent is built once.
        let _set = self.parent.set(thread);
        self.started.store(self.recorded().len(), Ordering::Relaxed);
    }

    /// Returns the usage of agents since the last time.
    pub(crate) fn take_usage(&self) -> Usage {
        std::mem::take(&mut *self.uncharged.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the turns of all agents with that of the parent. Returns when they have ended.
    pub(crate) async fn end_turn(&self, events: &dyn EventEmitter) {
        let children: Vec<_> = self.children().values().cloned().collect();
        let running: Vec<_> = children.iter().filter(|child| child.interrupt()).collect();
        for child in &children {
            child.ended().await;
        }
        if !running.is_empty() {
            let names: Vec<_> = running.iter().map(|child| format!("`{}`", child.path)).collect();
            let message =
                format!("agents that still worked when the turn ended were stopped: {}", names.join(", "));
            events.emit(Event::Warning { message });
        }
    }

    /// Starts an agent on a task.
    fn spawn(&self, role: Option<&str>, message: &str, cx: &Cx) -> Result<ThreadId, ToolError> {
        let content = task(message)?;
        let role = role.unwrap_or(DEFAULT_ROLE);
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let path = format!("{}/{role}-{number}", self.lineage.path);
        let builder = self.builder(role, &path)?;
        let child = self.open(builder, path, cx)?;
        let thread = child.thread.clone();
        child.begin(content, cx, &self.uncharged);
        Ok(thread)
    }

    /// Sends a message to an agent, which takes it up at once or goes on with it.
    async fn send(&self, id: &str, message: &str, is_urgent: bool, cx: &Cx) -> Result<String, ToolError> {
        let content = task(message)?;
        let child = self.find(id, cx)?;
        if is_urgent && child.interrupt() {
            child.ended().await;
        }
        child.send(content, cx, &self.uncharged);
        Ok(child.next_submission())
    }

    /// Waits until one of these agents has ended its turn. Returns their states, and true if none
    /// has in this time.
    async fn wait(&self, ids: &[String], limit: Duration) -> (BTreeMap<String, AgentStatus>, bool) {
        let children: Vec<_> = ids.iter().map(|id| (id, self.child(id))).collect();
        let any_ended = async {
            let (done, mut any) = tokio::sync::mpsc::channel::<()>(1);
            let mut waiting = tokio::task::JoinSet::new();
            for (_, child) in &children {
                let (child, done) = (child.clone(), done.clone());
                waiting.spawn(async move {
                    if let Some(child) = child {
                        child.ended().await;
                    }
                    // The first counts.
                    let _first = done.try_send(());
                });
            }
            any.recv().await
        };
        let timed_out = tokio::time::timeout(limit, any_ended).await.is_err();
        let status = |id: &String, child: &Option<Arc<ChildAgent>>| match child {
            Some(child) => child.status(),
            None => self.recorded_status(id),
        };
        (children.iter().map(|(id, child)| ((*id).clone(), status(id, child))).collect(), timed_out)
    }

    /// Closes an agent: its turn and everything that it started end. Returns its state before.
    async fn close(&self, id: &str, cx: &Cx) -> Result<AgentStatus, ToolError> {
        let Some(child) = self.child(id) else {
            return match self.recorded_status(id) {
                AgentStatus::NotFound => Err(unknown(id)),
                recorded => Ok(recorded),
            };
        };
        self.children().remove(&child.thread);
        let before = child.status();
        child.interrupt();
        child.ended().await;
        child.close(&*cx.events).await;
        Ok(before)
    }

    /// Returns an agent. One of an earlier run is resumed, without a turn.
    fn find(&self, id: &str, cx: &Cx) -> Result<Arc<ChildAgent>, ToolError> {
        if let Some(child) = self.child(id) {
            return Ok(child);
        }
        let RecordedAgent { thread, path, .. } = self.recorded_agent(id).ok_or_else(|| unknown(id))?;
        let role = path
            .rsplit('/')
            .next()
            .and_then(|name| name.rsplit_once('-'))
            .map_or(DEFAULT_ROLE, |(role, _)| role);
        let builder = self.builder(role, &path)?.resume(Which::Id(thread));
        self.open(builder, path, cx)
    }

    /// Builds an agent, if there may be another.
    fn open(&self, builder: AgentBuilder, path: String, cx: &Cx) -> Result<Arc<ChildAgent>, ToolError> {
        let place = self.lineage.take_place(self.settings.max_agents).ok_or_else(|| {
            ToolError::failed(format!(
                "collab spawn failed: {} agents exist, and there may be no more; close one with close_agent, or do \
                 the task yourself",
                self.settings.max_agents
            ))
        })?;
        let child = ChildAgent::open(builder, path, place, cx);
        let child =
            Arc::new(child.map_err(|error| ToolError::failed(format!("collab spawn failed: {error}")))?);
        self.children().insert(child.thread.clone(), Arc::clone(&child));
        Ok(child)
    }

    /// Returns an agent of this run, by its id or its path.
    fn child(&self, name: &str) -> Option<Arc<ChildAgent>> {
        let children = self.children();
        let is_named = |child: &&Arc<ChildAgent>| self.is_path(&child.path, name);
        children.get(name).or_else(|| children.values().find(is_named)).cloned()
    }

    /// Returns true if a name is this path, from the root or from the parent.
    fn is_path(&self, path: &str, name: &str) -> bool {
        let below = path.strip_prefix(&self.lineage.path).and_then(|rest| rest.strip_prefix('/'));
        path == name || below == Some(name)
    }

    fn children(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Arc<ChildAgent>>> {
        // A panic between two operations on the map leaves it whole.
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SubAgents {
    fn drop(&mut self) {
        self.children().values().for_each(|child| child.abort());
    }
}

/// Returns a message as the content of a turn.
fn task(message: &str) -> Result<Vec<Content>, ToolError> {
    if message.trim().is_empty() {
        return Err(ToolError::bad_input("Empty message can't be sent to an agent"));
    }
    Ok(vec![Content::Text(message.to_owned())])
}

fn unknown(id: &str) -> ToolError {
    ToolError::bad_input(format!("agent with id {id} not found"))
}

#[cfg(test)]
mod tests;

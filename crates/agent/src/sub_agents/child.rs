//! One agent that another has started.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle},
};
use windlass_contract::{
    Clean, Content, Cx, Event,
    event::{EventEmitter, EventSink},
    id::ThreadId,
    model::Usage,
    sub_agent::AgentStatus,
    wording::shortened,
};
use windlass_runtime::{Reason, Stop};

use super::role::AgentPlace;
use crate::{Agent, AgentBuilder, AgentError, BuildError, SteeringInput, TurnReport};

/// Maximum number of characters of the line about a call.
const MAX_ACTIVITY_CHARS: usize = 120;

/// An agent that another has started.
pub(super) struct ChildAgent {
    pub(super) thread: ThreadId,
    pub(super) path: String,
    /// Absent once it is closed. Held during a turn.
    agent: tokio::sync::Mutex<Option<Agent>>,
    steering: SteeringInput,
    turn: Mutex<ChildTurn>,
    status: watch::Sender<AgentStatus>,
    submissions: AtomicUsize,
    place: Mutex<Option<AgentPlace>>,
}

/// The turn that runs, if any.
#[derive(Default)]
struct ChildTurn {
    stop: Option<Stop>,
    task: Option<AbortHandle>,
}

impl ChildAgent {
    /// Starts or resumes its session.
    pub(super) fn open(
        builder: AgentBuilder,
        path: String,
        place: AgentPlace,
        cx: &Cx,
    ) -> Result<Self, BuildError> {
        let steering = SteeringInput::default();
        let events = Arc::new(ChildEvents {
            path: path.clone(),
            front: Arc::clone(&cx.events),
            thread: Mutex::default(),
        });
        let agent = builder.steering(steering.clone()).events(events.clone()).build()?;
        let thread = agent.thread().clone();
        events.set_thread(&thread);
        Ok(Self {
            thread,
            path,
            agent: tokio::sync::Mutex::new(Some(agent)),
            steering,
            turn: Mutex::default(),
            status: watch::Sender::new(AgentStatus::PendingInit),
            submissions: AtomicUsize::new(0),
            place: Mutex::new(Some(place)),
        })
    }

    pub(super) fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    /// Returns an id for a message that was sent.
    pub(super) fn next_submission(&self) -> String {
        format!("{}-{}", self.thread, self.submissions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Starts a turn.
    pub(super) fn begin(self: &Arc<Self>, content: Vec<Content>, cx: &Cx, usage: &Arc<Mutex<Usage>>) {
        self.begin_locked(&mut self.turn(), content, cx, usage);
    }

    /// Adds a message to the running turn, or starts one.
    pub(super) fn send(self: &Arc<Self>, content: Vec<Content>, cx: &Cx, usage: &Arc<Mutex<Usage>>) {
        // Under the lock, so that a turn does not end between the two steps.
        let mut turn = self.turn();
        match turn.stop {
            Some(_) => self.steering.push(content),
            None => self.begin_locked(&mut turn, content, cx, usage),
        }
    }

    fn begin_locked(
        self: &Arc<Self>,
        turn: &mut ChildTurn,
        content: Vec<Content>,
        cx: &Cx,
        usage: &Arc<Mutex<Usage>>,
    ) {
        let (child, cx, usage) = (Arc::clone(self), cx.clone(), Arc::clone(usage));
        let stop = Stop::default();
        turn.stop = Some(stop.clone());
        self.announce(AgentStatus::Running, &*cx.events);
        let task = tokio::spawn(async move {
            // If the turn panics, the agent must not count as running for ever.
            let mut guard = TurnGuard { child: &child, events: &*cx.events, has_ended: false };
            child.run(content, &cx, &stop, &usage).await;
            guard.has_ended = true;
        });
        turn.task = Some(JoinHandle::abort_handle(&task));
    }

    /// Runs turns until no message waits.
    async fn run(&self, mut content: Vec<Content>, cx: &Cx, stop: &Stop, usage: &Mutex<Usage>) {
        let mut agent = self.agent.lock().await;
        let Some(agent) = agent.as_mut() else {
            return self.end(&mut self.turn(), AgentStatus::Shutdown, &*cx.events);
        };
        loop {
            let report = {
                let mut turn = std::pin::pin!(agent.run(std::mem::take(&mut content), stop));
                tokio::select! {
                    report = &mut turn => report,
                    // The turn of the parent was stopped.
                    () = cx.cancel.cancelled() => {
                        stop.stop(Reason::Interrupted);
                        turn.await
                    }
                }
            };
            *usage.lock().unwrap_or_else(PoisonError::into_inner) += report.usage;
            let mut turn = self.turn();
            match self.steering.take_all() {
                waiting if waiting.is_empty() || stop.reason().is_some() => {
                    return self.end(&mut turn, status_of(report), &*cx.events);
                }
                waiting => content = waiting.into_iter().flatten().collect(),
            }
        }
    }

    /// Ends a turn, under the lock: no message may come between its last look and its end.
    fn end(&self, turn: &mut ChildTurn, status: AgentStatus, events: &dyn EventEmitter) {
        *turn = ChildTurn::default();
        self.announce(status, events);
    }

    /// Ends the running turn. Returns false if there is none.
    pub(super) fn interrupt(&self) -> bool {
        let turn = self.turn();
        if let Some(stop) = &turn.stop {
            stop.stop(Reason::Interrupted);
        }
        turn.stop.is_some()
    }

    /// Waits until no turn runs.
    pub(super) async fn ended(&self) {
        let mut status = self.status.subscribe();
        // It fails only if the sender is gone, and this is it.
        let _ended = status.wait_for(|status| *status != AgentStatus::Running).await;
    }

    /// Ends everything that it started, and gives up its place.
    pub(super) async fn close(&self, events: &dyn EventEmitter) {
        drop(self.agent.lock().await.take());
        self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.announce(AgentStatus::Shutdown, events);
    }

    /// Drops the running turn with its calls.
    pub(super) fn abort(&self) {
        if let Some(task) = &self.turn().task {
            task.abort();
        }
    }

    fn announce(&self, status: AgentStatus, events: &dyn EventEmitter) {
        let (agent, thread) = (self.path.clone(), self.thread.clone());
        events.emit(Event::AgentUpdated { agent, thread, status: status.clone(), activity: None });
        self.status.send_replace(status);
    }

    fn turn(&self) -> MutexGuard<'_, ChildTurn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the turn of a child that was dropped.
struct TurnGuard<'a> {
    child: &'a ChildAgent,
    events: &'a dyn EventEmitter,
    has_ended: bool,
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let status = AgentStatus::Errored("the agent ended by an internal error".to_owned());
            self.child.end(&mut self.child.turn(), status, self.events);
        }
    }
}

fn status_of(report: TurnReport) -> AgentStatus {
    match report.end {
        Ok(answer) => AgentStatus::Completed(Some(answer).filter(|answer| !answer.is_empty())),
        Err(AgentError::Stopped(Reason::Interrupted | Reason::Terminated)) => AgentStatus::Interrupted,
        Err(error) => AgentStatus::Errored(error.to_string()),
    }
}

/// Passes what matters of a child's events on to the front end of its parent.
struct ChildEvents {
    path: String,
    front: Arc<dyn EventEmitter>,
    thread: Mutex<Option<ThreadId>>,
}

impl ChildEvents {
    fn set_thread(&self, thread: &ThreadId) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread.clone());
    }
}

impl EventSink for ChildEvents {
    fn emit(&self, event: &Clean<Event>) {
        match &**event {
            Event::CallStarted { call, .. } => {
                let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let Some(thread) = thread else { return };
                let input = shortened(call.input.as_str(), MAX_ACTIVITY_CHARS);
                let activity = Some(format!("{} {input}", call.name));
                let agent = self.path.clone();
                self.front.emit(Event::AgentUpdated {
                    agent,
                    thread,
                    status: AgentStatus::Running,
                    activity,
                });
            }
            // Of an agent below this one.
            Event::AgentUpdated { .. } => self.front.emit((**event).clone()),
            Event::Warning { message } => {
                self.front.emit(Event::Warning { message: format!("{}: {message}", self.path) });
            }
            _ => {}
        }
    }
}

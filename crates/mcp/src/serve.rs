//! Our tools for the clients of others: the server side of the protocol, on stdio and on HTTP.
//!
//! The tools themselves are behind [`ServedTools`]. This module knows the protocol only: versions,
//! questions, progress, cancellation and limits.

mod answer;
mod bearer;
mod call_in_progress;
mod choice_form;
mod client_roots;
mod handler;
pub mod http;
mod http_body;
mod list_changes;
mod parked_calls;
mod question_channel;
pub mod stdio;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_contract::{BoxFuture, elicitation::Elicitor};

pub use self::{bearer::BearerToken, handler::ToolServer};
use crate::{
    definition::RemoteToolDefinition,
    pool::RemoteProgress,
    result::{RemoteArguments, RemoteResult},
};

/// Tools on offer to clients. Implemented by the program (`mcp serve`, `mcp gateway`), called by
/// the protocol. A call must not wait longer for a question than its elicitor does.
pub trait ServedTools: Send + Sync {
    /// Returns the name of the server and the instructions for its use.
    fn identity(&self) -> ServerIdentity;

    /// Returns the tools, in a stable order.
    fn tools(&self) -> Vec<RemoteToolDefinition>;

    /// Returns a tool that can be called. Tools that are not listed can be found in other ways.
    fn tool(&self, name: &str) -> Option<RemoteToolDefinition> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    /// Runs a call. Dropping the future must be safe; it is dropped if the call ignores its
    /// cancellation.
    fn call(&self, call: ServedCall) -> BoxFuture<'_, RemoteResult>;

    /// Returns a receiver whose value changes when the list of tools changes. `None` if it never
    /// does.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// The server, as it introduces itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// Instructions for the model of the client.
    pub instructions: Option<String>,
}

/// A call by a client.
pub struct ServedCall {
    /// Name of the tool; [`ServedTools::tool`] knows it.
    pub tool: String,
    /// Arguments, not checked yet.
    pub arguments: RemoteArguments,
    /// The client.
    pub client: ServedClient,
    /// Receives progress; without effect if the client did not ask for it.
    pub progress: ProgressReporter,
    /// Asks the person in front of the client. `None` if the client cannot ask.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Cancelled by the client, or because the client is gone.
    pub cancel: CancellationToken,
}

impl fmt::Debug for ServedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedCall").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// The client of a call. Everything it says about itself is untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedClient {
    /// Name that the client gives itself, without control characters and at most 64 bytes.
    pub name: Option<String>,
    /// Directories that the client works in, if it says so. They may narrow what a call reaches,
    /// never widen it.
    pub roots: Option<Vec<PathBuf>>,
}

/// Reports the progress of a call. Never blocks: reports that the client is too slow for are lost.
#[derive(Debug, Clone)]
pub struct ProgressReporter {
    sender: tokio::sync::mpsc::Sender<RemoteProgress>,
}

impl ProgressReporter {
    /// Reports progress.
    pub fn report(&self, progress: RemoteProgress) {
        // A full channel or a client that is gone: both mean that it goes unread.
        let _unread = self.sender.try_send(progress);
    }
}

/// Limits on clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// Calls that run at the same time. Further calls wait.
    pub max_running_calls: usize,
    /// Calls that wait. Further calls are refused.
    pub max_waiting_calls: usize,
    /// Bytes of one message.
    pub max_message_bytes: usize,
    /// Time in which a question must be answered.
    pub question_timeout: Duration,
    /// Time after which a cancelled call is dropped if it has not ended.
    pub cancel_grace: Duration,
    /// Sessions of older protocol versions over HTTP.
    pub max_sessions: usize,
    /// Time without messages after which such a session ends.
    pub session_idle: Duration,
    /// Connections over HTTP.
    pub max_connections: usize,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            max_running_calls: 32,
            max_waiting_calls: 224,
            max_message_bytes: 32 * 1024 * 1024,
            question_timeout: Duration::from_mins(10),
            cancel_grace: Duration::from_secs(2),
            max_sessions: 64,
            session_idle: Duration::from_mins(30),
            max_connections: 256,
        }
    }
}

#[cfg(test)]
mod tests;

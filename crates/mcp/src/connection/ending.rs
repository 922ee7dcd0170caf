//! The end of a connection: noted once, seen by every call that still waits.

use std::sync::{Arc, OnceLock};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_contract::{host::Exit, remote::ServerEnd};

use crate::{pool::RemoteError, untrusted_text::visible_line};

/// Maximum size of the standard error in a message to the model.
const MAX_QUOTED_STDERR: usize = 1024;

/// The cause of the end of a connection. Only the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndCause {
    /// The server closed its output, or has ended.
    Closed,
    /// One message exceeded the size limit.
    MessageTooLarge,
    /// The server sent too many requests without reading the answers.
    TooManyRequests,
    /// The server did not read a cancellation, and was ended.
    Unresponsive,
    /// It demands a login.
    LoginNeeded,
    /// We stopped it: it was idle, or the pool is shut down.
    Stopped,
}

/// Everything known about the end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionReport {
    /// The cause.
    pub(crate) cause: EndCause,
    /// The reason in words.
    pub(crate) reason: String,
    /// The last lines of its standard error.
    pub(crate) stderr: String,
    /// The accesses that its sandbox blocked.
    pub(crate) denials: Vec<String>,
}

impl ConnectionReport {
    /// Returns the report of a connection without a process.
    pub(crate) fn without_process(cause: EndCause) -> Self {
        let reason = end_reason(cause, None);
        Self { cause, reason, stderr: String::new(), denials: Vec::new() }
    }

    /// Returns the error of a call that was running.
    pub(crate) fn error(&self, server: &str) -> RemoteError {
        let server = server.to_owned();
        let reason = self.explained();
        match self.cause {
            EndCause::MessageTooLarge | EndCause::TooManyRequests => {
                RemoteError::BadAnswer { server, reason }
            }
            EndCause::LoginNeeded => RemoteError::NeedsLogin { server },
            EndCause::Closed | EndCause::Unresponsive | EndCause::Stopped => {
                RemoteError::Died { server, reason }
            }
        }
    }

    /// Returns true if the report adds something to a reason.
    pub(crate) fn says_more_than(&self, reason: &str) -> bool {
        self.cause == EndCause::Closed && !reason.contains(&self.reason)
    }

    /// Returns the reason with the denials and the end of the standard error.
    pub(crate) fn explained(&self) -> String {
        let mut text = self.reason.clone();
        for denial in &self.denials {
            text.push_str("; ");
            text.push_str(denial);
        }
        let start = self.stderr.len().saturating_sub(MAX_QUOTED_STDERR);
        let tail = self.stderr.get(self.stderr.ceil_char_boundary(start)..).unwrap_or_default();
        if !tail.trim().is_empty() {
            text.push_str("; the end of its standard error: ");
            text.push_str(&visible_line(tail, MAX_QUOTED_STDERR));
        }
        text
    }
}

/// The end of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionEnd {
    cause: OnceLock<EndCause>,
    noted: CancellationToken,
    report: watch::Sender<Option<Arc<ConnectionReport>>>,
}

impl ConnectionEnd {
    pub(crate) fn new() -> Arc<Self> {
        let (report, _) = watch::channel(None);
        Arc::new(Self { cause: OnceLock::new(), noted: CancellationToken::new(), report })
    }

    /// Notes that the connection ends. The first cause counts.
    pub(crate) fn note(&self, cause: EndCause) {
        // An earlier cause is the real one.
        let _ = self.cause.set(cause);
        self.noted.cancel();
    }

    /// Returns true once the end is noted. No new call is begun then.
    pub(crate) fn is_noted(&self) -> bool {
        self.noted.is_cancelled()
    }

    /// Waits until the end is noted.
    pub(crate) async fn noted(&self) -> EndCause {
        self.noted.cancelled().await;
        self.cause.get().copied().unwrap_or(EndCause::Closed)
    }

    /// Publishes the report to every call that waits.
    pub(crate) fn publish(&self, report: Arc<ConnectionReport>) {
        self.report.send_replace(Some(report));
    }

    /// Publishes a report unless there is one.
    pub(crate) fn publish_first(&self, report: impl FnOnce() -> ConnectionReport) {
        self.report.send_if_modified(|published| {
            let is_absent = published.is_none();
            if is_absent {
                *published = Some(Arc::new(report()));
            }
            is_absent
        });
    }

    /// Waits for the report.
    pub(crate) async fn report(&self) -> Arc<ConnectionReport> {
        let mut receiver = self.report.subscribe();
        // The sender lives as long as `self`, so that the wait ends with a report.
        match receiver.wait_for(Option::is_some).await.map(|report| report.clone()) {
            Ok(Some(report)) => report,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

/// Returns the reason for an end in words.
pub(super) fn end_reason(cause: EndCause, end: Option<&ServerEnd>) -> String {
    match cause {
        EndCause::Closed => match end.and_then(|end| end.exit.as_ref()) {
            Some(Exit::Code(code)) => format!("it exited with code {code}"),
            Some(Exit::Signal(signal)) => format!("it was killed by signal {signal}"),
            Some(Exit::TimedOut | Exit::Cancelled) | None => "it closed the connection".to_owned(),
        },
        EndCause::MessageTooLarge => format!(
            "a message has more than {} MiB or too many values; the server was ended",
            super::message_cost::MAX_MESSAGE / (1024 * 1024)
        ),
        EndCause::TooManyRequests => "it sent too many requests at once; the server was ended".to_owned(),
        EndCause::Unresponsive => "it did not react to a cancellation, and was ended".to_owned(),
        EndCause::LoginNeeded => "it demands a login".to_owned(),
        EndCause::Stopped => "it was stopped".to_owned(),
    }
}

//! The sessions that run, as a person sees them.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::SessionTable;

/// Maximum size of the end of an output that is kept, to show its last line.
const MAX_TAIL_BYTES: usize = 1024;

/// The commands that run across calls. Its clones share them; they end with the last clone.
#[derive(Clone, Default)]
pub struct CommandSessions(pub(super) Arc<SessionTable>);

impl fmt::Debug for CommandSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CommandSessions").field(&self.list().len()).finish()
    }
}

/// A command that runs. Its texts are as the model and the program wrote them, with their secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCommand {
    /// The id of its session.
    pub id: u32,
    /// The command line as the model wrote it.
    pub command_line: String,
    /// The time since its start.
    pub elapsed: Duration,
    /// The last line that it printed.
    pub last_line: String,
}

impl CommandSessions {
    /// Returns the commands that run, oldest first.
    pub fn list(&self) -> Vec<RunningCommand> {
        let entries = self.0.entries();
        let running = entries.iter().filter(|(_, each)| each.session.ended().is_none());
        let mut list: Vec<_> = running
            .map(|(id, each)| RunningCommand {
                id: *id,
                command_line: each.command_line.clone(),
                elapsed: each.started.elapsed(),
                last_line: each.tail.last_line(),
            })
            .collect();
        list.sort_by_key(|command| command.id);
        list
    }

    /// Ends a command and everything it started. The model learns it when it looks again. Returns
    /// false if there is no such command.
    pub async fn end(&self, id: u32) -> bool {
        let Some(found) = self.0.find(id) else { return false };
        found.session.end().await;
        true
    }

    pub(crate) fn table(&self) -> &Arc<SessionTable> {
        &self.0
    }
}

/// The end of an output.
#[derive(Clone, Default)]
pub(super) struct OutputTail(Arc<Mutex<VecDeque<u8>>>);

impl OutputTail {
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = bytes.get(bytes.len().saturating_sub(MAX_TAIL_BYTES)..).unwrap_or_default();
        let over = (tail.len() + kept.len()).saturating_sub(MAX_TAIL_BYTES);
        tail.drain(..over);
        tail.extend(kept);
    }

    fn last_line(&self) -> String {
        let tail: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&tail);
        let last = text.split(['\n', '\r']).rev().find(|line| !line.trim().is_empty());
        last.unwrap_or_default().trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_is_not_empty_is_kept_of_any_output() {
        let tail = OutputTail::default();
        assert_eq!(tail.last_line(), "");
        (0..10_000).for_each(|number| tail.push(format!("line {number}\r\n").as_bytes()));
        assert_eq!(tail.last_line(), "line 9999");
        tail.push(b"10 %\r20 %");
        assert_eq!(tail.last_line(), "20 %");
        tail.push("x".repeat(5000).as_bytes());
        assert_eq!(tail.last_line().len(), MAX_TAIL_BYTES);
    }
}

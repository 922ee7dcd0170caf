//! A machine that answers from a script, and a desk to call tools from.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    AnyTool, BoxFuture, Command, Cx, Event, Exit, Finished, Held, Host, HostError, Input, Output, Rung,
    ToolError, fakes::Watcher,
};

/// Whoever calls tools: knows what was asked of the machine and which events were seen.
pub(crate) struct Desk {
    pub(crate) cx: Cx,
    machine: Arc<Script>,
    watcher: Arc<Watcher>,
}

impl Desk {
    /// With a machine that prints these pieces and ends like this.
    pub(crate) fn new(pieces: &[&[u8]], answer: Result<Finished, HostError>) -> Self {
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        let machine = Arc::new(Script { pieces, answer: Mutex::new(Some(answer)), asked: Mutex::default() });
        let watcher = Arc::new(Watcher::default());
        let cancel = CancellationToken::new();
        let cx = Cx { id: "call-1".into(), host: machine.clone(), cancel, events: watcher.clone() };
        Self { cx, machine, watcher }
    }

    /// For tools that run nothing.
    pub(crate) fn idle() -> Self {
        Self::new(&[], Err(HostError::EmptyCommand))
    }

    pub(crate) async fn call(&self, tool: Arc<dyn AnyTool>, input: &str) -> Result<Output, ToolError> {
        tool.prepare(&Input::Json(input.to_owned()))?.run(&self.cx).await
    }

    pub(crate) fn asked(&self) -> Vec<Command> {
        self.machine.asked.lock().unwrap().clone()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.watcher.events()
    }
}

/// An end with this output, after 1.5 seconds.
pub(crate) fn finished(exit: Exit, output: &[u8]) -> Finished {
    Finished {
        exit,
        output: output.to_vec(),
        gap: None,
        whole: None,
        duration: std::time::Duration::from_millis(1500),
        killed: Vec::new(),
        denials: Vec::new(),
    }
}

struct Script {
    pieces: Vec<Vec<u8>>,
    answer: Mutex<Option<Result<Finished, HostError>>>,
    asked: Mutex<Vec<Command>>,
}

impl Host for Script {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        _cancel: &'a CancellationToken,
        output: &'a (dyn Fn(&[u8]) + Send + Sync),
    ) -> BoxFuture<'a, Result<Finished, HostError>> {
        self.asked.lock().unwrap().push(command.clone());
        for piece in &self.pieces {
            output(piece);
        }
        Box::pin(async { self.answer.lock().unwrap().take().expect("only one command is scripted") })
    }

    fn held(&self) -> Held {
        Held::by(Rung::Unconfined)
    }
}

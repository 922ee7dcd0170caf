//! Redacts events on their way to an observer.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use windlass_contract::{
    CallId, Clean, Event,
    event::{EventEmitter, EventSink},
};
use windlass_seal::CleanSeal;

use crate::{
    Cleaner, Secrets,
    terminal::{PlainTextStream, coloured::ColouredOutput},
};

/// Redacts tool output, tool calls, diffs and errors before an observer sees them. Messages of the
/// model to the person pass unchanged: a person who asks for a password must get it. A line of
/// output is emitted when it is complete or the call has ended. A partial line cannot be checked
/// for secrets.
pub struct CleanEvents {
    front: Arc<dyn EventSink>,
    secrets: Secrets,
    open: Mutex<HashMap<CallId, LiveOutput>>,
}

/// Output of a running call.
struct LiveOutput {
    /// Strip colours first: a secret may be printed in two of them.
    plain: PlainTextStream,
    cleaner: Cleaner,
    coloured: ColouredOutput,
}

impl CleanEvents {
    /// Wraps an event sink.
    pub fn new(front: Arc<dyn EventSink>, secrets: Secrets) -> Self {
        Self { front, secrets, open: Mutex::default() }
    }

    fn show(&self, id: &CallId, bytes: &[u8]) {
        if !bytes.is_empty() {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.front.emit(&Clean::new(CleanSeal, Event::CallOutput { id: id.clone(), text }));
        }
    }
}

impl EventEmitter for CleanEvents {
    fn emit(&self, event: Event) {
        // Do not hold the lock while emitting events.
        let open = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::CallOutput { id, text } = &event {
            let mut calls = open();
            let live = calls.entry(id.clone()).or_insert_with(|| LiveOutput {
                plain: PlainTextStream::default(),
                cleaner: Cleaner::new(&self.secrets),
                coloured: ColouredOutput::default(),
            });
            live.coloured.push(text);
            let bytes = live.cleaner.push(live.plain.push(text).as_bytes());
            drop(calls);
            self.show(id, &bytes);
            return;
        }
        if let Event::CallEnded { call, .. } = &event {
            let live = open().remove(&call.id);
            if let Some(mut live) = live {
                self.show(&call.id, &live.cleaner.finish());
                let is_clean = |plain: &str| *self.secrets.clean_text(plain.to_owned()) == *plain;
                if let Some(text) = live.coloured.finish(is_clean) {
                    let event = Event::ColouredOutput { id: call.id.clone(), text };
                    self.front.emit(&Clean::new(CleanSeal, event));
                }
            }
        }
        self.front.emit(&self.secrets.clean_event(event));
    }
}

impl fmt::Debug for CleanEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanEvents").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Effects, Input, Output, ToolCall, meta::Format, outcome::Receipt, verdict::Criteria,
    };

    use super::*;
    use crate::Shaper;

    #[derive(Default)]
    struct Seen(Mutex<Vec<String>>);

    impl EventSink for Seen {
        fn emit(&self, event: &Clean<Event>) {
            let text = match &**event {
                Event::CallOutput { text, .. } => text.clone(),
                _ => "ended".to_owned(),
            };
            self.0.lock().unwrap().push(text);
        }
    }

    #[test]
    fn a_diff_is_shown_without_its_secrets() {
        struct Diff(Mutex<String>);
        impl EventSink for Diff {
            fn emit(&self, event: &Clean<Event>) {
                let Event::TurnDiff { diff } = &**event else { panic!("{event:?}") };
                self.0.lock().unwrap().clone_from(diff);
            }
        }
        let seen = Arc::new(Diff(Mutex::default()));
        let front: Arc<dyn EventSink> = seen.clone();
        let diff = "@@ -0,0 +1 @@\n+DB_PASSWORD=q8Zk2mPv0Lr7\n".to_owned();
        CleanEvents::new(front, Secrets::default()).emit(Event::TurnDiff { diff });
        assert_eq!(*seen.0.lock().unwrap(), "@@ -0,0 +1 @@\n+DB_PASSWORD=[REDACTED:password#1]\n");
    }

    #[test]
    fn a_secret_cut_in_two_is_not_shown_and_the_rest_comes_before_the_end() {
        let seen = Arc::new(Seen::default());
        let front: Arc<dyn EventSink> = seen.clone();
        let events = CleanEvents::new(front, Secrets::default());
        let id = CallId::from("c1");
        for text in ["DB_PASS", "WORD=q8Zk2mPv", "0Lr7\nand", " more"] {
            events.emit(Event::CallOutput { id: id.clone(), text: text.to_owned() });
        }
        let call = ToolCall { id, name: "t".into(), input: Input::Text(String::new()) };
        let outcome = Shaper::default().shape(
            Format::Plain,
            &Criteria::default(),
            Ok(Output::default()),
            Receipt::default(),
        );
        let secrets = Secrets::default();
        let (call, effects) = (secrets.clean_call(&call), secrets.clean_effects(&Effects::none()));
        events.emit(Event::CallEnded { call, effects, outcome: Box::new(outcome) });
        assert_eq!(*seen.0.lock().unwrap(), ["DB_PASSWORD=[REDACTED:password#1]\n", "and more", "ended"]);
    }
}

//! Questions of servers, asked through the client whose call they belong to.

use std::sync::Arc;

use windlass::{BoxFuture, CallId, Elicitation, ElicitationAnswer, Elicitor};

use crate::mcp::serve::live_calls::{LiveCall, LiveCalls};

/// Finds the client of a call. A question without one is declined.
pub(super) struct CallQuestions(pub(super) Arc<LiveCalls>);

impl Elicitor for CallQuestions {
    fn elicit<'a>(&'a self, _question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Decline })
    }

    fn for_call(&self, call: &CallId) -> Option<Arc<dyn Elicitor>> {
        let call = self.0.get(call)?;
        let elicitor = Arc::clone(call.elicitor.as_ref()?);
        Some(Arc::new(ClientQuestions { call, elicitor }))
    }
}

/// Asks the client of one call, in the name of the server.
struct ClientQuestions {
    call: Arc<LiveCall>,
    elicitor: Arc<dyn Elicitor>,
}

impl Elicitor for ClientQuestions {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            // The client cannot know which of the servers asks, and must not take it for Windlass.
            let message = format!("The {} asks: {}", question.asker.title(), question.message);
            let question = Elicitation { message, ..question.clone() };
            // Others need not wait for the person.
            self.call.leave_place();
            let answer = self.elicitor.elicit(&question).await;
            self.call.take_place().await;
            answer
        })
    }
}

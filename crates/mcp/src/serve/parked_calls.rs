//! Calls that wait for the client to send them again with the answer to a question.
//!
//! Since 2026-07-28 a server cannot ask a client in the middle of a call. It ends the request with
//! its questions, and the client repeats the request with the answers. The call itself stays here
//! meanwhile: it runs once, however often its request is sent.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use rmcp::model::{
    CallToolRequestParams, ElicitRequest, InputRequest, InputRequests, InputRequiredResult, JsonObject,
};
use tokio::sync::oneshot;
use windlass_contract::elicitation::ElicitationAnswer;

use super::{
    ServeLimits,
    call_in_progress::CallInProgress,
    question_channel::{AskedQuestion, answer_in, random_id},
};

/// Key of the question in the request for input. A call asks one question at a time.
const QUESTION_KEY: &str = "question";

/// Maximum number of calls that wait for an answer.
const MAX_PARKED_CALLS: usize = 128;

/// The calls that wait, by a handle that cannot be guessed.
#[derive(Debug, Default)]
pub(super) struct ParkedCalls(Mutex<HashMap<String, ParkedCall>>);

#[derive(Debug)]
struct ParkedCall {
    running: CallInProgress,
    answer: oneshot::Sender<ElicitationAnswer>,
    tool: String,
    arguments: Option<JsonObject>,
    until: Instant,
}

/// The reason why a repeated request continues no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResumeError {
    #[error("`requestState` belongs to no waiting call: it was answered, cancelled, or has expired")]
    Unknown,
    #[error("`requestState` belongs to another call")]
    OtherCall,
}

impl ParkedCalls {
    /// Keeps a call until its answer arrives. Returns the request for input, or the call if too
    /// many wait already.
    pub(super) fn park(
        &self,
        running: CallInProgress,
        question: AskedQuestion,
        request: &CallToolRequestParams,
        limits: &ServeLimits,
    ) -> Result<InputRequiredResult, Box<(CallInProgress, AskedQuestion)>> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        calls.retain(|_, call| call.until > now);
        let (Some(handle), true) = (random_id(), calls.len() < MAX_PARKED_CALLS) else {
            return Err(Box::new((running, question)));
        };
        let AskedQuestion { params, answer } = question;
        let (tool, arguments) = (request.name.to_string(), request.arguments.clone());
        let until = now + limits.question_timeout;
        calls.insert(handle.clone(), ParkedCall { running, answer, tool, arguments, until });
        let asked = InputRequest::Elicitation(ElicitRequest::new(params));
        let requests = InputRequests::from([(QUESTION_KEY.to_owned(), asked)]);
        Ok(InputRequiredResult::new(Some(requests), Some(handle)))
    }

    /// Continues a call with the answer in its repeated request. Without an answer the question
    /// counts as declined.
    pub(super) fn resume(
        &self,
        handle: &str,
        request: &CallToolRequestParams,
    ) -> Result<CallInProgress, ResumeError> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.get(handle).ok_or(ResumeError::Unknown)?;
        if call.tool != request.name || call.arguments != request.arguments {
            return Err(ResumeError::OtherCall);
        }
        let call = calls.remove(handle).ok_or(ResumeError::Unknown)?;
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION_KEY));
        let answer = answer.map_or(ElicitationAnswer::Decline, |answer| answer_in(answer.clone()));
        // The call may have given up meanwhile; its result says so.
        let _late = call.answer.send(answer);
        Ok(call.running)
    }
}

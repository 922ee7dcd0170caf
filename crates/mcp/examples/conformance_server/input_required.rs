//! The fixture tools and the prompt that end a request with a request for input.

use std::collections::BTreeMap;

use rmcp::{
    ErrorData,
    model::{ClientCapabilities, InputRequests, InputRequiredResult, RequestStateCodec},
};
use serde_json::{Value, json};

use crate::resources::parsed;

/// Names of the tools.
pub(crate) const TOOLS: [&str; 8] = [
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
];

/// One request, and the state and answers that it brings.
#[derive(Debug)]
pub(crate) struct InputRound<'a> {
    pub(crate) codec: &'a RequestStateCodec,
    pub(crate) capabilities: Option<ClientCapabilities>,
    pub(crate) state: Option<&'a str>,
    pub(crate) answers: Option<&'a BTreeMap<String, Value>>,
}

/// End of one round.
#[derive(Debug)]
pub(crate) enum RoundEnd {
    /// Text of the result.
    Text(String),
    /// More input is needed.
    InputRequired(InputRequiredResult),
}

impl InputRound<'_> {
    /// Runs one round of a tool, or of the prompt.
    pub(crate) fn run(&self, name: &str) -> Result<RoundEnd, ErrorData> {
        let state = self.state.map(|state| self.codec.open(state)).transpose();
        let state = state.map_err(|_forged| ErrorData::invalid_params("`requestState` was changed", None))?;
        match name {
            "test_input_required_result_multi_round" => self.rounds(state.as_deref()),
            "test_input_required_result_capabilities" => self.single(&self.possible_inputs(), ""),
            "test_input_required_result_list_roots" => self.single(&[("client_roots", roots())], ""),
            "test_input_required_result_sampling" => {
                self.single(&[("capital_question", sampling("What is the capital of France?"))], "")
            }
            "test_input_required_result_multiple_inputs" => {
                let name = form("What is your name?", "name", "string");
                let greeting = sampling("Generate a greeting");
                self.single(
                    &[("user_name", name), ("greeting", greeting), ("client_roots", roots())],
                    "multiple",
                )
            }
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                self.single(&[("confirm", form("Please confirm", "ok", "boolean"))], "state-ok")
            }
            "test_input_required_result_prompt" => {
                let context = form("What context should the prompt use?", "context", "string");
                self.single(&[("user_context", context)], "")
            }
            _ => self.single(&[("user_name", form("What is your name?", "name", "string"))], ""),
        }
    }

    /// Asks until all answers are there. With a state, the answers count only together with it.
    fn single(&self, inputs: &[(&str, Value)], state: &str) -> Result<RoundEnd, ErrorData> {
        let answers = inputs.iter().map(|(key, _)| self.answer(key)).collect::<Option<Vec<_>>>();
        match answers {
            Some(answers) if state.is_empty() || self.state.is_some() => {
                Ok(RoundEnd::Text(format!("{state} {}", answers.join(", "))))
            }
            _ => self.ask(inputs, (!state.is_empty()).then_some(state)),
        }
    }

    fn rounds(&self, state: Option<&[u8]>) -> Result<RoundEnd, ErrorData> {
        match (state, self.answer("step1"), self.answer("step2")) {
            (Some(b"two"), _, Some(color)) => Ok(RoundEnd::Text(format!("your color is {color}"))),
            (Some(b"two"), ..) | (Some(b"one"), Some(_), _) => {
                let color = form("Step 2: What is your favorite color?", "color", "string");
                self.ask(&[("step2", color)], Some("two"))
            }
            _ => self.ask(&[("step1", form("Step 1: What is your name?", "name", "string"))], Some("one")),
        }
    }

    /// Returns the answer to one input, as text, if it has the form of an answer.
    fn answer(&self, key: &str) -> Option<String> {
        let answer = self.answers?.get(key)?;
        if let Some(content) = answer.get("content").and_then(Value::as_object) {
            let values =
                content.values().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            return Some(values.collect::<Vec<_>>().join(" "));
        }
        answer.get("roots").map(ToString::to_string)
    }

    fn ask(&self, inputs: &[(&str, Value)], state: Option<&str>) -> Result<RoundEnd, ErrorData> {
        let requests = inputs.iter().map(|(key, input)| Ok(((*key).to_owned(), parsed(input.clone())?)));
        let requests = requests.collect::<Result<InputRequests, ErrorData>>()?;
        let state = state.map(|state| self.codec.seal(state.as_bytes()));
        Ok(RoundEnd::InputRequired(InputRequiredResult::new(Some(requests), state)))
    }

    /// Returns the inputs that the client has declared it can give.
    fn possible_inputs(&self) -> Vec<(&'static str, Value)> {
        let declared = serde_json::to_value(&self.capabilities).unwrap_or_default();
        let mut inputs = Vec::new();
        if declared.get("sampling").is_some() {
            inputs.push(("capital_question", sampling("What is the capital of France?")));
        }
        if declared.get("elicitation").is_some() {
            inputs.push(("user_name", form("What is your name?", "name", "string")));
        }
        inputs
    }
}

fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sampling(text: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

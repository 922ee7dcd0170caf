//! The JSON Schema of the final answer.

use serde_json::Value;
use windlass_schema::{Schema, SchemaError};

/// Maximum number of problems of an answer that are reported.
const MAX_PROBLEMS: usize = 5;

/// A JSON Schema for answers, in the form that is sent and the form that is checked.
#[derive(Debug)]
pub struct AnswerSchema {
    sent: Value,
    checked: Schema,
}

impl AnswerSchema {
    /// Creates it from a schema whose root is an object.
    pub fn new(schema: Value) -> Result<Self, SchemaError> {
        let checked = Schema::new(&schema)?;
        Ok(Self { sent: schema, checked })
    }

    /// Returns the schema for the model's server.
    pub(crate) fn sent(&self) -> &Value {
        &self.sent
    }

    /// Returns the reason if an answer does not fit.
    pub(crate) fn problem(&self, answer: &str) -> Option<String> {
        let value: Value = match serde_json::from_str(answer) {
            Ok(value) => value,
            Err(error) => return Some(format!("it is not JSON ({error})")),
        };
        let problems = self.checked.check(&value);
        let told = problems.iter().take(MAX_PROBLEMS).map(String::as_str).collect::<Vec<_>>().join("; ");
        (!problems.is_empty()).then_some(told)
    }
}

/// Returns the message that asks for another answer.
pub(crate) fn retry_message(problem: &str) -> String {
    format!(
        "Your answer does not fit the JSON Schema it must have: {problem}. Answer again with the corrected JSON alone: no \
         other words and no code fence."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_held_to_its_schema() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let schema = AnswerSchema::new(schema).unwrap();
        assert_eq!(schema.problem(r#" {"n": 1} "#), None);
        for (answer, part) in [
            ("one", "it is not JSON"),
            ("", "it is not JSON"),
            ("```json\n{\"n\": 1}\n```", "it is not JSON"),
            (r#"{"n": "1"}"#, "n"),
            ("{}", "n"),
            ("[1]", "object"),
        ] {
            let problem = schema.problem(answer).unwrap();
            assert!(problem.contains(part), "{answer}: {problem}");
        }
    }
}

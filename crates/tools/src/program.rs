//! Runs tools that a user wrote as programs, in any language. The last argument of the program is
//! the call's arguments as JSON; its output is the result.

use serde_json::Value;
use windlass_contract::{
    Meta,
    meta::{Category, Format},
    tool::{FnTool, tool},
};

use crate::command;

/// Time limit of a program. Tools written for an agent get more than the ten seconds of a command.
const TIME_LIMIT_MS: u64 = 120_000;

/// Creates a tool from a program. Policy and sandbox treat a call like any command.
pub fn program(name: &str, description: &str, parameters: &Value, command: Vec<String>) -> FnTool<Value> {
    let words = move |arguments: &Value| -> Vec<String> {
        command.iter().cloned().chain([arguments.to_string()]).collect()
    };
    let run = words.clone();
    let acts = move |arguments: &Value| {
        command::effects(&words(arguments), None, &command::PermissionArgs::default())
    };
    let parameters = if parameters.is_null() { &Value::Object(serde_json::Map::new()) } else { parameters };
    tool(name, acts, move |arguments: Value, cx| {
        let argv = run(&arguments);
        async move { command::run(&argv, None, Some(TIME_LIMIT_MS), &cx).await }
    })
    .description(description)
    .schema(parameters)
    .meta(Meta { category: Category::Other, requests: Vec::new(), ..command::meta(Format::Plain) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use windlass_contract::{AnyTool, Input};

    use super::*;

    #[test]
    fn a_call_is_the_program_with_its_arguments_as_json() {
        let parameters =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let tool = Arc::new(program("w", "Weather.", &parameters, vec!["python3".into(), "w.py".into()]));
        let ready = Arc::clone(&tool).prepare(&Input::Json(r#"{"city": "Oslo"}"#.into())).unwrap();
        let command = ready.effects().command.unwrap();
        assert_eq!(command.argv, ["python3", "w.py", r#"{"city":"Oslo"}"#]);
        assert!(tool.spec().is_ok());
    }

    #[test]
    fn a_program_without_parameters_takes_none_or_any() {
        let tool = program("now", "The time.", &Value::Null, vec!["date".into()]);
        assert!(tool.spec().is_ok());
        assert!(Arc::new(tool).prepare(&Input::Json(String::new())).is_ok());
    }
}

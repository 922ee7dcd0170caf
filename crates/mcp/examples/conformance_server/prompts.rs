//! The fixture prompts.

use rmcp::{
    ErrorData,
    model::{GetPromptRequestParams, GetPromptResult, JsonObject, ListPromptsResult},
};
use serde_json::{Value, json};

use crate::{PIXEL, resources::parsed};

/// Returns the list of prompts.
pub(crate) fn list() -> Result<ListPromptsResult, ErrorData> {
    let argument = |name: &str| json!({"name": name, "description": "An argument.", "required": true});
    let prompt = |name: &str, arguments: Vec<Value>| json!({"name": name, "description": "A prompt for tests.", "arguments": arguments});
    parsed(json!({"resultType": "complete", "prompts": [
        prompt("test_input_required_result_prompt", vec![]),
        prompt("test_prompt_with_arguments", vec![argument("arg1"), argument("arg2")]),
        prompt("test_prompt_with_embedded_resource", vec![argument("resourceUri")]),
        prompt("test_prompt_with_image", vec![]),
        prompt("test_simple_prompt", vec![]),
    ]}))
}

/// Returns the messages of a prompt that needs no input.
pub(crate) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![message("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument(&arguments, "arg1")?, argument(&arguments, "arg2")?);
            vec![message(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument(&arguments, "resourceUri")?;
            let text = "Embedded resource content for testing.";
            let resource = json!({"uri": uri, "mimeType": "text/plain", "text": text});
            let embedded = json!({"type": "resource", "resource": resource});
            vec![content(&embedded), message("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
            vec![content(&image), message("Please analyze the image above.")]
        }
        other => return Err(ErrorData::invalid_params(format!("there is no prompt `{other}`"), None)),
    };
    parsed(json!({"resultType": "complete", "messages": messages}))
}

/// Returns a message with text.
pub(crate) fn message(text: &str) -> Value {
    content(&json!({"type": "text", "text": text}))
}

fn content(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn argument(arguments: &JsonObject, name: &str) -> Result<String, ErrorData> {
    let value = arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    value.ok_or_else(|| ErrorData::invalid_params(format!("the argument `{name}` is missing"), None))
}

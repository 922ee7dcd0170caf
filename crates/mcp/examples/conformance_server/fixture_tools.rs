//! The fixture tools that need nothing but our server: content, errors, progress and questions.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use windlass_contract::{
    BoxFuture,
    elicitation::{Asker, Elicitation, ElicitationAnswer, ElicitationForm},
    remote::ToolHints,
};
use windlass_mcp::{
    definition::RemoteToolDefinition,
    pool::RemoteProgress,
    result::{RemoteContent, RemoteResourceContent, RemoteResult},
    serve::{ServedCall, ServedTools, ServerIdentity},
};

use crate::PIXEL;

/// Names and descriptions of the tools that run here.
const TOOLS: [(&str, &str); 13] = [
    ("json_schema_2020_12_tool", "Has a schema with the vocabulary of 2020-12."),
    ("test_audio_content", "Returns audio."),
    ("test_elicitation", "Asks for a name and an address."),
    ("test_elicitation_sep1034_defaults", "Asks with default values."),
    ("test_elicitation_sep1330_enums", "Asks with every kind of choice."),
    ("test_embedded_resource", "Returns a resource."),
    ("test_error_handling", "Fails."),
    ("test_image_content", "Returns an image."),
    ("test_multiple_content_types", "Returns several kinds of content."),
    ("test_simple_text", "Returns text."),
    ("test_streaming_elicitation", "Reports progress, then asks."),
    ("test_tool_with_progress", "Reports progress."),
    ("test_trigger_tool_change", "Says that the list of tools has changed."),
];
/// Pause between the steps of tools that report them.
const STEP: Duration = Duration::from_millis(50);
/// An empty WAV file.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The tools.
#[derive(Debug)]
pub(crate) struct FixtureTools {
    changes: watch::Sender<u64>,
}

impl FixtureTools {
    /// Creates the tools.
    pub(crate) fn new() -> Self {
        Self { changes: watch::Sender::new(0) }
    }
}

impl ServedTools for FixtureTools {
    fn identity(&self) -> ServerIdentity {
        let (name, version) = ("windlass-conformance".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        ServerIdentity { name, version, ..ServerIdentity::default() }
    }

    fn tools(&self) -> Vec<RemoteToolDefinition> {
        let tools = TOOLS.map(|(name, description)| RemoteToolDefinition {
            name: name.into(),
            title: None,
            description: Some(description.into()),
            input_schema: schema_of(name).as_object().cloned().unwrap_or_default(),
            output_schema: None,
            hints: ToolHints::default(),
        });
        tools.into()
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn call(&self, call: ServedCall) -> BoxFuture<'_, RemoteResult> {
        Box::pin(async move {
            match call.tool.as_str() {
                "test_simple_text" => content([text("This is a simple text response for testing.")]),
                "test_image_content" => content([image()]),
                "test_audio_content" => content([audio()]),
                "test_embedded_resource" => content([embedded()]),
                "test_multiple_content_types" => {
                    content([text("Multiple content types test:"), image(), mixed()])
                }
                "test_error_handling" => {
                    RemoteResult::failed("This tool intentionally returns an error for testing")
                }
                "test_tool_with_progress" => with_progress(&call).await,
                "test_elicitation"
                | "test_elicitation_sep1034_defaults"
                | "test_elicitation_sep1330_enums" => asked(&call).await,
                "test_streaming_elicitation" => {
                    call.progress.report(RemoteProgress { progress: 1.0, total: None, message: None });
                    asked(&call).await
                }
                "test_trigger_tool_change" => {
                    self.changes.send_modify(|version| *version += 1);
                    content([text("the list has changed")])
                }
                other => content([text(&format!("{other} was called"))]),
            }
        })
    }
}

/// Returns a successful result.
pub(crate) fn content<const N: usize>(content: [RemoteContent; N]) -> RemoteResult {
    RemoteResult { content: content.into(), ..RemoteResult::default() }
}

/// Returns a piece of text.
pub(crate) fn text(text: &str) -> RemoteContent {
    RemoteContent::Text { text: text.to_owned() }
}

fn image() -> RemoteContent {
    RemoteContent::Image { data: PIXEL.to_owned(), mime_type: "image/png".to_owned() }
}

fn audio() -> RemoteContent {
    RemoteContent::Audio { data: SILENCE.to_owned(), mime_type: "audio/wav".to_owned() }
}

fn resource(uri: &str, mime_type: &str, text: &str) -> RemoteContent {
    let (mime_type, text) = (Some(mime_type.to_owned()), Some(text.to_owned()));
    RemoteContent::Resource {
        resource: RemoteResourceContent { uri: uri.to_owned(), mime_type, text, blob: None },
    }
}

fn embedded() -> RemoteContent {
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
}

fn mixed() -> RemoteContent {
    resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#)
}

async fn with_progress(call: &ServedCall) -> RemoteResult {
    for progress in [0.0, 50.0, 100.0] {
        call.progress.report(RemoteProgress { progress, total: Some(100.0), message: None });
        tokio::time::sleep(STEP).await;
    }
    content([text("the three steps are done")])
}

async fn asked(call: &ServedCall) -> RemoteResult {
    let Some(elicitor) = &call.elicitor else {
        return RemoteResult::failed("the client has not declared the capability `elicitation`");
    };
    let (label, message, schema) = match call.tool.as_str() {
        "test_elicitation" => ("User response", call.arguments.get("message"), contact_schema()),
        "test_elicitation_sep1034_defaults" => ("Elicitation completed", None, defaults_schema()),
        _ => ("Elicitation completed", None, choices_schema()),
    };
    let message = message.and_then(Value::as_str).unwrap_or("Please answer").to_owned();
    let form = ElicitationForm::Fields { schema };
    let question = Elicitation { asker: Asker::Agent, message, form };
    let (action, answer) = match elicitor.elicit(&question).await {
        ElicitationAnswer::Accept(answer) => ("accept", answer),
        ElicitationAnswer::Decline => ("decline", json!({})),
        ElicitationAnswer::Cancel => ("cancel", json!({})),
    };
    content([text(&format!("{label}: action={action}, content={answer}"))])
}

fn schema_of(tool: &str) -> Value {
    match tool {
        "json_schema_2020_12_tool" => vocabulary_schema(),
        "test_elicitation" => json!({
            "type": "object",
            "properties": {"message": {"type": "string", "description": "The message"}},
            "required": ["message"],
        }),
        _ => json!({"type": "object", "properties": {}}),
    }
}

fn vocabulary_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn contact_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    })
}

fn defaults_schema() -> Value {
    let states = ["active", "inactive", "pending"];
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": states, "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    })
}

fn choices_schema() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = |word: &str| {
        let choices = [("value1", "First"), ("value2", "Second"), ("value3", "Third")];
        choices.map(|(value, rank)| json!({"const": value, "title": format!("{rank} {word}")}))
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        },
        "required": [],
    })
}

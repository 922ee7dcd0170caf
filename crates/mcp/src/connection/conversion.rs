//! The answers of rmcp as our own types.

use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, Prompt, Resource, ResourceContents, ResourceTemplate,
    Role, Tool,
};
use windlass_contract::remote::ToolHints;

use crate::{
    definition::RemoteToolDefinition,
    result::{
        RemoteContent, RemotePrompt, RemotePromptArgument, RemotePromptMessage, RemoteResource,
        RemoteResourceContent, RemoteResult,
    },
};

pub(crate) fn tool(tool: Tool) -> RemoteToolDefinition {
    let annotations = tool.annotations.unwrap_or_default();
    RemoteToolDefinition {
        name: tool.name.into_owned(),
        title: tool.title.or(annotations.title),
        description: tool.description.map(std::borrow::Cow::into_owned),
        input_schema: unshared(tool.input_schema),
        output_schema: tool.output_schema.map(unshared),
        hints: ToolHints {
            read_only: annotations.read_only_hint,
            destructive: annotations.destructive_hint,
            idempotent: annotations.idempotent_hint,
            open_world: annotations.open_world_hint,
        },
    }
}

fn unshared<T: Clone>(shared: std::sync::Arc<T>) -> T {
    std::sync::Arc::unwrap_or_clone(shared)
}

pub(crate) fn call_result(result: CallToolResult) -> RemoteResult {
    RemoteResult {
        content: result.content.into_iter().map(content).collect(),
        structured_content: result.structured_content,
        is_error: result.is_error.unwrap_or(false),
    }
}

fn content(block: ContentBlock) -> RemoteContent {
    match block {
        ContentBlock::Text(text) => RemoteContent::Text { text: text.text },
        ContentBlock::Image(image) => RemoteContent::Image { data: image.data, mime_type: image.mime_type },
        ContentBlock::Audio(audio) => RemoteContent::Audio { data: audio.data, mime_type: audio.mime_type },
        ContentBlock::Resource(embedded) => {
            RemoteContent::Resource { resource: resource_content(embedded.resource) }
        }
        ContentBlock::ResourceLink(link) => RemoteContent::ResourceLink(resource(link)),
        _ => RemoteContent::Text { text: "(content of an unknown kind)".to_owned() },
    }
}

pub(crate) fn resource_content(contents: ResourceContents) -> RemoteResourceContent {
    match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            RemoteResourceContent { uri, mime_type, text: Some(text), blob: None }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            RemoteResourceContent { uri, mime_type, text: None, blob: Some(blob) }
        }
        _ => RemoteResourceContent::default(),
    }
}

pub(crate) fn resource(resource: Resource) -> RemoteResource {
    RemoteResource {
        uri: resource.uri,
        name: resource.name,
        title: resource.title,
        description: resource.description,
        mime_type: resource.mime_type,
        size: resource.size,
    }
}

pub(crate) fn resource_template(template: ResourceTemplate) -> RemoteResource {
    RemoteResource {
        uri: template.uri_template,
        name: template.name,
        title: template.title,
        description: template.description,
        mime_type: template.mime_type,
        size: None,
    }
}

pub(crate) fn prompt(prompt: Prompt) -> RemotePrompt {
    let argument = |argument: rmcp::model::PromptArgument| RemotePromptArgument {
        name: argument.name,
        description: argument.description,
        required: argument.required.unwrap_or(false),
    };
    RemotePrompt {
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: prompt.arguments.unwrap_or_default().into_iter().map(argument).collect(),
    }
}

pub(crate) fn prompt_messages(result: GetPromptResult) -> Vec<RemotePromptMessage> {
    let role = |role: &Role| if *role == Role::Assistant { "assistant" } else { "user" };
    result
        .messages
        .into_iter()
        .map(|message| RemotePromptMessage {
            role: role(&message.role).to_owned(),
            content: content(message.content),
        })
        .collect()
}

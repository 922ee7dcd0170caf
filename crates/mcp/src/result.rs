//! Results of calls, resources and prompts, as a server sends them. Every text is untrusted.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The result of a call on a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteResult {
    /// Content, in order.
    pub content: Vec<RemoteContent>,
    /// Structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// True if the tool has failed.
    #[serde(default)]
    pub is_error: bool,
}

/// One piece of content. Binary data is Base64, as on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RemoteContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Its bytes.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// Its bytes.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// The content of a resource.
    Resource {
        /// The resource.
        resource: RemoteResourceContent,
    },
    /// The address of a resource.
    ResourceLink(RemoteResource),
}

/// The content of a resource: text or bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteResourceContent {
    /// Its address.
    pub uri: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text, unless it is binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes in Base64, if it is binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// A resource, or a template if the address is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteResource {
    /// Its address.
    #[serde(alias = "uriTemplate")]
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// One page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemotePage<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// Cursor of the next page.
    pub next_cursor: Option<String>,
}

/// A prompt of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemotePrompt {
    /// Its name.
    pub name: String,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Vec<RemotePromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemotePromptArgument {
    /// Its name.
    pub name: String,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the prompt needs it.
    #[serde(default)]
    pub required: bool,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemotePromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Its content.
    pub content: RemoteContent,
}

/// Arguments of a call.
pub type RemoteArguments = Map<String, Value>;

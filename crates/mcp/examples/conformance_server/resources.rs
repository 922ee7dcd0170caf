//! The fixture resources.

use rmcp::{
    ErrorData,
    model::{ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult},
};
use serde_json::{Value, json};

use crate::PIXEL;

/// Returns the list of resources.
pub(crate) fn list() -> Result<ListResourcesResult, ErrorData> {
    let resource = |uri: &str, name: &str, mime_type: &str| json!({"uri": uri, "name": name, "description": format!("The {name}."), "mimeType": mime_type});
    parsed(json!({"resultType": "complete", "resources": [
        resource("test://static-text", "static text", "text/plain"),
        resource("test://static-binary", "static image", "image/png"),
        resource("test://watched-resource", "watched text", "text/plain"),
    ]}))
}

/// Returns the list of templates.
pub(crate) fn templates() -> Result<ListResourceTemplatesResult, ErrorData> {
    parsed(json!({"resultType": "complete", "resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data by id.",
        "mimeType": "application/json",
    }]}))
}

/// Returns the content of a resource.
pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let content = match uri {
        "test://static-text" => {
            let text = "This is the content of the static text resource.";
            json!({"uri": uri, "mimeType": "text/plain", "text": text})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
        "test://watched-resource" => json!({"uri": uri, "mimeType": "text/plain", "text": "Watched."}),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| {
                ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))
            })?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    };
    parsed(json!({"resultType": "complete", "contents": [content]}))
}

/// Returns a value as a type of the protocol.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

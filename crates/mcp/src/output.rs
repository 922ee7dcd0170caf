//! Results of remote tools as the output of a call.
//!
//! Texts are cleaned of control characters and secrets by the shaper, as the output of programs is.
//! Names and addresses that become part of our own lines are cleaned here.

use std::{fmt, iter, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use windlass_contract::{
    Content, Host, Output,
    outcome::Facts,
    report::{RemoteReport, ToolReport},
};

use crate::{
    result::{RemoteContent, RemoteResource, RemoteResourceContent, RemoteResult},
    untrusted_text::visible_line,
};

/// Maximum number of images of one result. They cost far more than text.
const MAX_IMAGES: usize = 8;
/// Maximum number of bytes of the texts of one result in memory. The full texts are kept in a file.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size of structured content that is recorded as data. A larger one is only text.
const MAX_DATA_BYTES: usize = 256 * 1024;
/// Maximum size of a name or an address in a line of ours.
const MAX_WORD_BYTES: usize = 500;

/// Turns the bytes of an image into a `data:` URL that every model accepts, or says why that is
/// impossible. Given by the program that embeds this crate; it may take long.
#[derive(Clone)]
pub struct ImageFitter(Arc<FitImage>);

type FitImage = dyn Fn(&[u8]) -> Result<String, String> + Send + Sync;

impl ImageFitter {
    /// Wraps a function.
    pub fn new(fit: impl Fn(&[u8]) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(fit))
    }

    /// Decodes and prepares an image on a thread for blocking work.
    pub(crate) async fn fit(&self, base64: String) -> Result<String, String> {
        let itself = self.clone();
        let fitted = tokio::task::spawn_blocking(move || itself.fit_now(&base64)).await;
        fitted.unwrap_or_else(|_| Err("it could not be decoded".to_owned()))
    }

    fn fit_now(&self, base64: &str) -> Result<String, String> {
        let bytes = BASE64_STANDARD.decode(base64).map_err(|_| "it is not valid Base64".to_owned())?;
        (self.0)(&bytes)
    }
}

impl fmt::Debug for ImageFitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageFitter").finish_non_exhaustive()
    }
}

/// Turns a result into the output of a call, and has the host keep long texts.
pub async fn remote_output(result: RemoteResult, host: &dyn Host, images: &ImageFitter) -> Output {
    let failed = result.is_error;
    let data = result.structured_content.clone().filter(|value| value.to_string().len() <= MAX_DATA_BYTES);
    let mut content = mapped_content(result, images).await;
    let text = Content::join(&content);
    let output_bytes = text.len() as u64;
    let whole = host.keep_output(text.into_bytes()).await;
    bound_texts(&mut content);
    if content.is_empty() {
        content.push(Content::Text("[the tool gave nothing back]".to_owned()));
    }
    let facts = Facts::Remote(RemoteReport { failed, output_bytes, whole });
    Output { content, data: data.map(ToolReport::Json), facts, ..Output::default() }
}

/// Maps a result. Images are decoded on a thread for blocking work.
async fn mapped_content(result: RemoteResult, images: &ImageFitter) -> Vec<Content> {
    let is_image = |part: &RemoteContent| match part {
        RemoteContent::Image { .. } => true,
        RemoteContent::Resource { resource } => resource.blob.is_some(),
        _ => false,
    };
    if !result.content.iter().any(is_image) {
        return merged(result, images);
    }
    let images = images.clone();
    match tokio::task::spawn_blocking(move || merged(result, &images)).await {
        Ok(content) => content,
        Err(error) => {
            tracing::error!(%error, "the images of a result could not be decoded");
            vec![Content::Text("[the result could not be decoded]".to_owned())]
        }
    }
}

/// Maps a result, and joins neighbouring texts.
fn merged(result: RemoteResult, images: &ImageFitter) -> Vec<Content> {
    let structured = result.structured_content.filter(|value| !value.is_null());
    let structured = structured.filter(|value| !repeats(value, &result.content));
    let mut mapping = ContentMapping { images, shown: 0, content: Vec::new() };
    for part in result.content {
        mapping.add(part);
    }
    if let Some(value) = structured {
        mapping.text(value.to_string());
    }
    mapping.content
}

struct ContentMapping<'a> {
    images: &'a ImageFitter,
    /// Number of images so far.
    shown: usize,
    content: Vec<Content>,
}

impl ContentMapping<'_> {
    fn add(&mut self, part: RemoteContent) {
        match part {
            RemoteContent::Text { text } => self.text(text),
            RemoteContent::Image { data, mime_type } => self.image("image", &mime_type, &data),
            RemoteContent::Audio { data, mime_type } => {
                self.text(binary_line("audio", &mime_type, &data, "audio cannot be shown to a model"));
            }
            RemoteContent::Resource { resource } => self.resource(resource),
            RemoteContent::ResourceLink(link) => self.text(link_line(&link)),
        }
    }

    fn text(&mut self, text: String) {
        match self.content.last_mut() {
            Some(Content::Text(before)) => {
                before.push('\n');
                before.push_str(&text);
            }
            _ => self.content.push(Content::Text(text)),
        }
    }

    fn image(&mut self, what: &str, mime_type: &str, data: &str) {
        match self.fitted(data) {
            Ok(url) => {
                self.shown += 1;
                self.content.push(Content::Image(url));
            }
            Err(reason) => self.text(binary_line(what, mime_type, data, &reason)),
        }
    }

    fn fitted(&self, data: &str) -> Result<String, String> {
        if self.shown == MAX_IMAGES {
            return Err(format!("only the first {MAX_IMAGES} images are shown"));
        }
        self.images.fit_now(data)
    }

    fn resource(&mut self, resource: RemoteResourceContent) {
        let RemoteResourceContent { uri, mime_type, text, blob } = resource;
        let uri = visible_line(&uri, MAX_WORD_BYTES);
        let mime_type = mime_type.unwrap_or_default();
        if let Some(text) = text {
            self.text(format!("[resource {uri}]\n{text}"));
        }
        match blob {
            Some(blob) if mime_type.starts_with("image/") => {
                self.image(&format!("resource {uri}"), &mime_type, &blob);
            }
            Some(blob) => {
                let what = format!("resource {uri}");
                self.text(binary_line(&what, &mime_type, &blob, "it is not text"));
            }
            None => {}
        }
    }
}

/// Describes data that is not shown, and says why.
fn binary_line(what: &str, mime_type: &str, data: &str, reason: &str) -> String {
    let kind = visible_line(mime_type, 100);
    // Base64 has four characters for three bytes.
    let bytes = data.len() / 4 * 3;
    format!("[{what}, {kind}, about {bytes} bytes, is not shown: {}]", visible_line(reason, 200))
}

fn link_line(link: &RemoteResource) -> String {
    let mut words = vec![visible_line(&link.uri, MAX_WORD_BYTES)];
    words.extend(link.mime_type.as_deref().map(|kind| visible_line(kind, 100)));
    words.extend(link.size.map(|bytes| format!("{bytes} bytes")));
    let name = visible_line(link.title.as_deref().unwrap_or(&link.name), MAX_WORD_BYTES);
    let about = link.description.as_deref().map(|about| visible_line(about, MAX_WORD_BYTES));
    let about = about.filter(|about| !about.is_empty()).map(|about| format!(": {about}"));
    format!("[link to resource {name} ({}){}]", words.join(", "), about.unwrap_or_default())
}

/// Returns true if the texts already say what the structured content says: one text is its JSON, or
/// it has the single member `result`, in which Python servers put results that are no objects.
fn repeats(structured: &Value, content: &[RemoteContent]) -> bool {
    let texts = || {
        content.iter().filter_map(|part| match part {
            RemoteContent::Text { text } => Some(text.as_str()),
            _ => None,
        })
    };
    if texts().any(|text| is_same(structured, text)) {
        return true;
    }
    let wrapped = structured.as_object().filter(|members| members.len() == 1);
    match wrapped.and_then(|members| members.get("result")) {
        Some(Value::Array(items)) => {
            texts().count() == items.len()
                && iter::zip(items, texts()).all(|(item, text)| is_same(item, text))
                || texts().any(|text| is_json(items, text))
        }
        Some(result) => texts().any(|text| is_same(result, text)),
        None => false,
    }
}

fn is_same(value: &Value, text: &str) -> bool {
    value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *value)
}

fn is_json(items: &[Value], text: &str) -> bool {
    serde_json::from_str::<Vec<Value>>(text).is_ok_and(|parsed| parsed == items)
}

/// Cuts texts that are so long that cleaning them would take long. The beginning and the end stay.
fn bound_texts(content: &mut [Content]) {
    let mut left = MAX_TEXT_BYTES;
    for part in content {
        let Content::Text(text) = part else { continue };
        if text.len() > left {
            let (head, tail) =
                (text.floor_char_boundary(left / 2), text.ceil_char_boundary(text.len() - left / 2));
            *text = format!("{}\n[{} bytes are left out]\n{}", &text[..head], tail - head, &text[tail..]);
            left = 0;
        } else {
            left -= text.len();
        }
    }
}

#[cfg(test)]
mod tests;

//! Tests of the mapping of results.

use serde_json::json;
use windlass_contract::{
    BoxFuture,
    grant::{Held, Mechanism},
    host::Whole,
};

use super::*;

/// Keeps everything longer than 100 bytes, and says how long it was.
struct KeepingHost;

impl Host for KeepingHost {
    fn keep_output(&self, output: Vec<u8>) -> BoxFuture<'_, Option<Whole>> {
        let bytes = output.len() as u64;
        let whole = Whole::File { path: "/kept/1.txt".into(), bytes, complete: true };
        Box::pin(async move { (bytes > 100).then_some(whole) })
    }

    fn held(&self) -> Held {
        Held::by(Mechanism::InProcess)
    }
}

async fn output(result: Value) -> Output {
    let images = ImageFitter::new(|bytes| match bytes {
        b"png" => Ok("data:image/png;base64,cG5n".to_owned()),
        _ => Err("it is damaged\u{1b}".to_owned()),
    });
    remote_output(serde_json::from_value(result).unwrap(), &KeepingHost, &images).await
}

async fn text(result: Value) -> String {
    Content::join(&output(result).await.content)
}

#[tokio::test]
async fn text_and_images_are_passed_on_in_order() {
    let output = output(json!({"content": [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        {"type": "image", "data": "cG5n", "mimeType": "image/png"},
        {"type": "text", "text": "three"},
    ]}))
    .await;
    let expected = [
        Content::Text("one\ntwo".into()),
        Content::Image("data:image/png;base64,cG5n".into()),
        Content::Text("three".into()),
    ];
    assert_eq!(output.content, expected);
    let facts = RemoteReport { failed: false, output_bytes: 13, whole: None };
    assert_eq!(output.facts, Facts::Remote(facts));
}

#[tokio::test]
async fn an_image_that_would_break_the_next_request_becomes_a_note() {
    let damaged = json!({"content": [
        {"type": "image", "data": "AAAA", "mimeType": "image/png\n"},
        {"type": "image", "data": "!!", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"},
    ]});
    assert_eq!(
        text(damaged).await,
        "[image, image/png, about 3 bytes, is not shown: it is damaged]\n\
         [image, image/png, about 0 bytes, is not shown: it is not valid Base64]\n\
         [audio, audio/wav, about 6 bytes, is not shown: audio cannot be shown to a model]"
    );
    let image = json!({"type": "image", "data": "cG5n", "mimeType": "image/png"});
    let many = output(json!({"content": vec![image; MAX_IMAGES + 1]})).await;
    assert_eq!(many.content.iter().filter(|part| matches!(part, Content::Image(_))).count(), MAX_IMAGES);
}

#[tokio::test]
async fn resources_and_links_say_their_address() {
    let result = json!({"content": [
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "body"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA", "mimeType": "x/y"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA", "mimeType": "image/png"}},
        {"type": "resource_link", "uri": "db://t\u{1b}[2J", "name": "t", "description": "a\ntable",
         "mimeType": "text/csv", "size": 7},
    ]});
    assert_eq!(
        text(result).await,
        "[resource file:///a]\nbody\n\
         [resource file:///b, x/y, about 3 bytes, is not shown: it is not text]\n\
         [resource file:///c, image/png, about 3 bytes, is not shown: it is damaged]\n\
         [link to resource t (db://t[2J, text/csv, 7 bytes): a table]"
    );
}

#[tokio::test]
async fn structured_content_is_sent_once() {
    let block = |text: &str| json!({"type": "text", "text": text});
    let once = [
        (json!({"a": 1, "b": [2]}), json!([block("{\"b\": [2],\n \"a\": 1}")]), "{\"b\": [2],\n \"a\": 1}"),
        (json!({"result": "hello"}), json!([block("hello")]), "hello"),
        (json!({"result": 5}), json!([block("5")]), "5"),
        (json!({"result": ["x", {"y": 1}]}), json!([block("x"), block("{\"y\":1}")]), "x\n{\"y\":1}"),
        (json!({"result": [1, 2]}), json!([block("[1, 2]")]), "[1, 2]"),
        (json!({"a": 1}), json!([]), "{\"a\":1}"),
        (json!({"a": 1}), json!([block("a summary")]), "a summary\n{\"a\":1}"),
        (json!({"result": ["x"]}), json!([block("x"), block("y")]), "x\ny\n{\"result\":[\"x\"]}"),
        (json!(null), json!([block("x")]), "x"),
    ];
    for (structured, content, expected) in once {
        let output = output(json!({"content": content, "structuredContent": structured})).await;
        assert_eq!(Content::join(&output.content), expected);
        assert_eq!(output.data, (!structured.is_null()).then_some(ToolReport::Json(structured)));
    }
}

#[tokio::test]
async fn a_failed_tool_is_a_result_and_an_empty_one_says_so() {
    let output = output(json!({"content": [], "isError": true})).await;
    assert_eq!(output.content, [Content::Text("[the tool gave nothing back]".into())]);
    assert!(matches!(output.facts, Facts::Remote(RemoteReport { failed: true, .. })));
}

#[tokio::test]
async fn a_long_result_is_kept_whole_and_bounded_in_memory() {
    let long = format!("begin{}end", "ä".repeat(MAX_TEXT_BYTES));
    let output =
        output(json!({"content": [{"type": "text", "text": long}], "structuredContent": {"a": long}})).await;
    let Facts::Remote(RemoteReport { whole: Some(Whole::File { bytes, .. }), output_bytes, .. }) =
        output.facts
    else {
        panic!("not kept");
    };
    assert!(bytes == output_bytes && bytes > 2 * long.len() as u64);
    let shown = Content::join(&output.content);
    assert!(shown.starts_with("beginä") && shown.ends_with("äend\"}"), "{}", &shown[shown.len() - 50..]);
    assert!(shown.len() < MAX_TEXT_BYTES + 100);
    assert_eq!(output.data, None);
}

//! Asks a model one thing, with one tool on offer, and shows every event of its answer.
//!
//! ```sh
//! cargo run -p windlass-model --example ask -- chat http://127.0.0.1:8080/v1 MODEL "What is the weather in Oslo?"
//! ```

use std::{
    error::Error,
    io::{self, Write},
};

use serde_json::json;
use windlass_contract::{
    Content, Item, ToolSpec,
    call::InputKind,
    item::{Body, Cached, Role},
    model::{ModelEvent, Prompt},
    spec::SpecKind,
};
use windlass_model::{Options, Provider, WireApi, connect};
use windlass_schema::Schema;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [wire, base_url, model, question] = arguments()?;
    let wire_api = if wire == "chat" { WireApi::Chat } else { WireApi::Responses };
    let provider = Provider { base_url: Some(base_url), wire_api, ..Provider::default() };
    let client =
        connect("ask", &provider, Options { model, ..Options::default() }, &|name| std::env::var(name).ok())?;

    let parameters = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tools = Cached::new(vec![ToolSpec {
        name: "get_weather".into(),
        description: "Tell the weather in a city.".to_owned(),
        kind: SpecKind::Function { parameters: Schema::new(&parameters)? },
    }]);
    let mut history = vec![Cached::new(Item::message(Role::User, question))];
    loop {
        let mut answer = client
            .open(Prompt {
                thread: &"ask".into(),
                instructions: "You are a helpful assistant. Use tools where they help.",
                history: &history,
                tools: &tools,
                parallel_calls: false,
                output_schema: None,
            })
            .await?;
        let mut outputs = Vec::new();
        while let Some(event) = answer.next().await {
            let event = event?;
            writeln!(io::stdout(), "{event:?}")?;
            if let ModelEvent::Item(item) = event {
                if let Body::Call(call) = &item.body {
                    let content = vec![Content::Text("12 degrees and rain".to_owned())];
                    outputs.push(Item::from(Body::Output {
                        call: call.id.clone(),
                        input: InputKind::Json,
                        content,
                        failed: false,
                    }));
                }
                history.push(item.into());
            }
        }
        if outputs.is_empty() {
            return Ok(());
        }
        history.extend(outputs.into_iter().map(Cached::new));
    }
}

fn arguments() -> Result<[String; 4], &'static str> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    given.try_into().map_err(|_| "usage: ask responses|chat BASE_URL MODEL QUESTION")
}

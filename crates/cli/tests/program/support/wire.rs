//! What a model says, as each wire writes it, and what it is told.

use serde_json::{Value, json};

use super::{Reply, Request, Step};

/// The wires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Responses,
    Chat,
    Messages,
}

/// A call: its id, its tool and its arguments.
pub(crate) type Call = (&'static str, &'static str, Value);

/// A call of the shell.
pub(crate) fn command(id: &'static str, command: &str) -> Call {
    (id, "shell_command", json!({"command": command, "timeout_ms": 60_000}))
}

impl Wire {
    pub(crate) const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// Its name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }

    /// Where its requests go.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
            Self::Messages => "/v1/messages",
        }
    }

    /// The model says something and is done.
    pub(crate) fn says(self, text: &str) -> Reply {
        whole(&[self.text(text), self.done()].concat())
    }

    /// The model asks for tools.
    pub(crate) fn asks(self, calls: &[Call]) -> Reply {
        whole(&[self.calls(calls), self.done()].concat())
    }

    /// The model asks for tools, with arguments that need not be JSON.
    pub(crate) fn asks_in_writing(self, calls: &[(&str, &str, &str)]) -> Reply {
        whole(&[self.written_calls(calls), self.done()].concat())
    }

    /// The beginning of a stream: these events and no end.
    pub(crate) fn begins(events: &[String]) -> Reply {
        Reply::begun(&events.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The events of a text.
    pub(crate) fn text(self, text: &str) -> Vec<String> {
        match self {
            Self::Responses => {
                let content = json!([{"type": "output_text", "text": text}]);
                vec![item(&json!({"type": "message", "id": "msg", "role": "assistant", "content": content}))]
            }
            Self::Chat => vec![chunk(&json!({"role": "assistant", "content": text}), None)],
            Self::Messages => {
                let delta = json!({"type": "text_delta", "text": text});
                block(0, &json!({"type": "text", "text": ""}), &delta)
            }
        }
    }

    /// The events of some calls.
    pub(crate) fn calls(self, calls: &[Call]) -> Vec<String> {
        let written: Vec<_> =
            calls.iter().map(|(id, name, arguments)| (*id, *name, arguments.to_string())).collect();
        let written: Vec<_> = written.iter().map(|(id, name, text)| (*id, *name, text.as_str())).collect();
        self.written_calls(&written)
    }

    fn written_calls(self, calls: &[(&str, &str, &str)]) -> Vec<String> {
        let responses = |(id, name, arguments): &(&str, &str, &str)| {
            item(&json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}))
        };
        let chat = |(at, (id, name, arguments)): (usize, &(&str, &str, &str))| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"index": at, "id": id, "type": "function", "function": function})
        };
        let messages = |(at, (id, name, arguments)): (usize, &(&str, &str, &str))| {
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            block(at + 1, &json!({"type": "tool_use", "id": id, "name": name, "input": {}}), &delta)
        };
        match self {
            Self::Responses => calls.iter().map(responses).collect(),
            Self::Chat => {
                let calls: Vec<_> = calls.iter().enumerate().map(chat).collect();
                vec![chunk(&json!({"tool_calls": calls}), Some("tool_calls"))]
            }
            Self::Messages => calls.iter().enumerate().flat_map(messages).collect(),
        }
    }

    /// The end of an answer that cost 7 tokens: 5 in, 2 of them from the cache, and 2 out.
    pub(crate) fn done(self) -> Vec<String> {
        match self {
            Self::Responses => {
                let usage = json!({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 2});
                vec![
                    json!({"type": "response.completed", "response": {"id": "r", "usage": usage}})
                        .to_string(),
                ]
            }
            Self::Chat => {
                let usage = json!({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens": 2});
                let usage = json!({"choices": [], "usage": usage}).to_string();
                vec![chunk(&json!({}), Some("stop")), usage, "[DONE]".to_owned()]
            }
            Self::Messages => {
                let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 2});
                let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
                let end = json!({"type": "message_delta", "delta": delta, "usage": usage});
                vec![end.to_string(), json!({"type": "message_stop"}).to_string()]
            }
        }
    }

    /// The conversation in a request: items here, messages there. The marks for the server's cache,
    /// which move on with every request, are left out.
    pub(crate) fn conversation(self, request: &Request) -> Vec<Value> {
        let mut conversation = self.sent_conversation(request).to_vec();
        if self == Self::Messages {
            let contents = conversation.iter_mut().filter_map(|message| message["content"].as_array_mut());
            for block in contents.flatten().filter_map(Value::as_object_mut) {
                block.remove("cache_control");
            }
        }
        conversation
    }

    fn sent_conversation(self, request: &Request) -> &[Value] {
        let name = match self {
            Self::Responses => "input",
            Self::Chat | Self::Messages => "messages",
        };
        request.body[name].as_array().unwrap()
    }

    /// The outputs of calls in a request: id and text without the time it took, in order.
    pub(crate) fn outputs(self, request: &Request) -> Vec<(&str, String)> {
        let (kind, id, text) = match self {
            Self::Responses => (("type", "function_call_output"), "call_id", "output"),
            Self::Chat => (("role", "tool"), "tool_call_id", "content"),
            Self::Messages => (("type", "tool_result"), "tool_use_id", "content"),
        };
        let items =
            self.sent_conversation(request).iter().flat_map(|item| match item["content"].as_array() {
                Some(blocks) if self == Self::Messages => blocks.as_slice(),
                _ => std::slice::from_ref(item),
            });
        let outputs = items.filter(|item| item[kind.0] == kind.1);
        let timeless = |text: &Value| {
            let parts = text.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            let whole = text.as_str().map_or_else(|| parts.collect::<Vec<_>>().join("\n"), str::to_owned);
            let lines = whole.lines().filter(|line| !line.starts_with("Wall time: "));
            lines.collect::<Vec<_>>().join("\n")
        };
        outputs.map(|item| (item[id].as_str().unwrap(), timeless(&item[text]))).collect()
    }
}

/// A stream of these events, to its end, in one piece: a client that has all it needs does not wait
/// for the rest.
fn whole(events: &[String]) -> Reply {
    let Reply(steps) = Reply::events(&events.iter().map(String::as_str).collect::<Vec<_>>());
    let bytes = steps.into_iter().flat_map(|step| match step {
        Step::Send(bytes) => bytes,
        _ => Vec::new(),
    });
    Reply(vec![Step::Send(bytes.collect())])
}

fn item(item: &Value) -> String {
    json!({"type": "response.output_item.done", "item": item}).to_string()
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}).to_string()
}

/// The events of a block of the Messages API.
fn block(index: usize, start: &Value, delta: &Value) -> Vec<String> {
    [
        json!({"type": "content_block_start", "index": index, "content_block": start}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
    .map(|event| event.to_string())
    .to_vec()
}

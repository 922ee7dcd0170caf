//! Tasks that test whether a model can call tools: a few tools that do nothing, and tasks with
//! answers that can be checked.

use serde_json::{Value, json};
use windlass::{
    Body, Cached, Content, Input, InputKind, Item, Role, Schema, SchemaError, SpecKind, ToolCall, ToolSpec,
    shortened,
};

/// The instructions before each task.
pub(super) const INSTRUCTIONS: &str = "You are an assistant with tools. When a tool can do what is asked, call it at once \
     and do not ask back. When no tool is needed, answer in a few words.";

/// A task.
#[derive(Debug)]
pub(super) struct ProbeTask {
    /// The subject, for a table.
    pub(super) name: &'static str,
    pub(super) history: fn() -> Vec<Cached<Item>>,
    check: TaskCheck,
}

#[derive(Debug)]
enum TaskCheck {
    /// Exactly these calls, in any order.
    Calls(&'static [WantedCall]),
    /// No call, and an answer with one of these words in it; any answer, if there are none.
    Answer(&'static [&'static str]),
}

/// An expected call: its tool, and a condition on its arguments.
type WantedCall = (&'static str, fn(&Value) -> bool);

/// The tasks, the simplest first.
pub(super) const TASKS: [ProbeTask; 7] = [
    ProbeTask {
        name: "one call",
        history: || says("What is the weather in Paris?"),
        check: TaskCheck::Calls(&[("get_weather", |given| is(given, "/city", "Paris"))]),
    },
    ProbeTask {
        name: "two calls",
        history: || says("What is the weather in Rome, and what is it in Madrid? Look up both at once."),
        check: TaskCheck::Calls(&[
            ("get_weather", |given| is(given, "/city", "Rome")),
            ("get_weather", |given| is(given, "/city", "Madrid")),
        ]),
    },
    ProbeTask {
        name: "enum",
        history: || says("Make the light in the kitchen red."),
        check: TaskCheck::Calls(&[("set_light", |given| {
            is(given, "/room", "kitchen") && given.pointer("/color") == Some(&json!("red"))
        })]),
    },
    ProbeTask {
        name: "nested",
        history: || says("Book a table at 19:30 for 4 people; the guest's name is Kim."),
        check: TaskCheck::Calls(&[("book_table", |given| {
            is(given, "/guest/name", "Kim") && given.pointer("/guest/people") == Some(&json!(4))
        })]),
    },
    ProbeTask {
        name: "Chinese",
        history: || says("请用 add_note 把这句话记下来：明天下午三点开会"),
        check: TaskCheck::Calls(&[("add_note", |given| is(given, "/text", "明天下午三点开会"))]),
    },
    ProbeTask {
        name: "no tool",
        history: || says("What is 2 + 2?"),
        check: TaskCheck::Answer(&["4", "four"]),
    },
    ProbeTask {
        name: "result",
        history: conversation_with_result,
        check: TaskCheck::Answer(&["-3", "−3", "minus 3", "minus three", "snow"]),
    },
];

/// The tools of all tasks.
pub(super) fn tools() -> Result<Vec<ToolSpec>, SchemaError> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let rows = [
        (
            "get_weather",
            "Look up the weather of one city.",
            json!({"city": text("The city, by its name only.")}),
            vec!["city"],
        ),
        (
            "set_light",
            "Change the colour of the light in a room.",
            json!({"room": text("The room."), "color": {"type": "string", "enum": ["white", "red", "blue"]}}),
            vec!["room", "color"],
        ),
        (
            "book_table",
            "Book a table in the restaurant.",
            json!({
                "time": text("The time, as HH:MM."),
                "guest": {
                    "type": "object",
                    "properties": {"name": text("The guest's name."), "people": {"type": "integer"}},
                    "required": ["name", "people"]
                }
            }),
            vec!["time", "guest"],
        ),
        ("add_note", "Write down a note.", json!({"text": text("The note, word for word.")}), vec!["text"]),
    ];
    let spec = |(name, about, properties, required): (&str, &str, Value, Vec<&str>)| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let parameters = Schema::new(&schema)?;
        Ok(ToolSpec {
            name: name.into(),
            description: about.to_owned(),
            kind: SpecKind::Function { parameters },
        })
    };
    rows.into_iter().map(spec).collect()
}

impl ProbeTask {
    /// Returns true if the task needs a call.
    pub(super) fn wants_call(&self) -> bool {
        matches!(self.check, TaskCheck::Calls(_))
    }

    /// Returns an error that describes what is wrong with an answer.
    pub(super) fn judge(&self, calls: &[ToolCall], text: &str) -> Result<(), String> {
        match self.check {
            TaskCheck::Answer(_) if !calls.is_empty() => Err(format!("called {}", calls[0].name)),
            TaskCheck::Answer(words) => {
                let text = text.to_lowercase();
                let is_right = words.iter().any(|word| text.contains(word));
                if is_right { Ok(()) } else { Err(format!("answered {}", clipped(&text))) }
            }
            TaskCheck::Calls(wanted) => fits(wanted, calls, text),
        }
    }
}

fn fits(wanted: &[WantedCall], calls: &[ToolCall], text: &str) -> Result<(), String> {
    if calls.is_empty() {
        return Err(format!("no call, but {}", clipped(text)));
    }
    if calls.len() != wanted.len() {
        return Err(format!("{} of {} calls", calls.len(), wanted.len()));
    }
    let mut left: Vec<&ToolCall> = calls.iter().collect();
    for (tool, holds) in wanted {
        let is_this = |call: &&ToolCall| {
            let given = serde_json::from_str(call.input.as_str()).unwrap_or(Value::Null);
            call.name.as_str() == *tool && holds(&given)
        };
        let Some(at) = left.iter().position(is_this) else {
            let call = left[0];
            return Err(format!("{} with {}", clipped(call.name.as_str()), clipped(call.input.as_str())));
        };
        left.remove(at);
    }
    Ok(())
}

/// Returns the beginning of a model's text, safe for a terminal.
fn clipped(text: &str) -> String {
    format!("{:?}", shortened(text.trim(), 60))
}

/// Returns true if a text is present and equal to this one; case and surrounding blanks do not
/// count.
fn is(given: &Value, path: &str, wanted: &str) -> bool {
    let text = given.pointer(path).and_then(Value::as_str);
    text.is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase()))
}

fn says(text: &str) -> Vec<Cached<Item>> {
    vec![Item::message(Role::User, text).into()]
}

/// Returns a conversation in which a tool has been called, so that only the answer is missing.
fn conversation_with_result() -> Vec<Cached<Item>> {
    let input = Input::Json(r#"{"city": "Oslo"}"#.to_owned());
    let call = ToolCall { id: "call_oslo".into(), name: "get_weather".into(), input };
    let content = vec![Content::Text("-3 degrees, snow".to_owned())];
    let output = Body::Output { call: call.id.clone(), input: InputKind::Json, content, failed: false };
    let mut history = says("What is the weather in Oslo?");
    history.extend([Item::from(Body::Call(call)).into(), Item::from(output).into()]);
    history
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &Value) -> ToolCall {
        ToolCall { id: "c".into(), name: name.into(), input: Input::Json(arguments.to_string()) }
    }

    fn judged(task: &str, calls: &[ToolCall], text: &str) -> String {
        let task = TASKS.iter().find(|each| each.name == task).unwrap();
        task.judge(calls, text).err().unwrap_or_else(|| "right".to_owned())
    }

    #[test]
    fn right_answers_are_told_from_wrong_ones() {
        let weather = |city: &str| call("get_weather", &json!({"city": city}));
        let both = [weather("madrid, Spain"), weather("Rome")];
        assert_eq!(judged("two calls", &both, ""), "right");
        assert_eq!(judged("two calls", &both[..1], ""), "1 of 2 calls");
        assert_eq!(
            judged("two calls", &[weather("Rome"), weather("Rome")], ""),
            r#""get_weather" with "{\"city\":\"Rome\"}""#
        );
        assert_eq!(judged("one call", &[], "I \u{1b}[31mcannot"), r#"no call, but "I \u{1b}[31mcannot""#);
        let table = json!({"time": "19:30", "guest": {"name": "Kim", "people": 4}});
        assert_eq!(judged("nested", &[call("book_table", &table)], ""), "right");
        assert_eq!(judged("no tool", &[], "It is 4."), "right");
        assert_eq!(judged("no tool", &[weather("4")], "4"), "called get_weather");
        assert_eq!(judged("result", &[], "Snow, at -3."), "right");
    }

    #[test]
    fn every_tool_of_a_task_is_offered() {
        let offered = tools().unwrap();
        for task in &TASKS {
            let TaskCheck::Calls(calls) = task.check else { continue };
            for (name, _) in calls {
                assert!(offered.iter().any(|tool| tool.name.as_str() == *name), "{name}");
            }
        }
    }
}

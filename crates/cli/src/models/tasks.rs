//! What a model is asked to show that it can call tools: a few tools that do nothing, and tasks with an answer that can be
//! checked.

use serde_json::{Value, json};
use windlass::{
    Body, Cached, Content, Input, InputKind, Item, Role, Schema, SchemaError, SpecKind, ToolCall, ToolSpec,
};

/// What the model is told before each task.
pub(super) const INSTRUCTIONS: &str = "You are an assistant with tools. When a tool can do what is asked, call it at once \
     and do not ask back. When no tool is needed, answer in a few words.";

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    /// What it is about, for a table.
    pub(super) name: &'static str,
    pub(super) history: fn() -> Vec<Cached<Item>>,
    check: Check,
}

#[derive(Debug)]
enum Check {
    /// Exactly these calls, in any order.
    Calls(&'static [Wanted]),
    /// No call, and an answer with one of these words in it; any answer, if there are none.
    Answer(&'static [&'static str]),
}

/// A call that is wanted: its tool, and what must hold for its arguments.
type Wanted = (&'static str, fn(&Value) -> bool);

/// The tasks, the simplest first.
pub(super) const TASKS: [Task; 7] = [
    Task {
        name: "one call",
        history: || says("What is the weather in Paris?"),
        check: Check::Calls(&[("get_weather", |given| is(given, "/city", "Paris"))]),
    },
    Task {
        name: "two calls",
        history: || says("What is the weather in Rome, and what is it in Madrid? Look up both at once."),
        check: Check::Calls(&[
            ("get_weather", |given| is(given, "/city", "Rome")),
            ("get_weather", |given| is(given, "/city", "Madrid")),
        ]),
    },
    Task {
        name: "enum",
        history: || says("Make the light in the kitchen red."),
        check: Check::Calls(&[("set_light", |given| {
            is(given, "/room", "kitchen") && given.pointer("/color") == Some(&json!("red"))
        })]),
    },
    Task {
        name: "nested",
        history: || says("Book a table at 19:30 for 4 people; the guest's name is Kim."),
        check: Check::Calls(&[("book_table", |given| {
            is(given, "/guest/name", "Kim") && given.pointer("/guest/people") == Some(&json!(4))
        })]),
    },
    Task {
        name: "Chinese",
        history: || says("请用 add_note 把这句话记下来：明天下午三点开会"),
        check: Check::Calls(&[("add_note", |given| is(given, "/text", "明天下午三点开会"))]),
    },
    Task { name: "no tool", history: || says("What is 2 + 2?"), check: Check::Answer(&["4", "four"]) },
    Task {
        name: "result",
        history: after_a_result,
        check: Check::Answer(&["-3", "−3", "minus 3", "minus three", "snow"]),
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

impl Task {
    /// Whether it takes a call.
    pub(super) fn wants_call(&self) -> bool {
        matches!(self.check, Check::Calls(_))
    }

    /// Whether an answer is right; if not, what is wrong with it.
    pub(super) fn judge(&self, calls: &[ToolCall], text: &str) -> Result<(), String> {
        match self.check {
            Check::Answer(_) if !calls.is_empty() => Err(format!("called {}", calls[0].name)),
            Check::Answer(words) => {
                let text = text.to_lowercase();
                let is_right = words.iter().any(|word| text.contains(word));
                if is_right { Ok(()) } else { Err(format!("answered {}", clipped(&text))) }
            }
            Check::Calls(wanted) => fits(wanted, calls, text),
        }
    }
}

fn fits(wanted: &[Wanted], calls: &[ToolCall], text: &str) -> Result<(), String> {
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

/// A few words of what a model wrote, without anything that could trouble a terminal.
fn clipped(text: &str) -> String {
    let mut short: String = text.trim().chars().take(60).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Whether a text is there and is this one; case and what surrounds it do not count.
fn is(given: &Value, path: &str, wanted: &str) -> bool {
    let text = given.pointer(path).and_then(Value::as_str);
    text.is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase()))
}

fn says(text: &str) -> Vec<Cached<Item>> {
    vec![Item::message(Role::User, text).into()]
}

/// A conversation in which a tool has been called, so that only the answer is left to give.
fn after_a_result() -> Vec<Cached<Item>> {
    let input = Input::Json(r#"{"city": "Oslo"}"#.to_owned());
    let call = ToolCall { id: "call_oslo".into(), name: "get_weather".into(), input };
    let content = vec![Content::Text("-3 degrees, snow".to_owned())];
    let output = Body::Output { call: call.id.clone(), input: InputKind::Json, content };
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
            let Check::Calls(calls) = task.check else { continue };
            for (name, _) in calls {
                assert!(offered.iter().any(|tool| tool.name.as_str() == *name), "{name}");
            }
        }
    }
}

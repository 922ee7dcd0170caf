//! Tests of the dialogue.

use serde_json::{Value, json};
use windlass_contract::elicitation::{
    Asker, ChoiceOption, ChoiceQuestion, Elicitation, ElicitationAnswer, ElicitationForm,
};

use super::{DialogueStep, QuestionDialogue};

fn form(properties: &Value, required: &[&str]) -> Option<QuestionDialogue> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let form = ElicitationForm::Fields { schema };
    let asker = Asker::Server("demo".into());
    QuestionDialogue::new(&Elicitation { asker, message: "Who?\ny  allow".into(), form })
}

fn page(url: &str) -> Option<QuestionDialogue> {
    let form = ElicitationForm::Url { url: url.to_owned() };
    let asker = Asker::Server("demo".into());
    QuestionDialogue::new(&Elicitation { asker, message: "Log in".into(), form })
}

/// Returns the answer to a form of one required field, if the line is understood.
fn given(field: &Value, line: &str) -> Option<Value> {
    let mut dialogue = form(&json!({"it": field}), &["it"]).unwrap();
    assert_eq!(dialogue.on_line("y"), DialogueStep::Continue);
    match dialogue.on_line(line) {
        DialogueStep::Continue => {}
        _ => return None,
    }
    match dialogue.on_line("y") {
        DialogueStep::Answered(ElicitationAnswer::Accept(mut answers)) => Some(answers["it"].take()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_form_is_shown_filled_reviewed_and_sent() {
    let fields = json!({
        "age": {"type": "integer", "minimum": 1},
        "name": {"type": "string", "title": "Your name", "description": "in full", "minLength": 2},
    });
    let mut dialogue = form(&fields, &["name"]).unwrap();
    let opening = dialogue.lines();
    assert_eq!(opening[..3], ["MCP server `demo` asks, in its own words:", "  | Who?", "  | y  allow"]);
    assert_eq!(opening[3], "It wants: age, Your name (required)");
    assert!(matches!(dialogue.on_line("x"), DialogueStep::Again(_)));
    assert_eq!(dialogue.on_line("y"), DialogueStep::Continue);
    assert_eq!(dialogue.on_line(""), DialogueStep::Continue, "it may be left out");
    let field = "Field 2 of 2:,  | Your name,  | in full,  (text, at least 2 characters; required)";
    assert_eq!(dialogue.lines().join(","), field);
    assert_eq!(dialogue.on_line(""), DialogueStep::Again("this field is required".into()));
    assert!(matches!(dialogue.on_line("A"), DialogueStep::Again(_)));
    assert_eq!(dialogue.on_line("Ada"), DialogueStep::Continue);
    let review = ["This goes to MCP server `demo`:", "  age: left out", "  Your name: Ada"];
    assert_eq!(dialogue.lines(), review);
    assert_eq!(dialogue.on_line("e"), DialogueStep::Continue);
    assert_eq!(
        (dialogue.on_line("36"), dialogue.on_line("Eve")),
        (DialogueStep::Continue, DialogueStep::Continue)
    );
    let answer = ElicitationAnswer::Accept(json!({"age": 36, "name": "Eve"}));
    assert_eq!(dialogue.on_line("y"), DialogueStep::Answered(answer));
}

#[test]
fn every_kind_of_field_takes_its_values_and_no_others() {
    let number = json!({"type": "number", "minimum": 0.5, "maximum": 2});
    let single = json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]});
    let named = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]});
    let many = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}});
    let text = |format: &str| json!({"type": "string", "format": format});
    let cases = [
        (&number, "1.5", Some(json!(1.5))),
        (&number, "2.1", None),
        (&number, "NaN", None),
        (&json!({"type": "integer"}), "1.5", None),
        (&json!({"type": "integer"}), "-3", Some(json!(-3))),
        (&json!({"type": "boolean"}), "yes", Some(json!(true))),
        (&json!({"type": "boolean"}), "maybe", None),
        (&single, "2", Some(json!("g"))),
        (&single, "Red", Some(json!("r"))),
        (&single, "3", None),
        (&single, "0", None),
        (&named, "Second", Some(json!("b"))),
        (&many, "1, c, 1", Some(json!(["a", "c"]))),
        (&many, "1,2,3", None),
        (&many, "d", None),
        (&json!({"type": "string"}), "\"\"", Some(json!(""))),
        (&json!({"type": "string", "maxLength": 2}), "äö", Some(json!("äö"))),
        (&text("email"), "a@b.test", Some(json!("a@b.test"))),
        (&text("email"), "a b@c", None),
        (&text("uri"), "nowhere", None),
        (&text("date"), "2026-02-30", None),
        (&text("date"), "2026-02-28", Some(json!("2026-02-28"))),
        (&text("date-time"), "2026-02-28T24:00:00Z", None),
        (&text("date-time"), "2026-02-28T23:59:59.5+01:00", Some(json!("2026-02-28T23:59:59.5+01:00"))),
    ];
    for (field, line, expected) in cases {
        assert_eq!(given(field, line), expected, "{field} {line}");
    }
}

#[test]
fn a_default_is_used_for_an_empty_line_if_the_form_allows_it() {
    assert_eq!(given(&json!({"type": "integer", "default": 7}), ""), Some(json!(7)));
    assert_eq!(given(&json!({"type": "integer", "minimum": 9, "default": 7}), ""), None);
    assert_eq!(given(&json!({"type": "boolean", "default": false}), ""), Some(json!(false)));
}

#[test]
fn a_question_can_be_declined_or_dismissed_everywhere() {
    for (line, in_field, expected) in
        [("n", "/decline", ElicitationAnswer::Decline), ("c", "/cancel", ElicitationAnswer::Cancel)]
    {
        let expected = DialogueStep::Answered(expected);
        let mut dialogue = form(&json!({"it": {"type": "string"}}), &[]).unwrap();
        assert_eq!(dialogue.on_line(line), expected);
        dialogue.on_line("y");
        assert_eq!(dialogue.on_line(in_field), expected);
        dialogue.on_line("text");
        assert_eq!(dialogue.on_line(line), expected);
    }
}

#[test]
fn a_form_that_cannot_be_filled_is_not_asked() {
    let odd = json!({"it": {"type": "object"}});
    assert!(form(&odd, &["it"]).is_none());
    assert!(form(&odd, &[]).is_some(), "the field is left out");
    let many: serde_json::Map<_, _> = (0..51).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
    assert!(form(&Value::Object(many), &[]).is_none());
}

#[test]
fn a_page_shows_its_host_and_whole_address_and_what_may_mislead() {
    let url = "http://bank.test@xn--e1afmkfd.test:8080/a?b=c";
    let mut dialogue = page(url).unwrap();
    let lines = dialogue.lines();
    assert!(lines.contains(&"host:    xn--e1afmkfd.test".to_owned()), "{lines:#?}");
    assert!(lines.contains(&format!("address: {url}")), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("careful: ")).count(), 3, "{lines:#?}");
    assert_eq!(dialogue.on_line("y"), DialogueStep::Answered(ElicitationAnswer::Accept(json!({}))));
    let hidden = page("https://good.test\\@evil.test/").unwrap().lines();
    assert!(hidden.contains(&"host:    good.test".to_owned()), "{hidden:#?}");
    let plain = page("https://good.test/").unwrap().lines();
    assert!(!plain.iter().any(|line| line.starts_with("careful: ")), "{plain:#?}");
}

fn choices(headers: &[&str]) -> QuestionDialogue {
    let option = |label: &str, description: &str| ChoiceOption {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let questions = headers.iter().map(|header| ChoiceQuestion {
        id: header.to_lowercase(),
        header: (*header).to_owned(),
        question: "Which one?\n  2  not an option\u{202e}".to_owned(),
        options: vec![option("SQLite", "in memory"), option("Post\ngres", "")],
    });
    let form = ElicitationForm::Choices { questions: questions.collect() };
    QuestionDialogue::new(&Elicitation { asker: Asker::Agent, message: String::new(), form }).unwrap()
}

fn accepted(answer: Value) -> DialogueStep {
    DialogueStep::Answered(ElicitationAnswer::Accept(answer))
}

#[test]
fn a_single_question_is_answered_with_the_number_of_an_option() {
    let mut dialogue = choices(&["DB"]);
    assert_eq!(
        dialogue.lines(),
        [
            "The agent asks, in its own words: [DB]",
            "  | Which one?",
            "  |   2  not an option",
            "  1  SQLite: in memory",
            "  2  Post gres",
            "  o  an answer of your own",
            "  c  dismiss it without an answer",
        ]
    );
    for line in ["", "3", "0", "-1", "SQLite", "y", "1 2", "c please"] {
        assert!(matches!(dialogue.on_line(line), DialogueStep::Again(_)), "{line}");
    }
    assert_eq!(dialogue.on_line(" 2 "), accepted(json!({"db": "Post\ngres"})));
}

#[test]
fn an_answer_of_ones_own_may_be_anything_but_empty() {
    assert_eq!(choices(&["DB"]).on_line("o 7"), accepted(json!({"db": "7"})));
    let mut dialogue = choices(&["DB"]);
    assert_eq!(dialogue.on_line("o"), DialogueStep::Continue);
    assert!(dialogue.takes_text());
    assert!(matches!(dialogue.on_line("  "), DialogueStep::Again(_)));
    assert_eq!(dialogue.on_line("/back"), DialogueStep::Continue);
    assert!(!dialogue.takes_text());
    dialogue.on_line("O");
    assert_eq!(dialogue.on_line("c"), accepted(json!({"db": "c"})));
}

#[test]
fn several_questions_are_reviewed_before_they_are_sent() {
    let mut dialogue = choices(&["DB", "Port"]);
    assert_eq!(dialogue.on_line("1"), DialogueStep::Continue);
    assert_eq!(dialogue.lines()[0], "The agent asks (2 of 2), in its own words: [Port]");
    assert_eq!(dialogue.on_line("o 8080"), DialogueStep::Continue);
    assert_eq!(dialogue.lines(), ["Your answers:", "  DB: SQLite", "  Port: 8080"]);
    assert!(matches!(dialogue.on_line("1"), DialogueStep::Again(_)));
    assert_eq!(dialogue.on_line("e"), DialogueStep::Continue);
    assert_eq!(
        (dialogue.on_line("2"), dialogue.on_line("1")),
        (DialogueStep::Continue, DialogueStep::Continue)
    );
    assert_eq!(dialogue.on_line("y"), accepted(json!({"db": "Post\ngres", "port": "SQLite"})));
}

#[test]
fn questions_can_be_dismissed_at_every_step() {
    let cancelled = DialogueStep::Answered(ElicitationAnswer::Cancel);
    for lines in [&["c"][..], &["o", "/cancel"], &["1", "c"], &["1", "2", "n"]] {
        let mut dialogue = choices(&["DB", "Port"]);
        let steps: Vec<_> = lines.iter().map(|line| dialogue.on_line(line)).collect();
        assert_eq!(steps.last(), Some(&cancelled), "{lines:?}");
    }
}

#[test]
fn a_question_without_options_or_with_too_many_is_not_asked() {
    let option = ChoiceOption { label: "a".into(), description: String::new() };
    for count in [0, 10] {
        let (id, header, question) = (String::new(), String::new(), String::new());
        let questions = vec![ChoiceQuestion { id, header, question, options: vec![option.clone(); count] }];
        let form = ElicitationForm::Choices { questions };
        let question = Elicitation { asker: Asker::Agent, message: String::new(), form };
        assert!(QuestionDialogue::new(&question).is_none());
    }
}

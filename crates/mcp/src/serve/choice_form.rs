//! Questions with options as a form that every client knows: a choice and a text for each question.

use serde_json::{Map, Value, json};
use windlass_contract::elicitation::{Asker, ChoiceOption, ChoiceQuestion, ElicitationAnswer};

use crate::untrusted_text::{visible_line, visible_text};

/// The choice of an answer of one's own.
const OTHER: &str = "other";

/// Maximum length of a title, and of an option with its description.
const MAX_HEADER: usize = 60;
const MAX_OPTION: usize = 600;

/// Returns the message above the form.
pub(super) fn message(asker: &Asker, message: &str, questions: &[ChoiceQuestion]) -> String {
    let texts = questions.iter().map(|question| visible_text(&question.question));
    let texts: Vec<_> =
        Some(message.to_owned()).filter(|text| !text.is_empty()).into_iter().chain(texts).collect();
    format!("A question of {}: {}", asker.title(), texts.join("\n"))
}

/// Returns the schema of the form.
pub(super) fn schema(questions: &[ChoiceQuestion]) -> Value {
    let mut properties = Map::new();
    for (number, question) in (1..).zip(questions) {
        let mut values: Vec<_> = (1..=question.options.len()).map(|value| value.to_string()).collect();
        let mut names: Vec<_> = question.options.iter().map(option_name).collect();
        values.push(OTHER.to_owned());
        names.push("another answer".to_owned());
        let title = visible_line(&question.header, MAX_HEADER);
        let description = visible_text(&question.question);
        properties.insert(
            choice_key(number),
            json!({"type": "string", "title": title, "description": description, "enum": values, "enumNames": names}),
        );
        properties
            .insert(text_key(number), json!({"type": "string", "title": format!("{title}: another answer")}));
    }
    let required: Vec<_> = (1..=questions.len()).map(choice_key).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Returns the answers by the ids of the questions. An answer that was not on offer counts as none.
pub(super) fn answers(questions: &[ChoiceQuestion], answer: ElicitationAnswer) -> ElicitationAnswer {
    let ElicitationAnswer::Accept(fields) = answer else { return answer };
    let answered = (1..).zip(questions).filter_map(|(number, question)| {
        let chosen = fields.get(choice_key(number)).and_then(Value::as_str)?;
        let own = || fields.get(text_key(number)).and_then(Value::as_str).map(str::trim);
        let text = match chosen {
            OTHER => own().filter(|text| !text.is_empty())?.to_owned(),
            number => question.options.get(number.parse::<usize>().ok()?.checked_sub(1)?)?.label.clone(),
        };
        Some((question.id.clone(), Value::String(text)))
    });
    ElicitationAnswer::Accept(Value::Object(answered.collect()))
}

fn choice_key(number: usize) -> String {
    format!("answer_{number}")
}

fn text_key(number: usize) -> String {
    format!("own_answer_{number}")
}

fn option_name(option: &ChoiceOption) -> String {
    let name = match option.description.as_str() {
        "" => option.label.clone(),
        description => format!("{}: {description}", option.label),
    };
    visible_line(&name, MAX_OPTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions() -> Vec<ChoiceQuestion> {
        let option = |label: &str| ChoiceOption { label: label.to_owned(), description: String::new() };
        let question = |id: &str| ChoiceQuestion {
            id: id.to_owned(),
            header: id.to_uppercase(),
            question: "Q?".to_owned(),
            options: vec![option("a"), option("other")],
        };
        vec![question("x"), question("y")]
    }

    #[test]
    fn a_form_asks_for_a_choice_and_a_text_and_fits_the_protocol() {
        let schema = schema(&questions());
        assert_eq!(schema["properties"]["answer_1"]["enum"], json!(["1", "2", "other"]));
        assert_eq!(schema["required"], json!(["answer_1", "answer_2"]));
        assert!(serde_json::from_value::<rmcp::model::ElicitationSchema>(schema).is_ok());
    }

    #[test]
    fn only_what_was_on_offer_becomes_an_answer() {
        let answered = |fields: Value| match answers(&questions(), ElicitationAnswer::Accept(fields)) {
            ElicitationAnswer::Accept(answers) => answers,
            other => panic!("{other:?}"),
        };
        let own = json!({"answer_1": "2", "answer_2": "other", "own_answer_2": " mine "});
        assert_eq!(answered(own), json!({"x": "other", "y": "mine"}));
        for wrong in [
            json!({"answer_1": "3"}),
            json!({"answer_1": "0"}),
            json!({"answer_1": "a"}),
            json!({"answer_1": 1}),
            json!({"answer_1": "other", "own_answer_1": " "}),
            json!({"x": "a", "own_answer_1": "mine"}),
        ] {
            assert_eq!(answered(wrong.clone()), json!({}), "{wrong}");
        }
        assert_eq!(answers(&questions(), ElicitationAnswer::Decline), ElicitationAnswer::Decline);
    }
}

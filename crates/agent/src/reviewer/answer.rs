//! Parses a reviewer's answer as models write it: a fraction or a word instead of per cent, a code
//! fence around the JSON, one line instead of a list.

use serde_json::Value;
use windlass_contract::verdict::Opinion;

/// Parses the opinion in an answer.
pub(super) fn parse_opinion(answer: &str) -> Result<Opinion, String> {
    let answer: Value = serde_json::from_str(without_fence(answer)).map_err(|error| error.to_string())?;
    let part = |name: &str| answer.get(name).unwrap_or(&Value::Null);
    Ok(Opinion {
        success: yes_or_no(part("success")).ok_or("`success` must be true or false")?,
        confidence: per_cent(part("confidence")).ok_or("`confidence` must be a number from 0 to 100")?,
        reasons: lines(part("reasons")),
        suggestions: lines(part("suggestions")),
    })
}

/// Returns the text inside of a code fence, if the whole answer is one.
fn without_fence(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    fenced.map_or(answer, |inside| inside.split_once('\n').map_or(inside, |(_language, inside)| inside))
}

fn yes_or_no(value: &Value) -> Option<bool> {
    let word = value.as_str().map(|word| word.trim().to_ascii_lowercase());
    match word.as_deref() {
        Some("true" | "yes" | "success") => Some(true),
        Some("false" | "no" | "failure") => Some(false),
        _ => value.as_bool(),
    }
}

fn per_cent(value: &Value) -> Option<u8> {
    match value {
        Value::Number(number) => number.as_f64().and_then(from_number),
        Value::String(text) => from_text(text),
        _ => None,
    }
}

/// Converts a number to per cent. Up to 1 it is a fraction: no reviewer means one per cent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
fn from_number(number: f64) -> Option<u8> {
    let per_cent = if number <= 1.0 { number * 100.0 } else { number };
    (0.0..=100.0).contains(&per_cent).then(|| per_cent.round() as u8)
}

/// Parses `0.9`, `90`, `90 %`, `high`. Words have the usual values of a scale of three.
fn from_text(text: &str) -> Option<u8> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(number) = text.strip_suffix('%') {
        let number: f64 = number.trim_end().parse().ok()?;
        return if number <= 1.0 { from_number(number / 100.0) } else { from_number(number) };
    }
    match text.replace(['_', '-'], " ").as_str() {
        "certain" | "absolute" => Some(100),
        "very high" => Some(95),
        "high" => Some(90),
        "medium" | "moderate" => Some(60),
        "low" => Some(30),
        "very low" => Some(10),
        "none" => Some(0),
        _ => from_number(text.parse().ok()?),
    }
}

/// Reads a list of lines, one line, or null.
fn lines(value: &Value) -> Vec<String> {
    let line = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Null => Vec::new(),
        Value::Array(all) => all.iter().map(line).collect(),
        one => vec![line(one)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confidence(written: &str) -> Option<u8> {
        let answer = format!(r#"{{"success": true, "confidence": {written}, "reasons": []}}"#);
        parse_opinion(&answer).ok().map(|opinion| opinion.confidence)
    }

    #[test]
    fn a_confidence_is_read_as_share_per_cent_or_word() {
        for (written, expected) in [
            ("0.9", 90),
            ("90", 90),
            ("90.4", 90),
            ("1", 100),
            ("1.0", 100),
            ("0", 0),
            ("100", 100),
            (r#""0.9""#, 90),
            (r#""90""#, 90),
            (r#""90%""#, 90),
            (r#""90 %""#, 90),
            (r#""1%""#, 1),
            (r#""high""#, 90),
            (r#""Very High""#, 95),
            (r#""very_low""#, 10),
        ] {
            assert_eq!(confidence(written), Some(expected), "{written}");
        }
    }

    #[test]
    fn a_confidence_that_means_nothing_is_not_guessed() {
        for written in ["-1", "101", "1e9", r#""quite""#, r#""""#, r#""NaN""#, "null", "[90]", "true"] {
            assert_eq!(confidence(written), None, "{written}");
        }
    }

    #[test]
    fn an_answer_is_read_in_a_fence_and_with_lines_instead_of_lists() {
        let answer = "```json\n{\"success\": \"no\", \"confidence\": 0.25, \"reasons\": \"empty file\", \"suggestions\": null}\n```";
        let expected = Opinion {
            success: false,
            confidence: 25,
            reasons: vec!["empty file".to_owned()],
            suggestions: Vec::new(),
        };
        assert_eq!(parse_opinion(answer).unwrap(), expected);
        assert!(parse_opinion("It looks fine to me.").is_err());
        assert!(parse_opinion(r#"{"success": "maybe", "confidence": 90}"#).is_err());
    }
}

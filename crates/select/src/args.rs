//! Infers arguments from the words of a request.
//!
//! Every value comes from the request or the context; none is invented. The schema gives its type.
//! Parameters compete for the values that a request mentions: the pair that fits best is taken
//! first. A required parameter without a value is reported as missing.

use serde_json::{Map, Value};

mod assign;
mod date;
mod idiom;
mod matching;
mod mention;
mod number;
mod phrase;
mod score;
mod slot;
mod valid;
mod words;

pub use date::CalendarDate;

/// Facts that are known besides the request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InferenceContext {
    /// The current day. Without it, "tomorrow" cannot be resolved.
    pub today: Option<CalendarDate>,
    /// Paths that exist, relative to the working directory. A word of the request that equals one
    /// of them is a path.
    pub files: Vec<String>,
    /// Values of earlier results, by the name of the parameter they fit.
    pub earlier: Map<String, Value>,
}

/// The result of [`infer`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InferredArguments {
    /// The arguments.
    pub args: Map<String, Value>,
    /// Required parameters without a value, and required members of objects that have some value.
    pub missing: Vec<String>,
    /// Parameters whose value in the request breaks their pattern, range, enum or format. They are
    /// not among the arguments.
    pub invalid: Vec<String>,
}

/// Infers the arguments of a call from a request. `parameters` is a JSON Schema; invalid parts of
/// it are ignored.
///
/// ```
/// use serde_json::json;
/// use windlass_select::args::{InferenceContext, infer};
///
/// let schema = json!({"properties": {
///     "start": {"type": "string"}, "end": {"type": "string"}, "days": {"type": "integer"},
/// }, "required": ["start", "end", "days"]});
/// let inferred = infer("Plan a trip from Oslo to Bergen", &schema, &InferenceContext::default());
/// assert_eq!(json!(inferred.args), json!({"start": "Oslo", "end": "Bergen"}));
/// assert_eq!(inferred.missing, ["days"]);
/// ```
pub fn infer(request: &str, parameters: &Value, context: &InferenceContext) -> InferredArguments {
    let text = mention::head(request);
    let slots = slot::slots(parameters);
    let values = assign::assign(text, &slots, context);
    let mut inferred = InferredArguments::default();
    for (slot, value) in slots.iter().zip(values) {
        match value {
            Some(value) if valid::fits(slot, &value) => slot.put(&mut inferred.args, value),
            Some(_) => inferred.invalid.push(slot.own_name().to_owned()),
            None => {}
        }
    }
    let needed = slots.iter().filter(|slot| slot.required);
    let missing = needed.filter_map(|slot| slot.missing_from(&inferred.args)).map(str::to_owned);
    let missing = missing.filter(|name| !inferred.invalid.contains(name));
    inferred.missing = missing.collect();
    inferred.missing.dedup();
    inferred
}

#[cfg(test)]
mod tests;

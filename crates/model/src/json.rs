//! Builds JSON from parts that are already encoded, so that nothing is encoded twice.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Returns a value as JSON text.
pub(crate) fn to_text(value: &(impl Serialize + ?Sized)) -> String {
    #[expect(
        clippy::expect_used,
        reason = "strings, numbers, lists and maps with string keys can all be written"
    )]
    serde_json::to_string(value).expect("JSON of our own types")
}

/// A JSON object under construction.
#[derive(Debug)]
pub(crate) struct JsonObjectWriter(String);

impl JsonObjectWriter {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Self(text)
    }

    /// Adds a member whose value is JSON text already.
    pub(crate) fn raw(&mut self, name: &str, json: &str) {
        self.raw_parts(name, |text| text.push_str(json));
    }

    /// Adds a member whose value `write` appends as JSON text.
    pub(crate) fn raw_parts(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&to_text(name));
        self.0.push(':');
        write(&mut self.0);
    }

    /// Adds a member.
    pub(crate) fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.raw(name, &to_text(value));
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Returns the members of an object in their order, each with the exact text of its value.
pub(crate) fn members(json: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::from_str::<RawMembers<'_>>(json.get()).ok().map(|members| members.0)
}

/// Sets one member of an object; all others keep their exact text. A value that is no object is
/// returned unchanged.
pub(crate) fn with_member(json: &RawValue, member: &str, value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    let changed = members(json).and_then(|members| {
        let mut object = JsonObjectWriter::with_capacity(json.get().len());
        for (name, value) in members.iter().filter(|(name, _)| name != member) {
            object.raw(name, value.get());
        }
        object.member(member, value);
        RawValue::from_string(object.finish()).ok()
    });
    changed.unwrap_or_else(|| json.to_owned())
}

/// A member that may be missing, null or of a wrong type. All three read as `None`, so that one
/// wrong field does not lose the others. Structs with such fields are marked `#[serde(default)]`.
#[derive(Debug)]
pub(crate) struct LenientField<T>(pub(crate) Option<T>);

impl<T> Default for LenientField<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LenientField<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(from)?.get();
        Ok(Self(if json == "null" { None } else { serde_json::from_str(json).ok() }))
    }
}

/// The members of an object in their order, each with the exact text of its value.
struct RawMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct RawMembersVisitor;
        impl<'de> Visitor<'de> for RawMembersVisitor {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<MemberName<'de>, &RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(RawMembers(members))
            }
        }
        from.deserialize_map(RawMembersVisitor)
    }
}

/// A member name, borrowed unless it has escapes.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_member_leaves_the_text_of_the_others_alone() {
        let json = r#"{ "b" : 1.50, "id":"x", "a\n":{"id": 2,  "z":[ ]}, "n":1e400 }"#;
        let json: Box<RawValue> = serde_json::from_str(json).unwrap();
        assert_eq!(with_member(serde_json::from_str("[ 1]").unwrap(), "id", "x").get(), "[ 1]");
        assert_eq!(
            with_member(&json, "b", "x").get(),
            r#"{"id":"x","a\n":{"id": 2,  "z":[ ]},"n":1e400,"b":"x"}"#
        );
    }

    #[test]
    fn an_object_is_put_together_from_text_and_values() {
        let mut object = JsonObjectWriter::with_capacity(0);
        object.member("a\"b", &[1, 2]);
        object.raw("c", "{ }");
        assert_eq!(object.finish(), r#"{"a\"b":[1,2],"c":{ }}"#);
        assert_eq!(JsonObjectWriter::with_capacity(0).finish(), "{}");
    }
}

//! Reads JSON and reports members that occur twice, and whether their values differ.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A member that occurred before.
pub(super) struct RepeatedMember {
    /// The path of the member.
    pub(super) path: String,
    /// True if its values differ.
    pub(super) differs: bool,
}

/// Reads JSON. Of duplicate members the last one is taken, as every parser does.
pub(super) fn read(text: &str) -> serde_json::Result<(Value, Vec<RepeatedMember>)> {
    let repeats = RefCell::new(Vec::new());
    let mut json = serde_json::Deserializer::from_str(text);
    let value =
        DuplicateVisitor { outer: None, step: PathStep::Root, repeats: &repeats }.deserialize(&mut json)?;
    json.end()?;
    Ok((value, repeats.into_inner()))
}

/// A visitor that knows the path of its value and collects duplicates.
#[derive(Clone, Copy)]
struct DuplicateVisitor<'a> {
    outer: Option<&'a DuplicateVisitor<'a>>,
    step: PathStep<'a>,
    repeats: &'a RefCell<Vec<RepeatedMember>>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Root,
    Member(&'a str),
    Item(usize),
}

impl DuplicateVisitor<'_> {
    fn path(&self) -> String {
        let outer = self.outer.map(Self::path).unwrap_or_default();
        match self.step {
            PathStep::Root => "arguments".to_owned(),
            PathStep::Member(name) => format!("{outer}.{}", super::names::display_name(name)),
            PathStep::Item(at) => format!("{outer}[{at}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for DuplicateVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DuplicateVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        let place =
            |at| DuplicateVisitor { outer: Some(&self), step: PathStep::Item(at), repeats: self.repeats };
        while let Some(item) = from.next_element_seed(place(items.len()))? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let place =
                DuplicateVisitor { outer: Some(&self), step: PathStep::Member(&name), repeats: self.repeats };
            let value = from.next_value_seed(place)?;
            if let Some(before) = members.get(&name) {
                let repeat = RepeatedMember { path: place.path(), differs: *before != value };
                self.repeats.borrow_mut().push(repeat);
            }
            members.insert(name, value);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_told_with_their_place_and_whether_they_differ() {
        let read = |text| {
            let (value, repeats) = read(text).unwrap();
            let found: Vec<_> = repeats.into_iter().map(|each| (each.path, each.differs)).collect();
            (value.to_string(), found)
        };
        assert_eq!(read(r#"{"a":1,"a":1}"#), (r#"{"a":1}"#.into(), vec![("arguments.a".into(), false)]));
        let nested = r#"{"b":[{"a":1,"c":2,"a":2}],"d":1.5,"e":null,"f":-1}"#;
        let value = r#"{"b":[{"a":2,"c":2}],"d":1.5,"e":null,"f":-1}"#;
        assert_eq!(read(nested), (value.into(), vec![("arguments.b[0].a".into(), true)]));
    }
}

//! Bounds the depth of messages before anything parses them.
//!
//! The parser refuses a message that is nested too deep as a whole, and the call that it answers
//! would wait for ever. So only what is nested too deep is left out: one bad schema does not cost
//! the other tools of a list, and a result shows the place.

/// Maximum depth of a message. The parser refuses 128.
const MAX_DEPTH: usize = 120;
/// Stands for an array or object that is nested deeper. As a schema it is not valid.
const LEFT_OUT: &[u8] = br#""(left out: nested more than 120 deep)""#;

/// Leaves out what is nested too deep.
#[derive(Debug, Default)]
pub(crate) struct NestingLimiter {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// Each line is a message.
    is_by_line: bool,
}

/// The fate of a byte.
enum ByteFate {
    Kept,
    Dropped,
    /// It begins what is left out.
    Replaced,
}

impl NestingLimiter {
    /// Returns a limiter for messages of one line each.
    pub(crate) fn by_line() -> Self {
        Self { is_by_line: true, ..Self::default() }
    }

    /// Returns one message, bounded.
    pub(crate) fn bounded(message: Vec<u8>) -> Vec<u8> {
        Self::default().rewritten(&message).unwrap_or(message)
    }

    /// Returns the next part of the messages if something in it has to be left out.
    pub(crate) fn rewritten(&mut self, part: &[u8]) -> Option<Vec<u8>> {
        let mut kept: Option<Vec<u8>> = None;
        for (at, byte) in part.iter().enumerate() {
            let fate = self.fate(*byte);
            if matches!(fate, ByteFate::Kept) && kept.is_none() {
                continue;
            }
            let kept = kept.get_or_insert_with(|| part.get(..at).unwrap_or_default().to_vec());
            match fate {
                ByteFate::Kept => kept.push(*byte),
                ByteFate::Dropped => {}
                ByteFate::Replaced => kept.extend_from_slice(LEFT_OUT),
            }
        }
        kept
    }

    fn fate(&mut self, byte: u8) -> ByteFate {
        if byte == b'\n' && self.is_by_line {
            *self = Self::by_line();
            return ByteFate::Kept;
        }
        let was_too_deep = self.depth > MAX_DEPTH;
        if self.is_in_string {
            self.is_in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => self.is_in_string = true,
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        match (was_too_deep, self.depth > MAX_DEPTH) {
            (false, false) => ByteFate::Kept,
            (false, true) => ByteFate::Replaced,
            (true, _) => ByteFate::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// A value inside of `depth` arrays and objects.
    fn nested(depth: usize, inner: &str) -> String {
        let (open, close) = ([r#"{"a":"#, "["], ["}", "]"]);
        let opened: String = (0..depth).map(|level| open[level % 2]).collect();
        let closed: String = (0..depth).rev().map(|level| close[level % 2]).collect();
        format!("{opened}{inner}{closed}")
    }

    fn bounded(message: &str) -> Value {
        let message = NestingLimiter::bounded(message.as_bytes().to_vec());
        serde_json::from_slice(&message).unwrap()
    }

    #[test]
    fn what_is_nested_too_deep_is_left_out_and_the_rest_stays() {
        let deep = nested(5000, r#""}]\"}""#);
        let message = format!(r#"{{"one": "]]}}\\", "deep": {deep}, "two": [2]}}"#);
        let read = bounded(&message);
        assert_eq!((&read["one"], &read["two"]), (&json!(r"]]}\"), &json!([2])));
        assert!(read.to_string().contains("left out: nested more than 120 deep"), "{read}");
        let allowed = nested(MAX_DEPTH, "{}").replace("{}", "1");
        assert_eq!(bounded(&allowed), serde_json::from_str::<Value>(&allowed).unwrap());
    }

    #[test]
    fn a_line_is_not_affected_by_the_one_before() {
        let mut limiter = NestingLimiter::by_line();
        let kept = limiter.rewritten(format!("{}\"\n", "[".repeat(500)).as_bytes()).unwrap();
        assert!(kept.ends_with(b"\n"));
        assert_eq!(limiter.rewritten(b"{\"a\": [1]}\n"), None);
    }

    proptest! {
        #[test]
        fn parts_give_what_the_whole_gives(depth in 100_usize..140, at in any::<prop::sample::Index>()) {
            let message = nested(depth, r#"["\\\"[", {}, 1]"#).into_bytes();
            let whole = NestingLimiter::bounded(message.clone());
            let (first, second) = message.split_at(at.index(message.len()));
            let mut limiter = NestingLimiter::default();
            let mut parts = Vec::new();
            for part in [first, second] {
                parts.extend(limiter.rewritten(part).unwrap_or_else(|| part.to_vec()));
            }
            prop_assert_eq!(&parts, &whole);
            prop_assert!(serde_json::from_slice::<Value>(&whole).is_ok());
        }
    }
}

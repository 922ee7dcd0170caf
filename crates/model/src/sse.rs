//! Parses server-sent events from chunks of bytes. No I/O.

use std::{collections::VecDeque, mem};

use windlass_contract::model::ModelError;

/// Maximum size of an event. The largest real ones, which hold a whole answer or an image, stay far
/// below.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// A server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerSentEvent {
    /// The event name; empty if there was none.
    pub(crate) name: String,
    /// The data lines, joined by line feeds.
    pub(crate) data: String,
}

/// Incremental parser for an event stream.
#[derive(Debug)]
pub(crate) struct SseParser {
    limit_bytes: usize,
    /// The unfinished line.
    line: Vec<u8>,
    /// The unfinished event's name.
    name: Vec<u8>,
    /// The unfinished event's data, each line followed by `\n`.
    data: Vec<u8>,
    /// True if the last line ended in a CR; a following LF belongs to it.
    after_cr: bool,
    /// True until the first line, which may begin with a byte order mark.
    at_start: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    fn with_limit(limit_bytes: usize) -> Self {
        Self { limit_bytes, line: vec![], name: vec![], data: vec![], after_cr: false, at_start: true }
    }

    /// Parses more bytes and appends the events they complete. Each byte is scanned once, so the
    /// cost does not depend on the size of the chunks.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        out: &mut VecDeque<ServerSentEvent>,
    ) -> Result<(), ModelError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => rest,
            };
            self.after_cr = rest == b"\r";
            if self.line.is_empty() {
                self.take_line(line, out)?;
            } else {
                self.line.extend_from_slice(line);
                let line = mem::take(&mut self.line);
                self.take_line(&line, out)?;
            }
        }
        self.line.extend_from_slice(bytes);
        self.check(self.line.len())
    }

    /// Ends the stream. An unterminated event counts, because some servers never send the last
    /// blank line.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<ServerSentEvent>) -> Result<(), ModelError> {
        let line = mem::take(&mut self.line);
        self.take_line(&line, out)?;
        self.dispatch(out);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], out: &mut VecDeque<ServerSentEvent>) -> Result<(), ModelError> {
        self.check(line.len())?;
        let marked = mem::take(&mut self.at_start).then(|| line.strip_prefix(b"\xEF\xBB\xBF")).flatten();
        let line = marked.unwrap_or(line);
        if line.is_empty() {
            self.dispatch(out);
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = value.to_vec(),
            // Comments (an empty field name), `id` and `retry` have no meaning for a single answer.
            _ => {}
        }
        Ok(())
    }

    /// Ends the event. An event without data is ignored, as the specification says.
    fn dispatch(&mut self, out: &mut VecDeque<ServerSentEvent>) {
        let (name, mut data) = (mem::take(&mut self.name), mem::take(&mut self.data));
        if data.pop().is_some() {
            out.push_back(ServerSentEvent { name: text(name), data: text(data) });
        }
    }

    fn check(&self, line_bytes: usize) -> Result<(), ModelError> {
        let held = self.data.len() + line_bytes;
        let limit_bytes = self.limit_bytes;
        if held > limit_bytes { Err(ModelError::TooLarge { what: "an event", limit_bytes }) } else { Ok(()) }
    }
}

/// Decodes text. Invalid UTF-8 becomes replacement characters: one broken character must not lose
/// an answer.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Vec<ServerSentEvent> {
        let (mut parser, mut out) = (SseParser::default(), VecDeque::new());
        for chunk in chunks {
            parser.feed(chunk, &mut out).unwrap();
        }
        parser.finish(&mut out).unwrap();
        out.into()
    }

    fn event(name: &str, data: &str) -> ServerSentEvent {
        ServerSentEvent { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn fields_comments_and_blank_lines_make_events() {
        let stream =
            b": hello\nevent: a\ndata: 1\nid: 7\nretry: 5\n\n\n\ndata:2\ndata:  3\ndata\n\nevent: b\n\n";
        assert_eq!(parse(&[stream]), [event("a", "1"), event("", "2\n 3\n")]);
    }

    #[test]
    fn all_three_line_ends_count_even_when_cut_in_two() {
        let expected = [event("", "1"), event("", "2"), event("", "3")];
        assert_eq!(parse(&[b"data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n"]), expected);
        assert_eq!(parse(&[b"data: 1\r", b"\n\r", b"\ndata: 2\r", b"\rdata: 3\n", b"", b"\n"]), expected);
        assert_eq!(parse(&[b"data: 1\r", b"", b"\ndata: 2\n\n"]), [event("", "1\n2")]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_field() {
        assert_eq!(parse(&[b"\xEF\xBB", b"\xBFdata: 1\n\n"]), [event("", "1")]);
    }

    #[test]
    fn invalid_utf_8_is_replaced_and_a_character_cut_in_two_is_not() {
        assert_eq!(parse(&[b"data: a\xFFb\n\n"]), [event("", "a\u{FFFD}b")]);
        assert_eq!(parse(&[b"data: \xC3", b"\xA9\n\n"]), [event("", "é")]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(parse(&[b"data: 1\n\ndata: 2"]), [event("", "1"), event("", "2")]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_an_error_in_one_line_or_many() {
        let fails = |stream: &[u8]| {
            let (mut parser, mut out) = (SseParser::with_limit(16), VecDeque::new());
            let failed = stream.chunks(3).find_map(|chunk| parser.feed(chunk, &mut out).err());
            failed == Some(ModelError::TooLarge { what: "an event", limit_bytes: 16 })
        };
        assert!(fails(b"data: 12345678901234567890\n\n"));
        assert!(fails(b"data: 1234567\ndata: 1234567\ndata: 1234567\n\n"));
        assert!(fails(b": a comment without an end ..."));
        assert!(!fails(b"data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n"));
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_result(
            stream in "(data|event|id|:|\u{FEFF}|é|[:a ]|\r|\n|\r\n){0,60}",
            cuts in prop::collection::vec(1_usize..9, 0..60),
        ) {
            let mut rest = stream.as_bytes();
            let mut chunks = Vec::new();
            for cut in cuts {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            chunks.push(rest);
            prop_assert_eq!(parse(&chunks), parse(&[stream.as_bytes()]));
        }

        #[test]
        fn arbitrary_bytes_never_panic_and_never_exceed_the_limit(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40),
        ) {
            let (mut parser, mut out) = (SseParser::with_limit(64), VecDeque::new());
            for chunk in &chunks {
                if parser.feed(chunk, &mut out).is_err() {
                    break;
                }
            }
            let _ = parser.finish(&mut out);
            prop_assert!(out.iter().all(|event| event.data.len() <= 64 * 3));
        }
    }
}

//! Questions to the terminal: where its cursor is, and which background it has.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use ratatui::layout::Position;
use ratatui_textarea::{Input, Key};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Maximum time for the answer. Terminals answer in order, so a terminal that tells only the
/// position of its cursor does not use it up.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(1);

/// The colour of the background (xterm: OSC 11).
const BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";

/// The position of the cursor (ECMA-48: DSR 6), which all terminals know.
const POSITION: &[u8] = b"\x1b[6n";

/// An answer of the terminal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TerminalReply {
    pub(super) cursor: Option<Position>,
    /// Set if it told its background, and whether that is light.
    pub(super) has_light_background: Option<bool>,
    /// Keys that the person typed meanwhile.
    pub(super) typed: Vec<Input>,
}

/// Asks the terminal. It must be in raw mode, and nothing else may read from it.
pub(super) fn ask(wants_background: bool) -> io::Result<TerminalReply> {
    let mut stdout = io::stdout();
    if wants_background {
        stdout.write_all(BACKGROUND)?;
    }
    stdout.write_all(POSITION)?;
    stdout.flush()?;
    let (mut bytes, deadline) = (Vec::new(), Instant::now() + MAX_ANSWER_TIME);
    loop {
        let reply = parse(&bytes);
        if reply.cursor.is_some() || !read_more(&mut bytes, deadline)? {
            return Ok(reply);
        }
    }
}

/// Waits for bytes. Returns false if none came in time.
fn read_more(bytes: &mut Vec<u8>, deadline: Instant) -> io::Result<bool> {
    let stdin = io::stdin();
    let left = deadline.saturating_duration_since(Instant::now());
    let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
    let left = Timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() };
    let mut sources = [PollFd::new(&stdin, PollFlags::IN)];
    if poll(&mut sources, Some(&left))? == 0 || !sources[0].revents().contains(PollFlags::IN) {
        return Ok(false);
    }
    let mut part = [0; 1024];
    let count = rustix::io::read(&stdin, &mut part)?;
    bytes.extend_from_slice(&part[..count]);
    Ok(count > 0)
}

/// Takes answers out of the bytes. The rest was typed.
fn parse(bytes: &[u8]) -> TerminalReply {
    let (mut reply, mut rest) = (TerminalReply::default(), bytes);
    let mut typed = Vec::new();
    while let Some(&first) = rest.first() {
        if let Some((is_light, after)) = background(rest) {
            (reply.has_light_background, rest) = (is_light, after);
        } else if let Some((position, after)) = position(rest) {
            (reply.cursor, rest) = (Some(position), after);
        } else {
            typed.push(first);
            rest = &rest[1..];
        }
    }
    reply.typed = keys(&String::from_utf8_lossy(&typed));
    reply
}

/// Parses the answer to the question for the position.
fn position(bytes: &[u8]) -> Option<(Position, &[u8])> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
    let (numbers, after) = (str::from_utf8(&rest[..end]).ok()?, rest[end..].strip_prefix(b"R")?);
    let (row, column) = numbers.split_once(';')?;
    let number = |text: &str| Some(text.parse::<u16>().ok()?.saturating_sub(1));
    Some((Position::new(number(column)?, number(row)?), after))
}

/// Parses the answer to the question for the background.
fn background(bytes: &[u8]) -> Option<(Option<bool>, &[u8])> {
    let rest = bytes.strip_prefix(b"\x1b]11;")?;
    let end = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b))?;
    let after = rest[end..].strip_prefix(b"\x07").or_else(|| rest[end..].strip_prefix(b"\x1b\\"))?;
    Some((str::from_utf8(&rest[..end]).ok().and_then(is_light), after))
}

/// Returns true if a colour such as `rgb:ffff/ffff/e0e0` is light.
fn is_light(colour: &str) -> Option<bool> {
    let (_, values) = colour.split_once(':')?;
    let share = |text: &str| {
        let most = 16_f32.powi(i32::try_from(text.len()).ok()?) - 1.0;
        Some(f32::from(u16::from_str_radix(text, 16).ok()?) / most)
    };
    let shares = values.split('/').take(3).map(share).collect::<Option<Vec<_>>>()?;
    let [red, green, blue] = shares[..] else { return None };
    // The weights of the eye (ITU-R BT.601).
    Some(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)
}

/// Returns the keys of typed text. Of those with sequences, only the arrows are known: others are
/// rarely the first keys of a session.
fn keys(text: &str) -> Vec<Input> {
    let key = |key, ctrl| Input { key, ctrl, alt: false, shift: false };
    let (mut keys, mut rest) = (Vec::new(), text.chars());
    while let Some(c) = rest.next() {
        keys.push(match c {
            '\x1b' if rest.as_str().starts_with('[') => {
                let last = rest.by_ref().skip(1).find(|c| matches!(c, '\x40'..='\x7e'));
                match last {
                    Some('A') => key(Key::Up, false),
                    Some('B') => key(Key::Down, false),
                    Some('C') => key(Key::Right, false),
                    Some('D') => key(Key::Left, false),
                    _ => continue,
                }
            }
            '\x1b' => key(Key::Esc, false),
            // The line discipline makes a line feed of an Enter that was typed before raw mode.
            '\r' | '\n' => key(Key::Enter, false),
            '\t' => key(Key::Tab, false),
            '\x7f' => key(Key::Backspace, false),
            '\x01'..='\x1a' => {
                key(Key::Char(char::from(u8::try_from(c).unwrap_or_default() + b'a' - 1)), true)
            }
            c if c < ' ' => continue,
            c => key(Key::Char(c), false),
        });
    }
    keys
}

/// Finds the answer of a terminal that was too slow among the keys, as which it arrives.
#[derive(Debug, Default)]
pub(super) struct LateReplyFilter {
    /// Set if an answer may come.
    is_awaited: bool,
    is_inside: bool,
}

impl LateReplyFilter {
    pub(super) fn new(is_awaited: bool) -> Self {
        Self { is_awaited, is_inside: false }
    }

    /// Returns true if the key is part of an answer.
    pub(super) fn takes(&mut self, key: &Input) -> bool {
        if !self.is_inside {
            self.is_inside = self.is_awaited && key.alt && key.key == Key::Char(']');
            return self.is_inside;
        }
        let ends = key.alt && key.key == Key::Char('\\') || key.ctrl && key.key == Key::Char('g');
        let is_part = !key.alt
            && !key.ctrl
            && matches!(key.key, Key::Char('0'..='9' | 'a'..='f' | 'A'..='F' | 'r' | 'g' | ';' | ':' | '/'));
        if !is_part {
            *self = Self::default();
        }
        is_part || ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Vec<Input> {
        keys(text)
    }

    #[test]
    fn answers_are_taken_out_of_what_is_typed() {
        let reply = parse(b"a\x1b]11;rgb:ffff/ffff/e0e0\x1b\\b\x1b[12;34Rc\xc3\xa9\r");
        assert_eq!(reply.cursor, Some(Position::new(33, 11)));
        assert_eq!(reply.has_light_background, Some(true));
        assert_eq!(reply.typed, typed("abc\u{e9}\r"));
        let reply = parse(b"\x1b]11;rgb:1e/1e/1e\x07\x1b[1;1R");
        assert_eq!((reply.has_light_background, reply.typed.len()), (Some(false), 0));
        let reply = parse(b"\x1b[5;1R");
        assert_eq!((reply.cursor, reply.has_light_background), (Some(Position::new(0, 4)), None));
    }

    #[test]
    fn a_cut_or_odd_answer_is_none() {
        for bytes in [&b"\x1b[12;3"[..], b"\x1b[R", b"\x1b[99999;1R", b"\x1b]11;rgb:zz/1/1\x07", b"\x1b]11;"]
        {
            let reply = parse(bytes);
            assert_eq!((reply.cursor, reply.has_light_background), (None, None), "{bytes:?}");
        }
    }

    #[test]
    fn typed_keys_keep_their_meaning() {
        let key = |key, ctrl| Input { key, ctrl, alt: false, shift: false };
        let expected = [
            key(Key::Char('x'), false),
            key(Key::Char('c'), true),
            key(Key::Up, false),
            key(Key::Backspace, false),
            key(Key::Enter, false),
        ];
        assert_eq!(typed("x\x03\x1b[A\x1b[5~\x7f\r"), expected);
    }

    #[test]
    fn a_late_answer_is_no_input_and_only_one_is_awaited() {
        let alt = |c| Input { key: Key::Char(c), ctrl: false, alt: true, shift: false };
        let answer = || {
            let middle = typed("11;rgb:1e1e/1e1e/1e1e");
            std::iter::once(alt(']')).chain(middle).chain([alt('\\')]).collect::<Vec<_>>()
        };
        let mut filter = LateReplyFilter::new(true);
        assert!(typed("11").iter().all(|key| !filter.takes(key)));
        assert!(answer().iter().all(|key| filter.takes(key)));
        assert!(answer().iter().all(|key| !filter.takes(key)));
    }
}

//! The walk through whole lines: from one place where a secret may be to the next, and past the lines of private keys.

use std::ops::Range;

use super::{
    Cleaner, assign,
    edit::Edit,
    found::Pending,
    keys::{self, Block, Part},
    line::Line,
    scan::{Hit, SecretSearch},
};

impl Cleaner {
    pub(super) fn scan(&mut self, search: &SecretSearch, text: &[u8], edits: &mut Vec<Edit>) {
        // Where what has been looked at as a block ends, and where the search goes on in a line that began one and is none of it.
        let (mut blocks, mut behind) = (0, 0);
        // Where a line ends that is between those of a block and like any other.
        let mut foreign = 0;
        let (mut at, mut place, mut line) = (0, 0..0, Line::new(&[]));
        let mut found = Vec::new();
        if let Some(pending) = self.pending.take().filter(|_| !text.is_empty()) {
            self.look_ahead(text, 0, pending, edits);
        }
        loop {
            if self.block.is_some() && at >= foreign {
                let from = at;
                (at, foreign) = self.skip_block(text, from, edits);
                blocks = if at > from { at } else { blocks };
                at = at.max(behind);
                place = at..at;
            }
            let until = if self.block.is_some() { foreign } else { text.len() };
            let Some((pattern, range)) = search.next(&text[..until], at) else {
                if until == text.len() {
                    return;
                }
                at = until;
                continue;
            };
            if range.start >= place.end {
                place = line_after(text, place.end, range.start);
                line = Line::new(&text[place.clone()]);
            }
            let here = range.start - place.start..range.end - place.start;
            let hit = search.look(pattern, &line, &here, &mut found);
            match hit {
                Hit::Next(next) => {
                    at = (place.start + next.resume).max(range.start + 1);
                    if let Some(pending) = next.pending {
                        self.look_ahead(text, place.end + 1, pending, edits);
                    }
                }
                Hit::Block { title } => {
                    (at, foreign) = self.begin_block(text, title, &place, edits);
                    blocks = at;
                }
                Hit::End => {
                    untitled(&text[..range.start], blocks, edits);
                    (at, blocks) = (range.end, range.end);
                }
                // Its line has a title in it, and what follows that was looked at; or the line above is of something else.
                Hit::Middle if place.start < blocks || !keys::goes_on(text, place.start, &range) => {
                    at = range.end;
                }
                Hit::Middle => {
                    let start = keys::body_above(text, place.start).max(blocks);
                    let mut block = Block::new();
                    take_lines(&mut block, &text[start..place.start]);
                    edits.push(Edit::Drop { range: start..place.start });
                    self.block = Some(block);
                    (at, behind, foreign) = (place.start, range.end, 0);
                }
                Hit::Head { start } => {
                    self.block = Some(Block::framed(&line[..start]));
                    (at, behind, foreign) = (place.start, range.end, 0);
                }
            }
            if !found.is_empty() {
                edits.extend(found.drain(..).map(|found| Edit::secret(&found, place.start)));
            }
        }
    }

    /// Looks at the next line for a value, now if it is there.
    fn look_ahead(&mut self, text: &[u8], next: usize, pending: Pending, edits: &mut Vec<Edit>) {
        if next >= text.len() {
            self.pending = Some(pending);
            return;
        }
        let line = line_at(text, next);
        match assign::find_pending(&Line::new(&text[line.clone()]), pending) {
            Ok(found) => edits.push(Edit::secret(&found, line.start)),
            Err(Some(pending)) => self.look_ahead(text, line.end + 1, pending, edits),
            Err(None) => {}
        }
    }

    /// The title of a private key is here in a line: its body may be behind it or in the next lines. Says where to go on, and
    /// where what is like any other text ends if that comes first.
    fn begin_block(
        &mut self,
        text: &[u8],
        title: Range<usize>,
        line: &Range<usize>,
        edits: &mut Vec<Edit>,
    ) -> (usize, usize) {
        self.block = None;
        let title_end = line.start + title.end;
        let behind = &text[title_end..line.end];
        let rest = keys::until_title(behind);
        let blank = keys::is_blank(rest);
        let body = keys::body_in_line(rest);
        if !blank && body > 0 && (body < rest.trim_ascii_end().len() || body > 64) {
            let range = title_end..title_end + body;
            edits.push(Edit::Secret { range, label: "private-key", why: "the body of a private key" });
            return (title_end + body, 0);
        }
        if line.end < text.len() && rest.len() == behind.len() {
            self.block = Block::titled(&text[line.start..line.start + title.start], rest);
            return (if blank { line.end + 1 } else { title_end }, line.end + 1);
        }
        (title_end, 0)
    }

    /// Drops lines of a private key, and says where it is over, or where the next line ends if that is of something else.
    fn skip_block(&mut self, text: &[u8], from: usize, edits: &mut Vec<Edit>) -> (usize, usize) {
        let mut at = from;
        while at < text.len() {
            let Some(block) = &mut self.block else { return (at, at) };
            let line = line_at(text, at);
            let after = (line.end + 1).min(text.len());
            match block.part(&text[line.clone()]) {
                Part::Body => {
                    block.take(&text[line]);
                    edits.push(Edit::Drop { range: at..after });
                    at = after;
                }
                Part::Between => {
                    block.pass();
                    at = after;
                }
                Part::Foreign => {
                    if block.lines > 0 {
                        edits.push(Edit::block(at, block));
                    }
                    block.leave();
                    return (at, after);
                }
                Part::EndsAt(length) => {
                    block.take(&text[at..at + length]);
                    edits.push(Edit::Drop { range: at..at + length });
                    self.end_block(at + length, edits);
                    return (at + length, at + length);
                }
                Part::Over => {
                    self.end_block(at, edits);
                    return (at, at);
                }
            }
        }
        (at, at)
    }

    pub(super) fn end_block(&mut self, at: usize, edits: &mut Vec<Edit>) {
        if let Some(block) = self.block.take().filter(|block| block.lines > 0) {
            edits.push(Edit::block(at, &block));
        }
    }
}

/// Drops what is above the end of a private key and has no title.
fn untitled(before: &[u8], from: usize, edits: &mut Vec<Edit>) {
    let line = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let in_line = keys::body_before(&before[line.max(from)..]);
    if in_line > 0 {
        let range = before.len() - in_line..before.len();
        edits.push(Edit::Secret { range, label: "private-key", why: "the end of a private key" });
        return;
    }
    // Mostly what is above was looked at with its title.
    let start = if from < line { keys::body_above(before, line).max(from) } else { line };
    if start < line {
        let mut block = Block::new();
        take_lines(&mut block, &before[start..line]);
        edits.push(Edit::Drop { range: start..line });
        edits.push(Edit::block(line, &block));
    }
}

fn take_lines(block: &mut Block, lines: &[u8]) {
    lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| block.take(line));
}

/// The line around a place that is behind the last line looked at: mostly the next one, whose start need not be sought.
fn line_after(text: &[u8], last: usize, at: usize) -> Range<usize> {
    let is_end = text.get(last) == Some(&b'\n');
    let next = last + 1..last + 1 + text.get(last + 1..).map_or(0, line_length);
    if is_end && next.contains(&at) { next } else { line_at(text, at) }
}

/// The line around a place, without its end.
fn line_at(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    start..at + line_length(&text[at..])
}

fn line_length(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).unwrap_or(text.len())
}

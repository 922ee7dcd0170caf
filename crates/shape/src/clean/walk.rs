//! Walks whole lines: from one possible secret to the next, and past the lines of private keys.

use std::ops::Range;

use super::{
    Cleaner, assign,
    edit::RedactionEdit,
    found_secret::PendingSecret,
    keys::{self, KeyBlock, KeyBlockPart},
    line::ScannedLine,
    scan::{ScanHit, SecretSearch},
};

impl Cleaner {
    pub(super) fn scan(&mut self, search: &SecretSearch, text: &[u8], edits: &mut Vec<RedactionEdit>) {
        // End of the text already checked as a block. `behind` is the offset to resume at in a line
        // that began a block but is not part of it.
        let (mut blocks, mut behind) = (0, 0);
        // End of an unrelated line within a block.
        let mut foreign = 0;
        let (mut at, mut place, mut line) = (0, 0..0, ScannedLine::new(&[]));
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
                line = ScannedLine::new(&text[place.clone()]);
            }
            let here = range.start - place.start..range.end - place.start;
            let hit = search.look(pattern, &line, &here, &mut found);
            match hit {
                ScanHit::Next(next) => {
                    at = (place.start + next.resume).max(range.start + 1);
                    if let Some(pending) = next.pending {
                        self.look_ahead(text, place.end + 1, pending, edits);
                    }
                }
                ScanHit::Block { title } => {
                    (at, foreign) = self.begin_block(text, title, &place, edits);
                    blocks = at;
                }
                ScanHit::End => {
                    untitled(&text[..range.start], blocks, edits);
                    (at, blocks) = (range.end, range.end);
                }
                // Its line has a title, and the text after it was checked; or the line above is
                // unrelated.
                ScanHit::Middle if place.start < blocks || !keys::goes_on(text, place.start, &range) => {
                    at = range.end;
                }
                ScanHit::Middle => {
                    let start = keys::body_above(text, place.start).max(blocks);
                    let mut block = KeyBlock::new();
                    take_lines(&mut block, &text[start..place.start]);
                    edits.push(RedactionEdit::Drop { range: start..place.start });
                    self.block = Some(block);
                    (at, behind, foreign) = (place.start, range.end, 0);
                }
                ScanHit::Head { start } => {
                    self.block = Some(KeyBlock::framed(&line[..start]));
                    (at, behind, foreign) = (place.start, range.end, 0);
                }
            }
            if !found.is_empty() {
                edits.extend(found.drain(..).map(|found| RedactionEdit::secret(&found, place.start)));
            }
        }
    }

    /// Checks the next line for a value, now if it is available.
    fn look_ahead(
        &mut self,
        text: &[u8],
        next: usize,
        pending: PendingSecret,
        edits: &mut Vec<RedactionEdit>,
    ) {
        if next >= text.len() {
            self.pending = Some(pending);
            return;
        }
        let line = line_at(text, next);
        match assign::find_pending(&ScannedLine::new(&text[line.clone()]), pending) {
            Ok(found) => edits.push(RedactionEdit::secret(&found, line.start)),
            Err(Some(pending)) => self.look_ahead(text, line.end + 1, pending, edits),
            Err(None) => {}
        }
    }

    /// Begins a private key at its title: the body is after it or in the next lines. Returns the
    /// offset to resume at, and the end of any unrelated text before it.
    fn begin_block(
        &mut self,
        text: &[u8],
        title: Range<usize>,
        line: &Range<usize>,
        edits: &mut Vec<RedactionEdit>,
    ) -> (usize, usize) {
        self.block = None;
        let title_end = line.start + title.end;
        let behind = &text[title_end..line.end];
        let rest = keys::until_title(behind);
        let blank = keys::is_blank(rest);
        let body = keys::body_in_line(rest);
        if !blank && body > 0 && (body < rest.trim_ascii_end().len() || body > 64) {
            let range = title_end..title_end + body;
            edits.push(RedactionEdit::Secret {
                range,
                label: "private-key",
                why: "the body of a private key",
            });
            return (title_end + body, 0);
        }
        if line.end < text.len() && rest.len() == behind.len() {
            self.block = KeyBlock::titled(&text[line.start..line.start + title.start], rest);
            return (if blank { line.end + 1 } else { title_end }, line.end + 1);
        }
        (title_end, 0)
    }

    /// Drops lines of a private key. Returns the offset at which it stopped, and the end of the
    /// line there if that line is unrelated, else the same offset.
    fn skip_block(&mut self, text: &[u8], from: usize, edits: &mut Vec<RedactionEdit>) -> (usize, usize) {
        let mut at = from;
        while at < text.len() {
            let Some(block) = &mut self.block else { return (at, at) };
            let line = line_at(text, at);
            let after = (line.end + 1).min(text.len());
            match block.part(&text[line.clone()]) {
                KeyBlockPart::Body => {
                    block.take(&text[line]);
                    edits.push(RedactionEdit::Drop { range: at..after });
                    at = after;
                }
                KeyBlockPart::Between => {
                    block.pass();
                    at = after;
                }
                KeyBlockPart::Foreign => {
                    if block.lines > 0 {
                        edits.push(RedactionEdit::block(at, block));
                    }
                    block.leave();
                    return (at, after);
                }
                KeyBlockPart::EndsAt(length) => {
                    block.take(&text[at..at + length]);
                    edits.push(RedactionEdit::Drop { range: at..at + length });
                    self.end_block(at + length, edits);
                    return (at + length, at + length);
                }
                KeyBlockPart::Over => {
                    self.end_block(at, edits);
                    return (at, at);
                }
            }
        }
        (at, at)
    }

    pub(super) fn end_block(&mut self, at: usize, edits: &mut Vec<RedactionEdit>) {
        if let Some(block) = self.block.take().filter(|block| block.lines > 0) {
            edits.push(RedactionEdit::block(at, &block));
        }
    }
}

/// Drops the lines above the end of a private key without a title.
fn untitled(before: &[u8], from: usize, edits: &mut Vec<RedactionEdit>) {
    let line = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let in_line = keys::body_before(&before[line.max(from)..]);
    if in_line > 0 {
        let range = before.len() - in_line..before.len();
        edits.push(RedactionEdit::Secret { range, label: "private-key", why: "the end of a private key" });
        return;
    }
    // Mostly the lines above were checked with their title.
    let start = if from < line { keys::body_above(before, line).max(from) } else { line };
    if start < line {
        let mut block = KeyBlock::new();
        take_lines(&mut block, &before[start..line]);
        edits.push(RedactionEdit::Drop { range: start..line });
        edits.push(RedactionEdit::block(line, &block));
    }
}

fn take_lines(block: &mut KeyBlock, lines: &[u8]) {
    lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| block.take(line));
}

/// Returns the line around an offset after the last checked line. It is mostly the next line, whose
/// start is known.
fn line_after(text: &[u8], last: usize, at: usize) -> Range<usize> {
    let is_end = text.get(last) == Some(&b'\n');
    let next = last + 1..last + 1 + text.get(last + 1..).map_or(0, line_length);
    if is_end && next.contains(&at) { next } else { line_at(text, at) }
}

/// Returns the line around an offset, without its end.
fn line_at(text: &[u8], at: usize) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    start..at + line_length(&text[at..])
}

fn line_length(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).unwrap_or(text.len())
}

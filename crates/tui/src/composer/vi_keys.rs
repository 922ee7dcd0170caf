//! The common keys of vi: a normal mode for motions and changes, and an insert mode.

use ratatui_textarea::{CursorMove, Input, Key, TextArea};

/// The state of the vi keys.
#[derive(Debug, Default)]
pub(super) struct ViKeys {
    is_normal: bool,
    /// The first key of a command of two: `d`, `c` or `g`.
    pending: Option<char>,
}

/// The effect of a key in normal mode.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ViEffect {
    Used,
    /// It has no meaning of its own in normal mode.
    Unused,
    /// An earlier message is wanted.
    Earlier,
    /// A later message is wanted.
    Later,
}

impl ViKeys {
    pub(super) fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Goes to normal mode. Returns false if it was there already.
    pub(super) fn escape(&mut self, area: &mut TextArea<'_>) -> bool {
        let had_pending = self.pending.take().is_some();
        if self.is_normal {
            return had_pending;
        }
        self.is_normal = true;
        if area.cursor().1 > 0 {
            area.move_cursor(CursorMove::Back);
        }
        true
    }

    /// Begins the next message in insert mode.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes a key of normal mode.
    pub(super) fn on_key(&mut self, key: &Input, area: &mut TextArea<'_>) -> ViEffect {
        match key.key {
            Key::Char('r') if key.ctrl => drop(area.redo()),
            Key::Char(c) if !key.ctrl && !key.alt => return self.on_char(c, area),
            Key::Backspace => area.move_cursor(CursorMove::Back),
            _ => return ViEffect::Unused,
        }
        ViEffect::Used
    }

    fn on_char(&mut self, c: char, area: &mut TextArea<'_>) -> ViEffect {
        if let Some(first) = self.pending.take() {
            self.finish(first, c, area);
            return ViEffect::Used;
        }
        match c {
            'd' | 'c' | 'g' => self.pending = Some(c),
            'k' if area.cursor().0 == 0 => return ViEffect::Earlier,
            'j' if area.cursor().0 + 1 == area.lines().len() => return ViEffect::Later,
            'i' | 'a' | 'I' | 'A' | 'o' | 'O' | 'C' => self.insert(c, area),
            'x' if !is_at_end(area) => drop(area.delete_str(1)),
            'D' => delete_to_end(area),
            'u' => drop(area.undo()),
            'p' => put_after(area),
            _ => {
                if let Some(motion) = motion(c) {
                    area.move_cursor(motion);
                }
            }
        }
        ViEffect::Used
    }

    fn insert(&mut self, c: char, area: &mut TextArea<'_>) {
        self.is_normal = false;
        match c {
            'a' if !is_at_end(area) => area.move_cursor(CursorMove::Forward),
            'I' => area.move_cursor(CursorMove::Head),
            'A' => area.move_cursor(CursorMove::End),
            'C' => delete_to_end(area),
            'o' => {
                area.move_cursor(CursorMove::End);
                area.insert_newline();
            }
            'O' => {
                area.move_cursor(CursorMove::Head);
                area.insert_newline();
                area.move_cursor(CursorMove::Up);
            }
            _ => {}
        }
    }

    /// Completes a command of two keys. Others than the known ones do nothing.
    fn finish(&mut self, first: char, second: char, area: &mut TextArea<'_>) {
        match (first, second) {
            ('g', 'g') => area.move_cursor(CursorMove::Top),
            ('d', 'd') => delete_line(area),
            ('c', 'c') => {
                area.move_cursor(CursorMove::Head);
                self.insert('C', area);
            }
            ('d', '$') => delete_to_end(area),
            ('c', '$') => self.insert('C', area),
            // `cw` changes up to the end of the word, `dw` also deletes the blanks after it.
            ('d', 'w') => delete_over(area, CursorMove::WordForward, 0),
            ('d', 'e') => delete_over(area, CursorMove::WordEnd, 1),
            ('d', 'b') => drop(area.delete_word()),
            ('c', 'w' | 'e') => {
                delete_over(area, CursorMove::WordEnd, 1);
                self.is_normal = false;
            }
            _ => {}
        }
    }
}

fn motion(c: char) -> Option<CursorMove> {
    Some(match c {
        'h' => CursorMove::Back,
        'j' => CursorMove::Down,
        'k' => CursorMove::Up,
        'l' | ' ' => CursorMove::Forward,
        'w' => CursorMove::WordForward,
        'b' => CursorMove::WordBack,
        'e' => CursorMove::WordEnd,
        '0' | '^' => CursorMove::Head,
        '$' => CursorMove::End,
        'G' => CursorMove::Bottom,
        _ => return None,
    })
}

fn line_chars(area: &TextArea<'_>) -> usize {
    area.lines().get(area.cursor().0).map_or(0, |line| line.chars().count())
}

fn is_at_end(area: &TextArea<'_>) -> bool {
    area.cursor().1 >= line_chars(area)
}

/// Deletes up to the end of the line, and never the line break.
fn delete_to_end(area: &mut TextArea<'_>) {
    if !is_at_end(area) {
        area.delete_line_by_end();
    }
}

/// Deletes up to where a motion goes, and so many characters more, but not beyond the line.
fn delete_over(area: &mut TextArea<'_>, motion: CursorMove, more: usize) {
    let (begin, chars) = (area.cursor(), line_chars(area));
    area.move_cursor(motion);
    let end = area.cursor();
    let end = if end.0 == begin.0 && end.1 > begin.1 { (end.1 + more).min(chars) } else { chars };
    jump(area, begin.0, begin.1);
    area.delete_str(end.saturating_sub(begin.1));
}

fn jump(area: &mut TextArea<'_>, row: usize, column: usize) {
    let place = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    area.move_cursor(CursorMove::Jump(place(row), place(column)));
}

fn delete_line(area: &mut TextArea<'_>) {
    let (row, chars, rows) = (area.cursor().0, line_chars(area), area.lines().len());
    let line = area.lines().get(row).cloned().unwrap_or_default();
    area.move_cursor(CursorMove::Head);
    if row + 1 < rows {
        area.delete_str(chars + 1);
    } else {
        area.delete_str(chars);
        if rows > 1 {
            area.delete_newline();
            area.move_cursor(CursorMove::Head);
        }
    }
    // The line break tells that a whole line was deleted.
    area.set_yank_text(format!("{line}\n"));
}

/// Puts back what was deleted: a line below, anything else behind the cursor.
fn put_after(area: &mut TextArea<'_>) {
    let text = area.yank_text();
    if let Some(line) = text.strip_suffix('\n') {
        area.move_cursor(CursorMove::End);
        area.insert_newline();
        area.insert_str(line);
        area.move_cursor(CursorMove::Head);
    } else {
        if !is_at_end(area) {
            area.move_cursor(CursorMove::Forward);
        }
        area.insert_str(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses keys in normal mode, with the cursor at the beginning.
    fn after(text: &str, keys: &str) -> (String, bool) {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        let mut vi = ViKeys { is_normal: true, pending: None };
        for c in keys.chars() {
            if vi.is_normal {
                vi.on_key(&Input { key: Key::Char(c), ..Input::default() }, &mut area);
            } else {
                area.insert_char(c);
            }
        }
        (area.lines().join("\n"), vi.is_normal)
    }

    #[test]
    fn changes_are_made_where_the_motions_go() {
        for (text, keys, expected) in [
            ("one two", "x", "ne two"),
            ("one two", "wx", "one wo"),
            ("one two", "dw", "two"),
            ("one two", "wdw", "one "),
            ("one\ntwo", "dw", "\ntwo"),
            ("one two", "cwsix", "six two"),
            ("one two", "ea!", "one! two"),
            ("one two", "$iX", "one twoX"),
            ("one two", "A.", "one two."),
            ("one two", "wI-", "-one two"),
            ("one\ntwo", "jddp", "one\ntwo"),
            ("one\ntwo", "ddp", "two\none"),
            ("one\ntwo", "Gothree", "one\ntwo\nthree"),
            ("one\ntwo", "GOand", "one\nand\ntwo"),
            ("one\ntwo", "Gggx", "ne\ntwo"),
            ("one two", "xxu", "ne two"),
            ("one two", "wDihas ", "one has "),
            ("文字 b", "lx", "文 b"),
            ("one", "dz", "one"),
        ] {
            assert_eq!(after(text, keys).0, expected, "{text:?} {keys}");
        }
        assert!(after("one", "dd").1 && !after("one", "cc").1);
    }
}

//! Requests that change files.

use super::Goal;
use crate::plan::{phrases::Phrase, pieces::Piece, reading::Reading, words::Word};

/// Verbs that only look: where one of them comes first, a later `change` or `new` is not an order.
const LOOKING: [Word; 6] = [Word::Show, Word::Find, Word::Search, Word::Count, Word::Who, Word::Compare];

pub(super) fn delete(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Delete, &LOOKING) {
        return None;
    }
    let names = names(reading);
    Some(match names.as_slice() {
        [file] => Goal::Delete { file: file.clone() },
        _ => Goal::Say(Phrase::WhichFile),
    })
}

pub(super) fn rename(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Rename, &LOOKING) {
        return None;
    }
    let names = names(reading);
    Some(match names.as_slice() {
        [from, to] => Goal::Rename { from: from.clone(), to: to.clone() },
        [_] => Goal::Say(Phrase::NewName),
        _ => Goal::Say(Phrase::WhichFile),
    })
}

/// `replace A with B in F`, 把 F 里的 A 改成 B: the first text is the old one.
pub(super) fn replace(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Replace, &LOOKING) {
        return None;
    }
    let texts = texts(reading);
    match (texts.as_slice(), reading.names().as_slice()) {
        ([old, new], [file]) => {
            Some(Goal::Replace { file: (*file).to_owned(), old: old.clone(), new: new.clone() })
        }
        ([_, _], _) => Some(Goal::Say(Phrase::WhichFile)),
        // `what did I change` is a question.
        _ if reading.after(&["replace", "substitute"]).is_some() => Some(Goal::Say(Phrase::WhichText)),
        _ => None,
    }
}

/// The two texts of a replacement: quoted, or the words around `with`, `to`, 改成.
fn texts(reading: &Reading) -> Vec<String> {
    let quoted = reading.quoted();
    if quoted.len() == 2 {
        return quoted.into_iter().map(str::to_owned).collect();
    }
    let text = |piece: &Piece| match piece {
        Piece::Word(text) | Piece::Symbol(text) | Piece::Quoted(text) => Some(text.clone()),
        Piece::Number(number) => Some(number.to_string()),
        Piece::Name(_) | Piece::Range(..) | Piece::Glyphs(_) => None,
    };
    let joins = |piece: &Piece| match piece {
        Piece::Word(word) => ["with", "to", "by", "into"].contains(&word.as_str()),
        Piece::Glyphs(glyphs) => Word::Replace.place(glyphs).is_some(),
        _ => false,
    };
    let pieces = &reading.pieces;
    let pair = pieces
        .windows(3)
        .find(|three| joins(&three[1]))
        .and_then(|three| Some(vec![text(&three[0])?, text(&three[2])?]));
    pair.unwrap_or_default()
}

pub(super) fn create(reading: &Reading) -> Option<Goal> {
    let names = reading.names();
    let path = (*names.first()?).to_owned();
    let content = reading.quoted().first().map(|content| format!("{content}\n"));
    let plain = reading.has(Word::File) || !reading.has(Word::Code);
    if !reading.begins_with(Word::Create, &LOOKING) || names.len() > 1 || (content.is_none() && !plain) {
        return None;
    }
    Some(Goal::Create { path, content: content.unwrap_or_default() })
}

/// Names of files; a quotation is one too.
fn names(reading: &Reading) -> Vec<String> {
    let names = reading.pieces.iter().filter_map(|piece| match piece {
        Piece::Name(name) | Piece::Quoted(name) if !name.contains('*') => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

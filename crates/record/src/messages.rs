//! Messages of a session file, read without rebuilding the session.

use std::{io::BufReader, ops::ControlFlow, path::Path};

use windlass_contract::{
    Content,
    item::{Body, Role},
    program_message::is_of_program,
};

use crate::{
    SessionError,
    error::cannot,
    journal::READ_BYTES,
    session_line::{LineEnvelope, LineRead, LineReader, SessionLine, kind_of},
    session_paths,
};

/// Calls `see` for each prompt and each answer of a session, until it returns `Break`. Only lines
/// for which `is_candidate` returns true are parsed; it gets the bytes of the whole line.
pub fn for_each_message(
    path: &Path,
    is_candidate: &dyn Fn(&[u8]) -> bool,
    mut see: impl FnMut(Role, String) -> ControlFlow<()>,
) -> Result<(), SessionError> {
    let file = session_paths::open_to_read(path)?;
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BYTES, file));
    while let LineRead::Whole(line) = lines.next().map_err(cannot("read", path))? {
        if !may_be_item(line) || !is_candidate(line) {
            continue;
        }
        let message = LineEnvelope::parse(line).ok().as_ref().and_then(message_of_line);
        if let Some((role, text)) = message
            && see(role, text).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// Returns false if a line is another kind of record.
fn may_be_item(line: &[u8]) -> bool {
    kind_of(line).is_none_or(|kind| matches!(kind, b"item" | b"inherited"))
}

/// Returns the message of a line, if it has one of the user or the model.
pub(crate) fn message_of_line(line: &LineEnvelope<'_>) -> Option<(Role, String)> {
    if !matches!(line.kind.as_ref(), "item" | "inherited") {
        return None;
    }
    let SessionLine::Item(item) = SessionLine::parse(line).ok()? else { return None };
    match item.body {
        Body::Message { role: role @ (Role::User | Role::Assistant), content } => {
            let text = Content::join(&content);
            (role == Role::Assistant || !is_of_program(&text)).then_some((role, text))
        }
        _ => None,
    }
}

/// Returns the prompt of a line, if it is one.
pub(crate) fn prompt_of_line(line: &LineEnvelope<'_>) -> Option<String> {
    message_of_line(line).filter(|(role, _)| *role == Role::User).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Item, Journal,
        journal::{Record, SessionMeta},
    };
    use windlass_fakes::clean;

    use super::*;
    use crate::{SessionFile, new_thread_id};

    #[test]
    fn prompts_and_answers_are_seen_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let (cwd, version, instructions) = ("/w".into(), "0".into(), String::new());
        let meta = SessionMeta { id: new_thread_id(), cwd, version, instructions, parent: None };
        let file = SessionFile::create(home.path(), &meta).unwrap();
        let said = [
            (Role::Developer, "be brief"),
            (Role::User, "<environment_context>here</environment_context>"),
            (Role::User, "count"),
            (Role::Assistant, "one"),
            (Role::Assistant, "two"),
        ];
        for (role, text) in said {
            file.append(&Record::Item(clean(&Item::message(role, text)))).unwrap();
        }
        let seen = |is_candidate: &dyn Fn(&[u8]) -> bool, most: usize| {
            let mut seen = Vec::new();
            for_each_message(file.path(), is_candidate, |_, text| {
                seen.push(text);
                if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
            seen
        };
        assert_eq!(seen(&|_| true, 9), ["count", "one", "two"]);
        assert_eq!(seen(&|_| true, 1), ["count"]);
        assert_eq!(seen(&|line| line.windows(3).any(|part| part == b"two"), 9), ["two"]);
    }
}

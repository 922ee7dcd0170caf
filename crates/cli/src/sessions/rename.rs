//! `windlass sessions rename`: gives a session a name.

use windlass::record::{self, SessionNames};

use super::failed;
use crate::{
    args::RenameOptions, exit::ProgramExit, ids, output::print_text, problem::CliProblem, screen::visible,
    setup::ProgramSetup,
};

/// Maximum length of a name: it is for lists.
const MAX_NAME_CHARS: usize = 80;

/// Minimum length of a name that could be the beginning of an id.
const MIN_ID_CHARS: usize = 4;

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, args: &RenameOptions) -> Result<ProgramExit, CliProblem> {
    let session = ids::session(setup, &args.id)?.id;
    let Some(name) = &args.name else {
        SessionNames::set(&setup.home, &session, None).map_err(|error| failed(&error))?;
        return print_text(&format!("session {session} has no name any more\n"));
    };
    let name = checked(&setup.secrets().clean(name))?;
    if let Some(other) = ids::names(setup)?.find(&name).filter(|other| *other != session) {
        if record::find(&setup.home, &other).is_ok() {
            return Err(CliProblem::usage(format!("session {other} already has the name `{name}`")));
        }
        // `sessions gc` has removed that one.
        SessionNames::set(&setup.home, &other, None).map_err(|error| failed(&error))?;
    }
    SessionNames::set(&setup.home, &session, Some(&name)).map_err(|error| failed(&error))?;
    print_text(&format!("session {session} is now `{name}`\n"))
}

/// Returns a name that can be shown in a line and not be taken for an id.
fn checked(name: &str) -> Result<String, CliProblem> {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_like_id = name.chars().count() >= MIN_ID_CHARS
        && name.chars().all(|character| character.is_ascii_hexdigit() || character == '-');
    let problem = if name.is_empty() {
        "is empty; `--clear` removes a name".to_owned()
    } else if name.chars().count() > MAX_NAME_CHARS {
        format!("has more than {MAX_NAME_CHARS} characters")
    } else if name.starts_with('-') {
        "begins with `-`, as options do".to_owned()
    } else if is_like_id {
        "looks like an id; add a letter after `f`".to_owned()
    } else if visible(&name) != name {
        "has characters that are not visible as themselves".to_owned()
    } else {
        return Ok(name);
    };
    Err(CliProblem::usage(format!("the name `{}` {problem}", visible(&name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_and_no_id() {
        assert_eq!(checked("  fix\nthe parser ").unwrap(), "fix the parser");
        assert_eq!(checked("修复解析器").unwrap(), "修复解析器");
        for name in ["", " ", "-x", "0199f3a2-7c1e", "cafe", "a\u{202e}b", &"x".repeat(81)] {
            assert!(checked(name).is_err(), "{name}");
        }
    }
}

//! Colours: only if a terminal shows them and the user does not refuse them.

use std::{ffi::OsString, io::IsTerminal};

/// Returns true if this output is to be coloured: `NO_COLOR`, then `CLICOLOR_FORCE`, then a
/// terminal that is not `dumb`.
pub(crate) fn is_wanted(output: &impl IsTerminal) -> bool {
    decide(output.is_terminal(), &|name| std::env::var_os(name))
}

/// Returns true if the terminal cannot move its cursor: `TERM` is `dumb`, or not set.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

fn decide(is_terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_dumb = set("TERM").is_some_and(|term| term == "dumb");
    let is_off = set("CLICOLOR").is_some_and(|value| value == "0");
    if set("NO_COLOR").is_some() {
        return false;
    }
    set("CLICOLOR_FORCE").is_some_and(|value| value != "0") || is_terminal && !is_dumb && !is_off
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal or not, the variables, and the expected result.
    type Case = (bool, &'static [(&'static str, &'static str)], bool);

    #[test]
    fn colours_are_for_terminals_unless_someone_says_otherwise() {
        let cases: [Case; 10] = [
            (true, &[], true),
            (false, &[], false),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (true, &[("TERM", "dumb")], false),
            (true, &[("CLICOLOR", "0")], false),
            (false, &[("CLICOLOR", "1")], false),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ];
        for (is_terminal, variables, expected) in cases {
            let variable = |name: &str| {
                let found = variables.iter().find(|(each, _)| *each == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(decide(is_terminal, &variable), expected, "{is_terminal} {variables:?}");
        }
    }
}

//! The tools that a server offers: names, in which `*` stands for any characters.

use crate::problem::CliProblem;

/// Patterns of names. Without any, every tool is on offer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedTools(Vec<String>);

/// The tools that one client of the gateway gets: those that every list allows and none denies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientFilter {
    allowed: Vec<AllowedTools>,
    denied: Vec<String>,
}

impl ClientFilter {
    /// Creates a filter.
    pub(crate) fn new(allowed: Vec<AllowedTools>, denied: Vec<String>) -> Self {
        Self { allowed, denied }
    }

    /// Returns true if the client may know and call a tool.
    pub(crate) fn allow(&self, name: &str) -> bool {
        self.allowed.iter().all(|list| list.allow(name))
            && !self.denied.iter().any(|pattern| matches(pattern, name))
    }

    /// Returns true if no tool is left out.
    pub(crate) fn is_open(&self) -> bool {
        self.denied.is_empty() && self.allowed.iter().all(|list| list.0.is_empty())
    }
}

impl AllowedTools {
    /// Reads patterns, each possibly a list with commas.
    pub(crate) fn parse(patterns: &[String]) -> Result<Self, CliProblem> {
        let parts: Vec<_> = patterns.iter().flat_map(|text| text.split(',')).map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(CliProblem::usage("--allow-tools: a name is empty"));
        }
        Ok(Self(parts.into_iter().map(str::to_owned).collect()))
    }

    /// Returns true if a tool is on offer.
    pub(crate) fn allow(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| matches(pattern, name))
    }

    /// Returns a pattern that fits none of these names.
    pub(crate) fn unused<'a>(&self, names: &(impl Iterator<Item = &'a str> + Clone)) -> Option<&str> {
        let is_unused = |pattern: &&String| !names.clone().any(|name| matches(pattern, name));
        self.0.iter().find(is_unused).map(String::as_str)
    }
}

/// Returns true if a name fits a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(head) else { return false };
    let mut middle = tail.split('*').peekable();
    let mut rest = rest;
    while let Some(part) = middle.next() {
        if middle.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let fits = [
            ("read_file", "read_file"),
            ("read_*", "read_file"),
            ("*", "x"),
            ("a*b*c", "a-b-b-c"),
            ("a*", "a"),
        ];
        for (pattern, name) in fits {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("read_file", "read_files"), ("read_*", "unread_x"), ("a*b*c", "a-c"), ("a*aa", "aa")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_client_gets_what_all_lists_allow_and_none_denies() {
        let list = |pattern: &str| AllowedTools(vec![pattern.to_owned()]);
        let filter = ClientFilter::new(vec![list("a_*"), AllowedTools::default()], vec!["*_x".to_owned()]);
        assert!(filter.allow("a_y") && !filter.allow("a_x") && !filter.allow("b_y") && !filter.is_open());
        assert!(ClientFilter::default().is_open() && ClientFilter::default().allow("b"));
    }

    #[test]
    fn without_patterns_everything_is_allowed_and_unused_patterns_are_found() {
        assert!(AllowedTools::parse(&[]).is_ok_and(|all| all.allow("x")));
        let some = AllowedTools::parse(&["read_*,x".to_owned()]).map_err(|problem| problem.message);
        let some = some.unwrap_or_default();
        assert!(some.allow("read_file") && !some.allow("shell_command"));
        assert_eq!(some.unused(&["read_file", "y"].into_iter()), Some("x"));
        assert!(AllowedTools::parse(&["a,".to_owned()]).is_err());
    }
}

//! Names of remote tools for models: `mcp__server__tool`.

use ring::digest::{SHA256, digest};
use windlass_contract::ToolName;

use crate::catalogue::hex;

/// Beginning of every name.
pub const NAME_PREFIX: &str = "mcp__";
/// Delimiter between the server and the tool.
const DELIMITER: &str = "__";
/// Maximum length of a name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;
/// Number of hexadecimal digits of a hash in a name. 64 bits, so that a server cannot make a tool
/// with the name of another server's tool.
const HASH_DIGITS: usize = 16;

/// Returns the name of a remote tool for models: only letters, digits, `_` and `-`, at most 64
/// bytes.
///
/// It follows from the two names alone. Which other tools exist does not change it, so a prompt and
/// a rule of the user stay valid when a server is added. Two different tools have different names:
/// wherever the plain form could be that of another pair, a hash of the pair is added.
pub fn model_tool_name(server: &str, tool: &str) -> ToolName {
    let plain = format!("{NAME_PREFIX}{server}{DELIMITER}{tool}");
    if plain.len() <= MAX_NAME_BYTES && is_unambiguous(server, tool) {
        return plain.into();
    }
    let mut name: String = plain.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    name.truncate(MAX_NAME_BYTES - HASH_DIGITS - 1);
    name.push('_');
    name.push_str(&pair_hash(server, tool));
    name.into()
}

/// Returns true if the plain form can be split into this pair only: the server ends at the first
/// delimiter, and the tool does not look like one with a hash.
fn is_unambiguous(server: &str, tool: &str) -> bool {
    let is_plain = |name: &str| !name.is_empty() && name.chars().all(is_allowed);
    let ends_early = server.contains(DELIMITER) || server.ends_with('_');
    is_plain(server) && is_plain(tool) && !ends_early && !has_hash(tool)
}

fn has_hash(tool: &str) -> bool {
    tool.len() >= HASH_DIGITS
        && tool.bytes().rev().take(HASH_DIGITS).all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn pair_hash(server: &str, tool: &str) -> String {
    // The length keeps `a` + `bc` apart from `ab` + `c`.
    let pair = format!("{}:{server}{tool}", server.len());
    let mut hash = hex(digest(&SHA256, pair.as_bytes()).as_ref());
    hash.truncate(HASH_DIGITS);
    hash
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn name(server: &str, tool: &str) -> String {
        model_tool_name(server, tool).to_string()
    }

    #[test]
    fn a_plain_tool_keeps_its_name() {
        assert_eq!(name("github", "create_issue"), "mcp__github__create_issue");
        assert_eq!(name("my-server", "get__it"), "mcp__my-server__get__it");
        assert_eq!(name("_a", "_b"), "mcp___a___b");
    }

    #[test]
    fn tools_whose_names_look_alike_are_kept_apart() {
        let long = "x".repeat(100);
        let pairs = [
            ("a", "foo.bar"),
            ("a", "foo_bar"),
            ("a", "foo bar"),
            ("a", "foo\u{0}bar"),
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "_b"),
            ("a", "__b"),
            ("a__", "b"),
            ("a", &long),
            ("a", &long[1..]),
            ("a", ""),
            ("a", "ü"),
            ("a", "ä"),
        ];
        let names: BTreeSet<_> = pairs.iter().map(|(server, tool)| name(server, tool)).collect();
        assert_eq!(names.len(), pairs.len(), "{names:?}");
    }

    #[test]
    fn a_server_cannot_take_the_name_of_a_tool_of_another_server() {
        let victim = name("a__b", "c");
        let (_, rest) = victim.strip_prefix("mcp__a__").map(|rest| ("a", rest)).unwrap();
        assert_ne!(name("a", rest), victim, "{victim}");
    }

    proptest! {
        #[test]
        fn every_name_is_accepted_by_every_provider(server in "[A-Za-z0-9_-]{1,70}", tool in any::<String>()) {
            let name = name(&server, &tool);
            prop_assert!(name.len() <= MAX_NAME_BYTES && name.starts_with(NAME_PREFIX));
            prop_assert!(name.chars().all(is_allowed), "{name}");
        }

        #[test]
        fn different_tools_have_different_names(
            pairs in prop::collection::btree_set(("[a_]{1,4}", "[a_.é]{0,5}"), 2..30),
        ) {
            let names: BTreeSet<_> = pairs.iter().map(|(server, tool)| name(server, tool)).collect();
            prop_assert_eq!(names.len(), pairs.len());
        }
    }
}

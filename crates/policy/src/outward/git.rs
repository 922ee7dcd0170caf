//! git: configuration that can turn another subcommand into a push.

use std::{collections::HashSet, sync::LazyLock};

use windlass_contract::effects::OutwardEffect;

use super::{name::ToolCommand, table};
use crate::shell::SimpleCommand;

/// Variables that add to the configuration.
const CONFIGURES: &[&str] = &[
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
];

/// Returns a push if the subcommand is not one of git's own and may be an alias.
pub(super) fn alias(call: &ToolCommand<'_>) -> Option<OutwardEffect> {
    static OWN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let lines = include_str!("git_commands.txt").lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_whitespace).collect()
    });
    if call.tool != "git" || call.is_split {
        return None;
    }
    let (verb, is_literal) = table::verb(call)?;
    let defines = || call.texts().any(|text| is_key_of_alias(text) && text.contains('='));
    (!is_literal || !OWN.contains(verb) || defines() || has_unclear_key(call)).then_some(OutwardEffect::Push)
}

fn is_key_of_alias(text: &str) -> bool {
    let key = text.strip_prefix("--config-env=").unwrap_or(text);
    key.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("alias."))
}

/// Returns true for `-c "$x"`, which can set any key.
fn has_unclear_key(call: &ToolCommand<'_>) -> bool {
    let texts: Vec<_> = call.texts().collect();
    texts.windows(2).any(|pair| {
        let key = pair[1].split('=').next().unwrap_or_default();
        matches!(pair[0], "-c" | "--config-env") && key.contains(['$', '`'])
    })
}

/// Returns a push if variables add to the configuration: of the command, of `env`, or of the shell
/// from there on. Those of cargo can define an alias for publishing.
pub(super) fn configured(simple: &SimpleCommand) -> Option<OutwardEffect> {
    let configures = |name: &str, value: &str| {
        CONFIGURES.iter().any(|variable| name.starts_with(variable)) && value != "/dev/null"
    };
    let by_assignment = simple.assignments.iter().any(|each| configures(&each.name, &each.value.text));
    let mut pairs = simple.words.iter().filter_map(|word| word.text.split_once('='));
    let mut by_word = || pairs.any(|(name, value)| configures(name, value));
    let cargo = simple.assignments.iter().any(|each| each.name.starts_with("CARGO_ALIAS_"));
    let push = (by_assignment || by_word()).then_some(OutwardEffect::Push);
    push.or(cargo.then_some(OutwardEffect::Publish))
}

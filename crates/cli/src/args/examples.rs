//! Examples for the help of commands that have none beside their definition.

/// The lines after `windlass`, by command. The first word of the path is below the root.
pub(super) const EXAMPLES: [(&[&str], &[&str]); 62] = [
    (
        &[],
        &[
            "",
            "init",
            "exec \"what is in this project?\"",
            "exec -s workspace-write \"fix the failing test\"",
        ],
    ),
    (&["exec", "resume"], &["exec resume --last \"now update the documentation\""]),
    (&["apply-patch"], &["apply-patch < change.diff"]),
    (&["tools"], &["tools list", "tools search \"count lines\""]),
    (&["tools", "list"], &["tools list --json"]),
    (&["tools", "show"], &["tools show shell_command"]),
    (&["tools", "search"], &["tools search \"count lines\""]),
    (&["tools", "select"], &["tools select \"find all files that mention TODO\""]),
    (&["tools", "bench"], &["tools bench sets --out predictions"]),
    (&["tools", "cost"], &["tools cost --tools my-tools.jsonl"]),
    (&["tools", "manifest"], &["tools manifest > tools.md"]),
    (&["models"], &["models list -p ollama", "models probe -p ollama -m qwen3"]),
    (&["models", "list"], &["models list -p ollama"]),
    (&["init"], &["init", "init --provider ollama --model qwen3", "init --yes"]),
    (&["login"], &["login openai", "login openrouter < key.txt", "login --status"]),
    (&["logout"], &["logout openai"]),
    (&["doctor"], &["doctor", "doctor --network", "doctor --json"]),
    (&["config"], &["config show --origin", "config set sandbox_mode workspace-write"]),
    (&["config", "show"], &["config show --origin"]),
    (&["config", "get"], &["config get model --origin", "config get limits"]),
    (
        &["config", "set"],
        &[
            "config set model qwen3",
            "config set limits.processes 512",
            "config set 'model_providers.\"llama.cpp\".base_url' http://gpu-box:8080/v1",
        ],
    ),
    (&["config", "unset"], &["config unset model"]),
    (&["config", "edit"], &["config edit"]),
    (&["config", "schema"], &["config schema > config.schema.json"]),
    (&["config", "path"], &["config path"]),
    (&["mcp"], &["mcp add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .", "mcp list"]),
    (&["mcp", "list"], &["mcp list", "mcp list --json"]),
    (&["mcp", "test"], &["mcp test files", "mcp test --json"]),
    (&["mcp", "pins"], &["mcp pins", "mcp pins files"]),
    (&["mcp", "pins", "approve"], &["mcp pins approve files", "mcp pins approve files read_file"]),
    (&["mcp", "pins", "forget"], &["mcp pins forget files"]),
    (&["mcp", "login"], &["mcp login tickets"]),
    (&["mcp", "logout"], &["mcp logout tickets"]),
    (&["mcp", "prompts"], &["mcp prompts", "mcp prompts notes review file=main.rs"]),
    (&["mcp", "get"], &["mcp get files"]),
    (&["mcp", "remove"], &["mcp remove files"]),
    (&["hooks"], &["hooks list", "hooks test"]),
    (&["hooks", "list"], &["hooks list", "hooks list --json"]),
    (&["hooks", "test"], &["hooks test", "hooks test format --json"]),
    (&["instructions"], &["instructions", "instructions --full"]),
    (&["skills"], &["skills list", "skills show pdf"]),
    (&["skills", "list"], &["skills list --json"]),
    (&["skills", "show"], &["skills show pdf"]),
    (&["prompts"], &["prompts list", "prompts show review src/main.rs", "exec \"/review src/main.rs\""]),
    (&["prompts", "list"], &["prompts list --json"]),
    (&["prompts", "show"], &["prompts show review src/main.rs"]),
    (&["trust"], &["trust", "trust --yes /src/project", "trust --list", "trust --revoke"]),
    (&["policy"], &["policy explain 'git push'", "policy rules"]),
    (&["policy", "classify"], &["policy classify --jsonl < commands.jsonl"]),
    (&["policy", "test"], &["policy test rules-test.toml"]),
    (&["policy", "suggest"], &["policy suggest --write"]),
    (&["policy", "rules"], &["policy rules --json"]),
    (&["policy", "revoke"], &["policy revoke 3f2a"]),
    (&["stats"], &["stats --since 7d", "stats --by error"]),
    (&["show"], &["show 3284eeac7d"]),
    (&["sessions"], &["sessions list", "sessions gc --dry-run"]),
    (&["feedback"], &["feedback 3284eeac7d bad \"wrong file\""]),
    (&["audit"], &["audit verify 0199f3a2", "audit export --redacted 0199f3a2"]),
    (&["audit", "verify"], &["audit verify 0199f3a2"]),
    (&["audit", "export"], &["audit export --redacted 0199f3a2 > report.jsonl"]),
    (&["completions"], &["completions bash > ~/.local/share/bash-completion/completions/windlass"]),
    (&["man"], &["man | man -l -", "man --dir ~/.local/share/man/man1"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CliArgs;

    /// Splits a line as a shell does, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let ends = [" < ", " > ", " | "].iter().filter_map(|end| line.find(end));
        let line = &line[..ends.min().unwrap_or(line.len())];
        let (mut words, mut quote, mut is_open) = (Vec::new(), None, false);
        for c in line.chars() {
            match (c, quote) {
                ('"' | '\'', None) => (quote, is_open) = (Some(c), is_open || push_word(&mut words, is_open)),
                (c, Some(q)) if c == q => quote = None,
                (' ', None) => is_open = false,
                (c, _) => {
                    is_open = is_open || push_word(&mut words, is_open);
                    if let Some(word) = words.last_mut() {
                        word.push(c);
                    }
                }
            }
        }
        words
    }

    fn push_word(words: &mut Vec<String>, is_open: bool) -> bool {
        if !is_open {
            words.push(String::new());
        }
        true
    }

    #[test]
    fn every_example_is_a_command_line() {
        assert_eq!(words("a \"b c\" 'd.\"e\"' < f"), ["a", "b c", "d.\"e\""]);
        let examples = EXAMPLES.iter().flat_map(|(_, lines)| lines.iter()).filter(|line| !line.is_empty());
        for line in examples {
            let parsed = CliArgs::parse_words(std::iter::once("windlass".to_owned()).chain(words(line)));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}

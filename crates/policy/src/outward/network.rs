//! Programs that use the network: the data that they send, and the destination of a copy.

use windlass_contract::effects::OutwardEffect;

use super::{
    is_literal,
    name::{ToolArgument, ToolCommand, tool_name},
};
use crate::shell::{ShellScript, ShellWord, SimpleCommand, VariableAssignment};

/// Programs that send at least a name or an address to another machine.
const ASKS_ELSEWHERE: &[&str] = &[
    "curl",
    "wget",
    "aria2c",
    "http",
    "dig",
    "nslookup",
    "host",
    "ping",
    "ping6",
    "traceroute",
    "whois",
    "lynx",
    "w3m",
    "links",
    "openssl",
    "drill",
    "kdig",
    "resolvectl",
    "getent",
];

/// Letters of curl's options that take a value.
const CURL_VALUES: &str = "AbcCdDeEFhHKmMoPQrtTuUwxXyYz";

/// Options of curl that send data, or that read further options from a file.
const CURL_SENDS: &[&str] = &[
    "--config",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--data-ascii",
    "--json",
    "--form",
    "--form-string",
    "--upload-file",
    "--mail-from",
    "--mail-rcpt",
    "--quote",
];

/// Protocols that send data from the address.
const SENDS_ADDRESS: &[&str] = &["gopher://", "gophers://", "telnet://", "dict://", "smtp://", "smtps://"];

/// Returns a send if bash opens a connection for a redirection.
pub(super) fn redirected(simple: &SimpleCommand) -> Option<OutwardEffect> {
    let mut targets = simple.redirects.iter().map(|redirect| redirect.target.text.as_str());
    let opens = targets.any(|target| target.starts_with("/dev/tcp/") || target.starts_with("/dev/udp/"));
    opens.then_some(OutwardEffect::Send)
}

/// Returns a send if an address or a header is made from the output of other commands.
pub(super) fn derived(words: &[ShellWord], script: &ShellScript) -> Option<OutwardEffect> {
    let (program, arguments) = words.split_first()?;
    let (tool, _) = tool_name(&program.text);
    let asks = ASKS_ELSEWHERE.contains(&tool.as_str())
        || tool == "git" && arguments.iter().any(|word| word.text.contains("://"));
    let printed: Vec<_> = script
        .commands
        .iter()
        .flat_map(|simple| &simple.assignments)
        .filter(|assignment| is_printed(&assignment.value))
        .collect();
    let is_sent = |(at, word): (usize, &ShellWord)| {
        let before = at.checked_sub(1).and_then(|before| arguments.get(before));
        // These values are not sent.
        let stays = before.is_some_and(|option| matches!(option.text.as_str(), "-o" | "--output" | "-O"));
        !stays && !is_literal(word) && (is_printed(word) || printed.iter().any(|each| uses(word, each)))
    };
    (asks && arguments.iter().enumerate().any(is_sent)).then_some(OutwardEffect::Send)
}

/// Returns true if a word contains the output of a command, or words that `xargs` adds.
fn is_printed(word: &ShellWord) -> bool {
    let text = word.text.replace("$((", "");
    word.unclear.is_some() && (text.contains("$(") || text.contains('`') || text.contains("{}"))
}

fn uses(word: &ShellWord, assignment: &VariableAssignment) -> bool {
    let name = assignment.name.as_str();
    word.text.match_indices('$').any(|(at, _)| {
        let rest = word.text.get(at + 1..).unwrap_or_default();
        let after = rest.trim_start_matches(['{', '#', '!']).strip_prefix(name);
        after.is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

/// Returns true for data, a file, a method that changes something, or unclear options. `-G` turns
/// the data into a query.
pub(super) fn curl(call: &ToolCommand<'_>) -> bool {
    let mut operands = Vec::new();
    let (mut sends, mut is_query) = (false, false);
    let mut method: Option<ToolArgument<'_>> = None;
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.text.as_str();
        let attached = |value: &str| ToolArgument { text: value.to_owned(), ..argument.clone() };
        if let Some(long) = text.strip_prefix("--").filter(|_| text.len() > 2) {
            let (name, value) = long.split_once('=').map_or((text, None), |(name, value)| {
                (text.get(..name.len() + 2).unwrap_or_default(), Some(value))
            });
            is_query |= name == "--get";
            sends |= CURL_SENDS.iter().any(|each| *each == name || name.len() > 4 && each.starts_with(name));
            if name == "--request" {
                method = value.map(attached).or_else(|| arguments.next().cloned());
            }
        } else if let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
            is_query |= bundle.chars().take_while(|letter| !CURL_VALUES.contains(*letter)).any(|c| c == 'G');
            let valued = bundle.char_indices().find(|(_, letter)| CURL_VALUES.contains(*letter));
            let Some((at, letter)) = valued else { continue };
            let value = bundle.get(at + 1..).filter(|value| !value.is_empty());
            let value = value.map(attached).or_else(|| arguments.next().cloned());
            sends |= "dFTQK".contains(letter);
            method = if letter == 'X' { value } else { method };
        } else {
            operands.push(argument);
        }
    }
    let reads = |method: &ToolArgument<'_>| {
        let read = ["GET", "HEAD", "OPTIONS"].contains(&method.text.to_ascii_uppercase().as_str());
        method.is_literal && read
    };
    // An argument that is not literal is the address, if there is no other.
    let is_open = |argument: &&ToolArgument<'_>| {
        !argument.is_literal
            && (argument.text.is_empty() || operands.len() > 1 && argument.text.starts_with('$'))
    };
    let by_address = |argument: &&ToolArgument<'_>| {
        SENDS_ADDRESS.iter().any(|protocol| argument.text.starts_with(protocol))
    };
    let overrides = |text: &str| text.to_ascii_lowercase().contains("method-override");
    method.is_some_and(|method| !reads(&method))
        || call.texts().any(overrides)
        || (!is_query && sends)
        || operands.iter().any(|argument| is_open(argument) || by_address(argument))
}

/// Returns true for data, a file, another method, or a setting for one of these.
pub(super) fn wget(call: &ToolCommand<'_>) -> bool {
    const SENDS: &[&str] = &["--post-data", "--post-file", "--body-data", "--body-file", "--method"];
    let sets = |text: &str| ["post", "method", "body"].iter().any(|part| text.contains(part));
    SENDS.iter().any(|option| call.has(option))
        || (call.has("-e") || call.has("--execute"))
            && call.texts().any(|text| sets(text) && text.contains('='))
}

/// Returns true for a method that changes something, or for form fields.
pub(super) fn httpie(operands: &[&str]) -> bool {
    let changes =
        |word: &&str| matches!(word.to_ascii_uppercase().as_str(), "POST" | "PUT" | "PATCH" | "DELETE");
    let is_field = |word: &&str| {
        let key = word.split(['=', '@']).next().unwrap_or_default();
        (word.contains('=') || word.contains('@')) && !key.contains(['/', ':']) && !word.contains("==")
    };
    operands.first().is_some_and(|word| changes(word) || word.starts_with('$') && operands.len() > 1)
        || operands.iter().skip(1).any(is_field)
}

/// Returns true for a copy to `host:path`, `user@host:path`, `rsync://host/path`, or to an unclear
/// destination. A local path has no colon before its first slash. A copy from another machine
/// changes nothing there.
pub(super) fn copies_away(operands: &[&str]) -> bool {
    operands.last().is_some_and(|to| {
        let host = to.split('/').next().unwrap_or_default();
        to.contains("://") || host.contains(':') || to.starts_with(['$', '`']) || to.is_empty()
    })
}

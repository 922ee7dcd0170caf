//! A small MCP server for tests: a shell script, so that nothing has to be installed.

use super::{Ended, User};

/// Answers the requests of the protocol version 2025-06-18. `$1` is the description of its first
/// tool. It notes the tools that are called in `$2`, if that is given. Asked to greet `?`, it asks
/// for a name.
const SCRIPT: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
echo "ready to serve" >&2
while IFS= read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"fake","version":"1.2.3"}}' ;;
    *'"method":"tools/list"'*)
      say '{"tools":[{"name":"greet","description":"'"$1"'","inputSchema":{"type":"object","properties":{"who":{"type":"string"}},"required":["who"]},"annotations":{"readOnlyHint":true}},{"name":"break","description":"Fails.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}]}' ;;
    *'"method":"tools/call"'*'"name":"break"'*|*'"name":"break"'*'"method":"tools/call"'*)
      say '{"content":[{"type":"text","text":"it broke"}],"isError":true}' ;;
    *'"method":"tools/call"'*'"who":"?"'*|*'"who":"?"'*'"method":"tools/call"'*)
      printf '%s\n' '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Whom to greet?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":2}},"required":["name"]}}}'
      while IFS= read -r answer; do case $answer in *'"id":"q"'*) break ;; esac; done
      say '{"content":[{"type":"text","text":"heard: '"$(printf %s "$answer" | tr '"' "'")"'"}]}' ;;
    *'"method":"tools/call"'*)
      [ -z "$2" ] || echo called >> "$2"
      say '{"content":[{"type":"text","text":"Hello, you. '"$GREETING"'"}]}' ;;
    *'"method":"prompts/list"'*)
      say '{"prompts":[{"name":"review","description":"Reviews a file.","arguments":[{"name":"file","description":"The file.","required":true}]}]}' ;;
    *'"method":"prompts/get"'*)
      say '{"messages":[{"role":"user","content":{"type":"text","text":"Please review the file."}}]}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}\n' "$id" ;;
  esac
done
"#;

impl User {
    /// Writes the script of the server, and gives its command line for `mcp add NAME --`.
    pub(crate) fn mcp_server(&self, description: &str) -> [String; 3] {
        let script = self.file("server.sh", SCRIPT);
        ["sh".to_owned(), script, description.to_owned()]
    }

    /// Adds the server under a name, with options of `mcp add`, without starting it.
    pub(crate) fn add_mcp_server(&self, name: &str, options: &[&str]) {
        let options: Vec<_> = options.iter().copied().chain(["--no-test"]).collect();
        self.add_and_test_mcp_server(name, &options).assert_code(0);
    }

    /// Adds the server under a name, and tests it if no option says otherwise.
    pub(crate) fn add_and_test_mcp_server(&self, name: &str, options: &[&str]) -> Ended {
        let command = self.mcp_server("Greets.");
        let command = command.iter().map(String::as_str);
        let words = ["mcp", "add", name].into_iter().chain(options.iter().copied()).chain(["--"]);
        self.run(&words.chain(command).collect::<Vec<_>>())
    }
}

//! The start of a session with many MCP servers whose tools are saved from an earlier start.

use std::{fs, io, path::Path, process::Command};

use super::{
    process::{self, Cost},
    repeat,
};
use crate::scratch::ScratchDirectory;

/// Number of configured servers.
pub(super) const SERVERS: usize = 50;
/// Number of tools of each server.
pub(super) const TOOLS: usize = 20;

/// Answers what a client asks before it knows the tools. `$1` is the file with the list of tools.
const SCRIPT: &str = r#"
while IFS= read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      answer='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer=$(cat "$1") ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$answer"
done
"#;

/// Measures a scripted turn of text without a server, and with saved ones. None is started.
pub(super) fn measure(binary: &Path) -> Result<[Cost; 2], Vec<String>> {
    let failed = |error: io::Error| vec![format!("cannot prepare MCP servers: {error}")];
    let homes = [0, SERVERS].map(|count| prepared_home(binary, count).map_err(failed));
    let [without, with] = homes;
    let once = |home: &ScratchDirectory| {
        let variable = home.path().to_string_lossy().into_owned();
        let script = home.path().join("turn.json").to_string_lossy().into_owned();
        let arguments = ["exec", "--script", &script, "go"];
        process::run_with(binary, &arguments, &[("WINDLASS_HOME", &variable)], home.path())
    };
    let (without, with) = (without?, with?);
    Ok([repeat(|| once(&without))?, repeat(|| once(&with))?])
}

/// Makes a home whose servers were all started once.
fn prepared_home(binary: &Path, servers: usize) -> io::Result<ScratchDirectory> {
    let home = ScratchDirectory::create(&format!("bench-servers-{servers}"))?;
    let file = |name: &str, text: &str| fs::write(home.path().join(name), text);
    let place = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    file("turn.json", r#"{"turns": [{"text": "Done."}]}"#)?;
    file("server.sh", SCRIPT)?;
    let tools: Vec<_> = (0..TOOLS).map(tool).collect();
    file("tools.json", &format!(r#"{{"tools":[{}]}}"#, tools.join(",")))?;
    let server = |at: usize| {
        let args = [place("server.sh"), place("tools.json")];
        format!("[mcp_servers.s{at}]\ncommand = \"sh\"\nsandbox = \"none\"\nargs = {args:?}\n")
    };
    file("config.toml", &(0..servers).map(server).collect::<String>())?;
    let mut test = Command::new(binary);
    test.args(["mcp", "test", "--json"]).env("WINDLASS_HOME", home.path()).current_dir(home.path());
    let tested = test.output()?;
    if tested.status.success() { Ok(home) } else { Err(io::Error::other("`windlass mcp test` failed")) }
}

fn tool(at: usize) -> String {
    format!(
        r#"{{"name":"tool_{at}","description":"Does the thing number {at} to the records of a ledger, with care.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Path of the record."}},"count":{{"type":"integer","minimum":1,"description":"Number of records."}},"mode":{{"type":"string","enum":["fast","slow"]}},"filter":{{"type":"object","properties":{{"names":{{"type":"array","items":{{"type":"string"}}}}}}}}}},"required":["path"]}}}}"#
    )
}

#!/usr/bin/env bash
# Drives MCP servers that others wrote through windlass, and lets MCP clients that others wrote (two
# SDKs, the Inspector) call the tools of `windlass mcp serve`. Installs them from npm and PyPI into REAL_DIR, and says so and
# skips what it cannot install.
#
#     tests/real/mcp.sh [PATH-TO-WINDLASS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
windlass=${1:-}
if [ -z "$windlass" ]; then
  (cd "$root" && cargo build --quiet --package windlass-cli)
  windlass=${CARGO_TARGET_DIR:-$root/target}/debug/windlass
fi
windlass=$(realpath "$windlass")
real=${REAL_DIR:-$root/target/real}/mcp
work=$(mktemp -d)
page= serve=
finish() {
  for process in $page $serve; do kill "$process" 2> /dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
passed=0 failed=0 skipped=0

# check NAME COMMAND...: one line, and the output of what failed.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "held: $name"
  else
    failed=$((failed + 1))
    printf 'FELL: %s\n%s\n' "$name" "$output" | head -c 4000
  fi
}

skip() {
  skipped=$((skipped + 1))
  echo "skipped: $*" >&2
}

# npm_install PACKAGE...: into one directory; fails if npm does not answer.
npm_install() {
  mkdir -p "$real/npm"
  [ -f "$real/npm/package.json" ] || echo '{"private":true}' > "$real/npm/package.json"
  timeout 300 npm install --prefix "$real/npm" --no-audit --no-fund --loglevel=error "$@" > /dev/null
}

# pip_install NAME PACKAGE...: a virtual environment of its own, as the packages disagree.
pip_install() {
  local place=$real/venv-$1
  shift
  [ -f "$place/installed" ] && return
  python3 -m venv --clear "$place" && timeout 300 "$place/bin/pip" install --quiet "$@" && touch "$place/installed"
}

export WINDLASS_HOME=$work/home
desk=$work/desk
mkdir -p "$WINDLASS_HOME" "$desk" "$work/site" "$work/memory"
printf 'The anchor weighs 42 stones.\n' > "$desk/notes.txt"
git -C "$desk" init --quiet
git -C "$desk" -c user.name=a -c user.email=a@example.invalid commit --quiet --allow-empty -m "Cast off"
cd "$desk"

# says TEXT TOOL ARGUMENTS [OPTION...]: calls a tool; its result has the text.
says() {
  local text=$1 tool=$2 arguments=$3
  shift 3
  local output
  output=$("$windlass" call --no-input "$@" "$tool" "$arguments" 2>&1) || { echo "$output"; return 1; }
  grep --quiet --fixed-strings -- "$text" <<< "$output" || { echo "no '$text' in: $output"; return 1; }
}

# refuses TEXT COMMAND...: the command fails, and its output has the text.
refuses() {
  local text=$1 output
  shift
  if output=$("$@" 2>&1); then echo "it did not fail: $output"; return 1; fi
  grep --quiet --fixed-strings -- "$text" <<< "$output" || { echo "no '$text' in: $output"; return 1; }
}

add() { "$windlass" mcp add "$@"; }
# A server starts and lists its tools.
starts() { "$windlass" mcp test "$1" --json; }

if npm_install @modelcontextprotocol/server-{everything,filesystem,memory,sequential-thinking}@2026.8.31; then
  bin=$real/npm/node_modules/.bin
  check "everything is added" add everything -- node "$bin/mcp-server-everything"
  check "everything starts in its sandbox" starts everything
  check "everything echoes" says "Echo: ahoy" mcp__everything__echo '{"message":"ahoy"}'
  check "everything adds" says "42" mcp__everything__get-sum '{"a":40,"b":2}'
  check "filesystem is added" add filesystem --approval-mode approve -- node "$bin/mcp-server-filesystem" "$desk"
  check "filesystem starts in its sandbox" starts filesystem
  check "filesystem reads" says "42 stones" mcp__filesystem__read_text_file "{\"path\":\"$desk/notes.txt\"}"
  check "filesystem writes nothing by default" refuses "read-only" \
    "$windlass" call --no-input mcp__filesystem__write_file "{\"path\":\"$desk/new.txt\",\"content\":\"x\"}"
  check "nothing was written" test ! -e "$desk/new.txt"
  check "filesystem may write the workspace" add filesystem --replace --approval-mode approve \
    --sandbox workspace-write -- node "$bin/mcp-server-filesystem" "$desk"
  check "filesystem's new command line is approved" "$windlass" mcp pins approve filesystem
  check "filesystem writes" says "" mcp__filesystem__write_file \
    "{\"path\":\"$desk/new.txt\",\"content\":\"x\"}" --sandbox workspace-write
  check "the file is there" test -e "$desk/new.txt"
  check "memory is added" add memory --approval-mode approve --env "MEMORY_FILE_PATH=$work/memory/m.json" \
    --writable "$work/memory" -- node "$bin/mcp-server-memory"
  check "memory remembers" says "harbor" mcp__memory__create_entities \
    '{"entities":[{"name":"harbor","entityType":"place","observations":["has a crane"]}]}'
  check "memory recalls in another process" says "has a crane" mcp__memory__read_graph '{}'
  check "sequential-thinking is added" add thinking -- node "$bin/mcp-server-sequential-thinking"
  check "sequential-thinking answers" says "thoughtNumber" mcp__thinking__sequentialthinking \
    '{"thought":"heave","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}'
else
  skip "npm does not answer: the four servers of npm"
fi

if pip_install git mcp-server-git==2026.10.19 && pip_install time mcp-server-time==2026.10.19 \
  && pip_install fetch mcp-server-fetch==2026.10.24; then
  check "git is added" add git -- "$real/venv-git/bin/mcp-server-git" --repository "$desk"
  check "git reads the log" says "Cast off" mcp__git__git_log "{\"repo_path\":\"$desk\"}"
  check "time is added" add time -- "$real/venv-time/bin/mcp-server-time" --local-timezone=UTC
  check "time tells the time" says "UTC" mcp__time__get_current_time '{"timezone":"UTC"}'
  echo '<html><body><h1>Harbor</h1><p>The crane lifts nine tons.</p></body></html>' > "$work/site/index.html"
  python3 "$here/mcp/page.py" "$work/site" "$work/port" &
  page=$!
  for _ in $(seq 100); do [ -s "$work/port" ] && break; sleep 0.1; done
  address=http://127.0.0.1:$(cat "$work/port")/index.html
  check "fetch is added" add fetch --network --approval-mode approve -- \
    "$real/venv-fetch/bin/mcp-server-fetch" --allow-private-ips
  check "fetch reads a page" says "nine tons" mcp__fetch__fetch "{\"url\":\"$address\",\"raw\":true}"
else
  skip "pip does not answer: the three servers of PyPI"
fi

if pip_install sdk mcp==2.3.0; then
  check "the Python SDK calls over stdio" "$real/venv-sdk/bin/python" "$here/mcp/client.py" stdio "$windlass" "$desk"
  check "the Python SDK calls over HTTP" "$real/venv-sdk/bin/python" "$here/mcp/client.py" http "$windlass" "$desk"
else
  skip "pip does not answer: the Python SDK"
fi

if npm_install @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/sdk@1.32.2; then
  cp "$here/mcp/client.mjs" "$real/npm/client.mjs"
  check "the TypeScript SDK calls over stdio" node "$real/npm/client.mjs" stdio "$windlass" "$desk"
  check "the TypeScript SDK calls over HTTP" node "$real/npm/client.mjs" http "$windlass" "$desk"
else
  skip "npm does not answer: the TypeScript SDK"
fi

# inspects TEXT TARGET...: the Inspector prints a text.
inspects() {
  local text=$1 output
  shift
  output=$(MCP_CATALOG_PATH=$work/catalog.json MCP_CLIENT_CONFIG_PATH=$work/client.json timeout 120 \
    node "$real/npm/node_modules/.bin/mcp-inspector" --cli --format json -q "$@")
  case $output in *"$text"*) ;; *) echo "$output"; return 1 ;; esac
}

if npm_install @modelcontextprotocol/inspector@2.12.0; then
  reading=(--method tools/call --tool-name read_file --tool-args-json "{\"file_path\":\"$desk/notes.txt\"}")
  check "the Inspector lists over stdio" inspects '"shell_command"' \
    "$windlass" mcp serve "$desk" --method tools/list --strict
  for era in legacy modern; do
    check "the Inspector calls over stdio ($era)" inspects "42 stones" \
      "$windlass" mcp serve "$desk" --protocol-era "$era" "${reading[@]}"
  done
  WINDLASS_MCP_TOKEN=a-token-of-this-test-and-of-no-other "$windlass" mcp serve "$desk" --http 127.0.0.1:0 \
    2> "$work/serve.log" < /dev/null &
  serve=$!
  for _ in $(seq 100); do grep -q 'http://' "$work/serve.log" && break; sleep 0.1; done
  address=$(grep -om1 'http://[^ ]*' "$work/serve.log" || true)
  header=(--header "Authorization: Bearer a-token-of-this-test-and-of-no-other")
  check "the Inspector lists over HTTP" inspects '"shell_command"' \
    "$address" "${header[@]}" --method tools/list --strict
  check "the Inspector calls over HTTP" inspects "42 stones" "$address" "${header[@]}" "${reading[@]}"
else
  skip "npm does not answer: the Inspector"
fi

if [ -x "$real/venv-sdk/bin/python" ] && [ -x "$real/npm/node_modules/.bin/mcp-inspector" ]; then
  check "each client of the gateway gets its tools over HTTP" "$real/venv-sdk/bin/python" "$here/mcp/gateway.py" \
    "$windlass" "$real/npm/node_modules/.bin/mcp-inspector"
else
  skip "the Python SDK or the Inspector is missing: the clients of the gateway"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

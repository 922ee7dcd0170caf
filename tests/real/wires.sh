#!/usr/bin/env bash
# Checks the wires of windlass with counterparts that nobody here wrote: the types of the official Python packages
# `anthropic` and `openai`, and llama.cpp, which speaks all three wires.
#
#     tests/real/wires.sh [PATH-TO-WINDLASS]
#
# Without the packages or llama.cpp, that part is skipped, which is said aloud. STRICT=1: a skipped part is a failure.
# REAL_SCRIPTS: starters of real servers (default: ../shared/bench/real beside the repository)  REAL_DIR: downloads
# MODEL=qwen-coder-0.5b  PORT=8094
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scripts=${REAL_SCRIPTS:-$root/../shared/bench/real}
export REAL_DIR=${REAL_DIR:-$root/target/real} THREADS=${THREADS:-1} ENGINE=${ENGINE:-debian}
model=${MODEL:-qwen-coder-0.5b}
port=${PORT:-8094}
windlass=${1:-}
if [ -z "$windlass" ]; then
  (cd "$root" && cargo build --quiet --package windlass-cli)
  windlass=${CARGO_TARGET_DIR:-$root/target}/debug/windlass
fi
windlass=$(realpath "$windlass")
mkdir -p "$REAL_DIR"
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT
failed=0

skip() {
  echo "skipped: $1" >&2
  [ "${STRICT:-0}" = 0 ] || failed=1
}

# The types of the official packages.
python=$REAL_DIR/venv-wires/bin/python
if [ ! -x "$python" ]; then
  python3 -m venv "$REAL_DIR/venv-wires" && "$python" -m pip install --quiet anthropic openai || true
fi
if "$python" -c 'import anthropic, openai' 2> /dev/null; then
  "$python" "$here/wires.py" "$windlass" || failed=1
else
  skip "the Python packages \`anthropic\` and \`openai\` could not be installed"
fi

# A real model behind llama.cpp. It is small, so only the protocol counts: a turn must end well on each wire.
ask() {
  local wire=$1
  mkdir -p "$work/$wire/desk"
  echo 'The anchor weighs 42 stones.' > "$work/$wire/desk/notes.txt"
  cat > "$work/$wire/config.toml" << TOML
model = "$model"
model_provider = "real"
model_max_output_tokens = 200
[model_providers.real]
base_url = "http://127.0.0.1:$port/v1"
wire_api = "$wire"
TOML
  (cd "$work/$wire/desk" && WINDLASS_HOME=$work/$wire timeout 300 "$windlass" exec --json -s danger-full-access \
    "Run the shell command: cat notes.txt. Then say what the anchor weighs." < /dev/null > "$work/$wire/events")
}

if [ ! -x "$scripts/serve-llm.sh" ]; then
  skip "there is no $scripts/serve-llm.sh; set REAL_SCRIPTS"
else
  CTX=${CTX:-16384} "$scripts/serve-llm.sh" "$model" "$port" > "$work/server.log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    curl --silent --fail --output /dev/null "http://127.0.0.1:$port/v1/models" && break
    kill -0 "$server" 2> /dev/null || break
    sleep 1
  done
  if ! curl --silent --fail --output /dev/null "http://127.0.0.1:$port/v1/models"; then
    tail -n 5 "$work/server.log" >&2
    skip "llama.cpp did not start"
  else
    for wire in messages chat responses; do
      begun=$(date +%s)
      if ask "$wire" && grep -q '"type":"turn.completed"' "$work/$wire/events"; then
        calls=$(grep -c '"type":"item.completed".*"type":"command_execution"' "$work/$wire/events" || true)
        usage=$(grep -o '"usage":{[^}]*}' "$work/$wire/events" | tail -n 1)
        echo "llama.cpp, $wire: ok, $calls calls, $(($(date +%s) - begun)) s, $usage"
      else
        tail -n 3 "$work/$wire/events" >&2
        echo "llama.cpp, $wire: FAILED"
        failed=1
      fi
    done
  fi
fi
exit "$failed"

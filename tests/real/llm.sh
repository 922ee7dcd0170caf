#!/usr/bin/env bash
# Lets a real language model on this machine use the shell through windlass, over both wires, and tells how often that
# worked and how long it took. Needs the starters of real servers in REAL_SCRIPTS (default: ../shared/bench/real beside
# the repository); what they download goes to REAL_DIR.
#
#     tests/real/llm.sh [PATH-TO-WINDLASS]
#
# MODEL=qwen-coder-1.5b|qwen-coder-0.5b  RUNS=1 (per wire)  WIRES="responses chat"  ENGINE=wheel|debian  THREADS=1
# LITELLM=1: goes through LiteLLM as well  PROMPT=...  KEEP=1: keeps the events of every run and says where
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scripts=${REAL_SCRIPTS:-$root/../shared/bench/real}
if [ ! -x "$scripts/serve-llm.sh" ]; then
  echo "skipped: there is no $scripts/serve-llm.sh; set REAL_SCRIPTS" >&2
  exit 0
fi
export REAL_DIR=${REAL_DIR:-$root/target/real} THREADS=${THREADS:-1} ENGINE=${ENGINE:-wheel}
model=${MODEL:-qwen-coder-1.5b}
port=${PORT:-8093}
windlass=${1:-}
if [ -z "$windlass" ]; then
  (cd "$root" && cargo build --quiet --package windlass-cli)
  windlass=${CARGO_TARGET_DIR:-$root/target}/debug/windlass
fi
windlass=$(realpath "$windlass")
mkdir -p "$REAL_DIR"
work=$(mktemp -d)
servers=()
finish() {
  for pid in "${servers[@]}"; do kill "$pid" 2> /dev/null || true; done
  if [ "${KEEP:-0}" = 1 ]; then echo "events and logs: $work" >&2; else rm -rf "$work"; fi
}
trap finish EXIT

# serve NAME PORT COMMAND...: starts a server and waits until it answers.
serve() {
  local name=$1 at=$2
  shift 2
  "$@" > "$work/$name.log" 2>&1 &
  servers+=($!)
  for _ in $(seq 600); do
    curl --silent --fail --output /dev/null "http://127.0.0.1:$at/v1/models" && return
    kill -0 "${servers[-1]}" 2> /dev/null || break
    sleep 1
  done
  tail -n 20 "$work/$name.log" >&2
  echo "error: $name did not start" >&2
  exit 1
}

# attempt NAME WIRE PORT: one run; prints one line and succeeds if the shell ran and the answer is right.
attempt() {
  local name=$1 wire=$2 at=$3 number=$4
  local place=$work/$name-$number
  mkdir -p "$place/home" "$place/desk"
  printf 'The anchor weighs 42 stones.\nThe rope is old.\n' > "$place/desk/notes.txt"
  cat > "$place/home/config.toml" << TOML
model = "$model"
model_provider = "real"
[model_providers.real]
base_url = "http://127.0.0.1:$at/v1"
wire_api = "$wire"
TOML
  local begun=$EPOCHREALTIME code=0
  WINDLASS_HOME=$place/home "$windlass" exec --json --sandbox danger-full-access --cd "$place/desk" \
    --time-limit "${TIME_LIMIT:-600}" "${PROMPT:-Use the shell to print the first line of notes.txt, then tell me what it says.}" \
    > "$place/events.jsonl" 2> "$place/stderr" < /dev/null || code=$?
  python3 "$here/judge.py" "$name" "$place/events.jsonl" "$code" "$begun" "$EPOCHREALTIME"
}

serve model "$port" "$scripts/serve-llm.sh" "$model" "$port"
routes=()
for wire in ${WIRES:-responses chat}; do routes+=("$wire $wire $port"); done
if [ "${LITELLM:-0}" = 1 ]; then
  serve litellm $((port + 4)) "$scripts/serve-responses-litellm.sh" "http://127.0.0.1:$port/v1" "$model" $((port + 4))
  routes+=("litellm responses $((port + 4))")
fi
failed=0
for route in "${routes[@]}"; do
  read -r name wire at <<< "$route"
  right=0
  for number in $(seq "${RUNS:-1}"); do
    if attempt "$name" "$wire" "$at" "$number"; then right=$((right + 1)); fi
  done
  echo "$name: $right of ${RUNS:-1} with $model"
  [ "$right" = "${RUNS:-1}" ] || failed=1
done
exit $failed

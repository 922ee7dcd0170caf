#!/usr/bin/env bash
# Runs the official MCP conformance suite against our client and our server, for the two revisions
# of the protocol that it has requirements for. Prints the score of each, and fails if a required
# scenario fails. Installs the suite from npm into REAL_DIR, with a node of its own if the machine's
# is too old; if npm does not answer, it says so and skips.
#
#     tests/real/mcp/conformance.sh [client|server]
set -euo pipefail
suite=0.2.0-alpha.12 node=24.21.0
revisions=(2025-11-25 2026-07-28)
root=$(cd "$(dirname "$0")/../../.." && pwd)
place=${REAL_DIR:-$root/target/real}/mcp-conformance-$suite
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT

case ${1:-} in
  '') sides=(client server) ;;
  client | server) sides=("$1") ;;
  *) echo "usage: $0 [client|server]" >&2; exit 2 ;;
esac

# install PACKAGE VERSION: unless it is there.
install() {
  local found
  found=$(sed -n 's/^  "version": "\(.*\)",*$/\1/p' "$place/node_modules/$1/package.json" 2> /dev/null || true)
  [ "$found" != "$2" ] || return 0
  mkdir -p "$place"
  [ -f "$place/package.json" ] || echo '{"private":true}' > "$place/package.json"
  # npm checks the machine's node, not the one that runs the suite.
  timeout 300 npm install --prefix "$place" --no-audit --no-fund --loglevel=error --force "$1@$2" > /dev/null
}

if ! command -v npm > /dev/null; then
  echo "skipped: the conformance suite: there is no npm" >&2
  exit 0
fi
if ! install @modelcontextprotocol/conformance "$suite"; then
  echo "skipped: the conformance suite: npm does not answer" >&2
  exit 0
fi
if [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -lt 22 ]; then
  case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
  if ! install "node-linux-$arch" "$node"; then
    echo "skipped: the conformance suite: it needs node 22, and npm has none for $arch" >&2
    exit 0
  fi
  export PATH=$place/node_modules/node-linux-$arch/bin:$PATH
fi

# example NAME: builds an example and prints its path.
example() {
  (cd "$root" && cargo build --quiet --package windlass-mcp --example "$1") || return 1
  echo "${CARGO_TARGET_DIR:-$root/target}/debug/examples/$1"
}

failed=0
# score SIDE REVISION ARGUMENT...: runs the scenarios of a revision.
score() {
  local side=$1 revision=$2 log=$work/$1-$2.log total wrong others
  shift 2
  timeout 900 node "$place/node_modules/@modelcontextprotocol/conformance/dist/index.js" "$side" "$@" \
    --requirements "$revision" -o "$work/results" < /dev/null > "$log" 2>&1 || true
  # The summary has one line per scenario, and then names those that do not count.
  sed -n 's/^ *[✗✓] \([^ ]*\) (.*$/\1/p' "$log" | sort > "$work/others"
  sed -n '/SUMMARY ===/,/^Total/ s/^\([✗✓]\) \([^ ]*\): .*$/\1 \2/p' "$log" > "$work/all"
  total=$(cut -d' ' -f2 "$work/all" | grep -c -v -x -F -f "$work/others" || true)
  wrong=$(grep '^✗' "$work/all" | cut -d' ' -f2 | grep -v -x -F -f "$work/others" || true)
  others=$(wc -l < "$work/others")
  if [ "$total" = 0 ]; then
    echo "FELL: $side, $revision: the suite has no summary"
    tail -20 "$log"
    failed=1
    return
  fi
  echo "$side, $revision: $((total - $(grep -c . <<< "$wrong" || true))) of $total required scenarios pass" \
    "($(sed -n 's/^Total: //p' "$log" | tail -1); $others scenarios do not count)"
  [ -n "$wrong" ] || return 0
  failed=1
  for name in $wrong; do echo "FELL: $side, $revision: $name"; done
  [ -z "${VERBOSE:-}" ] || cat "$log"
}

for side in "${sides[@]}"; do
  if [ "$side" = client ]; then
    target=(--command "$(example conformance_client)")
  else
    program=$(example conformance_server)
    "$program" 127.0.0.1:0 > "$work/url" &
    server=$!
    for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done
    target=(--url "$(cat "$work/url")")
  fi
  for revision in "${revisions[@]}"; do score "$side" "$revision" "${target[@]}"; done
done
exit "$failed"

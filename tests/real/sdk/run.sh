#!/usr/bin/env bash
# Runs the npm package @openai/codex-sdk, which nobody here wrote, with windlass in place of its own program, against a
# scripted server. Needs node 18 or later and the npm registry.
#
#     tests/real/sdk/run.sh [PATH-TO-WINDLASS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
windlass=${1:-}
if [ -z "$windlass" ]; then
  (cd "$here" && cargo build --quiet --package windlass-cli)
  target=$(cd "$here" && cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
  windlass=$target/debug/windlass
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without its own program, which is the optional part and 400 MB.
npm install --prefix "$work" --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error \
  "@openai/codex-sdk@${SDK_VERSION:-latest}" > /dev/null
cp "$here/sdk.mjs" "$work/sdk.mjs"
node "$work/sdk.mjs" "$(realpath "$windlass")" "$work"

#!/usr/bin/env bash
# Takes the power away at random moments while files are edited, and checks that nothing is lost: finished edits are there,
# cut-short ones are there as a whole or not at all, and `windlass undo` takes back what is in the log, file by file.
#
#     tests/real/power.sh [PATH-TO-WINDLASS]
#
# MOMENTS=100 (for each layout)  LAYOUTS="one two" (file systems for home and workspace)  SEED=1
#
# Needs root, mkfs.ext4 and loop devices. The file systems are images in a temporary directory (of PLACE, default /dev/shm).
# A moment is a copy of what the block devices have got so far, without a sync, mounted in their place. Ends with 0 if
# nothing was lost.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$(id -u)" != 0 ]; then
  echo "skipped: only root may mount file systems"
  exit 0
fi
for needed in mkfs.ext4 losetup mount python3; do
  command -v "$needed" > /dev/null || { echo "skipped: $needed is not installed"; exit 0; }
done
windlass=${1:-}
if [ -z "$windlass" ]; then
  (cd "$root" && cargo build --quiet --package windlass-cli)
  windlass=${CARGO_TARGET_DIR:-$root/target}/debug/windlass
fi
place=$(mktemp -d -p "${PLACE:-/dev/shm}")
finish() {
  for mounted in "$place"/*/mnt/*; do umount "$mounted" 2> /dev/null || true; done
  rm -rf "$place"
}
trap finish EXIT
probe=$place/probe
truncate -s 8M "$probe.img" && mkfs.ext4 -q -F "$probe.img" && mkdir "$probe"
if ! mount -o loop "$probe.img" "$probe" 2> /dev/null; then
  echo "skipped: no loop device can be mounted here"
  exit 0
fi
umount "$probe"
for layout in ${LAYOUTS:-one two}; do
  python3 "$root/tests/real/power.py" "$(realpath "$windlass")" "$place/$layout" "$layout" "${MOMENTS:-100}" "${SEED:-1}"
done

#!/usr/bin/env python3
"""Kills `windlass` with SIGKILL while it changes files, edits some of them from outside, and starts it again.

    tests/real/kill.py PATH-TO-WINDLASS [COUNT] [SEED]

What a person wrote after the kill must stay, byte for byte. Every other file must hold what it held before or after the
patch, and all of them the same side, unless a person's edit kept one from being put back. Ends with 0 if that holds for
all COUNT (300) kills. Everything is in a temporary directory.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FILES = 12


def patch(number: int) -> str:
    lines = ["*** Begin Patch"]
    for name in range(FILES):
        lines += [f"*** Update File: f{name}", "@@", f"-old {name}", f"+new {name} {number}"]
    lines += ["*** Add File: made/x", f"+made {number}", "*** End Patch", ""]
    return "\n".join(lines)


def one(windlass: str, number: int, random_: random.Random, longest: float) -> str:
    place = pathlib.Path(tempfile.mkdtemp())
    try:
        work, environment = place / "work", {**os.environ, "WINDLASS_HOME": str(place / "home")}
        work.mkdir()
        for name in range(FILES):
            (work / f"f{name}").write_text(f"old {name}\n")
        running = subprocess.Popen(
            [windlass, "apply-patch"], cwd=work, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        running.stdin.write(patch(number).encode())
        running.stdin.close()
        time.sleep(random_.uniform(0, longest))
        running.send_signal(signal.SIGKILL)
        running.wait()
        edited = {}
        for name in random_.sample(range(FILES), 3):
            path, text = work / f"f{name}", f"a person's {name} {number} {random_.random()}\n"
            if random_.random() < 0.5 and path.exists():
                path.write_text(text)  # In place.
            else:
                (work / "draft").write_text(text)
                (work / "draft").rename(path)  # As editors do.
            edited[name] = text
        subprocess.run([windlass, "undo", "--list"], cwd=work, env=environment, capture_output=True, check=False)
        sides = set()
        for name in range(FILES):
            path = work / f"f{name}"
            text = path.read_text() if path.exists() else None
            if name in edited:
                if text != edited[name]:
                    return f"f{name}: a person wrote {edited[name]!r}, and it holds {text!r}"
            elif text == f"old {name}\n":
                sides.add("before")
            elif text == f"new {name} {number}\n":
                sides.add("after")
            else:
                return f"f{name} holds {text!r}"
        if len(sides) > 1:
            return "files of both sides"
        return sides.pop()
    finally:
        shutil.rmtree(place)


def whole_seconds(windlass: str) -> float:
    with tempfile.TemporaryDirectory() as place:
        for name in range(FILES):
            (pathlib.Path(place) / f"f{name}").write_text(f"old {name}\n")
        begun = time.monotonic()
        subprocess.run(
            [windlass, "apply-patch"], cwd=place, env={**os.environ, "WINDLASS_HOME": f"{place}/home"},
            input=patch(0).encode(), check=True, capture_output=True)
        return time.monotonic() - begun


def main() -> int:
    windlass = str(pathlib.Path(sys.argv[1]).resolve())
    count, seed = (int(value) for value in (sys.argv[2:] + ["300", "1"][len(sys.argv) - 2:])[:2])
    random_, seen = random.Random(seed), {}
    # Kills fall into the time that a whole patch takes on this machine.
    longest = max(whole_seconds(windlass) for _ in range(3))
    for number in range(count):
        result = one(windlass, number, random_, longest)
        seen[result] = seen.get(result, 0) + 1
    print(f"{count} kills: " + ", ".join(f"{number} {what}" for what, number in sorted(seen.items())))
    return 0 if set(seen) <= {"before", "after"} else 1


if __name__ == "__main__":
    sys.exit(main())

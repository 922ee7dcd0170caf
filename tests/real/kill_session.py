#!/usr/bin/env python3
"""Kills a busy session of `windlass` with SIGKILL at random moments, and resumes it each time.

    tests/real/kill_session.py PATH-TO-WINDLASS [COUNT] [SEED]

A scripted model asks for commands and edits, several at once; with a version that compacts, also in a window so small that
the conversation is compacted again and again. After each of COUNT (300) kills:

- every call whose end was announced is in the session file with its output,
- no command has run twice, and none without an intent in the file,
- every call has one output, and the chain of the file is valid (`windlass audit verify`),
- nothing was moved to a `.damaged` file.

Every fifth session is taken back with `windlass rewind`, which is killed as well and then run again: the files that it
made must be gone. Ends with 0 if all that holds. Everything is in a temporary directory.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

STEPS = 160
STEPS_PER_TURN = 16
KILLS_PER_SESSION = 10
WINDOW = 6000


class Failure(Exception):
    pass


class Session:
    """A user with one session, which is killed again and again."""

    def __init__(self, windlass: str, random_: random.Random) -> None:
        self.windlass, self.random = windlass, random_
        self.place = pathlib.Path(tempfile.mkdtemp())
        self.work, self.log = self.place / "work", self.place / "log"
        self.work.mkdir()
        (self.work / "kept").write_text("as it was\n")
        self.environment = {**os.environ, "WINDLASS_HOME": str(self.place / "home")}
        self.script = self.place / "script.json"
        self.script.write_text(json.dumps({"turns": self.steps()}))
        self.announced: set[str] = set()

    def steps(self) -> list:
        """Answers with up to three calls each; every command leaves a line outside of the workspace."""
        steps = []
        for step in range(STEPS):
            tags = [f"tag-{step}-{call}" for call in range(self.random.randint(1, 3))]
            calls = [self.command(tag) for tag in tags]
            if step % 3 == 0:
                content = f"{step}\n" * 50
                calls.append({"name": "write_file", "arguments": {"path": f"f{step % 4}", "content": content}})
            steps.append({"calls": calls})
            if step % STEPS_PER_TURN == STEPS_PER_TURN - 1:
                steps.append({"text": f"done with {step}"})
        return steps + [{"text": "all done"}] * 400

    def command(self, tag: str) -> dict:
        line = f"echo {tag} >> '{self.log}'; echo {tag} >> kept; seq 150; echo {tag}"
        return {"name": "shell_command", "arguments": {"command": line, "timeout_ms": 60000}}

    def arguments(self, *rest: str) -> list[str]:
        options = ["-s", "danger-full-access", "-a", "never", "-c", f"model_context_window={WINDOW}"]
        return [self.windlass, "exec", "--json", *options, "--script", str(self.script), *rest]

    def files(self) -> list[pathlib.Path]:
        found = (self.place / "home" / "sessions").glob("*/*/*/*.jsonl")
        return [path for path in found if b"\n" in path.read_bytes()]

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.windlass, *words], cwd=self.work, env=self.environment, capture_output=True, text=True, check=False)

    def kill_after(self, arguments: list[str], seconds: float) -> bool:
        """Starts the program and kills it. Returns whether it was still running."""
        running = subprocess.Popen(
            arguments, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(running.stdout))
        errors = threading.Thread(target=running.stderr.read)
        reader.start()
        errors.start()
        time.sleep(seconds)
        was_running = running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.wait()
        reader.join()
        errors.join()
        for line in lines:
            self.note(line)
        return was_running

    def note(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return  # The last line may be half of one.
        item = event.get("item", {})
        if event.get("type") == "item.completed" and item.get("type") == "command_execution":
            self.announced.add(item["aggregated_output"].split()[-1])

    def turn(self) -> list[str]:
        return self.arguments("resume", "--last", "go on") if self.files() else self.arguments("begin")

    def check(self) -> None:
        if not self.files():
            return
        [path] = self.files()
        if list(path.parent.glob("*.damaged*")):
            raise Failure("records were moved aside")
        records = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        asked, intents, outcomes, outputs = {}, set(), {}, []
        for record in records:
            kind, payload = record["type"], record["payload"]
            if kind == "item" and payload.get("body", {}).get("kind") == "call":
                asked[payload["body"]["id"]] = json.dumps(payload["body"])
            elif kind == "intent":
                intents.add(payload["call"])
            elif kind == "outcome":
                outcomes[payload["call"]] = json.dumps(payload["outcome"]["content"])
            elif kind == "outputs":
                outputs += payload["calls"]
        for call in asked:
            if outputs.count(call) != 1:
                raise Failure(f"call {call} has {outputs.count(call)} outputs")
        by_tag = {text.split("echo tag-")[1].split()[0]: call for call, text in asked.items() if "echo tag-" in text}
        ran = self.log.read_text().split() if self.log.exists() else []
        for tag in ran:
            if ran.count(tag) != 1:
                raise Failure(f"{tag} ran {ran.count(tag)} times")
            if by_tag.get(tag.removeprefix("tag-")) not in intents:
                raise Failure(f"{tag} ran and has no intent")
        for tag in self.announced:
            if tag not in outcomes.get(by_tag.get(tag.removeprefix("tag-"), ""), ""):
                raise Failure(f"the end of {tag} was announced and is lost")
        verified = self.run("audit", "verify", path.stem)
        if verified.returncode != 0:
            raise Failure(f"the chain is broken: {verified.stdout}{verified.stderr}")

    def resume_whole(self) -> None:
        """Resumes the session and lets it end, which repairs what the kill left open."""
        ended = subprocess.run(
            self.turn(), cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False)
        if ended.returncode != 0:
            raise Failure(f"it could not go on: {ended.stdout[-300:]}{ended.stderr}")
        for line in ended.stdout.splitlines():
            self.note(line)

    def rewind(self, longest: float) -> None:
        """Takes everything back, with kills, and compares the files with the beginning."""
        arguments = [self.windlass, "rewind", "1", "--yes", "--keep-changed"]
        for _ in range(3):
            self.kill_after(arguments, self.random.uniform(0, longest))
        if json.loads(f"[{','.join(self.run('rewind', '--json').stdout.splitlines())}]"):
            before = self.contents()
            ended = self.run("rewind", "1", "--yes")
            if ended.returncode != 0 and "which was not recorded" in ended.stderr + ended.stdout:
                # What a killed command had changed is not in the log, so it is a conflict.
                if self.contents() != before:
                    raise Failure(f"a conflict was found too late: {ended.stdout}{ended.stderr}")
                ended = self.run("rewind", "1", "--yes", "--keep-changed")
            if ended.returncode != 0:
                raise Failure(f"it could not be taken back: {ended.stdout[-2000:]}{ended.stderr}")
        if any(name != "kept" for name in self.contents()):
            raise Failure(f"files are left: {sorted(self.contents())}")
        self.check()

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.work.iterdir()}

    def remove(self) -> None:
        shutil.rmtree(self.place)


def kinds(session: Session) -> dict[str, int]:
    """Counts the records by type."""
    found: dict[str, int] = {}
    for path in session.files():
        for line in path.read_text().splitlines():
            kind = line.split('"type":"', 1)[-1].split('"', 1)[0]
            found[kind] = found.get(kind, 0) + 1
    return found


def turn_seconds(windlass: str) -> float:
    """Measures a turn on this machine: kills fall into that time."""
    session = Session(windlass, random.Random(0))
    begun = time.monotonic()
    session.resume_whole()
    session.remove()
    return time.monotonic() - begun


def main() -> int:
    windlass = str(pathlib.Path(sys.argv[1]).resolve())
    count, seed = (int(value) for value in (sys.argv[2:] + ["300", "1"][len(sys.argv) - 2:])[:2])
    random_, kills, late, records = random.Random(seed), 0, 0, {}
    number, longest = 0, turn_seconds(windlass)
    while kills < count:
        session = Session(windlass, random_)
        try:
            for _ in range(min(KILLS_PER_SESSION, count - kills)):
                late += not session.kill_after(session.turn(), random_.uniform(0, longest))
                kills += 1
                session.resume_whole() if random_.random() < 0.2 else None
                # A session is valid after its next beginning, which ends open calls.
                if session.files():
                    [path] = session.files()
                    session.run("rewind", "999999", "--session", path.stem, "--keep-files", "--yes")
                session.check()
            session.resume_whole()
            session.check()
            number += 1
            for kind, found in kinds(session).items():
                records[kind] = records.get(kind, 0) + found
            if number % 5 == 0:
                session.rewind(longest / 2)
        except Failure as failure:
            print(f"after {kills} kills, seed {seed}: {failure}; see {session.place}")
            return 1
        session.remove()
    print(f"{kills} kills, {late} of them after the end of a turn; records: {records}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

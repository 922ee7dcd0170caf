#!/usr/bin/env python3
"""Checks the requests of windlass on all three wires with the types of the official Python packages.

    wires.py WINDLASS        needs the packages `anthropic` and `openai`

A server on loopback answers each wire with a call and then a text. Its own events are checked with
the same types. A request with a member that the types do not know is a failure, too.
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

import anthropic.types as anthropic_types
import openai.types.chat as chat_types
import openai.types.responses as responses_types
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter, ValidationError

COMMAND = json.dumps({"command": "echo anchor; exit 3"})
MAX_LINES = 8
PNG = bytes.fromhex("89504e470d0a1a0a") + b"rest"
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


def message_start() -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_creation_input_tokens": 7}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    return {"type": "message_start", "message": message}


def messages_answer(is_first: bool) -> list[dict[str, Any]]:
    def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        events = [{"type": "content_block_start", "index": index, "content_block": start}]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        return events + [{"type": "content_block_stop", "index": index}]

    events = [message_start()]
    if is_first:
        events += block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "I look."},
            {"type": "signature_delta", "signature": "c2lnbmVk"},
        )
        events += block(1, {"type": "redacted_thinking", "data": "aGlkZGVu"})
        tool = {"type": "tool_use", "id": "toolu_1", "name": "shell_command", "input": {}}
        pieces = [COMMAND[:9], COMMAND[9:]]
        events += block(2, tool, *[{"type": "input_json_delta", "partial_json": piece} for piece in pieces])
    else:
        text = {"type": "text", "text": ""}
        events += block(0, text, {"type": "text_delta", "text": '{"word":"anchor"}'})
    delta = {"stop_reason": "tool_use" if is_first else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    adapter = TypeAdapter(anthropic_types.RawMessageStreamEvent)
    for event in events:
        adapter.validate_python(event)
    return events


def chat_answer(is_first: bool) -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    if is_first:
        function = {"name": "shell_command", "arguments": COMMAND}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        chunks = [chunk({"role": "assistant", "tool_calls": [call]}, None), chunk({}, "tool_calls")]
    else:
        chunks = [chunk({"role": "assistant", "content": '{"word":"anchor"}'}, None), chunk({}, "stop")]
    for each in chunks:
        TypeAdapter(chat_types.ChatCompletionChunk).validate_python(each)
    return chunks


def responses_answer(is_first: bool) -> list[dict[str, Any]]:
    if is_first:
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "shell_command",
            "arguments": COMMAND,
            "status": "completed",
        }
    else:
        content = [{"type": "output_text", "text": '{"word":"anchor"}', "annotations": []}]
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    done = {"type": "response.output_item.done", "output_index": 0, "sequence_number": 1, "item": item}
    TypeAdapter(responses_types.ResponseOutputItemDoneEvent).validate_python(done)
    return [done, {"type": "response.completed", "response": {"id": "r", "output": [item]}}]


WIRES = {
    "messages": ("/v1/messages", MessageCreateParamsStreaming, messages_answer),
    "chat": ("/v1/chat/completions", CompletionCreateParamsStreaming, chat_answer),
    "responses": ("/v1/responses", ResponseCreateParamsStreaming, responses_answer),
}


def checked(value: Any) -> Any:
    """Returns a validated value as lists and dicts. Iterables are validated only when they are read."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, dict):
        return {name: checked(each) for name, each in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    return [checked(each) for each in value]


def unknown_members(sent: Any, known: Any, path: str) -> list[str]:
    """Lists what the types dropped."""
    if isinstance(sent, dict) and isinstance(known, dict):
        lists = [
            unknown_members(value, known[name], f"{path}.{name}") if name in known else [f"{path}.{name}"]
            for name, value in sent.items()
        ]
    elif isinstance(sent, list) and isinstance(known, list) and len(sent) == len(known):
        lists = [unknown_members(one, other, f"{path}[{at}]") for at, (one, other) in enumerate(zip(sent, known))]
    else:
        return [] if sent == known else [path]
    return [each for found in lists for each in found]


def with_detail(body: Any) -> Any:
    """Adds the default of the member that the types of `openai` require and its server does not."""
    if isinstance(body, list):
        return [with_detail(each) for each in body]
    if not isinstance(body, dict):
        return body
    default = {"detail": "auto"} if body.get("type") == "input_image" else {}
    return default | {name: with_detail(value) for name, value in body.items()}


class CheckingServer(http.server.ThreadingHTTPServer):
    def __init__(self, wire: str) -> None:
        super().__init__(("127.0.0.1", 0), CheckingHandler)
        self.path, kind, self.answer = WIRES[wire]
        self.adapter = TypeAdapter(kind)
        self.bodies: list[dict[str, Any]] = []
        self.problems: list[str] = []

    def check(self, body: dict[str, Any]) -> None:
        body = with_detail(body)
        try:
            known = checked(self.adapter.validate_python(body))
        except ValidationError as error:
            # One line for each alternative would be hundreds.
            lines = {f"{'.'.join(str(part) for part in each['loc'][-3:])}: {each['msg']}" for each in error.errors()}
            self.problems += sorted(lines)[:MAX_LINES]
            return
        self.problems += unknown_members(body, known, "")


class CheckingHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CheckingServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != self.server.path:
            self.server.problems.append(f"a request went to {self.path}")
        self.server.check(body)
        self.server.bodies.append(body)
        events = self.server.answer(len(self.server.bodies) == 1)
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def run(windlass: str, wire: str) -> list[str]:
    server = CheckingServer(wire)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(f"{home}/desk")
        with open(f"{home}/config.toml", "w", encoding="utf-8") as file:
            file.write(
                f'model = "claude-opus-4-6"\nmodel_provider = "checked"\nmodel_reasoning_effort = "low"\n'
                f'[model_providers.checked]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n'
                f'wire_api = "{wire}"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
            )
        with open(f"{home}/desk/dot.png", "wb") as file:
            file.write(PNG)
        with open(f"{home}/desk/schema.json", "w", encoding="utf-8") as file:
            json.dump(SCHEMA, file)
        options = ["--image", "dot.png", "--output-schema", "schema.json", "-s", "danger-full-access"]
        ended = subprocess.run(
            [windlass, "exec", *options, "say the word"],
            cwd=f"{home}/desk",
            env={"HOME": home, "WINDLASS_HOME": home, "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    server.shutdown()
    problems = list(server.problems)
    if ended.returncode != 0 or ended.stdout.strip() != '{"word":"anchor"}':
        problems.append(f"exit code {ended.returncode}: {ended.stdout}{ended.stderr}")
    if len(server.bodies) != 2:
        problems.append(f"{len(server.bodies)} requests instead of 2")
    elif "anchor\\n" not in json.dumps(server.bodies[1]) and "anchor" not in json.dumps(server.bodies[1]):
        problems.append("the result of the call was not sent")
    if wire == "messages" and len(server.bodies) == 2:
        kept = json.dumps(server.bodies[1])
        problems += [f"{part} was not sent back" for part in ("c2lnbmVk", "aGlkZGVu") if part not in kept]
        if '"is_error": true' not in kept:
            problems.append("the failed call is not marked")
    return problems


def main() -> int:
    failed = False
    for wire in WIRES:
        problems = run(os.path.abspath(sys.argv[1]), wire)
        failed |= bool(problems)
        print(f"{wire}: {'ok' if not problems else 'FAILED'}")
        for problem in problems:
            print(f"  {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

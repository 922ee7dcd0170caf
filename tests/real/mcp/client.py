"""Calls the tools of `windlass mcp serve` through the official Python SDK.

    client.py stdio|http PATH-TO-WINDLASS DIRECTORY
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

transport, windlass, directory = sys.argv[1:]
TOKEN = "a-token-of-at-least-thirty-two-characters"
SERVE = ["mcp", "serve", "-C", directory, "-s", "read-only", "-a", "on-request"]


def answering(action, asked):
    async def answer(_context, params):
        asked.append(params.message)
        content = {} if action == "accept" else None
        schema = getattr(params, "requested_schema", None) or {}
        for name, field in (schema.get("properties") or {}).items():
            if content is not None:
                content[name] = (field.get("enum") or [c["const"] for c in field.get("oneOf", [])] or [True])[0]
        return types.ElicitResult(action=action, content=content)

    return answer


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


async def drive(connect, mode):
    patch = "*** Begin Patch\n*** Add File: %s\n+made\n*** End Patch"
    for action in ("decline", "accept"):
        asked = []
        async with connect() as server:
            async with Client(server, mode=mode, elicitation_callback=answering(action, asked)) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert "read_file" in names and names == sorted(set(names), key=names.index), names
                read = await client.call_tool("read_file", {"file_path": os.path.join(directory, "notes.txt")})
                assert not read.is_error and "42 stones" in text(read), read
                wrong = await client.call_tool("read_file", {"file_path": os.path.join(directory, "none.txt")})
                assert wrong.is_error, wrong
                name = f"{action}-{transport}-{mode}.txt"
                changed = await client.call_tool("apply_patch", {"input": patch % name})
                made = os.path.exists(os.path.join(directory, name))
                assert asked, f"{mode}: no question; {text(changed)}"
                assert made == (action == "accept") == (not changed.is_error), (mode, action, text(changed))


class Stdio:
    async def __aenter__(self):
        return StdioServerParameters(command=windlass, args=SERVE, env=dict(os.environ))

    async def __aexit__(self, *_):
        return None


class Http:
    async def __aenter__(self):
        self.log = tempfile.NamedTemporaryFile("w+")
        environment = {**os.environ, "WINDLASS_MCP_TOKEN": TOKEN}
        arguments = [windlass, *SERVE, "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(arguments, env=environment, stderr=self.log, stdin=subprocess.DEVNULL)
        for _ in range(200):
            found = re.search(r"http://[^\s]+", open(self.log.name).read())
            if found:
                break
            await asyncio.sleep(0.05)
        assert found, open(self.log.name).read()
        refused = httpx2.post(found[0], json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert refused.status_code == 401, refused.status_code
        self.http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
        return streamable_http_client(found[0], http_client=self.http)

    async def __aexit__(self, *_):
        await self.http.aclose()
        self.process.terminate()
        assert self.process.wait(10) in (0, -15, 143), self.process.returncode


for mode in ("legacy", "auto"):
    asyncio.run(drive(Stdio if transport == "stdio" else Http, mode))
print("held")

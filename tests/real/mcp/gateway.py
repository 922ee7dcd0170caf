"""Calls tools through `windlass mcp gateway` with the official Python SDK and the Inspector: each
client has its own token and tools.

    gateway.py PATH-TO-WINDLASS [PATH-TO-INSPECTOR]
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

windlass, inspector = sys.argv[1], sys.argv[2:]
TOKENS = {"clock": "the-token-of-the-client-clock-0123456", "all": "the-token-of-the-client-all-012345678"}
SETTINGS = {
    "mcp_gateway.clients.clock.token_env_var": '"CLOCK_TOKEN"',
    "mcp_gateway.clients.clock.tools": '["mcp__time__*"]',
    "mcp_gateway.clients.clock.deny": '["*convert*"]',
    "mcp_gateway.clients.all.token_env_var": '"ALL_TOKEN"',
}


def gateway(log, *options):
    settings = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
    words = ["mcp", "gateway", "time", "everything", "--http", "127.0.0.1:0", "-a", "never", *options, *settings]
    environment = {**os.environ, "CLOCK_TOKEN": TOKENS["clock"], "ALL_TOKEN": TOKENS["all"]}
    return subprocess.Popen([windlass, *words], env=environment, stderr=log, stdin=subprocess.DEVNULL)


async def session(url, name, mode, use):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKENS[name]}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            await use(client)


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


async def clock(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["mcp__time__get_current_time"], names
    told = await client.call_tool("mcp__time__get_current_time", {"timezone": "UTC"})
    assert not told.is_error and "UTC" in text(told), told
    try:
        hidden = await client.call_tool("mcp__everything__echo", {"message": "ahoy"})
    except Exception as error:
        assert "there is no tool" in str(error), error
    else:
        raise AssertionError(hidden)


async def everything(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert "mcp__time__convert_time" in names and "mcp__everything__echo" in names, names
    echoed = await client.call_tool("mcp__everything__echo", {"message": "ahoy"})
    assert "Echo: ahoy" in text(echoed), echoed
    data = await client.call_tool("mcp__everything__get-structured-content", {"location": "Chicago"})
    assert data.structured_content and "temperature" in data.structured_content, data


async def searching(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["tool_search", "call_tool"], names
    found = await client.call_tool("tool_search", {"query": "echo a message"})
    assert "mcp__everything__echo" in text(found), found
    for name, arguments in (
        ("mcp__everything__echo", {"message": "ahoy"}),
        ("call_tool", {"name": "mcp__everything__echo", "arguments": {"message": "ahoy"}}),
    ):
        echoed = await client.call_tool(name, arguments)
        assert "Echo: ahoy" in text(echoed), echoed


def inspect(url):
    words = ["--cli", url, "--transport", "http", "--header", f"Authorization: Bearer {TOKENS['clock']}"]
    for method in (["tools/list"], ["tools/call", "--tool-name", "mcp__time__get_current_time", "--tool-arg", "timezone=UTC"]):
        ended = subprocess.run([*inspector, *words, "--method", *method], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0 and ("get_current_time" in ended.stdout or "UTC" in ended.stdout), ended
        json.loads(ended.stdout)


async def run(steps, *options):
    with tempfile.NamedTemporaryFile("w+") as log:
        process = gateway(log, *options)
        try:
            for _ in range(400):
                found = re.search(r"http://[^\s]+", open(log.name).read())
                if found or process.poll() is not None:
                    break
                await asyncio.sleep(0.05)
            assert found, open(log.name).read()
            headers = {"Authorization": "Bearer another-token-of-thirty-two-characters"}
            refused = httpx2.post(found[0], json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
            assert refused.status_code == 401, refused.status_code
            for name, use in steps:
                for mode in ("legacy", "auto"):
                    await session(found[0], name, mode, use)
            if inspector and not options:
                inspect(found[0])
        finally:
            process.terminate()
            assert process.wait(10) in (0, -15, 143), process.returncode


asyncio.run(run([("clock", clock), ("all", everything)]))
asyncio.run(run([("all", searching)], "--search", "always"))
print("held")

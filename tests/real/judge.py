#!/usr/bin/env python3
"""Judges one run of llm.sh: did a command really print the line, and did the model then say it?

usage: judge.py NAME EVENTS.jsonl EXIT-CODE BEGUN ENDED
"""
import json, sys

name, path, code, begun, ended = sys.argv[1:]
events = [json.loads(line) for line in open(path)]
items = [event["item"] for event in events if event["type"] == "item.completed"]
commands = [item for item in items if item["type"] == "command_execution"]
other = [item for item in items if item["type"] in ("mcp_tool_call", "error", "todo_list")]
messages = [item["text"] for item in items if item["type"] == "agent_message"]
ran = any("42 stones" in item["aggregated_output"] and item["exit_code"] == 0 for item in commands)
said = bool(messages) and "42" in messages[-1]
usage = next((event["usage"] for event in reversed(events) if "usage" in event), {})
good = ran and said and code == "0"
print(
    f"{'ok    ' if good else 'FAILED'}  {name}: {float(ended) - float(begun):.1f} s, exit {code}, "
    f"{usage.get('input_tokens', 0)} + {usage.get('output_tokens', 0)} tokens, "
    f"{' | '.join(item['command'] for item in commands) or 'no command'} -> {messages[-1]!r}"
    if messages
    else f"FAILED  {name}: {float(ended) - float(begun):.1f} s, exit {code}, no answer; {events[-1:]}"
)
for item in other:
    print(f"        {item['type']}: {item.get('message') or item.get('error') or item.get('tool') or item}")
sys.exit(0 if good else 1)

// Calls the tools of `windlass mcp serve` through the official TypeScript SDK, both generations of it.
//
//     client.mjs stdio|http PATH-TO-WINDLASS DIRECTORY
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import * as modern from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [transport, windlass, directory] = process.argv.slice(2);
const token = "a-token-of-at-least-thirty-two-characters";
const serve = ["mcp", "serve", "-C", directory, "-s", "read-only", "-a", "on-request"];

const answer = (action, asked) => async (request) => {
  asked.push(request.params.message);
  if (action !== "accept") return { action };
  const content = {};
  for (const [name, field] of Object.entries(request.params.requestedSchema?.properties ?? {})) {
    content[name] = (field.enum ?? field.oneOf?.map((choice) => choice.const) ?? [true])[0];
  }
  return { action, content };
};
const text = (result) => result.content.map((part) => part.text ?? "").join("\n");

async function drive(name, action, makeClient, makeTransport) {
  const asked = [];
  const client = makeClient(answer(action, asked));
  const to = makeTransport();
  await client.connect(to);
  const { tools } = await client.listTools();
  assert(tools.some((tool) => tool.name === "read_file" && tool.annotations?.readOnlyHint === true), name);
  const read = await client.callTool({ name: "read_file", arguments: { file_path: join(directory, "notes.txt") } });
  assert(!read.isError && text(read).includes("42 stones"), text(read));
  const file = `${action}-${name}-${transport}.txt`;
  const input = `*** Begin Patch\n*** Add File: ${file}\n+made\n*** End Patch`;
  const changed = await client.callTool({ name: "apply_patch", arguments: { input } });
  assert(asked.length > 0, `${name}: no question; ${text(changed)}`);
  assert.equal(existsSync(join(directory, file)), action === "accept", `${name}: ${text(changed)}`);
  await client.close();
}

const info = { name: "test-client", version: "1" };
const makers = (url) => {
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  const parameters = { command: windlass, args: serve, env: { ...process.env } };
  const newClient = (mode) => (handler) => {
    const client = new modern.Client(info, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode },
    });
    client.setRequestHandler("elicitation/create", handler);
    return client;
  };
  const newTransport = () =>
    url ? new modern.StreamableHTTPClientTransport(new URL(url), { requestInit }) : new ModernStdio(parameters);
  const oldClient = (handler) => {
    const client = new OldClient(info, { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler(ElicitRequestSchema, handler);
    return client;
  };
  const oldTransport = () => (url ? new OldHttp(new URL(url), { requestInit }) : new OldStdio(parameters));
  return [
    ["ts-1.x", oldClient, oldTransport],
    ["ts-2.x-legacy", newClient("legacy"), newTransport],
    ["ts-2.x-auto", newClient("auto"), newTransport],
  ];
};

let child;
let url;
if (transport === "http") {
  const environment = { ...process.env, WINDLASS_MCP_TOKEN: token };
  child = spawn(windlass, [...serve, "--http", "127.0.0.1:0"], { env: environment, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  url = await new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      log += data;
      const found = log.match(/http:\/\/[^\s]+/);
      if (found) resolve(found[0]);
    });
    child.on("exit", () => reject(new Error(log)));
  });
}
try {
  for (const [name, client, to] of makers(url)) {
    for (const action of ["decline", "accept"]) await drive(name, action, client, to);
  }
  console.log("held");
} finally {
  child?.kill();
}

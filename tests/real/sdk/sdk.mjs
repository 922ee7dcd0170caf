// Drives @openai/codex-sdk with windlass as its program. See run.sh.
//
//     node sdk.mjs WINDLASS WORK-DIRECTORY
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { createRequire } from "node:module";
import { Codex } from "@openai/codex-sdk";

const [windlass, root] = process.argv.slice(2);
const home = path.join(root, "home");
const work = path.join(root, "work");
const extra = path.join(root, "extra");
[home, work, extra].forEach((directory) => fs.mkdirSync(directory));

// ---- a server that says what it is told to say

const answers = [];
const requests = [];

const item = (item) => ({ type: "response.output_item.done", item });
const message = (text) =>
  item({ type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text }] });
const call = (id, name, args) =>
  item({ type: "function_call", call_id: id, name, arguments: JSON.stringify(args) });
const completed = {
  type: "response.completed",
  response: {
    id: "r",
    usage: { input_tokens: 10, input_tokens_details: { cached_tokens: 4 }, output_tokens: 3 },
  },
};
const created = { type: "response.created", response: { id: "r" } };
const says = (...events) => answers.push([created, ...events, completed]);

const server = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  requests.push({
    path: request.url,
    headers: request.headers,
    body: JSON.parse(Buffer.concat(chunks).toString("utf8")),
  });
  const events = answers.shift();
  if (!events) {
    response.writeHead(400, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message: "nothing is left to say" } }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const baseUrl = `http://127.0.0.1:${server.address().port}/v1`;

// ---- the client

const env = { PATH: process.env.PATH, HOME: root, WINDLASS_HOME: home, SHELL: "/bin/sh" };
const codex = new Codex({ codexPathOverride: windlass, baseUrl, apiKey: "sk-from-the-sdk", env });
const options = {
  model: "gpt-5.2-codex",
  sandboxMode: "danger-full-access",
  workingDirectory: work,
  additionalDirectories: [extra],
  skipGitRepoCheck: true,
  modelReasoningEffort: "low",
  networkAccessEnabled: true,
  webSearchMode: "disabled",
  approvalPolicy: "never",
};
const usage = (input, cached, output) => ({
  input_tokens: input,
  cached_input_tokens: cached,
  cache_write_input_tokens: 0,
  output_tokens: output,
  reasoning_output_tokens: 0,
});
const texts = (body) =>
  body.input.flatMap((item) => (item.content ?? []).map((part) => part.text ?? part.image_url));

const steps = [];
const step = (name, run) => steps.push([name, run]);
let thread;

step("a turn with a tool call, as a whole", async () => {
  says(call("call_1", "shell_command", { command: "pwd; exit 3" }));
  says(message("It failed with 3."));
  thread = codex.startThread(options);
  assert.equal(thread.id, null);
  const turn = await thread.run("Try it.");
  assert.match(thread.id, /^[0-9a-f-]{36}$/);
  assert.equal(turn.finalResponse, "It failed with 3.");
  assert.deepEqual(turn.usage, usage(20, 8, 6));
  const [command, answer] = turn.items;
  assert.equal(turn.items.length, 2);
  const { id, type, command: line, aggregated_output, exit_code, status } = command;
  assert.deepEqual(
    { id, type, line, aggregated_output, exit_code, status },
    {
      id: "item_0",
      type: "command_execution",
      line: "/bin/sh -c 'pwd; exit 3'",
      aggregated_output: `${fs.realpathSync(work)}\n`,
      exit_code: 3,
      status: "failed",
    },
  );
  assert.deepEqual(answer, { id: "item_1", type: "agent_message", text: "It failed with 3." });

  const [first, second] = requests;
  assert.equal(requests.length, 2);
  assert.equal(first.path, "/v1/responses");
  assert.equal(first.headers.authorization, "Bearer sk-from-the-sdk");
  assert.equal(first.body.model, "gpt-5.2-codex");
  assert.equal(first.body.reasoning.effort, "low");
  assert.equal(first.body.stream, true);
  assert.equal(texts(first.body).at(-1), "Try it.");
  assert.ok(first.body.tools.some((tool) => tool.name === "shell_command"));
  assert.deepEqual(second.body.input.slice(0, first.body.input.length), first.body.input);
  const output = second.body.input.find((item) => item.type === "function_call_output");
  assert.equal(output.call_id, "call_1");
  assert.match(output.output, /^Exit code: 3\n/);
});

step("the same thread goes on, as a stream of events", async () => {
  says({ type: "response.output_text.delta", delta: "All " }, message("All good."));
  const { events } = await thread.runStreamed("And now?");
  const seen = [];
  for await (const event of events) seen.push(event);
  assert.deepEqual(seen, [
    { type: "thread.started", thread_id: thread.id },
    { type: "turn.started" },
    { type: "item.completed", item: { id: "item_0", type: "agent_message", text: "All good." } },
    { type: "turn.completed", usage: usage(10, 4, 3), refusals: [] },
  ]);
  const before = requests[1].body.input;
  assert.deepEqual(requests[2].body.input.slice(0, before.length), before);
});

step("a thread is taken up again by its id", async () => {
  says(message("I remember."));
  const again = codex.resumeThread(thread.id, options);
  const turn = await again.run("Do you remember?");
  assert.equal(turn.finalResponse, "I remember.");
  assert.equal(again.id, thread.id);
  assert.ok(texts(requests[3].body).includes("Try it."));
  assert.equal(fs.readdirSync(path.join(home, "sessions"), { recursive: true }).filter((name) => name.endsWith(".jsonl")).length, 1);
});

step("an output schema and an image reach the server", async () => {
  const schema = {
    type: "object",
    properties: { colour: { type: "string" } },
    required: ["colour"],
    additionalProperties: false,
  };
  const dot =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const image = path.join(work, "dot.png");
  fs.writeFileSync(image, Buffer.from(dot, "base64"));
  says(message('{"colour":"red"}'));
  const turn = await codex.startThread(options).run(
    [
      { type: "text", text: "Which colour is it?" },
      { type: "local_image", path: image },
    ],
    { outputSchema: schema },
  );
  assert.deepEqual(JSON.parse(turn.finalResponse), { colour: "red" });
  const { body } = requests[4];
  assert.deepEqual(texts(body).slice(-2), ["Which colour is it?", `data:image/png;base64,${dot}`]);
  assert.deepEqual(body.text.format.schema, schema);
  assert.equal(body.text.format.type, "json_schema");
});

step("a plan is a list of things to do", async () => {
  const plan = (status) => ({ plan: [{ step: "look", status }] });
  says(call("call_1", "update_plan", plan("in_progress")));
  says(call("call_2", "update_plan", plan("completed")));
  says(message("Done."));
  const { events } = await codex.startThread(options).runStreamed("Plan it.");
  const lists = [];
  for await (const event of events) {
    if (event.item?.type === "todo_list") lists.push([event.type, event.item.items[0].completed]);
  }
  assert.deepEqual(lists, [
    ["item.started", false],
    ["item.updated", true],
    ["item.completed", true],
  ]);
});

step("a refused call does not make a completed turn a crash", async () => {
  says(call("call_1", "shell_command", { command: "git push --force" }));
  says(message("I may not."));
  const turn = await codex.startThread({ ...options, sandboxMode: "read-only" }).run("Publish it.");
  assert.equal(turn.finalResponse, "I may not.");
  assert.equal(turn.items[0].status, "declined");
});

step("a read-only sandbox lets nothing be written", async () => {
  says(call("call_1", "shell_command", { command: "touch written" }));
  says(message("It did not work."));
  const turn = await codex.startThread({ ...options, sandboxMode: "read-only" }).run("Write it.");
  assert.equal(turn.items[0].status, "failed");
  assert.ok(!fs.existsSync(path.join(work, "written")));
});

step("a failed turn is an error with the server's words", async () => {
  const failed = codex.startThread(options).run("Is anyone there?");
  await assert.rejects(failed, { message: /nothing is left to say/ });
});

step("a turn can be called off", async () => {
  says(call("call_1", "shell_command", { command: "sleep 60", timeout_ms: 60000 }));
  const calledOff = new AbortController();
  const { events } = await codex.startThread(options).runStreamed("Wait.", { signal: calledOff.signal });
  await assert.rejects(
    async () => {
      for await (const event of events) if (event.type === "item.started") calledOff.abort();
    },
    { name: "AbortError" },
  );
});

let failures = 0;
for (const [name, run] of steps) {
  try {
    await run();
    console.log(`ok      ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
server.close();
const { version } = createRequire(import.meta.url)("./node_modules/@openai/codex-sdk/package.json");
console.log(`${steps.length - failures} of ${steps.length} with @openai/codex-sdk ${version}`);
process.exitCode = failures === 0 ? 0 : 1;

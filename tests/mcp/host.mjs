// A model for tests of the MCP client, and a place for `windlass` to run in.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Starts a model. `next` gets the offered tools and the results so far, and returns the next call, if any.
export async function startModel(next) {
  let count = 0;
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (data) => (body += data));
    request.on("end", () => {
      const { tools = [], messages = [] } = JSON.parse(body);
      const results = messages.filter(({ role }) => role === "tool").map(({ content }) => text(content));
      const wanted = next(tools.map((tool) => tool.function), results);
      const called = wanted && { name: wanted.name, arguments: JSON.stringify(wanted.arguments) };
      const call = called && { index: 0, id: `call_${(count += 1)}`, type: "function", function: called };
      const delta = call ? { role: "assistant", tool_calls: [call] } : { role: "assistant", content: "done" };
      const chunk = (choice) => {
        const data = { id: "c1", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, ...choice }] };
        return `data: ${JSON.stringify(data)}\n\n`;
      };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ delta, finish_reason: null }));
      response.write(chunk({ delta: {}, finish_reason: call ? "tool_calls" : "stop" }));
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function text(content) {
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("\n");
}

// A home and a project of their own. The settings are a text, or a function of the project's folder.
export class Place {
  constructor(model, settings) {
    this.home = mkdtempSync(join(tmpdir(), "mcp-client-"));
    this.cwd = join(this.home, "project");
    mkdirSync(this.cwd);
    const folder = join(this.home, "windlass");
    mkdirSync(join(folder, "config"), { recursive: true });
    writeFileSync(
      join(folder, "config/config.toml"),
      `provider = "test"
[providers.test]
wire = "openai-chat"
base_url = "http://127.0.0.1:${model.address().port}/v1"
model = "m"
[security]
allow = ["mcp__*", "mcp_resource"]
${typeof settings === "function" ? settings(this.cwd) : settings}`,
    );
    this.env = { PATH: process.env.PATH, HOME: this.home, WINDLASS_HOME: folder };
  }

  windlass(...args) {
    return new Promise((resolve) => {
      const child = spawn(process.env.WINDLASS_BIN, args, { cwd: this.cwd, env: this.env, stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      const read = (data) => (output += data);
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("close", (code) => {
        console.log(`windlass ${args.join(" ")}\n${output}`);
        resolve({ code, output });
      });
    });
  }

  // A turn in an editor, whose user accepts every form as it is, with the values that the form starts with.
  edit(text) {
    return new Promise((resolve) => {
      const child = spawn(process.env.WINDLASS_BIN, ["acp"], { cwd: this.cwd, env: this.env, stdio: ["pipe", "pipe", "inherit"] });
      const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
      let rest = "";
      let ended = false;
      const hear = ({ id, method, result, error }) => {
        if (method === "elicitation/create") send({ id, result: { action: "accept", content: { answer: "" } } });
        else if (method && id !== undefined) send({ id, error: { code: -32601, message: "not in this editor" } });
        else if (method) return;
        else if (id === 1) send({ id: 2, method: "session/new", params: { cwd: this.cwd, mcpServers: [] } });
        else if (id === 2) {
          const prompt = [{ type: "text", text }];
          send({ id: 3, method: "session/prompt", params: { sessionId: result.sessionId, prompt } });
        } else if (id === 3) {
          ended = error === undefined;
          child.stdin.end();
        }
      };
      child.stdout.on("data", (data) => {
        const lines = (rest + data).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          console.log(line);
          hear(JSON.parse(line));
        }
      });
      child.on("close", () => resolve({ code: ended ? 0 : 1, output: "" }));
      const clientCapabilities = { elicitation: { form: {} } };
      send({ id: 1, method: "initialize", params: { protocolVersion: 1, clientCapabilities } });
    });
  }

  remove() {
    rmSync(this.home, { recursive: true, force: true });
  }
}

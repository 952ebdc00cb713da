// Uses the well-known MCP servers of npm and PyPI through `windlass exec`. Needs WINDLASS_BIN, MCP_SERVERS (the folder of
// the npm packages) and MCP_PYTHON (the programs of the Python packages).
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";

import { Place, startModel } from "./host.mjs";

const npm = (name, ...args) => ({ command: process.execPath, args: [join(process.env.MCP_SERVERS, "@modelcontextprotocol", name, "dist/index.js"), ...args] });
const python = (name, ...args) => ({ command: join(process.env.MCP_PYTHON, name), args });
const page = http.createServer((_, response) => {
  response.writeHead(200, { "content-type": "text/html" });
  response.end("<html><body><article><h1>Cheese</h1><p>The cheese is ready, and it is blue.</p></article></body></html>");
});
await new Promise((resolve) => page.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${page.address().port}/`;

// Each server, its calls, and a part of each result.
const servers = {
  everything: [npm("server-everything", "stdio"), [["echo", { message: "hello" }, "hello"], ["get-sum", { a: 2, b: 3 }, "5"]]],
  filesystem: [npm("server-filesystem", "."), [["list_directory", { path: "." }, "notes.txt"], ["read_text_file", { path: "notes.txt" }, "the note"]]],
  memory: [
    { ...npm("server-memory"), env: (cwd) => ({ MEMORY_FILE_PATH: join(cwd, "memory.jsonl") }) },
    [
      ["create_entities", { entities: [{ name: "Ada", entityType: "person", observations: ["counts"] }] }, "Ada"],
      ["read_graph", {}, "counts"],
    ],
  ],
  git: [python("mcp-server-git", "--repository", "."), [["git_log", { repo_path: "." }, "first commit"]]],
  time: [python("mcp-server-time", "--local-timezone", "UTC"), [["get_current_time", { timezone: "UTC" }, "UTC"]]],
  fetch: [python("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"), [["fetch", { url: address, raw: true }, "blue"]]],
};

let failures = 0;
for (const [name, [server, calls]] of Object.entries(servers)) {
  const plan = calls.map(([tool, values]) => ({ name: `mcp__${name}__${tool}`, arguments: values }));
  let seen = [];
  const model = await startModel((_, results) => {
    seen = results;
    return plan[results.length];
  });
  const settings = (cwd) => `[mcp]
startup_wait_secs = 60
tool_budget_bytes = 1000000
[mcp_servers.${name}]
command = ${JSON.stringify(server.command)}
args = ${JSON.stringify(server.args)}
${Object.entries(server.env?.(cwd) ?? {}).map(([key, value]) => `env.${key} = ${JSON.stringify(value)}`).join("\n")}
`;
  const place = new Place(model, settings);
  writeFileSync(join(place.cwd, "notes.txt"), "the note\n");
  const git = (...args) => spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], { cwd: place.cwd });
  git("init", "-q");
  git("add", ".");
  git("commit", "-q", "-m", "first commit");
  const log = console.log;
  let output = "";
  console.log = (text) => (output += `${text}\n`);
  const { code } = await place.windlass("exec", "use the tools");
  console.log = log;
  const isRight = code === 0 && calls.every(([, , part], index) => seen[index]?.includes(part));
  console.log(`    ${isRight ? "ok" : "FAILED"}  ${name}`);
  if (!isRight) {
    failures += 1;
    console.log(output, seen);
  }
  model.closeAllConnections();
  model.close();
  place.remove();
}
page.closeAllConnections();
page.close();
process.exitCode = failures ? 1 : 0;

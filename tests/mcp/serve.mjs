// Runs the inspector and the conformance suite against `windlass mcp serve`. Needs WINDLASS_BIN and MCP_MODULES.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const windlass = process.env.WINDLASS_BIN;
const modules = process.env.MCP_MODULES;
const home = mkdtempSync(join(tmpdir(), "mcp-serve-"));
const cwd = join(home, "project");
mkdirSync(cwd);
const env = { PATH: process.env.PATH, HOME: home, WINDLASS_HOME: join(home, "windlass") };
let failures = 0;

function check(name, isRight, output) {
  console.log(`    ${isRight ? "ok" : "FAILED"}  ${name}`);
  if (!isRight) {
    failures += 1;
    console.log(output);
  }
}

// A child that runs beside the proxy below, which this process must keep serving.
function run(program, args) {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env, cwd, timeout: 120_000 });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    child.stderr.on("data", (data) => (output += data));
    child.on("close", (code) => resolve({ code, output }));
  });
}

// The inspector, over standard input and output, in both eras.
const inspector = join(modules, "@modelcontextprotocol/inspector");
const { bin } = JSON.parse(readFileSync(join(inspector, "package.json"), "utf8"));
const cli = join(inspector, typeof bin === "string" ? bin : Object.values(bin)[0]);
const serve = [windlass, "mcp", "serve", "--provider", "sim"];
for (const era of ["legacy", "modern"]) {
  const inspect = (...args) => run("node", [cli, "--cli", ...serve, "--protocol-era", era, ...args]);
  let ran = await inspect("--method", "tools/list", "--strict");
  check(`inspector ${era} tools/list`, ran.code === 0 && ran.output.includes("start_session"), ran.output);
  ran = await inspect("--method", "resources/list");
  check(`inspector ${era} resources/list`, ran.code === 0 && ran.output.includes("windlass://sessions"), ran.output);
  ran = await inspect("--method", "tools/call", "--tool-name", "start_session", "--tool-arg", "prompt=hello");
  check(`inspector ${era} tools/call`, ran.code === 0 && ran.output.includes("session_id"), ran.output);
}

// The conformance suite sends no credential; a proxy adds it and leaves everything else as it is.
const token = spawnSync(windlass, ["token", "create", "suite", "--scope", "admin"], { env, encoding: "utf8" }).stdout.trim();
const server = spawn(windlass, ["mcp", "serve", "--http", "127.0.0.1:0", "--provider", "sim"], { env, cwd });
const port = await new Promise((resolve, reject) => {
  let said = "";
  const read = (data) => {
    said += data;
    const found = said.match(/127\.0\.0\.1:(\d+)\/mcp/);
    if (found) resolve(Number(found[1]));
  };
  server.stdout.on("data", read);
  server.stderr.on("data", read);
  server.on("close", () => reject(new Error(said)));
});
const proxy = http.createServer((request, response) => {
  const own = String(proxy.address().port);
  const moved = (text) => text?.replace(`:${own}`, `:${port}`);
  const headers = { ...request.headers, authorization: `Bearer ${token}`, host: moved(request.headers.host) };
  if (headers.origin) headers.origin = moved(headers.origin);
  const onward = http.request({ port, host: "127.0.0.1", method: request.method, path: request.url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
const suite = join(modules, "@modelcontextprotocol/conformance/dist/index.js");
const scenarios = {
  "2025-11-25": ["server-initialize", "ping", "tools-list", "dns-rebinding-protection", "server-session-lifecycle", "resources-list"],
  "2026-07-28": ["tools-list", "http-header-validation", "caching", "dns-rebinding-protection", "resources-list", "sep-2164-resource-not-found"],
};
for (const [version, names] of Object.entries(scenarios)) {
  for (const name of names) {
    const ran = await run("node", [suite, "server", "--url", url, "--scenario", name, "--spec-version", version]);
    check(`conformance ${version} ${name}`, ran.code === 0, ran.output);
  }
}
// Some checks of this scenario call tools that only the suite's example server has; all others must pass.
const ran = await run("node", [suite, "server", "--url", url, "--scenario", "server-stateless", "--spec-version", "2026-07-28"]);
const errors = ran.output.split("\n").filter((line) => line.trim().startsWith("Error:"));
const isRight = ran.output.includes("Passed: ") && errors.every((line) => line.includes("Not testable"));
check("conformance 2026-07-28 server-stateless", isRight, ran.output);
proxy.closeAllConnections();
proxy.close();
server.kill("SIGTERM");
await new Promise((resolve) => (server.exitCode === null ? server.on("close", resolve) : resolve()));
rmSync(home, { recursive: true, force: true });
process.exitCode = failures ? 1 : 0;

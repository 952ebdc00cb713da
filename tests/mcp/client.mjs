// Runs the client scenarios of the MCP conformance suite against `windlass`. Needs WINDLASS_BIN and MCP_MODULES.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const suite = join(process.env.MCP_MODULES, "@modelcontextprotocol/conformance/dist/index.js");
const drive = `${process.execPath} ${join(here, "drive.mjs")}`;
const only = process.argv.slice(2);

const auth = [
  "metadata-default",
  "metadata-var1",
  "metadata-var2",
  "metadata-var3",
  "basic-cimd",
  "scope-from-www-authenticate",
  "scope-from-scopes-supported",
  "scope-omitted-when-undefined",
  "scope-step-up",
  "scope-retry-limit",
  "token-endpoint-auth-basic",
  "token-endpoint-auth-post",
  "token-endpoint-auth-none",
  "pre-registration",
  "resource-mismatch",
  "offline-access-scope",
  "offline-access-not-supported",
  "authorization-server-migration",
  "iss-supported",
  "iss-not-advertised",
  "iss-supported-missing",
  "iss-wrong-issuer",
  "iss-unexpected",
  "iss-normalized",
  "metadata-issuer-mismatch",
].map((name) => `auth/${name}`);
const scenarios = [
  ...["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"].map((name) => [name, "2025-11-25"]),
  ...[
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    ...auth,
  ].map((name) => [name, "2026-07-28"]),
  ...["2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"].map((name) => [`auth/${name}`, "2025-03-26"]),
].filter(([name]) => only.length === 0 || only.includes(name));

function run([name, version]) {
  return new Promise((resolve) => {
    const options = ["client", "--command", drive, "--scenario", name, "--spec-version", version, "--timeout", "120000", "--verbose"];
    const child = spawn(process.execPath, [suite, ...options], { env: process.env });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    child.stderr.on("data", (data) => (output += data));
    child.on("close", (code) => resolve({ code, output }));
  });
}

let failures = 0;
async function work() {
  for (let scenario = scenarios.shift(); scenario; scenario = scenarios.shift()) {
    const { code, output } = await run(scenario);
    console.log(`    ${code === 0 ? "ok" : "FAILED"}  ${scenario.join(" ")}`);
    if (code !== 0) {
      failures += 1;
      console.log(output);
    }
  }
}
// The machine of a developer has more than one core, and most of a scenario is waiting.
await Promise.all([work(), work(), work()]);
process.exitCode = failures ? 1 : 0;

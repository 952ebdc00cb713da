// Drives `windlass exec`, or an editor with `windlass acp`, for a client scenario of the MCP conformance suite, which appends the
// address of its server.
// The model calls every tool of the server once.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Place, startModel } from "./host.mjs";

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const here = dirname(fileURLToPath(import.meta.url));

// Arguments that fit a schema.
function filled(schema = {}) {
  const values = { string: "test", number: 1, integer: 1, boolean: true, array: [], null: null };
  const value = (property) => {
    if (property.default !== undefined) return property.default;
    if (property.enum) return property.enum[0];
    return property.type === "object" ? filled(property) : values[property.type] ?? "test";
  };
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, property]) => [name, value(property)]));
}

const called = new Set();
// Some scenarios name the calls that they want.
const planned = (context.toolCalls ?? []).map(({ name, arguments: values }) => ({ name: `mcp__conf__${name}`, arguments: values }));
const model = await startModel((tools) => {
  if (context.toolCalls) return planned.shift();
  const next = tools.find(({ name }) => name.startsWith("mcp__conf__") && !called.has(name));
  if (!next) return undefined;
  called.add(next.name);
  return { name: next.name, arguments: filled(next.parameters) };
});
const place = new Place(
  model,
  `[mcp]
startup_wait_secs = 20
tool_budget_bytes = 1000000
[mcp.oauth]
browser = ${JSON.stringify([process.execPath, join(here, "browser.mjs")])}
[mcp_servers.conf]
url = ${JSON.stringify(url)}
`,
);

// What a person does who is told to log in: run the command of the message, but not for ever.
async function login(command) {
  const client = [];
  if (scenario === "auth/basic-cimd") client.push("--client-id", "https://conformance-test.local/client-metadata.json");
  if (context.client_id) client.push("--client-id", context.client_id);
  if (context.client_secret) {
    place.env.TEST_SECRET = context.client_secret;
    client.push("--client-secret-env", "TEST_SECRET");
  }
  return place.windlass(...command.split(" ").slice(1), ...client);
}

// A form needs a person, and `exec` has none.
const isForm = scenario === "elicitation-sep1034-client-defaults";
let ran = isForm ? await place.edit("use every tool") : await place.windlass("exec", "use every tool");
for (let logins = 0; logins < 3; logins += 1) {
  const wanted = ran.output.match(/windlass mcp login conf(?: --scope \S+)*/);
  if (!wanted) break;
  const { code } = await login(wanted[0]);
  if (code !== 0) {
    ran = { code, output: "" };
    break;
  }
  called.clear();
  ran = await place.windlass("exec", "use every tool");
}
model.closeAllConnections();
model.close();
place.remove();
process.exitCode = ran.code;

// Generates docs/api.md from the server's OpenAPI document, which is made from the schemas that validate requests.
import { PRELUDE, exampleText } from "./api-examples.mjs";
import { loadSource } from "./load-source.mjs";

const SOURCE = `
export * as schemas from "./src/api/schemas.ts";
export { createApi } from "./src/api/app.ts";
export { accessTo } from "./src/api/roles.ts";
export { z } from "zod";
`;

const indent = (text) => text.replaceAll("\n", "\n  ");

/** A JSON schema as TypeScript would write it. `names` has the names of known shapes. */
const shape = (schema, names = new Map()) => {
  const text = describe(schema, names);
  return names.get(text) ?? text;
};

const MOST_VALUES = 40;

const describe = (schema, names) => {
  if (schema === undefined) return "unknown";
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  // the codes of all errors, which docs/errors.md explains one by one
  if (schema.enum?.length > MOST_VALUES) return "string";
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const either = schema.anyOf ?? schema.oneOf;
  if (either !== undefined) return either.map((each) => shape(each, names)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => shape({ ...schema, type }, names)).join(" | ");
  switch (schema.type) {
    case "array": {
      const inner = shape(schema.items, names);
      return inner.includes(" | ") ? `(${inner})[]` : `${inner}[]`;
    }
    case "object": {
      const fields = Object.entries(schema.properties ?? {}).map(([name, value]) => {
        const optional = (schema.required ?? []).includes(name) ? "" : "?";
        return `${name}${optional}: ${indent(shape(value, names))}`;
      });
      if (fields.length > 0) return `{\n  ${fields.join("\n  ")}\n}`;
      const { additionalProperties: rest } = schema;
      return typeof rest === "object" ? `{ [name]: ${shape(rest, names)} }` : "{ … }";
    }
    case "integer":
      return "number";
    default:
      return schema.type ?? "unknown";
  }
};

/**
 * Numbers in addresses come as text and are converted; that conversion would accept null too, which nobody can write.
 */
const parameter = ({ name, in: where, required, schema }) => {
  const fallback = schema.default === undefined ? "" : `, default ${schema.default}`;
  const optional = required || where === "path" ? "" : ", optional";
  return `- \`${name}\` (${where}${optional}): ${shape(schema).replace(/ \| null$/, "")}${fallback}`;
};

const fence = (text) => `\`\`\`ts\n${text}\n\`\`\``;

const bodyOf = (title, content, names) =>
  Object.entries(content ?? {}).map(([type, { schema }]) => {
    const text = shape(schema, names);
    const name = /^(\w+)((?:\[\])?)$/.exec(text);
    if (name === null) return `${title} (\`${type}\`):\n\n${fence(text)}`;
    const known = [...names.values()].includes(name[1]) ? `[${name[1]}](#${name[1].toLowerCase()})${name[2]}` : text;
    return `${title} (\`${type}\`): ${known}`;
  });

/** Who may use it, beside the home's owner. */
const whoMay = ({ role, users, jobs, anyone }) => {
  if (anyone) return "Needs no token.";
  if (jobs) return "Needs the job's own token.";
  return `Needs the role \`${role}\`${users ? ", or a user's own token" : ""}.`;
};

const section = (path, method, operation, names, access) => {
  const [status, answer] = Object.entries(operation.responses).find(([code]) => code.startsWith("2")) ?? ["", {}];
  return [
    `### ${method.toUpperCase()} ${path}`,
    `${operation.summary}.`,
    ...(operation.description === undefined ? [] : [operation.description]),
    whoMay(access),
    ...(operation.parameters === undefined ? [] : [operation.parameters.map(parameter).join("\n")]),
    ...bodyOf("Body", operation.requestBody?.content, names),
    ...bodyOf(`Answer ${status}: ${answer.description ?? ""}`, answer.content, names),
    exampleText(method.toUpperCase(), path),
  ].join("\n\n");
};

/** What a program calls instead of a command. Commands that only read or write files of this machine have no operation. */
const VERBS = [
  [
    "run, submit",
    "`POST /runs`, by the text of a run file `POST /run-files`; what follows a run: `GET /runs/{run}/watch`",
  ],
  ["validate", "`POST /validate`"],
  ["wait, attach", "`GET /runs/{run}/watch`"],
  ["cancel, retry, resume", "`POST /runs/{run}/cancel`, `POST /runs/{run}/retry`"],
  ["launch", "`POST /launches`"],
  ["list", "`GET /runs`"],
  ["show", "`GET /runs/{run}`, `GET /runs/{run}/tasks/{task}`, `GET /runs/{run}/efficiency`, `GET /launches/{launch}`"],
  ["report", "`GET /runs/{run}/stages`, `/timeline`, `/failures`, `/efficiency`"],
  ["tasks", "`GET /runs/{run}/task-table`"],
  ["logs", "`GET /runs/{run}/logs`, `GET /runs/{run}/tasks/{task}/logs`"],
  [
    "jobs",
    "`GET /jobs`, `GET` and `DELETE /launches/{launch}`, `GET /launches/{launch}/logs`, `POST /launches/{launch}/clean`",
  ],
  ["why", "`GET /runs/{run}/why`, `GET /runs/{run}/tasks/{task}/why`; of anything by its name: `GET /why`"],
  ["events", "`GET /events`"],
  ["status, top", "`GET /status`, `GET /overview`; as it happens: `GET /live`; over time: `GET /series`"],
  ["open", "`POST /session/codes`, then `POST /session` by the page"],
  ["down", "`POST /server/stop`"],
  ["pilots", "`GET /pilots`, `POST /pilots`, `POST /pilots/{pilot}/drain`, `POST /pilots/{pilot}/cancel`"],
  ["clusters", "`GET /clusters`, `GET /clusters/{name}`, `POST /clusters/{name}/check`; reload: `POST /server/reload`"],
  ["tokens", "`GET /tokens`, `POST /tokens`, `DELETE /tokens/{user}`"],
  ["journal", "compact: `POST /server/compact`; the rest reads the files of the home"],
  ["wrap", "list: `GET /wraps`; the rest needs no server"],
  ["up, agent, sudoers, bench, completion", "on this machine only"],
];

export const apiPage = async () => {
  const { createApi, accessTo, schemas, z } = await loadSource(SOURCE);
  const app = createApi({
    service: {},
    launches: {},
    numbers: {},
    token: "",
    version: "",
    clock: () => 0,
    log: () => undefined,
  });
  const { paths, components } = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Slipway", version: "" },
  });

  // Named in the order they are declared, so that later shapes refer to earlier ones.
  const names = new Map();
  const declared = [];
  for (const [name, schema] of Object.entries(schemas)) {
    const text = describe(z.toJSONSchema(schema, { io: "input" }), names);
    if (!text.startsWith("{")) continue;
    names.set(text, name);
    declared.push({ name, text });
  }
  // what the document itself names
  for (const [name, schema] of Object.entries(components.schemas)) {
    const text = describe(schema, names);
    names.set(text, name);
    declared.push({ name, text });
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      section(path, method, operation, names, accessTo(method.toUpperCase(), path)),
    ),
  );
  return `<!-- generated by \`npm run docs\` from src/api; do not edit -->

# The REST API

This API is the only way in, for the CLI and for the SDK (\`slipway/client\`) alike. The server describes it as an OpenAPI 3.1
document at \`GET /api/v1/openapi.json\`.

On the server's machine the API is served over a unix socket that only its user can open; from elsewhere over HTTPS on the
server's one port, with \`Authorization: Bearer TOKEN\`. \`server.json\` in the home says where both are (\`socket\`; \`host\`,
\`addresses\`, \`port\`), and \`keys/client.token\` holds the token.

The server's certificate is its own: no authority has signed it, and it names no host. What proves the server is \`keyPin\` in
\`server.json\`, the SHA-256 of its public key (DER, SubjectPublicKeyInfo) in base64. A client must compare it before it sends the
token. curl does so with \`--pinnedpubkey\`, once its own check of the certificate is off:

\`\`\`sh
home=\${SLIPWAY_HOME:-$HOME/.slipway}
curl -s --unix-socket "$(jq -r .socket "$home/server.json")" http://slipway/api/v1/server

curl -s --insecure --pinnedpubkey "sha256//$(jq -r .keyPin "$home/server.json")" \\
  -H "Authorization: Bearer $(cat "$home/keys/client.token")" \\
  "https://$(jq -r '.addresses[0]' "$home/server.json"):$(jq -r .port "$home/server.json")/api/v1/server"
\`\`\`

An error comes with the HTTP status of its row in [errors.md](errors.md), as \`application/problem+json\` (RFC 9457):
\`{"type", "title", "status", "detail", "code", "hint", "facts"}\`; the member \`error: {"code", "message", "hint", "facts"}\`
says the same and stays throughout v1. Times are ISO 8601, by the server's
clock, which each answer gives in the header \`slipway-clock\` (epoch
milliseconds). Answers of type \`application/x-ndjson\` are streams with one JSON document per line. Fields may be added; those here keep their meaning.

A request that creates something (POST to \`/runs\`, \`/launches\`, \`/pilots\`, \`/tokens\`, \`/session/codes\`) may carry the header
\`Idempotency-Key\` with a UUID: sent again, it is answered again, and nothing is created twice; the same key with a different
request is refused. Of runs and launches the key is their \`uuid\`, which is kept as long as they are. Other answers are kept for 24
hours, in the server's memory: a restart forgets them.

## Commands and operations

| command | operation |
| --- | --- |
${VERBS.map(([verb, operation]) => `| ${verb} | ${operation} |`).join("\n")}

## Paths

${PRELUDE}

${operations.join("\n\n")}

## Shapes

${declared.map(({ name, text }) => `### ${name}\n\n${fence(text)}`).join("\n\n")}
`;
};

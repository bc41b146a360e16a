// An example of every operation of the API, for docs/api.md: with curl and with Python's standard library. Run 1, task 1, pilot 1
// and the cluster `local` are those of a new home; test/cli/documents.test.ts types them.

/** What is other than the path with these values, or has a body. */
const EXAMPLES = {
  "POST /api/v1/server/stop": { body: { idle: true } },
  "GET /api/v1/live": { query: "?seconds=1&run=1" },
  "GET /api/v1/live/next": { query: "?run=1" },
  "GET /api/v1/series": { query: "?span=10m" },
  "POST /api/v1/runs": {
    body: {
      name: "hello",
      cwd: "/tmp",
      environment: { PATH: "/usr/bin:/bin" },
      tasks: [{ name: "hello", run: "echo {item}", each: { array: "1-3" } }],
    },
  },
  "POST /api/v1/run-files": { body: { text: "tasks:\n  - run: echo hello\n", cwd: "/tmp" } },
  "POST /api/v1/validate": { body: { text: "tasks:\n  - run: echo hello\n", cwd: "/tmp" } },
  "POST /api/v1/outputs/known": { body: { files: ["/tmp/out/all.txt"] } },
  "GET /api/v1/runs": { query: "?state=DONE&limit=10" },
  "GET /api/v1/runs/{run}/logs": { query: "?stream=stdout" },
  "POST /api/v1/runs/{run}/cancel": { body: { reason: "not needed" } },
  "POST /api/v1/runs/{run}/retry": { body: { which: "all" } },
  "GET /api/v1/runs/{run}/tasks": { query: "?state=FAILED&limit=10" },
  "GET /api/v1/runs/{run}/tasks/{task}/logs": { query: "?stream=stderr&bytes=1000" },
  "GET /api/v1/runs/{run}/task-table": { query: "?sort=duration&reverse=1&offset=0&limit=10" },
  "GET /api/v1/runs/{run}/timeline": { query: "?most=1000" },
  "GET /api/v1/events": { query: "?run=1&limit=10" },
  "GET /api/v1/pilots": { query: "?state=PMGR_ACTIVE" },
  "POST /api/v1/pilots": { body: { cluster: "local", count: 1 } },
  "POST /api/v1/pilots/{pilot}/drain": { body: { reason: "maintenance" } },
  "POST /api/v1/pilots/{pilot}/cancel": { body: { reason: "maintenance" } },
  "POST /api/v1/launches": { query: "?dry_run=1", body: { cluster: "hpc", type: "COMMAND", command: ["hostname"] } },
  "POST /api/v1/launches/{launch}/output": { query: "?stream=stdout&rank=0&offset=0", body: "hello" },
  "GET /api/v1/jobs": { query: "?kind=pilot" },
  "GET /api/v1/why": { query: "?of=1" },
  "POST /api/v1/tokens": { body: { user: "grafana", role: "read" } },
  "POST /api/v1/session/codes": { body: { role: "read" } },
  "POST /api/v1/session": { body: { code: "CODE" } },
};

const VALUES = { run: "1", task: "1", pilot: "1", launch: "1", name: "local", user: "grafana", job: "pilot%201" };

export const exampleOf = (method, template) => {
  const { query = "", body } = EXAMPLES[`${method} ${template}`] ?? {};
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name) => VALUES[name]) + query;
  return { method, path, body };
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const curl = ({ method, path, body }) => {
  const words = [`curl -sf --unix-socket "$socket" ${quoted(`http://slipway${path}`)}`];
  if (method === "DELETE" || (method === "POST" && body === undefined)) words.push(`-X ${method}`);
  if (typeof body === "string") words.push("-H 'content-type: application/octet-stream'", `-d ${quoted(body)}`);
  else if (body !== undefined) words.push("-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
  return words.join(" \\\n  ");
};

/** JSON as Python writes it: none of these holds true, false or null but as a value of its own. */
const literal = (value) =>
  JSON.stringify(value)
    .replaceAll(/\btrue\b/g, "True")
    .replaceAll(/\bfalse\b/g, "False");

const python = ({ method, path, body }) =>
  `ask(${[method, path].map((word) => JSON.stringify(word)).join(", ")}${body === undefined ? "" : `, ${literal(body)}`})`;

/** Both, as they stand in the document. */
export const exampleText = (method, template) => {
  const example = exampleOf(method, template);
  return `\`\`\`sh\n${curl(example)}\n\`\`\`\n\n\`\`\`python\n${python(example)}\n\`\`\``;
};

/** What they need first. */
export const PRELUDE = `Each operation below has an example with curl and with Python's standard library, over the socket. They begin so:

\`\`\`sh
socket=$(jq -r .socket "\${SLIPWAY_HOME:-$HOME/.slipway}/server.json")
\`\`\`

\`\`\`python
import http.client, json, os, socket

HOME = os.environ.get("SLIPWAY_HOME") or os.path.expanduser("~/.slipway")
with open(os.path.join(HOME, "server.json")) as file:
    SOCKET = json.load(file)["socket"]


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def ask(method, path, body=None):
    connection = Connection("slipway")  # the Host by which the server knows its owner
    isText = body is None or isinstance(body, str)
    kind = "application/octet-stream" if isText else "application/json"
    headers = {} if body is None else {"Content-Type": kind}
    connection.request(method, path, body=body if isText else json.dumps(body), headers=headers)
    answer = connection.getresponse()
    data = answer.read()
    if answer.status >= 300:
        raise RuntimeError(data.decode())
    return json.loads(data) if answer.getheader("Content-Type") == "application/json" else data
\`\`\``;

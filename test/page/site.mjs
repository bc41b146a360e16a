// A site's web server as users meet it: the page lives below a path of its own, requests go on to the unix socket, and it may
// keep back what should stream. For tests and measurements.
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../../dist/page", import.meta.url));

export const PATH = "/node/login1/8080/";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const sendFile = async (path, response) => {
  const name = path === "" ? "index.html" : path.replace(/^page\//, "");
  try {
    const text = await readFile(join(dist, name));
    response.writeHead(200, { "content-type": TYPES[extname(name)], "content-security-policy": CSP });
    response.end(text);
  } catch {
    response.writeHead(404).end();
  }
};

const PASSED = ["authorization", "accept", "content-type"];

const pass = async (home, path, incoming, outgoing, site) => {
  const { socket } = JSON.parse(await readFile(join(home, "server.json"), "utf8"));
  const headers = { host: "slipway" };
  for (const name of PASSED) if (incoming.headers[name] !== undefined) headers[name] = incoming.headers[name];
  const asked = request({ socketPath: socket, path: `/${path}`, method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    outgoing.flushHeaders();
    if (site.buffers && answer.headers["content-type"] === "text/event-stream") answer.resume();
    else answer.on("error", () => outgoing.destroy()).pipe(outgoing);
  });
  asked.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
  outgoing.on("close", () => asked.destroy());
  incoming.pipe(asked);
};

export const startSite = async (home) => {
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url.startsWith(PATH)) return void outgoing.writeHead(404).end();
    const path = incoming.url.slice(PATH.length);
    // who comes through the site is the home's owner
    if (path === "api/v1/session")
      outgoing
        .writeHead(200, { "content-type": "application/json" })
        .end('{"role":"admin","name":null,"expires":null}');
    else if (path.startsWith("api/"))
      pass(home, path, incoming, outgoing, site).catch(() => outgoing.writeHead(502).end());
    else void sendFile(path.split("?")[0], outgoing);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const site = {
    url: `http://127.0.0.1:${server.address().port}${PATH}`,
    buffers: false,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return site;
};

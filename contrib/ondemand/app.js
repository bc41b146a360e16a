"use strict";
/**
 * Slipway's page inside Open OnDemand. Passenger runs this as the user who is signed in to the portal; it leads their
 * browser to their own server: over its unix socket where that is on this machine, else over its port with the pinned key.
 * Whoever comes to the app's address is signed in with a one-time code, since nobody but that user gets this far.
 */
const { createHash, timingSafeEqual } = require("node:crypto");
const { readFileSync } = require("node:fs");
const http = require("node:http");
const net = require("node:net");
const { homedir, hostname } = require("node:os");
const { join } = require("node:path");
const tls = require("node:tls");

const BASE = (process.env.PASSENGER_BASE_URI || "").replace(/\/+$/, "");
const HOME = process.env.SLIPWAY_HOME || join(homedir(), ".slipway");
const ANSWER_MS = 30_000;

/** Headers of one connection alone, and what the portal told us about itself: they go no further. */
const OURS =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host|cookie|forwarded|x-forwarded-.*|passenger-.*)$/;
const COOKIE = /(?:^|;\s*)(__Host-slipway=[^;]*)/;

/** Where the server of the home is; it writes this file at each start. */
const readServer = () => {
  const server = JSON.parse(readFileSync(join(HOME, "server.json"), "utf8"));
  return { ...server, isHere: server.host === hostname() && server.socket !== "" };
};

/** A connection to a server elsewhere, once it has shown the key that the home names. */
const dial = ({ addresses, host, port, keyPin }, done) => {
  const address = addresses.find((each) => !/^127\.|^::1$/.test(each)) ?? host;
  const socket = tls.connect({ host: address, port, ALPNProtocols: ["http/1.1"], rejectUnauthorized: false });
  socket.once("error", done);
  socket.once("secureConnect", () => {
    const key = socket.getPeerX509Certificate()?.publicKey.export({ type: "spki", format: "der" }) ?? "";
    const [shown, pinned] = [createHash("sha256").update(key).digest(), Buffer.from(keyPin, "base64")];
    if (shown.length === pinned.length && timingSafeEqual(shown, pinned)) done(null, socket);
    else socket.destroy(new Error("another server answers under its address"));
  });
};

const ask = (server, options) =>
  http.request({
    ...options,
    createConnection: server.isHere ? () => net.connect({ path: server.socket }) : (_, done) => void dial(server, done),
  });

const say = (response, status, text) => {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
  });
  response.end(`${text}\n`);
};

const unreachable = (response, error) =>
  response.headersSent
    ? response.destroy()
    : say(
        response,
        503,
        error.code === "ENOENT" && error.path?.endsWith("server.json")
          ? `No Slipway server runs for ${HOME}.\n\nIn a shell on ${hostname()}, \`slipway up\` starts one; then load this page again.`
          : `Your Slipway server does not answer: ${error.message}.\n\n\`slipway status\` says more.`,
      );

/** As the owner: the socket needs no more than this Host, the port the home's token. */
const asOwner = (server) => ({
  host: "slipway",
  ...(server.isHere
    ? {}
    : { authorization: `Bearer ${readFileSync(join(HOME, "keys", "client.token"), "utf8").trim()}` }),
});

/** Asks for a code and sends the browser to the page with it. */
const signIn = (server, response) => {
  const request = ask(server, {
    method: "POST",
    path: "/api/v1/session/codes",
    headers: { ...asOwner(server), "content-type": "application/json", "content-length": 2 },
  });
  request.setTimeout(ANSWER_MS, () => request.destroy(new Error("no answer in time")));
  request.once("error", (error) => unreachable(response, error));
  request.once("response", (answer) => {
    let text = "";
    answer.setEncoding("utf8").on("data", (piece) => (text += piece));
    answer.on("end", () => {
      if (answer.statusCode !== 200) return unreachable(response, new Error(`it answered ${answer.statusCode}`));
      const { code } = JSON.parse(text);
      response.writeHead(303, {
        location: `${BASE}/?in#code=${code}`,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
      });
      response.end();
    });
  });
  request.end("{}");
};

/** Passes a request on, and the answer back as it comes. */
const pass = (server, incoming, response, path) => {
  const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !OURS.test(name)));
  const [, cookie] = COOKIE.exec(incoming.headers.cookie ?? "") ?? [];
  const request = ask(server, {
    method: incoming.method,
    path,
    // a name of this machine, and not the one that makes a request the owner's: the server asks for the session
    headers: { ...headers, ...(cookie === undefined ? {} : { cookie }), host: "localhost" },
  });
  response.once("close", () => request.destroy());
  request.once("error", (error) => unreachable(response, error));
  request.once("response", (answer) => {
    const kept = Object.entries(answer.headers).filter(([name]) => !OURS.test(name));
    response.writeHead(answer.statusCode, Object.fromEntries(kept));
    response.flushHeaders();
    answer.pipe(response);
    answer.once("error", () => response.destroy());
  });
  incoming.pipe(request);
};

const handle = (incoming, response) => {
  const url = incoming.url ?? "/";
  if (url === BASE || url.startsWith(`${BASE}?`)) {
    response.writeHead(302, { location: `${BASE}/` });
    return response.end();
  }
  if (!url.startsWith(`${BASE}/`)) return say(response, 404, "This address is not Slipway's.");
  const path = url.slice(BASE.length);
  try {
    const server = readServer();
    if (path === "/" && incoming.method === "GET") signIn(server, response);
    else pass(server, incoming, response, path);
  } catch (error) {
    unreachable(response, error);
  }
};

http.createServer(handle).listen(process.env.PORT || 3000);

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jupyter } from "../../scripts/test-venv.mjs";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { ROOT, type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * The page behind what sites put in front of it, each of them the real program: nginx below a path, jupyter-server-proxy,
 * and Passenger with a base URI, which is how Open OnDemand runs its apps. Its files must load, signing in must work, and
 * events must come one by one.
 */

const NGINX = "/usr/sbin/nginx";
const APACHE = "/usr/sbin/apache2";
const PASSENGER = "/usr/lib/apache2/modules/mod_passenger.so";
const NO_ROOT = "only root can start servers in another user's name";
/** Only a hang reaches it. */
const PATIENCE_MS = 40_000;
/** Passenger runs nothing as root. */
const USER = "nobody";

let slipway: SlipwayHome;
let place: string;
let pagePort: number;
let socket: string;
const running: ChildProcess[] = [];

const isRoot = process.getuid?.() === 0;

beforeAll(async () => {
  slipway = await createHome(isRoot ? { user: USER } : {});
  place = await mkdtemp(join(tmpdir(), "slipway-proxies-"));
  await slipway.run(["up"]);
  ({ port: pagePort } = await slipway.json<{ port: number }>(["open"], { env: { SSH_CONNECTION: undefined } }));
  ({ socket } = (await readEndpoint(slipway.home))!);
});

afterAll(async () => {
  await Promise.all(
    running.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      await ended;
    }),
  );
  await rm(place, { recursive: true, force: true });
  await slipway.cleanup();
});

const freePort = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** Starts a program and waits until it answers at a URL. */
const start = async (
  url: string,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<void> => {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  running.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output = (output + text).slice(-8000)));
  await until(
    () => `${program} answers\n${output}`,
    async () => {
      if (child.exitCode !== null) throw new Error(`${program} ended: ${output}`);
      return send(url, {}).then(
        () => true,
        () => undefined,
      );
    },
  );
};

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const begin = (url: string, { method = "GET", headers = {}, body }: Sent): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const make = url.startsWith("https:") ? httpsRequest : httpRequest;
    const type = text === undefined ? {} : { "content-type": "application/json" };
    const sent = make(
      url,
      { method, headers: { ...type, ...headers }, rejectUnauthorized: false, agent: false },
      resolve,
    );
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error(`no word from ${url} in ${PATIENCE_MS} ms`)));
    sent.on("error", reject).end(text);
  });

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const send = async (url: string, sent: Sent): Promise<Answer> => {
  const answer = await begin(url, sent);
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += String(piece);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
};

const newCode = async (): Promise<string> => {
  const { url } = await slipway.json<{ url: string }>(["open"], { env: { SSH_CONNECTION: undefined } });
  return new URL(url).hash.slice("#code=".length);
};

/** What a browser does: loads the page and all it names, by relative addresses alone. */
const loadPage = async (base: string, headers: Readonly<Record<string, string>> = {}): Promise<void> => {
  const index = await send(base, { headers });
  expect([index.status, index.headers["content-type"]], base).toEqual([200, "text/html; charset=utf-8"]);
  expect(index.headers["content-security-policy"]).toContain("script-src 'self'");
  const names = [...index.text.matchAll(/ (?:src|href)="([^"]+)"/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThanOrEqual(2);
  for (const name of names) {
    expect(name).not.toMatch(/^(\/|\w+:)/);
    const file = await send(new URL(name, base).href, { headers: { ...headers, "accept-encoding": "gzip" } });
    expect([file.status, file.headers["cache-control"]], name).toEqual([200, "public, max-age=31536000, immutable"]);
  }
};

/** Follows what is live, and sees a run that is submitted meanwhile, while the answer goes on. */
const seesLive = async (base: string, headers: Readonly<Record<string, string>>): Promise<void> => {
  // exactly this, or jupyter-server-proxy keeps the answer until it is whole
  const accept = "text/event-stream";
  const answer = await begin(new URL("api/v1/live", base).href, { headers: { ...headers, accept } });
  expect([answer.statusCode, answer.headers["content-type"]]).toEqual([
    200,
    expect.stringContaining("text/event-stream"),
  ]);
  let text = "";
  answer.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await until("the first event", () => /^id: /m.test(text));
  const before = text.length;
  const { run } = await slipway.json<{ run: number }>(["submit", "--", "true"]);
  await until("the run is told of", () => text.slice(before).includes(`"run":${run}`));
  expect(answer.complete).toBe(false);
  answer.destroy();
};

const signIn = async (
  base: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> => {
  const answer = await send(new URL("api/v1/session", base).href, {
    method: "POST",
    headers,
    body: { code: await newCode() },
  });
  expect(answer.status, answer.text).toBe(200);
  return { ...headers, authorization: `Bearer ${(JSON.parse(answer.text) as { key: string }).key}` };
};

/** Everything that a person at the page does, at one address. */
const works = async (base: string, headers: Readonly<Record<string, string>> = {}): Promise<void> => {
  await loadPage(base, headers);
  expect((await send(new URL("api/v1/overview", base).href, { headers })).status).toBe(401);
  const signedIn = await signIn(base, headers);
  expect((await send(new URL("api/v1/overview", base).href, { headers: signedIn })).status).toBe(200);
  await seesLive(base, signedIn);
};

describe("nginx", () => {
  const NO_NGINX = "nginx could not be installed";
  let port: number;
  let tlsPort: number;

  beforeAll(async () => {
    if (!existsSync(NGINX)) return;
    [port, tlsPort] = [await freePort(), await freePort()];
    const keys = join(slipway.home, "keys");
    const config = `
      daemon off; pid ${place}/nginx.pid; error_log stderr; worker_processes 1; ${isRoot ? "user root;" : ""}
      events { worker_connections 256; }
      http {
        access_log off; client_body_temp_path ${place}/body; proxy_temp_path ${place}/proxy;
        fastcgi_temp_path ${place}/fastcgi; uwsgi_temp_path ${place}/uwsgi; scgi_temp_path ${place}/scgi;
        proxy_http_version 1.1;
        server {
          listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl;
          ssl_certificate ${keys}/server.crt; ssl_certificate_key ${keys}/server.key;
          location /some/where/slipway/ { proxy_pass http://127.0.0.1:${pagePort}/; proxy_set_header Host $http_host; }
          location /socket/ { proxy_pass http://unix:${socket}:/; proxy_set_header Host $http_host; }
        }
      }`;
    await writeFile(join(place, "nginx.conf"), config);
    await start(`http://127.0.0.1:${port}/`, NGINX, ["-p", place, "-c", join(place, "nginx.conf")]);
  });

  it("below a path, in front of the port and of the socket", async (ctx) => {
    if (!existsSync(NGINX)) return ctx.skip(NO_NGINX);
    await works(`http://127.0.0.1:${port}/some/where/slipway/`);
    await works(`http://127.0.0.1:${port}/socket/`);
    // what leads through it is a browser's, whatever it says
    const owner = await send(`http://127.0.0.1:${port}/socket/api/v1/server`, { headers: { host: "localhost" } });
    expect(owner.status).toBe(401);
  });

  it("with the site's own https and page.origin, a cookie holds the session, for pages of that origin alone", async (ctx) => {
    if (!existsSync(NGINX)) return ctx.skip(NO_NGINX);
    const origin = `https://127.0.0.1:${tlsPort}`;
    const base = `${origin}/some/where/slipway/`;
    const clusters = join(slipway.home, "clusters.yaml");
    await writeFile(clusters, `page: { origin: "${origin}" }\n`);
    await slipway.own(clusters);
    await slipway.run(["clusters", "reload"]);
    const session = `${base}api/v1/session`;
    const signed = await send(session, { method: "POST", headers: { origin }, body: { code: await newCode() } });
    expect(JSON.parse(signed.text)).toMatchObject({ key: null, role: "admin" });
    const cookie = signed.headers["set-cookie"]![0]!.split(";")[0]!;
    expect(cookie).toMatch(/^__Host-slipway=/);
    await seesLive(base, { cookie });
    const compact = (headers: Record<string, string>): Promise<Answer> =>
      send(`${base}api/v1/server/compact`, { method: "POST", headers: { cookie, ...headers } });
    expect((await compact({ origin: "https://evil.example" })).status).toBe(403);
    expect((await compact({})).status).toBe(403);
    expect((await compact({ origin })).status).toBe(200);
    expect((await send(session, { method: "DELETE", headers: { cookie, origin } })).status).toBe(200);
    expect((await send(session, { headers: { cookie } })).status).toBe(401);
    await rm(clusters);
    await slipway.run(["clusters", "reload"]);
  });
});

describe("jupyter-server-proxy", () => {
  it("at /proxy/PORT/, as `slipway open --base` prints it", async (ctx) => {
    if (!existsSync(jupyter)) return ctx.skip("jupyter-server-proxy is not installed: pip could not fetch it");
    const port = await freePort();
    const options = {
      ip: "127.0.0.1",
      port: String(port),
      port_retries: "0",
      open_browser: "False",
      allow_root: "True",
      root_dir: place,
    };
    const env = { HOME: place, JUPYTER_CONFIG_DIR: place, JUPYTER_DATA_DIR: place, JUPYTER_RUNTIME_DIR: place };
    await start(
      `http://127.0.0.1:${port}/api`,
      jupyter,
      [
        ...Object.entries(options).map(([name, value]) => `--ServerApp.${name}=${value}`),
        "--IdentityProvider.token=hub",
      ],
      env,
    );
    const { url } = await slipway.json<{ url: string }>(
      ["open", "--base", `http://127.0.0.1:${port}/base/proxy/{port}`],
      { env: { SSH_CONNECTION: undefined } },
    );
    expect(url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${port}/base/proxy/${pagePort}/#code=`));
    // whoever is not signed in to Jupyter gets nowhere
    const stranger = await send(`http://127.0.0.1:${port}/proxy/${pagePort}/`, {});
    expect([stranger.status, stranger.headers["location"]]).toEqual([302, expect.stringMatching(/^\/login/)]);
    const hub = await send(`http://127.0.0.1:${port}/api/status?token=hub`, {});
    const cookie = (hub.headers["set-cookie"] ?? []).map((each) => each.split(";")[0]!).join("; ");
    await works(`http://127.0.0.1:${port}/proxy/${pagePort}/`, { cookie });
  });
});

describe("Open OnDemand's way: Passenger with a base URI", () => {
  it("the app in contrib/ondemand signs its user in, and passes on what comes", async (ctx) => {
    if (!existsSync(PASSENGER) || !existsSync(APACHE)) return ctx.skip("Debian's passenger could not be installed");
    if (!isRoot) return ctx.skip(NO_ROOT);
    const port = await freePort();
    const app = join(place, "app");
    await cp(join(ROOT, "contrib", "ondemand"), app, { recursive: true });
    await mkdir(join(app, "public"), { recursive: true });
    const modules = ["mpm_event", "authz_core", "alias", "env"].map(
      (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
    );
    const config = `
      ServerRoot ${place}
      ServerName 127.0.0.1
      PidFile ${place}/apache-${port}.pid
      ErrorLog ${place}/apache.log
      Mutex file:${place}
      ${modules.join("\n")}
      LoadModule passenger_module ${PASSENGER}
      PassengerRoot /usr/lib/ruby/vendor_ruby/phusion_passenger/locations.ini
      PassengerDefaultRuby /usr/bin/ruby
      PassengerNodejs ${process.execPath}
      PassengerInstanceRegistryDir ${place}
      PassengerDisableSecurityUpdateCheck on
      PassengerDisableAnonymousTelemetry on
      PassengerPoolIdleTime 1
      User www-data
      Group www-data
      Listen 127.0.0.1:${port}
      DocumentRoot ${app}/public
      Alias /pun/sys/slipway ${app}/public
      <Location /pun/sys/slipway>
        Require all granted
        SetEnv SLIPWAY_HOME ${slipway.home}
        PassengerBaseURI /pun/sys/slipway
        PassengerAppRoot ${app}
        PassengerAppType node
        PassengerStartupFile app.js
        PassengerUser ${USER}
        PassengerGroup nogroup
      </Location>\n`;
    await writeFile(join(place, "apache.conf"), config);
    const base = `http://127.0.0.1:${port}/pun/sys/slipway/`;
    await chmod(place, 0o755);
    await start(base, APACHE, ["-DFOREGROUND", "-d", place, "-f", join(place, "apache.conf")]);
    const came = await send(base, {});
    expect(came.status, `${came.text}\n${await readFile(join(place, "apache.log"), "utf8")}`).toBe(303);
    expect((await send(base.slice(0, -1), {})).headers["location"]).toMatch(/\/pun\/sys\/slipway\/$/);
    const address = new URL(came.headers["location"]!, base);
    expect(address.href).toMatch(/\/pun\/sys\/slipway\/\?in#code=[\w-]{43}$/);
    const code = address.hash.slice("#code=".length);
    address.hash = "";
    await loadPage(address.href);
    const session = `${base}api/v1/session`;
    const signed = await send(session, { method: "POST", body: { code } });
    const authorization = `Bearer ${(JSON.parse(signed.text) as { key: string }).key}`;
    expect((await send(`${base}api/v1/overview`, {})).status).toBe(401);
    expect((await send(`${base}api/v1/overview`, { headers: { host: "slipway" } })).status).toBe(401);
    expect((await send(`${base}api/v1/overview`, { headers: { authorization } })).status).toBe(200);
    await seesLive(base, { authorization });
  });
});

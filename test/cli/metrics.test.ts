import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { get as httpGet, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { ROOT, type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * The numbers of a real server, read by a real Prometheus: the text by promtool, the dashboard's queries by what they
 * find. A second cluster has commands whose controller does not answer.
 */

const PROMETHEUS = "/usr/bin/prometheus";
const PROMTOOL = "/usr/bin/promtool";
const COMMANDS = ["sbatch", "squeue", "scancel", "sacct", "scontrol", "sinfo"];

let slipway: SlipwayHome;
let port: number;
let socket: string;
let token: string;

beforeAll(async () => {
  slipway = await createHome();
  const bin = join(slipway.cwd, "bin");
  await mkdir(bin);
  for (const name of COMMANDS) {
    const text = "#!/bin/sh\necho 'error: Unable to contact slurm controller (connect failure)' >&2\nexit 1\n";
    await writeFile(join(bin, name), text);
    await chmod(join(bin, name), 0o755);
  }
  await mkdir(slipway.home, { mode: 0o700 });
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    `clusters: { hpc: { type: slurm, bin: ${bin}, fallback: wait, queues: { cpu: { cores: 4 } } } }\n`,
  );
  await slipway.run(["up", "--host", "127.0.0.1"]);
  ({ port, socket } = (await readEndpoint(slipway.home))!);
  await slipway.run(["tokens", "add", "prometheus", "--role", "read", "--to", join(slipway.cwd, "prometheus.json")]);
  const file = join(slipway.cwd, "prometheus.json");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  ({ token } = JSON.parse(await readFile(file, "utf8")) as { token: string });
});

afterAll(() => slipway.cleanup());

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type: string;
}

const ask = (path: string, bearer?: string, method = "GET"): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const sent = httpsRequest(
      { host: "127.0.0.1", port, path, method, headers, rejectUnauthorized: false },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, text, type: answer.headers["content-type"] ?? "" }),
        );
      },
    );
    sent.on("error", reject).end();
  });

const onSocket = (path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath: socket, path, headers: { host: "slipway" } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve(text));
    });
    sent.on("error", reject).end();
  });

/** The value of a series. */
const valueOf = (text: string, series: string): number =>
  Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? NaN,
  );

/** Something of everything: tasks that end well, fail, are tried again and wait, and commands that fail. */
const work = async (): Promise<void> => {
  await slipway.run(["run", "--array", "1-20", "--", "true"]);
  await slipway.run(["run", "--retries", "1", "--", "false"]);
  await slipway.run(["clusters", "check", "hpc"]);
};

describe("numbers", () => {
  it("anybody may ask whether it lives; /metrics needs the role read at the port, and nothing on the socket", async () => {
    expect(await ask("/healthz")).toMatchObject({ status: 200, text: '{"alive":true}' });
    expect(JSON.parse((await ask("/readyz")).text)).toEqual({ ready: true, reason: null });
    expect((await ask("/healthz", undefined, "POST")).status).toBe(405);
    expect((await ask("/metrics")).status).toBe(401);
    expect(await ask("/metrics", token)).toMatchObject({
      status: 200,
      type: "text/plain; version=0.0.4; charset=utf-8",
    });
    expect((await ask("/api/v1/server/stop", token, "POST")).status).toBe(403);
    expect(await onSocket("/metrics")).toContain("slipway_build_info");
  });

  it("tokens list names the role; a wrong one is refused", async () => {
    expect(await slipway.json(["tokens", "list"])).toMatchObject([{ user: "prometheus", role: "read" }]);
    const wrong = await slipway.run(["tokens", "add", "x", "--role", "god"]);
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining("read, submit, admin")]);
  });

  it("say what happened, and promtool finds nothing wrong with them", async (ctx) => {
    await work();
    await slipway.run(["submit", "--cluster", "hpc", "--array", "1-7", "--", "true"]);
    const text = await until("the failed command", async () => {
      const found = await onSocket("/metrics");
      return /slipway_manager_command_failures_total\{program="\w+",why="exit"\} [1-9]/.test(found) ? found : undefined;
    });
    expect(valueOf(text, 'slipway_tasks_ended_total{state="done"}')).toBe(20);
    expect(valueOf(text, 'slipway_tasks_ended_total{state="failed"}')).toBe(1);
    expect(valueOf(text, 'slipway_attempts_repeated_total{why="failed"}')).toBe(1);
    expect(valueOf(text, 'slipway_tasks{state="ready"}')).toBe(7);
    expect(valueOf(text, "slipway_tasks_queued")).toBe(7);
    expect(valueOf(text, 'slipway_tasks_waiting{shape="cpus=1 on=hpc"}')).toBe(7);
    expect(valueOf(text, "slipway_placement_seconds_count")).toBeGreaterThanOrEqual(22);
    expect(valueOf(text, "slipway_journal_fsync_seconds_count")).toBeGreaterThan(3);
    expect(valueOf(text, 'slipway_runs_ended_total{state="failed"}')).toBe(1);
    expect(text).toMatch(/slipway_manager_command_seconds_count\{program="\w+"\} [1-9]/);
    if (!existsSync(PROMTOOL)) return ctx.skip("no promtool: Debian's package prometheus is not installed");
    const checked = spawnSync(PROMTOOL, ["check", "metrics"], { input: text, encoding: "utf8" });
    expect([checked.status, checked.stdout, checked.stderr]).toEqual([0, "", ""]);
  });
});

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: free } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return free;
};

describe("Prometheus and the dashboard of contrib/grafana", () => {
  let prometheus: ChildProcess | undefined;
  afterAll(async () => {
    if (prometheus === undefined || prometheus.exitCode !== null) return;
    prometheus.kill();
    await once(prometheus, "exit");
  });

  it("every panel's query finds something, scraped as docs/metrics.md says", async (ctx) => {
    if (!existsSync(PROMETHEUS)) return ctx.skip("Debian's package prometheus is not installed");
    const page = await readFile(join(ROOT, "docs", "metrics.md"), "utf8");
    const config = /```yaml\n(scrape_configs:[\s\S]*?)```/.exec(page)![1]!;
    await writeFile(join(slipway.cwd, "prometheus.token"), token, { mode: 0o600 });
    const filled = config
      .replaceAll("/home/me/.slipway", slipway.home)
      .replaceAll("/etc/prometheus", slipway.cwd)
      .replaceAll("login1:7420", `127.0.0.1:${port}`)
      .replace("scrape_interval: 15s", "scrape_interval: 1s");
    const file = join(slipway.cwd, "prometheus.yml");
    await writeFile(file, filled);
    expect(spawnSync(PROMTOOL, ["check", "config", file], { encoding: "utf8" }).status).toBe(0);
    const web = await freePort();
    prometheus = spawn(
      PROMETHEUS,
      [
        `--config.file=${file}`,
        `--web.listen-address=127.0.0.1:${web}`,
        `--storage.tsdb.path=${join(slipway.cwd, "tsdb")}`,
      ],
      { stdio: "ignore" },
    );
    const query = (expr: string): Promise<readonly { readonly value: readonly [number, string] }[]> =>
      new Promise((resolve) => {
        httpGet(`http://127.0.0.1:${web}/api/v1/query?query=${encodeURIComponent(expr)}`, (answer) => {
          let text = "";
          answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          answer.on("end", () => {
            const { data, error } = JSON.parse(text.startsWith("{") ? text : "{}") as {
              data?: { result: [] };
              error?: string;
            };
            expect(error, expr).toBeUndefined();
            resolve(data?.result ?? []);
          });
        }).on("error", () => resolve([]));
      });
    await until("the first scrape", async () => (await query("slipway_build_info")).length > 0 || undefined);
    await work();
    const { panels } = JSON.parse(await readFile(join(ROOT, "contrib", "grafana", "slipway.json"), "utf8")) as {
      panels: Panel[];
    };
    expect(panels.length).toBeGreaterThan(15);
    const exprs = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
    for (const { title, expr } of exprs) {
      const asked = expr.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "2m");
      await until(`data for ${title}: ${asked}`, async () => {
        const found = await query(asked);
        return found.some(({ value }) => Number.isFinite(Number(value[1]))) || undefined;
      });
    }
  });
});

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { FRACTION } from "../../src/core/resources.ts";
import { type Client, connect } from "../../src/client/index.ts";
import { type Endpoint, readEndpoint } from "../../src/protocol/endpoint.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { ROOT } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { type Count, counted } from "./count.ts";
import { killHard, processesWith, signal, untilDead } from "./processes.ts";
import type { Proxy as Network } from "./proxy.ts";
import type { Tools } from "./tools.ts";

/**
 * One home with everything that belongs to it: the server and the agents as separate processes, started from the built
 * files as users start them, and a record of what was done to them. `leave` proves that nothing is left.
 */

export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Outcome>;
}

export interface CliOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** A command to run it through, such as `unshare --uts`. */
  readonly through?: readonly string[];
}

export interface LiveAgent {
  readonly pid: number;
  /** First letters of its uuid, as in the tokens of tasks; empty before its log says so. */
  readonly uuid: string;
  /** 0: started by hand, or in the job of a task. */
  readonly pilot: number;
  /** The directory of its job, and its own log there; undefined: started by hand. */
  readonly job: { readonly name: string; readonly log: string } | undefined;
}

export interface WorldOptions {
  readonly tools: Tools;
  /** Where bin/ and dist/ are. */
  readonly binaries?: string;
  readonly clusters?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Keep what was synced separately, and make a sync take this many milliseconds longer (needs the shim). */
  readonly disk?: number | undefined;
}

export interface World {
  readonly root: string;
  readonly home: string;
  /** Tasks append here, each to its own file. */
  readonly ran: string;
  readonly tmp: string;
  readonly client: Client;
  readonly tools: Tools;
  /** Whether we ended an agent, named by the first letters of its uuid or by its pilot. */
  wasEnded(agent: string | number): boolean;
  /** Where fsync-shim.c keeps what was synced, if it does. */
  readonly disk: string | undefined;
  readonly count: Count;
  /** Between clients on this machine and the server, if there is one; at `apiSocket`. */
  apiProxy: Network | undefined;
  readonly apiSocket: string;
  /** Between agents and the server, if there is one. */
  proxy: Network | undefined;
  /** Whether the pilots' agents go through it too. */
  proxyForAll: boolean;
  note(text: string): void;
  readonly notes: readonly string[];
  start(args: readonly string[], options?: CliOptions): Started;
  cli(args: readonly string[], options?: CliOptions): Promise<Outcome>;
  up(options?: CliOptions): Promise<void>;
  /** After a start: shows the proxy and the agents started by hand where the server is. */
  publish(): Promise<void>;
  serverPids(): number[];
  killServer(): Promise<void>;
  agents(): LiveAgent[];
  /** Records that we end it, whatever happens to its tasks. */
  willEnd(agent: LiveAgent): void;
  /** A task of ours ended an agent, named by the first letters of its uuid. */
  tookDown(uuid: string): void;
  /** Every agent of any pilot so far was ended. */
  endedAll(): void;
  /** Starts an agent that belongs to no pilot, through the proxy if there is one. */
  addAgent(cpus: number): Promise<void>;
  /** The server's next fsync in its journal fails, if there is a compiler for the shim. */
  failFsync(): Promise<void>;
  executions(): Promise<number>;
  logs(): Promise<string>;
  /** Ends agents started by hand, stops the server in order, and names what is left. */
  leave(): Promise<string[]>;
  /** Ends everything and removes all files, or keeps them for inspection. */
  destroy(keep: boolean): Promise<void>;
}

const TIMEOUT_MS = 120_000;
const ENDING_MS = 60_000;

/** Every world that is not yet destroyed: for Ctrl-C. */
const worlds = new Set<World>();
export const destroyAll = async (): Promise<void> => {
  for (const world of worlds) await world.destroy(false);
};

const environment = (more: Readonly<Record<string, string>>): NodeJS.ProcessEnv => {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of Object.keys(env))
    if (/^(SLIPWAY_|VITEST|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|XDG_RUNTIME_DIR$)/.test(name)) delete env[name];
  return { ...env, ...more };
};

const uuidIn = (log: string): string => {
  try {
    return /agent ([0-9a-f]{8})-/.exec(readFileSync(log, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
};

export const createWorld = async (options: WorldOptions): Promise<World> => {
  const binaries = options.binaries ?? ROOT;
  const root = await mkdtemp(join(tmpdir(), "slw-faults-"));
  const [home, tmp, ran, shadow] = ["home", "tmp", "ran", "shadow"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const directory of [tmp, ran, shadow]) await mkdir(directory);
  await mkdir(home, { mode: 0o700 });
  if (options.clusters !== undefined) await writeFile(join(home, "clusters.yaml"), options.clusters);
  for (const name of ["keys", "output", "spool"]) await symlink(join(home, name), join(shadow, name));
  const disk = options.tools.fsyncShim === undefined || options.disk === undefined ? undefined : join(root, "disk");
  if (disk !== undefined) await mkdir(disk);
  const shim =
    options.tools.fsyncShim === undefined
      ? {}
      : {
          LD_PRELOAD: options.tools.fsyncShim,
          SHIM_PATH: join(home, "journal"),
          SHIM_FLAG: join(root, "fail-fsync"),
          ...(disk === undefined ? {} : { SHIM_HOME: home, SHIM_DISK: disk, SHIM_SYNC_MS: String(options.disk) }),
        };
  const base = { SLIPWAY_HOME: home, TMPDIR: tmp, NO_COLOR: "1", FAULTS_ROOT: root, ...shim, ...options.env };
  const began = performance.now();
  const notes: string[] = [];
  const started = new Set<Started>();
  const byHand: { child: ChildProcess; log: string }[] = [];
  const sockets = new Set<string>();
  const ended = new Set<string | number>();
  let gone = false;

  const note = (text: string): void => {
    notes.push(`${String(Math.round(performance.now() - began)).padStart(6)} ms  ${text}`);
  };

  const count: Count = { kills: 0, powerLosses: 0, requests: 0 };
  const apiSocket = join(root, "api.sock");

  const start = (args: readonly string[], more: CliOptions = {}): Started => {
    count.requests += 1;
    const words = [...(more.through ?? []), process.execPath, join(binaries, "bin", "slipway"), ...args];
    const child = spawn(words[0]!, words.slice(1), {
      cwd: root,
      env: environment({ ...base, ...more.env }),
      stdio: "pipe",
    });
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => (texts[name] += text));
    child.stdin.on("error", () => undefined);
    child.stdin.end(more.stdin);
    const limit = setTimeout(() => child.kill("SIGKILL"), more.timeoutMs ?? TIMEOUT_MS);
    const finished = new Promise<Outcome>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status) => {
        clearTimeout(limit);
        resolve({ status, ...texts });
      });
    });
    const one = { child, ended: finished };
    started.add(one);
    const forget = (): void => void started.delete(one);
    finished.then(forget, forget);
    return one;
  };
  const cli = (args: readonly string[], more?: CliOptions): Promise<Outcome> => start(args, more).ended;

  const serverPids = (): number[] =>
    processesWith((words) => words.includes("serve") && words.includes(home)).map(({ pid }) => pid);

  /** Of a job's directory: its pilot, 0 if it is the job of a task. */
  const pilotOf = (job: string): number => (/-[0-9a-f]{12}$/.test(job) ? 0 : Number(job.split("-").at(-1)));

  /** All logs of agents in a job's directory: elements of an array have their own. */
  const logsOf = (job: string): string[] =>
    readdirSync(join(home, "jobs", job))
      .filter((name) => name.startsWith("agent.log"))
      .map((name) => join(home, "jobs", job, name));

  const agents = (): LiveAgent[] =>
    processesWith(
      (words) => words[0] !== "/bin/sh" && words.includes("--settings") && words.some((word) => word.includes(root)),
    ).map(({ pid, words }) => {
      const job = words[words.indexOf("--job") + 1];
      const mine = byHand.find(({ child }) => child.pid === pid);
      if (!words.includes("--job") || job === undefined)
        return { pid, uuid: mine === undefined ? "" : uuidIn(mine.log), pilot: 0, job: undefined };
      const element = words.includes("--element") ? `.${words[words.indexOf("--element") + 1]}` : "";
      const log = join(home, "jobs", job, `agent.log${element}`);
      return { pid, uuid: uuidIn(log), pilot: pilotOf(job), job: { name: job, log } };
    });

  const put = async (path: string, endpoint: Endpoint, port: number): Promise<void> => {
    const socket = world.apiProxy === undefined ? endpoint.socket : apiSocket;
    // agents come by the port, which can be cut
    const { agentSocket: _, ...rest } = endpoint;
    await writeFile(`${path}.new`, JSON.stringify({ ...rest, port, socket, addresses: ["127.0.0.1"] }));
    await rename(`${path}.new`, path);
  };

  const publish = async (): Promise<void> => {
    const endpoint = await readEndpoint(home);
    if (endpoint === undefined) return;
    const { proxy, apiProxy } = world;
    if (endpoint.socket !== apiSocket) {
      sockets.add(endpoint.socket);
      if (apiProxy !== undefined) apiProxy.target = endpoint.socket;
    }
    // published before: its port is the proxy's own
    const real = proxy !== undefined && endpoint.port === proxy.port ? (proxy.target as number) : endpoint.port;
    if (proxy !== undefined) proxy.target = real;
    await put(join(shadow, "server.json"), endpoint, proxy?.port ?? endpoint.port);
    const forAll = proxy !== undefined && world.proxyForAll;
    if (forAll || apiProxy !== undefined) await put(join(home, "server.json"), endpoint, forAll ? proxy.port : real);
  };

  const world: World = {
    root,
    home,
    ran,
    tmp,
    client: counted(connect({ home }), count),
    disk,
    count,
    apiProxy: undefined,
    apiSocket,
    tools: options.tools,
    wasEnded: (agent) => {
      if (ended.has(agent)) return true;
      // an agent may have been ended before it wrote its uuid into its log
      for (const job of readdirSync(join(home, "jobs")))
        for (const log of logsOf(job)) if (ended.has(pilotOf(job)) || ended.has(log)) ended.add(uuidIn(log));
      return ended.has(agent);
    },
    proxy: undefined,
    proxyForAll: false,
    note,
    notes,
    start,
    cli,
    up: async (more) => {
      const outcome = await cli(["up"], more);
      if (outcome.status !== 0)
        throw new Error(`slipway up: exit status ${outcome.status}\n${outcome.stdout}${outcome.stderr}`);
      note("the server is up");
      await publish();
    },
    publish,
    serverPids,
    killServer: async () => {
      for (const pid of serverPids()) {
        count.kills += 1;
        await killHard(pid);
      }
    },
    agents,
    willEnd: ({ uuid, pilot, job }) => {
      if (uuid !== "") ended.add(uuid);
      if (pilot > 0) ended.add(pilot);
      else if (job !== undefined) ended.add(job.log);
    },
    tookDown: (uuid) => {
      ended.add(uuid);
      for (const job of readdirSync(join(home, "jobs")))
        if (pilotOf(job) > 0 && uuidIn(join(home, "jobs", job, "agent.log")) === uuid) ended.add(pilotOf(job));
    },
    endedAll: () => {
      if (existsSync(join(home, "jobs")))
        for (const job of readdirSync(join(home, "jobs"))) {
          if (pilotOf(job) > 0) ended.add(pilotOf(job));
          else for (const log of logsOf(job)) ended.add(log);
        }
    },
    addAgent: async (cpus) => {
      const log = join(root, `agent-${byHand.length + 1}.log`);
      const settings = {
        home: shadow,
        pilot: 0,
        scratch: tmp,
        declared: { cpus: cpus * FRACTION },
        graceMs: 500,
        pin: false,
        patienceMs: 120_000,
        spawner: options.env?.["SLIPWAY_SPAWNER"] ?? "auto",
        cgroup: "off",
        executor: "process",
      };
      const child = spawn(
        "sh",
        [
          "-c",
          'exec "$@" 2>>"$0"',
          log,
          process.execPath,
          join(binaries, "dist", "agent-quick.cjs"),
          "--settings",
          JSON.stringify(settings),
        ],
        { cwd: root, env: environment(base), stdio: "ignore" },
      );
      byHand.push({ child, log });
      await until("the log of an agent by hand", () => uuidIn(log) !== "");
      note(`agent ${uuidIn(log)} started by hand`);
    },
    failFsync: async () => {
      if (options.tools.fsyncShim === undefined) return;
      await writeFile(join(root, "fail-fsync"), "");
      note("the next fsync in the journal fails");
    },
    executions: async () => (await readdir(ran)).length,
    logs: async () => {
      const texts = [
        `--- server.log\n${(await readFile(join(home, "logs", "server.log"), "utf8").catch(() => "none")).slice(-6000)}`,
      ];
      for (const name of (await readdir(join(home, "jobs")).catch(() => [])).toSorted()) {
        const log = await readFile(join(home, "jobs", name, "agent.log"), "utf8").catch(() => "none");
        texts.push(`--- ${name}\n${log.slice(-2000)}`);
      }
      for (const { log } of byHand)
        texts.push(`--- ${basename(log)}\n${(await readFile(log, "utf8").catch(() => "none")).slice(-2000)}`);
      return texts.join("\n");
    },
    leave: async () => {
      const left: string[] = [];
      for (const { child } of byHand) child.kill("SIGTERM");
      for (const { child } of byHand) {
        const start = performance.now();
        while (child.exitCode === null && child.signalCode === null && performance.now() - start < ENDING_MS)
          await new Promise((resolve) => void setTimeout(resolve, 10));
        if (child.exitCode === null && child.signalCode === null)
          left.push(`agent ${child.pid}, told to end by SIGTERM`);
      }
      const down = await cli(["down"]);
      // 3: there is no server, which is just as good
      if (down.status !== 0 && (down.status !== 3 || serverPids().length > 0))
        left.push(`slipway down: exit status ${down.status}: ${down.stderr}`);
      const start = performance.now();
      let living = await processesUnder(root);
      while (living.length > 0 && performance.now() - start < ENDING_MS) {
        await new Promise((resolve) => void setTimeout(resolve, 20));
        living = await processesUnder(root);
      }
      left.push(...living.map(({ pid, command }) => `process ${pid}: ${command}`));
      left.push(...(await readdir(tmp)).map((name) => `in TMPDIR: ${name}`));
      for (const socket of sockets)
        if (existsSync(dirname(socket))) left.push(`directory of sockets: ${dirname(socket)}`);
      for (const name of ["server.json", "lease.json"]) if (existsSync(join(home, name))) left.push(`file ${name}`);
      left.push(...(await readdir(join(home, "spool"))).map((name) => `spool: ${name}`));
      return left;
    },
    destroy: async (keep) => {
      if (gone) return;
      gone = true;
      world.client.close();
      world.proxy?.close();
      world.apiProxy?.close();
      for (const { child } of started) child.kill("SIGKILL");
      for (let round = 0; round < 50; round += 1) {
        const living = await processesUnder(root);
        if (living.length === 0) break;
        for (const { pid } of living) signal(pid, "SIGKILL");
        for (const { pid } of living) await untilDead(pid);
      }
      for (const socket of sockets) await rm(dirname(socket), { recursive: true, force: true });
      if (!keep) await rm(root, { recursive: true, force: true });
      worlds.delete(world);
    },
  };
  worlds.add(world);
  return world;
};

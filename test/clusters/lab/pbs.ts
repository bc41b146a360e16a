import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { createCommands, type RunCommand } from "../../../src/managers/commands.ts";
import { pbsIsTransient } from "../../../src/managers/pbs/driver/failures.ts";
import { processesUnder } from "../../cli/processes-under.ts";
import type { NodeConfig, PbsConfig, QueueConfig } from "../../fakes/pbs/config.ts";
import { until } from "../../until.ts";
import { startDaemon, type Daemon, mustRun } from "./daemons.ts";
import { holdUsers } from "./users.ts";

/**
 * No package contains OpenPBS: this one is a fake (test/fakes/pbs) that behaves as we saw the real one behave. Its jobs
 * are real processes. As root, each node has its own pid and host name namespaces, like those of the other labs.
 */
export interface PbsLab {
  /** What its commands need in their environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly root: string;
  readonly nodes: readonly string[];
  /** Where the commands are, for callers with another PATH. */
  readonly programs: Readonly<Record<string, string>>;
  /** Runs a command in its environment, also in another user's name. */
  readonly run: RunCommand;
  /** The node loses its power. */
  killNode(name: string): Promise<void>;
  startNode(name: string): Promise<void>;
  /** The server cannot be reached, while everything that runs continues. */
  cutServer(): Promise<void>;
  mendServer(): Promise<void>;
  /** Leaves no process, file or account behind. */
  stop(): Promise<void>;
}

export interface PbsLabOptions extends Partial<
  Pick<
    PbsConfig,
    | "json"
    | "onlyFirst"
    | "history"
    | "rootMaySubmit"
    | "killMs"
    | "sistersMs"
    | "lateMs"
    | "stageMs"
    | "copyMs"
    | "nodeFailMs"
  >
> {
  /** How many nodes, or what each is like. */
  readonly nodes?: number | readonly Partial<NodeConfig>[];
  /** In addition to workq, the default, and short, which allows ten minutes at most. */
  readonly queues?: readonly (Partial<QueueConfig> & Pick<QueueConfig, "name">)[];
  /** Accounts of this machine that exist while the cluster does. */
  readonly users?: readonly string[];
}

const COMMANDS = ["qsub", "qstat", "qdel", "qhold", "qrls", "pbsnodes", "pbs_tmrsh", "pbsdsh", "admin"];
const DIRECTORIES = ["bin", "lib", "spool", "jobs", "aux", "tmp", "log"];

const isRoot = process.getuid?.() === 0;

const configOf = (root: string, options: PbsLabOptions): PbsConfig => {
  const { nodes = 3, queues = [], users: _, ...rest } = options;
  const wanted: readonly Partial<NodeConfig>[] =
    typeof nodes === "number" ? Array.from({ length: nodes }, () => ({})) : nodes;
  return {
    root,
    server: "pbshead",
    nodes: wanted.map((node, at) => ({
      name: `n${at + 1}`,
      ncpus: 4,
      memKb: 4 * 1024 ** 2,
      ngpus: 2,
      custom: {},
      ...node,
    })),
    queues: [{ name: "workq" }, { name: "short", maxWalltime: 600 }, ...queues].map((queue) => ({
      enabled: true,
      started: true,
      ...queue,
    })),
    defaultQueue: "workq",
    json: "head",
    onlyFirst: false,
    history: false,
    rootMaySubmit: true,
    killMs: 300,
    sistersMs: 300,
    lateMs: 300,
    stageMs: 300,
    copyMs: 1000,
    nodeFailMs: 200,
    unknownMs: 150,
    qsubStaysMs: 60_000,
    ...rest,
  };
};

/** Server, node daemon and commands, each as one file that needs only Node. */
const bundle = async (root: string): Promise<void> => {
  const source = (name: string): string => fileURLToPath(new URL(`../../fakes/pbs/${name}.ts`, import.meta.url));
  await build({
    entryPoints: ["server", "mom", "client"].map(source),
    outdir: join(root, "lib"),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
  });
  for (const command of COMMANDS) {
    const path = join(root, "bin", command);
    await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${root}/lib/client.mjs' ${command} "$@"\n`);
    await chmod(path, 0o755);
  }
};

export const startPbs = async (options: PbsLabOptions = {}): Promise<PbsLab> => {
  const root = await mkdtemp(join(tmpdir(), "slw-pbs-"));
  const config = configOf(root, options);
  const env = { PATH: [join(root, "bin"), process.env["PATH"] ?? "/usr/bin:/bin"].join(delimiter) };
  const run = createCommands({
    env,
    isTransient: pbsIsTransient,
    pausesMs: [50, 100],
    mostAtOnce: 16,
    become: (user, argv, added) => [
      "runuser",
      "-u",
      user,
      "--",
      "env",
      `USER=${user}`,
      `HOME=/home/${user}`,
      ...Object.entries(added).map(([name, value]) => `${name}=${value}`),
      ...argv,
    ],
  });
  const must = mustRun(run);
  const moms = new Map<string, Daemon>();
  let server: Daemon | undefined;
  let releaseUsers = async (): Promise<void> => undefined;

  const states = async (): Promise<Map<string, string>> => {
    const { nodes } = JSON.parse(await must(["pbsnodes", "-a", "-F", "json"])) as {
      nodes: Record<string, { state: string }>;
    };
    return new Map(Object.entries(nodes).map(([name, { state }]) => [name, state]));
  };
  const bootNode = async (name: string): Promise<void> => {
    const words = [process.execPath, `${root}/lib/mom.mjs`, root, name];
    // the shell adopts whatever is orphaned there
    const script = 'hostname "$4" && { "$@" & wait; }';
    const spaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh", "-c", script, "sh"];
    moms.set(name, await startDaemon([...(isRoot ? spaces : []), ...words], { log: `${root}/log/${name}` }));
  };
  const startNode = async (name: string): Promise<void> => {
    // a node whose death went unnoticed would seem to be back at once
    await until(`the end of node ${name}`, async () => (await states()).get(name) === "down");
    await bootNode(name);
    await until(`node ${name}`, async () => (await states()).get(name) !== "down");
  };
  const killNode = async (name: string): Promise<void> => {
    await moms.get(name)?.kill(isRoot ? "SIGKILL" : "SIGTERM");
    moms.delete(name);
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...moms.keys()].map(killNode));
    await server?.kill();
    for (const { pid } of await processesUnder(root)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
    await rm(root, { recursive: true, force: true });
    await releaseUsers();
  };

  try {
    releaseUsers = await holdUsers(options.users ?? []);
    await chmod(root, 0o755);
    for (const name of DIRECTORIES) await mkdir(join(root, name));
    for (const name of ["spool", "tmp"]) await chmod(join(root, name), 0o1777);
    await writeFile(join(root, "pbs.json"), JSON.stringify(config));
    await bundle(root);
    server = await startDaemon([process.execPath, `${root}/lib/server.mjs`, root], { log: `${root}/log/server` });
    await until("the server", async () => (await run(["qstat"])).code === 0);
    await Promise.all(config.nodes.map(({ name }) => bootNode(name)));
    await until("all nodes to be free", async () => [...(await states()).values()].every((state) => state === "free"));
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    env,
    root,
    nodes: config.nodes.map(({ name }) => name),
    programs: Object.fromEntries(COMMANDS.map((name) => [name, join(root, "bin", name)])),
    run,
    killNode,
    startNode,
    cutServer: async () => {
      await must(["admin", "unreachable"]);
    },
    mendServer: async () => {
      await must(["admin", "reachable"]);
    },
    stop,
  };
};

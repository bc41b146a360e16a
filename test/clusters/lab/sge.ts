import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createCommands, type RunCommand } from "../../../src/managers/commands.ts";
import { until } from "../../until.ts";
import { freePorts, startDaemon, type Daemon } from "./daemons.ts";
import { createNodeNetwork, withBareEnvironment, withHosts } from "./node-network.ts";
import {
  PARALLEL_ENVIRONMENTS,
  bootstrap,
  complexes,
  executionHost,
  globalConfiguration,
  parallelEnvironment,
  queue,
  schedulerConfiguration,
} from "./sge-settings.ts";
import { becomeUser, holdUsers } from "./users.ts";

/**
 * A real Grid Engine of several nodes on this machine, from Debian's packages, as root, with its own cell, ports and
 * networks. Queues all.q and short.q (five minutes at most), parallel environments smp, mpi, spread and two,
 * consumables mem_mb (per slot), tmp_mb (per job) and gpus.
 */
export interface SgeLabOptions {
  /** How many nodes, n1 to nN. */
  readonly nodes?: number;
  /** Per node. */
  readonly slots?: number;
  /** Accounts in addition to root. */
  readonly users?: readonly string[];
}

export interface SgeLab {
  /** What its commands need in their environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Where its commands are. */
  readonly bin: string;
  readonly root: string;
  readonly nodes: readonly string[];
  /** This machine, as the nodes see it. */
  readonly gateway: string;
  /** The name of the nodes' network; the names of its parts start with it. */
  readonly bridge: string;
  /** Runs a command in its environment, also in another user's name. */
  readonly run: RunCommand;
  /** The node loses its power. */
  killNode(name: string): Promise<void>;
  startNode(name: string): Promise<void>;
  killMaster(): Promise<void>;
  startMaster(): Promise<void>;
  /** Leaves no process, network, file or account behind. */
  stop(): Promise<void>;
}

const BIN = "/usr/lib/gridengine";
const ADMIN = "sgeadmin";
const PROGRAMS = [`${BIN}/sge_qmaster`, `${BIN}/sge_execd`, `${BIN}/qsub`, "/usr/sbin/ip", "/usr/bin/unshare"];
const RESOURCES = "/usr/share/gridengine/util/resources";

/** Why it cannot be booted here. */
export const skipReason = (): string | undefined => {
  if (process.getuid?.() !== 0) return "a Grid Engine of its own needs root";
  const missing = PROGRAMS.find((path) => !existsSync(path));
  return missing === undefined ? undefined : `${missing} is not installed`;
};

export const startSge = async (options: SgeLabOptions = {}): Promise<SgeLab> => {
  const slots = options.slots ?? 4;
  const nodes = Array.from({ length: options.nodes ?? 3 }, (_, index) => `n${index + 1}`);
  const me = hostname();
  const root = await mkdtemp(join(tmpdir(), "slw-sge-"));
  await chmod(root, 0o755);
  const sge = join(root, "sge");
  // fresh ones: a recently used port stalls the master for seconds
  const [master, execd] = await freePorts(2);
  const env = {
    SGE_ROOT: sge,
    SGE_CELL: "default",
    SGE_CLUSTER_NAME: "lab",
    SGE_QMASTER_PORT: String(master),
    SGE_EXECD_PORT: String(execd),
    PATH: `${BIN}:${process.env["PATH"]}`,
  };
  // in the foreground
  const { PATH: _, ...daemonEnv } = { ...env, SGE_ND: "1" };
  const run = createCommands({
    env,
    mostAtOnce: 16,
    become: becomeUser,
  });
  const must = async (argv: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(argv);
    if (code !== 0) throw new Error(`${argv.join(" ")}: ${code}: ${stderr}${stdout}`);
    return stdout;
  };

  const network = await createNodeNetwork(root, nodes).catch(async (error: unknown) => {
    await rm(root, { recursive: true, force: true });
    throw error;
  });
  let daemon: Daemon | undefined;
  let releaseUsers = async (): Promise<void> => undefined;

  const stop = async (): Promise<void> => {
    await daemon?.kill();
    await network.stop();
    await rm(root, { recursive: true, force: true });
    await releaseUsers();
  };

  /** Resolves node names on the client's side. */
  const qconf = (...args: string[]): Promise<string> => must([...withHosts(network.hosts), "qconf", ...args]);
  const configure = async (flag: string, text: string): Promise<void> => {
    const file = join(root, "setting");
    await writeFile(file, text);
    await qconf(flag, file);
  };

  const startMaster = async (): Promise<void> => {
    const words = [...withHosts(network.hosts), `${BIN}/sge_qmaster`];
    const started = await startDaemon([...withBareEnvironment(daemonEnv), ...words], {
      log: join(root, "qmaster.log"),
    });
    daemon = started;
    await until("Grid Engine's master", async () => {
      if (started.hasEnded()) throw new Error(`sge_qmaster ended: ${await readFile(started.log, "utf8")}`);
      return (await run(["qconf", "-ssconf"])).code === 0;
    });
  };

  const reportsLoad = async (node: string): Promise<boolean> => {
    const line = (await must(["qhost"])).split("\n").find((one) => one.startsWith(`${node} `)) ?? "";
    return (line.split(/\s+/)[6] ?? "-") !== "-";
  };
  const registrations = async (node: string): Promise<number> => {
    const messages = await readFile(join(root, "spool/qmaster/messages"), "utf8");
    return messages.split(`|execd on ${node} registered\n`).length - 1;
  };
  const startNode = async (node: string): Promise<void> => {
    // the load of a dead node stays for a while, so it does not show that the node is back
    const before = await registrations(node);
    await network.start(node, `${BIN}/sge_execd`, daemonEnv);
    await until(`node ${node}`, async () => {
      const words = await network.lastWords(node);
      if (words !== undefined) throw new Error(`sge_execd of ${node} ended: ${words}`);
      return (await registrations(node)) > before && (await reportsLoad(node));
    });
  };

  const writeCell = async (): Promise<void> => {
    for (const directory of ["sge/default/common", "spool/qmaster/job_scripts", "spool/execd", "spool/db"])
      await mkdir(join(root, directory), { recursive: true });
    for (const node of nodes) {
      await mkdir(join(root, "tmp", node), { recursive: true });
      await chmod(join(root, "tmp", node), 0o1777);
    }
    for (const part of ["bin", "lib", "utilbin", "util"])
      await cp(join("/var/lib/gridengine", part), join(sge, part), { recursive: true, verbatimSymlinks: true });
    const common = join(sge, "default/common");
    await writeFile(join(common, "bootstrap"), bootstrap(root, ADMIN));
    await writeFile(join(common, "act_qmaster"), `${me}\n`);
    // 127.0.0.1 is localhost here, and has this machine's name there
    await writeFile(join(common, "host_aliases"), `${me} localhost\n`);
    const defaults = await readFile("/usr/share/gridengine/default-configuration", "utf8");
    await writeFile(join(root, "configuration"), globalConfiguration(defaults, root));
    await must(["chown", "-R", `${ADMIN}:`, sge, join(root, "spool")]);
    const asAdmin = ["setpriv", `--reuid=${ADMIN}`, `--regid=${ADMIN}`, "--clear-groups"];
    await must([...asAdmin, `${BIN}/spoolinit`, "berkeleydb", "libspoolb", join(root, "spool/db"), "init"]);
    for (const what of [
      ["configuration", join(root, "configuration")],
      ["complexes", `${RESOURCES}/centry`],
      ["usersets", `${RESOURCES}/usersets`],
      ["managers", ADMIN],
      ["managers", "root"],
    ])
      await must([...asAdmin, `${BIN}/spooldefaults`, ...what]);
  };

  try {
    releaseUsers = await holdUsers(options.users ?? []);
    await writeCell();
    await startMaster();
    await qconf("-as", me);
    for (const node of nodes) await qconf("-ah", node);
    await configure("-Msconf", schedulerConfiguration(await qconf("-ssconf")));
    await configure("-Mc", complexes(await qconf("-sc")));
    for (const [name, rule] of Object.entries(PARALLEL_ENVIRONMENTS))
      await configure("-Ap", parallelEnvironment(name, rule));
    for (const node of nodes) await configure("-Ae", executionHost(node, slots));
    await configure("-Ahgrp", `group_name @allhosts\nhostlist ${nodes.join(" ")}\n`);
    await configure("-Aq", queue("all.q", nodes, slots, root));
    await configure("-Aq", queue("short.q", nodes, slots, root, "h_rt 00:05:00"));
    await Promise.all(nodes.map(startNode));
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    env,
    bin: BIN,
    root,
    nodes,
    gateway: network.gateway,
    bridge: network.bridge,
    run,
    killNode: network.kill,
    startNode,
    killMaster: async () => {
      await daemon?.kill();
    },
    startMaster,
    stop,
  };
};

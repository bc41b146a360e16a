import { execFile } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { readFile, readdir, readlink, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isDead, readProcessStat } from "../../../src/process-stat.ts";
import { startDaemon, untilDead, type Daemon } from "./daemons.ts";

/**
 * Machines for a lab: each node has its own network, host name, process tree and mounts, on a bridge whose other end is
 * this machine. Killing a node ends everything that ran on it, as pulling its plug would.
 */
export interface NodeNetwork {
  /** This machine's address on the bridge. */
  readonly gateway: string;
  /** Its name; the names of all its parts start with it. */
  readonly bridge: string;
  addressOf(node: string): string;
  /** A file for /etc/hosts that names this machine and every node; nodes have it mounted there. */
  readonly hosts: string;
  /** Starts a node's one daemon, in the foreground, with this environment and no other: ours would leak into jobs. */
  start(node: string, command: string, env?: Readonly<Record<string, string>>): Promise<void>;
  /** What a node's daemon printed, if it has ended by itself; undefined while it runs. */
  lastWords(node: string): Promise<string | undefined>;
  kill(node: string): Promise<void>;
  stop(): Promise<void>;
}

const BARE = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };

const ip = async (...args: string[]): Promise<string> => (await promisify(execFile)("ip", args)).stdout;

/** Words that run the program behind them with this environment and no other. */
export const withBareEnvironment = (env: Readonly<Record<string, string>>): string[] => [
  "env",
  "-i",
  ...Object.entries({ ...BARE, ...env }).map(([name, value]) => `${name}=${value}`),
];

/** Words that run the program behind them with another /etc/hosts. */
export const withHosts = (hosts: string): string[] => [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mount --bind "$0" /etc/hosts && exec "$@"',
  hosts,
];

/** Ends whatever is still in a node's network: what a test put there itself. */
const clearNamespace = async (name: string): Promise<void> => {
  const { ino } = await stat(`/run/netns/${name}`);
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    if ((await readlink(`/proc/${pid}/ns/net`).catch(() => "")) !== `net:[${ino}]`) continue;
    process.kill(Number(pid), "SIGKILL");
    await untilDead(pid);
  }
  await ip("netns", "del", name);
};

const MARK = "slipway tests of process ";

const remove = async (bridge: string): Promise<void> => {
  const made = await readdir("/run/netns").catch(() => []);
  for (const name of made) if (name.startsWith(`${bridge}-`)) await clearNamespace(name);
  // a bridge that was never made needs no removal
  await ip("link", "del", bridge).catch(() => undefined);
};

/** Networks of tests whose process was killed. */
const removeStale = async (): Promise<void> => {
  const bridges = JSON.parse(await ip("-j", "link", "show", "type", "bridge")) as {
    ifname?: string;
    ifalias?: string;
  }[];
  for (const { ifname = "", ifalias = "" } of bridges)
    if (ifalias.startsWith(MARK) && isDead(await readProcessStat(ifalias.slice(MARK.length)))) await remove(ifname);
};

export const createNodeNetwork = async (root: string, nodes: readonly string[]): Promise<NodeNetwork> => {
  const id = randomBytes(3).toString("hex");
  const bridge = `slw${id}`;
  const net = `10.${randomInt(64, 192)}.${randomInt(0, 256)}`;
  const gateway = `${net}.1`;
  const addressOf = (node: string): string => `${net}.${nodes.indexOf(node) + 11}`;
  const space = (node: string): string => `slw${id}-${node}`;
  const hosts = join(root, "hosts");
  const running = new Map<string, Daemon>();
  let starts = 0;

  const kill = async (node: string): Promise<void> => {
    const daemon = running.get(node);
    running.delete(node);
    await daemon?.kill();
  };

  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(kill));
    await remove(bridge);
  };

  await removeStale();
  const addresses = nodes.map((node) => `${addressOf(node)} ${node}`);
  await writeFile(hosts, ["127.0.0.1 localhost", `${gateway} ${hostname()}`, ...addresses, ""].join("\n"));
  try {
    await ip("link", "add", bridge, "type", "bridge");
    await ip("link", "set", bridge, "alias", `${MARK}${process.pid}`);
    await ip("addr", "add", `${gateway}/24`, "dev", bridge);
    await ip("link", "set", bridge, "up");
    for (const [index, node] of nodes.entries()) {
      const end = `slw${id}v${index}`;
      await ip("netns", "add", space(node));
      await ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", space(node));
      await ip("link", "set", end, "master", bridge, "up");
      await ip("-n", space(node), "addr", "add", `${addressOf(node)}/24`, "dev", "eth0");
      await ip("-n", space(node), "link", "set", "eth0", "up");
      await ip("-n", space(node), "link", "set", "lo", "up");
    }
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    gateway,
    bridge,
    addressOf,
    hosts,
    start: async (node, command, env = {}) => {
      await kill(node);
      // unshare takes its children with it: killing it kills the node
      const namespaces = ["--uts", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child=KILL"];
      // a node that comes back uses other process ids: the old ones must not seem alive
      starts += 1;
      const inside =
        'echo "$4" >/proc/sys/kernel/ns_last_pid; hostname "$1"; mount -t tmpfs tmpfs /dev/shm; mount --bind "$2" /etc/hosts; eval "$3" & wait';
      // not `ip netns exec`: it would hide the control groups
      const enter = [
        "nsenter",
        `--net=/run/netns/${space(node)}`,
        "unshare",
        ...namespaces,
        "bash",
        "-c",
        inside,
        "node",
      ];
      const argv = [...withBareEnvironment(env), ...enter, node, hosts, command, String(starts * 1000)];
      running.set(node, await startDaemon(argv, { log: join(root, `${node}.log`) }));
    },
    lastWords: async (node) => {
      const daemon = running.get(node);
      return daemon?.hasEnded() === true ? await readFile(daemon.log, "utf8") : undefined;
    },
    kill,
    stop,
  };
};

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createCommands, type RunCommand } from "../../../src/managers/commands.ts";
import { until } from "../../until.ts";
import { childrenOf, freePorts, startDaemon, type Daemon, mustRun } from "./daemons.ts";
import { createNodeNetwork, type NodeNetwork } from "./node-network.ts";
import { startAccounting } from "./slurm-accounting.ts";
import { cgroupConf, gresConf, slurmConf, type LabNode, type LabPlan, type SlurmLabOptions } from "./slurm-config.ts";
import { holdUsers } from "./users.ts";

/**
 * A real Slurm of several nodes on this machine, from Debian's packages, as root. Each node has its own pid and host
 * name namespaces: killing it ends everything that ran there, as a power cut would.
 */
export interface SlurmLab {
  /** What its commands need in their environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly root: string;
  /** A file system that only nodes `apart` and this machine share, for homes. */
  readonly shared: string;
  /** Names of the nodes: the common ones first, then big, then plain. */
  readonly nodes: readonly string[];
  /** Runs a command in its environment, also in another user's name. */
  readonly run: RunCommand;
  /** The node loses its power. */
  killNode(name: string): Promise<void>;
  startNode(name: string): Promise<void>;
  /** The administrator takes it out of service at once, and back. */
  downNode(name: string): Promise<void>;
  upNode(name: string): Promise<void>;
  /** slurmd stops answering while jobs continue, and answers again; not for nodes `apart`. */
  pauseNode(name: string): Promise<void>;
  resumeNode(name: string): Promise<void>;
  /** Seconds of silence after which a node is down, from now on. */
  setNodeTimeout(seconds: number): Promise<void>;
  killController(): Promise<void>;
  startController(): Promise<void>;
  /** In good order: keeps what the accounting has not heard yet. */
  stopController(): Promise<void>;
  /** For a stopped controller: when started again it knows of no job, and only the accounting knows what has ended. */
  forgetJobs(): Promise<void>;
  /**
   * The controller has written down everything that happened before. If it is killed earlier, it does not know: it
   * starts a job a second time if it had not written down the first start.
   */
  saved(): Promise<void>;
  /** Leaves no process, file, control group or account behind. */
  stop(): Promise<void>;
}

const call = promisify(execFile);

const PROGRAMS = ["/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/sbatch", "/usr/sbin/munged", "/usr/bin/unshare"];
const ACCOUNTING_PROGRAMS = ["/usr/sbin/slurmdbd", "/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db"];

/** Why it cannot be booted here. */
export const skipReason = (options: Pick<SlurmLabOptions, "accounting"> = {}): string | undefined => {
  if (process.getuid?.() !== 0) return "a Slurm of its own needs root";
  const missing = [...PROGRAMS, ...(options.accounting === true ? ACCOUNTING_PROGRAMS : [])].find(
    (p) => !existsSync(p),
  );
  return missing === undefined ? undefined : `${missing} is not installed`;
};

/** Until the nodes' network is known, they are on this machine. */
const planOf = async (root: string, options: SlurmLabOptions): Promise<LabPlan> => {
  const { nodes = 3, cpus = 8, memoryMb = 16_000, gpus = { a100: 4 }, bigNodes = 1, plainNodes = 1 } = options;
  const kinds: readonly LabNode["kind"][] = [
    ...Array<"common">(nodes).fill("common"),
    ...Array<"big">(bigNodes).fill("big"),
    ...Array<"plain">(plainNodes).fill("plain"),
  ];
  const [controller = 0, accounting = 0, database = 0, ...ports] = await freePorts(kinds.length + 3);
  // control groups are named after nodes: clusters that run side by side must not share them
  const stem = options.cgroups === true ? `c${randomBytes(3).toString("hex")}n` : "n";
  const real = Math.min(cpus, availableParallelism());
  return {
    root,
    options,
    address: "127.0.0.1",
    ports: { controller, accounting, database },
    nodes: kinds.map((kind, at) => {
      const times = kind === "big" ? 2 : 1;
      return {
        name: `${stem}${at + 1}`,
        address: "127.0.0.1",
        port: ports[at]!,
        cpus: options.cgroups === true ? real : cpus * times,
        memoryMb: memoryMb * times,
        gpus:
          kind === "plain"
            ? {}
            : Object.fromEntries(Object.entries(gpus).map(([type, count]) => [type, count * times] as const)),
        kind,
      };
    }),
  };
};

const writeFiles = async (plan: LabPlan): Promise<void> => {
  const { root, nodes } = plan;
  await chmod(root, 0o755);
  for (const name of ["munge", "state", "log", "spool", "dev", "conf", "shared", "tmp"]) await mkdir(join(root, name));
  await chmod(join(root, "munge"), 0o711);
  for (const { name } of nodes) await mkdir(join(root, "spool", name));
  await writeFile(join(root, "munge", "key"), randomBytes(128), { mode: 0o400 });
  await writeFile(join(root, "conf", "slurm.conf"), slurmConf(plan));
  await writeFile(join(root, "conf", "gres.conf"), gresConf(plan));
  await writeFile(join(root, "conf", "cgroup.conf"), cgroupConf);
  const most = new Map<string, number>();
  for (const { gpus } of nodes)
    for (const [type, count] of Object.entries(gpus)) most.set(type, Math.max(count, most.get(type) ?? 0));
  let minor = 0;
  for (const [type, count] of most)
    for (let at = 0; at < count; at++)
      await call("mknod", ["-m", "666", `${root}/dev/${type}-${at}`, "c", "240", String(minor++)]);
};

const unmount = (path: string): Promise<unknown> =>
  until(`${path} to be unmounted`, async () => {
    const { stdout } = await call("findmnt", ["--noheadings", "--output", "TARGET", "--mountpoint", path]).catch(
      () => ({ stdout: "" }),
    );
    if (stdout.trim() === "") return true;
    await call("umount", [path]).catch(() => undefined);
    return false;
  });

/** A suspended job's processes are frozen, and frozen processes do not die. */
const thaw = async (node: string): Promise<void> => {
  const top = `/sys/fs/cgroup/freezer/slurm_${node}`;
  const below = await readdir(top, { recursive: true }).catch(() => []);
  for (const file of below)
    if (file.endsWith("freezer.state")) await writeFile(join(top, file), "THAWED").catch(() => undefined);
};

/** What a node's daemon left under /sys/fs/cgroup, the innermost first. */
const removeControlGroups = async (nodes: readonly LabNode[]): Promise<void> => {
  const removeTree = async (path: string): Promise<void> => {
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) await removeTree(join(path, entry.name));
    await until(`the control group ${path} to be empty`, () =>
      rmdir(path).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code === "ENOENT",
      ),
    );
  };
  for (const controller of await readdir("/sys/fs/cgroup").catch(() => []))
    for (const { name } of nodes) {
      const path = join("/sys/fs/cgroup", controller, `slurm_${name}`);
      if (existsSync(path)) await removeTree(path);
    }
};

/** A network, a temporary directory for each node, and one file system for all. */
const setApart = async (plan: LabPlan): Promise<{ readonly plan: LabPlan; readonly network: NodeNetwork }> => {
  const names = plan.nodes.map(({ name }) => name);
  const network = await createNodeNetwork(plan.root, names);
  const nodes = plan.nodes.map((node) => ({ ...node, address: network.addressOf(node.name) }));
  return { plan: { ...plan, address: network.gateway, nodes }, network };
};

export const startSlurm = async (options: SlurmLabOptions = {}): Promise<SlurmLab> => {
  const apart = options.apart === true;
  // a node's own directories hide this machine's
  const root = await mkdtemp(join(apart ? "/var/tmp" : tmpdir(), "slw-slurm-"));
  const shared = join(root, "shared");
  let plan = await planOf(root, options);
  let network: NodeNetwork | undefined;
  const env = { SLURM_CONF: join(root, "conf", "slurm.conf") };
  const run = createCommands({
    env,
    mostAtOnce: 16,
    become: (user, argv, added) => [
      "runuser",
      "-u",
      user,
      "--",
      "env",
      ...Object.entries(added).map(([name, value]) => `${name}=${value}`),
      ...argv,
    ],
  });
  const must = mustRun(run);

  const services: Daemon[] = [];
  const nodes = new Map<string, Daemon>();
  let controller: Daemon | undefined;
  let releaseUsers = async (): Promise<void> => undefined;

  const startNode = async (name: string): Promise<void> => {
    if (network !== undefined) {
      const own = join(root, "tmp", name);
      await rm(own, { recursive: true, force: true });
      await mkdir(own);
      await chmod(own, 0o1777);
      return network.start(name, `mount --bind ${own} /tmp && exec slurmd -D -N ${name}`, env);
    }
    // its own shared memory, too: Open MPI names segments after host and process id, which other clusters' nodes share
    const script = 'hostname "$1" && mount -t tmpfs tmpfs /dev/shm && exec slurmd -D -N "$1"';
    const spaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"];
    nodes.set(
      name,
      await startDaemon([...spaces, "sh", "-c", script, "sh", name], {
        log: `${root}/log/${name}`,
        env,
        ownSession: true,
      }),
    );
  };

  const killNode = async (name: string): Promise<void> => {
    if (options.cgroups === true) await thaw(name);
    await network?.kill(name);
    await nodes.get(name)?.kill();
    nodes.delete(name);
    await rm(`${root}/slurmd-${name}.pid`, { force: true });
  };

  /** According to the controller: seconds since the epoch. */
  const daemonStarted = async (name: string): Promise<number> => {
    const shown = await must(["scontrol", "show", "node", name]);
    return Date.parse(/SlurmdStartTime=(\S+)/.exec(shown)?.[1] ?? "") / 1000;
  };
  const bringBack = async (name: string): Promise<void> => {
    const from = Math.floor(Date.now() / 1000);
    await startNode(name);
    // a node whose death went unnoticed has every sign of being back but this
    await until(`node ${name}`, async () => (await daemonStarted(name)) >= from);
  };

  const startController = async (): Promise<void> => {
    // -i: a controller that was killed before it wrote anything still starts
    const daemon = await startDaemon(["slurmctld", "-D", "-i"], {
      log: `${root}/log/slurmctld.out`,
      env,
      ownSession: true,
    });
    controller = daemon;
    await until("slurmctld", async () => {
      if (daemon.hasEnded()) throw new Error(`slurmctld ended: ${await readFile(daemon.log, "utf8")}`);
      return (await run(["scontrol", "ping"])).stdout.includes("is UP");
    });
  };

  const stop = async (): Promise<void> => {
    await Promise.all(plan.nodes.map(({ name }) => killNode(name)));
    await network?.stop();
    await controller?.kill();
    for (const daemon of services.toReversed()) await daemon.kill();
    services.length = 0;
    if (options.cgroups === true) await removeControlGroups(plan.nodes);
    if (apart) await unmount(shared);
    await rm(root, { recursive: true, force: true });
    await releaseUsers();
  };

  const signalNode = async (name: string, signal: NodeJS.Signals): Promise<void> => {
    const [slurmd] = await childrenOf(nodes.get(name)!.pid);
    process.kill(Number(slurmd), signal);
  };

  let marks = 0;
  const saved = async (): Promise<void> => {
    // state saved after this job was accepted contains its name, and everything that happened before it
    const mark = `slw-saved-${process.pid}-${(marks += 1)}`;
    const id = (await must(["sbatch", "--parsable", "--hold", `--job-name=${mark}`, "--wrap=true"])).trim();
    await until("the controller's state to be written", async () =>
      (await readFile(`${root}/state/job_state`, "latin1").catch(() => "")).includes(mark),
    );
    await must(["scancel", id]);
  };

  try {
    releaseUsers = await holdUsers(options.users ?? []);
    if (apart) ({ plan, network } = await setApart(plan));
    await writeFiles(plan);
    if (apart) await call("mount", ["-t", "tmpfs", "-o", "size=1g,mode=755", "slw-shared", shared]);
    const munge = ["key-file", "socket", "pid-file", "log-file", "seed-file"].map(
      (what) => `--${what}=${root}/munge/${what.replace("-file", "")}`,
    );
    services.push(
      await startDaemon(["munged", "--foreground", ...munge], { log: `${root}/log/munged.out`, ownSession: true }),
    );
    await until("munged", () => existsSync(`${root}/munge/socket`));
    if (options.accounting === true) await startAccounting(plan, run, services);
    await startController();
    await Promise.all(plan.nodes.map(({ name }) => startNode(name)));
    await until("all nodes to be idle", async () => {
      const lines = (await must(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"])).split("\n");
      return plan.nodes.every(({ name }) => lines.includes(name));
    });
  } catch (error) {
    const nodes = controller === undefined ? "" : (await run(["sinfo", "-N", "-o", "%N %t %E"])).stdout;
    const log = await readFile(`${root}/log/slurmctld.log`, "utf8").catch(() => "");
    await stop();
    throw new Error(`Slurm did not start:\n${nodes}${log.split("\n").slice(-20).join("\n")}`, { cause: error });
  }

  return {
    env,
    root,
    shared,
    nodes: plan.nodes.map(({ name }) => name),
    run,
    killNode,
    startNode: bringBack,
    downNode: async (name) => {
      await must(["scontrol", "update", `nodename=${name}`, "state=down", "reason=test"]);
    },
    upNode: async (name) => {
      await must(["scontrol", "update", `nodename=${name}`, "state=resume"]);
    },
    pauseNode: (name) => signalNode(name, "SIGSTOP"),
    resumeNode: (name) => signalNode(name, "SIGCONT"),
    setNodeTimeout: async (seconds) => {
      await writeFile(env.SLURM_CONF, slurmConf({ ...plan, options: { ...options, nodeTimeout: seconds } }));
      await must(["scontrol", "reconfigure"]);
    },
    killController: async () => {
      await controller?.kill();
    },
    startController,
    stopController: async () => {
      await controller?.kill("SIGTERM");
    },
    forgetJobs: async () => {
      for (const file of await readdir(`${root}/state`))
        if (file.startsWith("job_state")) await rm(`${root}/state/${file}`);
    },
    saved,
    stop,
  };
};

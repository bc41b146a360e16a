import { existsSync, readdirSync } from "node:fs";
import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommands, type RunCommand } from "../../../src/managers/commands.ts";
import { until } from "../../until.ts";
import { freePorts, startDaemon, type Daemon } from "./daemons.ts";
import { createNodeNetwork, withBareEnvironment, type NodeNetwork } from "./node-network.ts";
import { becomeUser, holdUsers } from "./users.ts";

/**
 * A real OAR with its PostgreSQL and several nodes on this machine, from Debian's packages, as root. Its paths are
 * compiled in, so a machine can have only one at a time: test files take turns with a lock. Its configuration is
 * restored afterwards, or by the next one if a test's process was killed.
 */
export interface OarLabOptions {
  /** How many nodes, n1 to nN. */
  readonly nodes?: number;
  /** Per node; 8192 MB are divided among them (property memcore). */
  readonly cores?: number;
  /** Accounts in addition to alice: root may not submit. */
  readonly users?: readonly string[];
}

export interface OarLab {
  /** What its commands need in their environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly root: string;
  readonly nodes: readonly string[];
  /** This machine, as the nodes see it. */
  readonly gateway: string;
  /** The name of the nodes' network; the names of its parts start with it. */
  readonly bridge: string;
  /** Somebody who may submit. */
  readonly user: string;
  /** Runs a command, also in another user's name. */
  readonly run: RunCommand;
  /** The node loses its power. */
  killNode(name: string): Promise<void>;
  /** It is back, and the administrator has said so. */
  startNode(name: string): Promise<void>;
  killServer(): Promise<void>;
  startServer(): Promise<void>;
  killDatabase(): Promise<void>;
  startDatabase(): Promise<void>;
  /** Leaves no process, network, file or account behind, and the configuration as it was. */
  stop(): Promise<void>;
}

const LOCK = "/tmp/slw-oar.lock";
const CONFIGURATION = "/etc/oar/oar.conf";
const SSH = "/var/lib/oar/.ssh/config";
/** Written by oarsh, with the nodes' addresses. */
const KNOWN_HOSTS = "/var/lib/oar/.ssh/known_hosts";
const RUNTIME = "/var/lib/oar";
/** The longest that other test files may take before it is this one's turn. */
const TURN_MS = 900_000;
const USER = "alice";

/** The newest PostgreSQL that is installed. */
const postgres = (): string | undefined => {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base) ? readdirSync(base).toSorted((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(base, version, "bin")).find((bin) => existsSync(join(bin, "postgres")));
};

/** Why it cannot be booted here. */
export const skipReason = (): string | undefined => {
  if (process.getuid?.() !== 0) return "an OAR of its own needs root";
  const missing = ["/usr/sbin/Almighty", "/usr/bin/oarsub", "/usr/sbin/sshd", "/usr/sbin/ip", CONFIGURATION].find(
    (path) => !existsSync(path),
  );
  if (missing !== undefined) return `${missing} is not installed`;
  return postgres() === undefined ? "PostgreSQL is not installed" : undefined;
};

const saved = (path: string): string => `${path}.slw-saved`;

/** Keeps a copy of the file for `restore`. */
const save = async (path: string): Promise<void> => {
  // written whole or not at all: a truncated copy must not be restored
  const { uid, gid, mode } = await stat(path);
  await copyFile(path, `${saved(path)}-new`);
  await chown(`${saved(path)}-new`, uid, gid);
  await chmod(`${saved(path)}-new`, mode & 0o7777);
  await rename(`${saved(path)}-new`, saved(path));
};
const restore = async (path: string): Promise<void> => {
  if (existsSync(saved(path))) await rename(saved(path), path);
};

/** Lines `NAME="value"` with some of them changed, added if missing, or removed. */
const changed = (text: string, changes: Readonly<Record<string, string | undefined>>): string => {
  const kept = text.split("\n").filter((line) => !Object.hasOwn(changes, line.split("=", 1)[0]!));
  const added = Object.entries(changes).flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${value}"`]));
  return [...kept, ...added, ""].join("\n");
};

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });

export const startOar = async (options: OarLabOptions = {}): Promise<OarLab> => {
  const cores = options.cores ?? 4;
  const nodes = Array.from({ length: options.nodes ?? 3 }, (_, index) => `n${index + 1}`);
  const root = await mkdtemp(join(tmpdir(), "slw-oar-"));
  await chmod(root, 0o755);
  const bin = postgres()!;
  const [databasePort = 0, port = 0] = await freePorts(2);
  const run = createCommands({ mostAtOnce: 8, become: becomeUser });
  const must = async (argv: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(argv);
    if (code !== 0) throw new Error(`${argv.join(" ")}: ${code}: ${stderr}${stdout}`);
    return stdout;
  };

  let turn: Daemon | undefined;
  let network: NodeNetwork | undefined;
  let database: Daemon | undefined;
  let server: Daemon | undefined;
  const made: string[] = [];
  let releaseUsers = async (): Promise<void> => undefined;

  const clearRuntime = async (): Promise<void> => {
    // ids start over with each database
    for (const name of await readdir(RUNTIME))
      if (/^\d|^pid_of_oarexec/.test(name)) await rm(join(RUNTIME, name), { recursive: true });
  };

  const stop = async (): Promise<void> => {
    await network?.stop();
    await server?.kill();
    await database?.kill("SIGINT");
    await clearRuntime();
    await restore(CONFIGURATION);
    await restore(SSH);
    for (const path of made) await rm(path, { recursive: true, force: true });
    await rm(root, { recursive: true, force: true });
    await releaseUsers();
    await turn?.kill();
  };

  const takeTurn = async (): Promise<void> => {
    const log = join(root, "turn");
    // without a fork: the lock ends with the process
    const words = ["flock", "--no-fork", LOCK, "sh", "-c", "echo mine; exec sleep infinity"];
    turn = await startDaemon(words, { log });
    await until("other tests of OAR", async () => (await readFile(log, "utf8")).includes("mine"), TURN_MS);
  };

  const startDatabase = async (): Promise<void> => {
    database = await startDaemon([`${bin}/postgres`, "-D", join(root, "pg")], {
      log: join(root, "postgres.log"),
      user: "postgres",
    });
    await until("PostgreSQL", async () => {
      const ready = await run([`${bin}/pg_isready`, "-q", "-h", "127.0.0.1", "-p", String(databasePort)]);
      return ready.code === 0;
    });
  };

  const writeDatabase = async (): Promise<void> => {
    const data = join(root, "pg");
    await mkdir(data, { mode: 0o700 });
    await must(["chown", "postgres:", data]);
    const asPostgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];
    await must([...asPostgres, `${bin}/initdb`, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]);
    const settings = [
      `port=${databasePort}`,
      "listen_addresses='127.0.0.1'",
      "unix_socket_directories=''",
      "fsync=off",
      "synchronous_commit=off",
      "full_page_writes=off",
      "max_connections=200",
      "",
    ];
    await writeFile(join(data, "postgresql.conf"), settings.join("\n"), { flag: "a" });
  };

  const configure = async (gateway: string): Promise<void> => {
    const text = changed(await readFile(CONFIGURATION, "utf8"), {
      DB_HOSTNAME: "127.0.0.1",
      DB_PORT: String(databasePort),
      DB_BASE_PASSWD: "oar",
      DB_BASE_PASSWD_RO: "oar_ro",
      SERVER_HOSTNAME: gateway,
      SERVER_PORT: String(port),
      LOG_FILE: join(root, "oar.log"),
      // no cpusets: namespaces keep jobs apart here
      JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD: undefined,
      // so oarsh need not look for one, but must say whose it is: it reads this file as a script
      OARSH_BYPASS_WHOLE_SECURITY: "1",
      "export OAR_JOB_USER": "${OAR_JOB_USER:-$OARDO_USER}",
      SCHEDULER_JOB_SECURITY_TIME: "1",
      FINAUD_FREQUENCY: "0",
      // with 1, a job takes 11 s to start
      SCHEDULER_MIN_TIME_BETWEEN_2_CALLS: "0",
      // a deletion that came too early is repeated ten seconds later; giving it up would cost the node, which OAR then
      // suspects
      JOBDEL_SOFTWALLTIME: "1",
      JOBDEL_WALLTIME: "20",
    });
    await save(CONFIGURATION);
    await writeFile(CONFIGURATION, text);
    await writeFile(join(root, "oar.log"), "");
    await chmod(join(root, "oar.log"), 0o666);
    const hosts = nodes.map((node) => `Host ${node}\n  HostName ${network!.addressOf(node)}\n`);
    const common = ["ForwardX11 no", "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR"];
    const others = [...common, "PasswordAuthentication no", "AddressFamily inet"];
    await save(SSH);
    await writeFile(SSH, `${hosts.join("")}Host *\n${others.map((line) => `  ${line}\n`).join("")}`);
  };

  const startServer = async (): Promise<void> => {
    // in a process tree of its own, so that its modules end with it
    const spaces = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "sh", "-c"];
    const words = [...withBareEnvironment({ LANG: "C" }), ...spaces, "/usr/sbin/Almighty & wait"];
    const started = await startDaemon(words, { log: join(root, "almighty.log") });
    server = started;
    await until("Almighty", async () => {
      if (started.hasEnded()) throw new Error(`Almighty ended: ${await readFile(started.log, "utf8")}`);
      return answers(port);
    });
  };

  const startNode = async (node: string): Promise<void> => {
    await network!.start(node, "/usr/sbin/sshd -D -e -f /etc/oar/sshd_config -o PidFile=none");
    const knock = ["bash", "-c", `exec 3<>/dev/tcp/${network!.addressOf(node)}/6667`];
    await until(`node ${node}`, async () => {
      const words = await network!.lastWords(node);
      if (words !== undefined) throw new Error(`sshd of ${node} ended: ${words}`);
      return (await run(knock)).code === 0;
    });
  };

  const addResources = async (): Promise<void> => {
    for (const words of [["cpu"], ["core"], ["host", "-c"], ["memnode"], ["memcore"]])
      await must(["oarproperty", "-a", ...words]);
    const rows = nodes.flatMap((node, at) =>
      Array.from({ length: cores }, (_, core) => {
        const numbers = [at + 1, at * cores + core + 1, `'${core}'`, 8192, Math.floor(8192 / cores)].join(",");
        return `('default','${node}','${node}',${numbers},'Alive','UnChanged')`;
      }),
    );
    const columns = "type,network_address,host,cpu,core,cpuset,memnode,memcore,state,next_state";
    const sql = `INSERT INTO resources (${columns}) VALUES ${rows.join(",")};`;
    const psql = [`${bin}/psql`, "-q", "-h", "127.0.0.1", "-p", String(databasePort), "-U", "oar", "oar", "-c", sql];
    await must(psql);
  };

  try {
    await takeTurn();
    // what a killed test left
    await restore(CONFIGURATION);
    await restore(SSH);
    await clearRuntime();
    releaseUsers = await holdUsers([USER, ...(options.users ?? [])]);
    network = await createNodeNetwork(root, nodes);
    await writeDatabase();
    await startDatabase();
    await configure(network.gateway);
    await must(["oar-database", "--create", "--db-admin-user=postgres", "--db-admin-pass=x"]);
    for (const path of ["/run/sshd", KNOWN_HOSTS]) if (!existsSync(path)) made.push(path);
    await mkdir("/run/sshd", { recursive: true });
    await Promise.all(nodes.map(startNode));
    await startServer();
    await addResources();
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    env: {},
    root,
    nodes,
    gateway: network.gateway,
    bridge: network.bridge,
    user: USER,
    run,
    killNode: network.kill,
    startNode: async (node) => {
      await startNode(node);
      await must(["oarnodesetting", "-h", node, "-s", "Alive"]);
    },
    killServer: async () => {
      await server?.kill();
    },
    startServer,
    killDatabase: async () => {
      await database?.kill("SIGINT");
    },
    startDatabase,
    stop,
  };
};

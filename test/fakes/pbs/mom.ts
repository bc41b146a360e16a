import { spawn } from "node:child_process";
import { chownSync, closeSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { socketOf } from "./config.ts";
import { onMessages, sendMessage } from "./lines.ts";

/**
 * The daemon of one node: starts what the server sends as the job's user, in a session of its own, and ends what
 * belongs to a job. It has its own pid and host name namespaces where that is allowed: its death is the node's.
 */

/** One process that the server wants here. */
export interface MomTask {
  readonly job: string;
  readonly cookie: string;
  readonly argv: readonly string[];
  /** What it reads; it ends there. */
  readonly input: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly uid: number;
  readonly gid: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type MomRequest =
  | { readonly do: "start"; readonly task: number; readonly what: MomTask }
  | { readonly do: "signal"; readonly job: string; readonly signal: "SIGTERM" | "SIGKILL" }
  | { readonly do: "forget"; readonly job: string };

const [root = "", name = ""] = process.argv.slice(2);
const isRoot = process.getuid!() === 0;

const socket = connect(socketOf(root));
socket.on("error", () => process.exit(1));
socket.on("close", () => process.exit(0));

interface Local {
  readonly cookie: string;
  readonly sessions: Set<number>;
}
const jobs = new Map<string, Local>();

const tmpOf = (job: string): string => `${root}/tmp/${name}.${job}`;

const start = (task: number, what: MomTask): void => {
  const local = jobs.get(what.job) ?? { cookie: what.cookie, sessions: new Set() };
  if (!jobs.has(what.job)) {
    jobs.set(what.job, local);
    mkdirSync(tmpOf(what.job), { recursive: true, mode: 0o700 });
    if (isRoot) chownSync(tmpOf(what.job), what.uid, what.gid);
  }
  const fds = [openSync(what.stdout, "a"), openSync(what.stderr, "a")];
  const child = spawn(what.argv[0]!, what.argv.slice(1), {
    cwd: what.cwd,
    env: { ...what.env, TMPDIR: tmpOf(what.job) },
    stdio: ["pipe", fds[0]!, fds[1]!],
    detached: true,
    ...(isRoot ? { uid: what.uid, gid: what.gid } : {}),
  });
  for (const fd of fds) closeSync(fd);
  if (child.pid !== undefined) local.sessions.add(child.pid);
  child.stdin!.on("error", () => undefined);
  child.stdin!.end(what.input);
  let told = false;
  const tell = (facts: object): void => {
    if (!told) sendMessage(socket, { task, ...facts });
    told = true;
  };
  child.once("error", () => tell({ code: 254 }));
  child.once("exit", (code, signal) => tell({ code, signal }));
};

/** Sessions that were started for a job, everything that descends from them, and what carries its cookie. */
const processesOf = ({ cookie, sessions }: Local): number[] => {
  const found = new Set<number>();
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (fields[0] === "Z" || fields[0] === "X") continue;
      parents.set(pid, Number(fields[1]));
      if (sessions.has(Number(fields[3]))) found.add(pid);
      else if (readFileSync(`/proc/${pid}/environ`, "latin1").includes(`PBS_JOBCOOKIE=${cookie}\0`)) found.add(pid);
    } catch {
      parents.delete(pid);
    }
  }
  for (let grew = true; grew;) {
    grew = false;
    for (const [pid, parent] of parents)
      if (found.has(parent) && !found.has(pid)) {
        found.add(pid);
        grew = true;
      }
  }
  return [...found];
};

const signal = (job: string, which: NodeJS.Signals): void => {
  const local = jobs.get(job);
  if (local === undefined) return;
  // the next round finds what is born meanwhile
  for (let round = 0; round < (which === "SIGKILL" ? 5 : 1); round += 1)
    for (const pid of processesOf(local))
      try {
        process.kill(pid, which);
      } catch {
        continue;
      }
};

onMessages(socket, (message) => {
  const request = message as unknown as MomRequest;
  if (request.do === "start") start(request.task, request.what);
  else if (request.do === "signal") signal(request.job, request.signal);
  else {
    signal(request.job, "SIGKILL");
    jobs.delete(request.job);
    rmSync(tmpOf(request.job), { recursive: true, force: true });
  }
});

// without its own namespaces it takes its jobs along
if (!isRoot)
  process.on("SIGTERM", () => {
    for (const job of jobs.keys()) signal(job, "SIGKILL");
    process.exit(0);
  });

sendMessage(socket, { mom: name });
